// What a batch of games does: start, step, judge, restart. Results do not depend on the number of threads.
#pragma once

#include "core/draw.hpp"
#include "core/observe.hpp"
#include "core/step.hpp"
#include "core/world/world.hpp"
#include "layout.hpp"
#include "threads.hpp"

namespace craftax {

// Where a step leaves what there is to see, one row an environment.
struct Observations {
  std::uint8_t* cells;
  float* features;

  void take(const State& state, int env) const {
    observe(state, cells + std::size_t{kCellBytes} * env, features + std::size_t{kFeatures} * env);
  }
};

// How a step ended, one flag an environment; all false where it idles.
struct Outcomes {
  bool* success;
  bool* terminated;
  bool* truncated;
};

namespace detail {

inline int pieces(int num_envs) { return (num_envs + kLanes - 1) / kLanes; }

// Calls work(env) for every environment.
template <class Work>
void for_each_env(int num_envs, int threads, const Work& work) {
  ThreadPool::run(pieces(num_envs), threads, [&](int piece) {
    const int end = at_most((piece + 1) * kLanes, num_envs);
    for (int env = piece * kLanes; env < end; ++env) work(env);
  });
}

// Calls work(env, chances) for every environment, with the chances of its next step.
template <class Work>
void for_each_draw(const Batch& batch, int threads, const Work& work) {
  const int num_envs = batch.header().num_envs;
  ThreadPool::run(pieces(num_envs), threads, [&](int piece) {
    const int first = piece * kLanes;
    const int count = at_most(num_envs - first, kLanes);
    Key keys[kLanes] = {};
    for (int lane = 0; lane < count; ++lane) keys[lane] = batch.state(first + lane).rng;
    ChanceBlock block;
    draw(keys, block);
    for (int lane = 0; lane < count; ++lane) work(first + lane, block.of(lane));
  });
}

// Starts the episode that the seat names. Its world and its chances come from its key.
inline void start_episode(const Batch& batch, int env) {
  Seat& seat = batch.seat(env);
  State& state = batch.state(env);
  generate_world(state, child(seat.key, 0));
  seat.held = holds(state, batch.goals()[seat.goal]);
  seat.active = true;
}

inline void start_all(const Batch& batch, Mode mode, const Key* keys, const std::int32_t* goals, Observations seen,
                      int threads) {
  Header& header = batch.header();
  header.mode = mode;
  header.idle_first = header.idle_count = 0;
  header.taken = header.queued = 0;
  header.steps = header.episodes = header.successes = header.successes_at_start = 0;
  header.worlds_used = static_cast<std::uint64_t>(header.num_envs);
  for_each_env(header.num_envs, threads, [&](int env) {
    Seat& seat = batch.seat(env) = {};
    seat.key = keys[env];
    seat.goal = goals[env];
    start_episode(batch, env);
    seen.take(batch.state(env), env);
  });
}

// Adds up what the step has left in the seats.
inline void count_step(const Batch& batch) {
  Header& header = batch.header();
  for (int env = 0; env < header.num_envs; ++env) {
    const Seat& seat = batch.seat(env);
    header.steps += seat.stepped;
    header.episodes += seat.ended;
    header.successes += seat.success;
    header.successes_at_start += seat.success_at_start;
  }
}

// Seats queued episodes where others have ended, in order of finishing, then of index; says whether there were any.
inline bool take_from_queue(const Batch& batch) {
  Header& header = batch.header();
  for (int env = 0; env < header.num_envs; ++env) {
    Seat& seat = batch.seat(env);
    seat.starting = false;
    if (!seat.ended) continue;
    seat.active = false;
    batch.idle()[(header.idle_first + header.idle_count++) % header.num_envs] = env;
  }
  bool any = false;
  for (; header.idle_count > 0 && header.taken < header.queued; any = true) {
    Seat& seat = batch.seat(batch.idle()[header.idle_first]);
    const Episode& episode = batch.queue()[header.taken++ % static_cast<std::uint64_t>(header.queue_capacity)];
    seat.key = episode.key;
    seat.goal = episode.goal;
    seat.starting = true;
    header.idle_first = (header.idle_first + 1) % header.num_envs;
    header.idle_count -= 1;
    header.worlds_used += 1;
  }
  return any;
}

}  // namespace detail

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

// Starts plain games in the worlds that the keys give.
inline void generate(const Batch& batch, const Key* worlds, int threads) {
  batch.header().mode = Mode::games;
  const int num_envs = batch.header().num_envs;
  detail::for_each_env(num_envs, threads, [&](int env) { generate_world(batch.state(env), worlds[env]); });
}

// Starts training: every environment goes from episode to episode, each in a fresh world, with one goal.
inline void reset(const Batch& batch, const Key* keys, const std::int32_t* goals, Observations seen, int threads) {
  detail::start_all(batch, Mode::training, keys, goals, seen, threads);
}

// Starts evaluation: one given episode in every environment, then those from the queue.
inline void begin(const Batch& batch, const Key* keys, const std::int32_t* goals, Observations seen, int threads) {
  detail::start_all(batch, Mode::evaluation, keys, goals, seen, threads);
}

// Episodes that the queue can still take.
inline std::uint64_t room(const Header& header) {
  return static_cast<std::uint64_t>(header.queue_capacity) - (header.queued - header.taken);
}

// Appends to the queue, which must have room.
inline void enqueue(const Batch& batch, const Key* keys, const std::int32_t* goals, int count) {
  Header& header = batch.header();
  for (int i = 0; i < count; ++i) {
    batch.queue()[header.queued++ % static_cast<std::uint64_t>(header.queue_capacity)] = {keys[i], goals[i]};
  }
}

// Advances episodes of training or evaluation; what is seen of a finished one is the start of the next.
inline void step(const Batch& batch, const std::int32_t* actions, Observations seen, Outcomes outcomes, int threads) {
  const Header& header = batch.header();
  const Rules rules{header.episode_limit};
  const bool training = header.mode == Mode::training;
  detail::for_each_draw(batch, threads, [&](int env, const Chances& chances) {
    Seat& seat = batch.seat(env);
    State& state = batch.state(env);
    StepResult result{};
    bool success = false;
    const bool first = state.timestep == 0;
    if (seat.active) {
      const Before before = look(state);
      result = step(state, static_cast<Action>(actions[env]), chances, rules);
      success = reached(before, state, batch.goals()[seat.goal]);
    }
    outcomes.success[env] = success;
    outcomes.terminated[env] = result.terminated;
    outcomes.truncated[env] = result.truncated;
    seat.stepped = seat.active;
    seat.success = success;
    seat.success_at_start = success && seat.held && first;
    seat.ended = success || result.terminated || result.truncated;
    if (seat.ended && training) {
      seat.key = child(seat.key, 1);
      detail::start_episode(batch, env);
    }
    seen.take(state, env);
  });
  detail::count_step(batch);
  if (training) {
    batch.header().worlds_used = static_cast<std::uint64_t>(header.num_envs) + header.episodes;
  } else if (detail::take_from_queue(batch)) {
    detail::for_each_env(header.num_envs, threads, [&](int env) {
      if (!batch.seat(env).starting) return;
      detail::start_episode(batch, env);
      seen.take(batch.state(env), env);
    });
  }
}

// Why `step` cannot be; null if it can. The games themselves are not looked at, which would take as long as the step.
inline const char* find_fault_to_step(const Batch& batch) {
  const Header& header = batch.header();
  if (header.mode == Mode::games) return "state holds plain games: start episodes with reset() or begin()";
  const auto in = [](std::int32_t number, std::int32_t limit) { return number >= 0 && number < limit; };
  bool whole = true;
  for (int env = 0; env < header.num_envs; ++env) {
    whole &= in(batch.seat(env).goal, header.num_goals) && in(batch.idle()[env], header.num_envs);
  }
  for (std::uint64_t number = header.taken; number < header.queued; ++number) {
    whole &= in(batch.queue()[number % static_cast<std::uint64_t>(header.queue_capacity)].goal, header.num_goals);
  }
  return whole ? nullptr : "state is damaged";
}

// The episode that each environment is in, one row an environment.
struct Assignment {
  std::int32_t* goal;
  std::uint32_t* key;  // two words
  std::int32_t* step;  // steps taken so far
  bool* active;
};

inline void read_assignment(const Batch& batch, Assignment target) {
  for (int env = 0; env < batch.header().num_envs; ++env) {
    const Seat& seat = batch.seat(env);
    target.goal[env] = seat.goal;
    target.key[2 * env] = seat.key.a;
    target.key[2 * env + 1] = seat.key.b;
    target.step[env] = batch.state(env).timestep;
    target.active[env] = seat.active;
  }
}

// What has happened since the last reset or begin.
inline constexpr int kCounts = 6;
inline constexpr const char* kCountNames[kCounts] = {
    "steps", "episodes", "successes", "successes_at_start", "worlds_used", "worlds_reused"};

inline std::uint64_t count(const Header& header, int which) {
  const std::uint64_t counts[kCounts] = {header.steps,     header.episodes,           header.successes,
                                         header.successes_at_start, header.worlds_used, 0};
  return counts[which];
}

// Whether each goal holds without a step taken, one row an environment.
inline void judge_start(const Batch& batch, bool* flags) {
  const int num_goals = batch.header().num_goals;
  for (int env = 0; env < batch.header().num_envs; ++env) {
    for (int g = 0; g < num_goals; ++g) *flags++ = holds(batch.state(env), batch.goals()[g]);
  }
}

// Steps plain games. `keys` (or null) take the place of those that the games carry; `goals_reached` may be null.
inline void step_games(const Batch& batch, const std::int32_t* actions, const Key* keys, float* reward, bool* done,
                       bool* goals_reached, int threads) {
  const Rules rules{batch.header().episode_limit};
  const std::size_t num_goals = static_cast<std::size_t>(batch.header().num_goals);
  if (keys != nullptr) {
    for (int env = 0; env < batch.header().num_envs; ++env) batch.state(env).rng = keys[env];
  }
  detail::for_each_draw(batch, threads, [&](int env, const Chances& chances) {
    State& state = batch.state(env);
    const Before before = look(state);
    const StepResult result = step(state, static_cast<Action>(actions[env]), chances, rules);
    reward[env] = result.reward;
    done[env] = result.terminated || result.truncated;
    if (goals_reached == nullptr) return;
    bool* const row = goals_reached + num_goals * static_cast<std::size_t>(env);
    for (std::size_t g = 0; g < num_goals; ++g) row[g] = reached(before, state, batch.goals()[g]);
  });
}

}  // namespace craftax
