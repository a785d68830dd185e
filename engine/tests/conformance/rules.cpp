// The rules alone behind a C function, so that tests can build them with one rule altered in a few seconds.
#include "core/step.hpp"

using namespace craftax;

extern "C" __attribute__((visibility("default"))) void step_games(State* games, int num_games,
                                                                  const std::int32_t* actions, int max_timesteps,
                                                                  float* reward, bool* done) {
  for (int i = 0; i < num_games; ++i) {
    const StepResult result = step(games[i], static_cast<Action>(actions[i]), Rules{max_timesteps});
    reward[i] = result.reward;
    done[i] = result.terminated || result.truncated;
  }
}
