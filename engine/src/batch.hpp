// What a batch of games does: start, step, judge, restart.
#pragma once

#include "layout.hpp"
#include "threads.hpp"

namespace craftax {

inline constexpr int kPiece = 16;  // environments that one thread takes at a time

// Where a step leaves what it found, one row an environment.
struct Observations {
  std::uint8_t* cells;
  float* features;

  void take(const State& state, int env) const {
    observe(state, cells + std::size_t{kCellBytes} * env, features + std::size_t{kFeatures} * env);
  }
};

struct Outcomes {
  bool* success;
  bool* terminated;
  bool* truncated;
};

inline int pieces(int num_envs) { return (num_envs + kPiece - 1) / kPiece; }

// Calls work(env) for every environment.
template <class Work>
void for_each_env(int num_envs, int threads, const Work& work) {
  ThreadPool::run(pieces(num_envs), threads, [&](int piece) {
    const int end = at_most((piece + 1) * kPiece, num_envs);
    for (int env = piece * kPiece; env < end; ++env) work(env);
  });
}

// Calls work(env, chances) for every environment, with the random numbers of its next step.
template <class Work>
void for_each_draw(const Batch& batch, int threads, const Work& work) {
  const int num_envs = batch.header().num_envs;
  ThreadPool::run(pieces(num_envs), threads, [&](int piece) {
    const int first = piece * kPiece;
    const int count = at_most(num_envs - first, kPiece);
    Key keys[kPiece];
    Chances chances[kPiece];
    for (int i = 0; i < count; ++i) keys[i] = batch.state(first + i).rng;
    draw(keys, chances, count);
    for (int i = 0; i < count; ++i) work(first + i, chances[i]);
  });
}

// An empty batch of games; the bytes must be zero.
inline void make_batch(void* bytes, int num_envs, int num_goals, int episode_limit, int queue_capacity) {
  Header& header = *static_cast<Header*>(bytes);
  std::memcpy(header.magic, kMagic, sizeof kMagic);
  header.version = kVersion;
  header.state_bytes = sizeof(State);
  header.total_bytes = Batch::size(num_envs, num_goals, queue_capacity);
  header.num_envs = num_envs;
  header.num_goals = num_goals;
  header.episode_limit = episode_limit;
  header.queue_capacity = queue_capacity;
}

inline void generate(const Batch& batch, const Key* worlds, int threads) {
  batch.header().mode = Mode::games;
  for_each_env(batch.header().num_envs, threads, [&](int env) { generate_world(batch.state(env), worlds[env]); });
}

// Whether each goal holds without a step taken, one row an environment.
inline void judge_start(const Batch& batch, bool* holds) {
  const int num_goals = batch.header().num_goals;
  for (int env = 0; env < batch.header().num_envs; ++env) {
    const State& state = batch.state(env);
    const Before before = look(state);
    for (int g = 0; g < num_goals; ++g) *holds++ = reached(before, state, batch.goals()[g]);
  }
}

// Steps games. `keys` (or null) take the place of those that the games carry; `goals_reached` may be null.
inline void step_games(const Batch& batch, const std::int32_t* actions, const Key* keys, float* reward, bool* done,
                       bool* goals_reached, int threads) {
  const Rules rules{batch.header().episode_limit};
  const std::size_t num_goals = batch.header().num_goals;
  if (keys != nullptr) {
    for (int env = 0; env < batch.header().num_envs; ++env) batch.state(env).rng = keys[env];
  }
  for_each_draw(batch, threads, [&](int env, const Chances& chances) {
    State& state = batch.state(env);
    const Before before = look(state);
    const StepResult result = step(state, static_cast<Action>(actions[env]), chances, rules);
    reward[env] = result.reward;
    done[env] = result.terminated || result.truncated;
    if (goals_reached == nullptr) return;
    for (std::size_t g = 0; g < num_goals; ++g) {
      goals_reached[num_goals * env + g] = reached(before, state, batch.goals()[g]);
    }
  });
}

}  // namespace craftax
