// The Python module craftax_native._core: checks every argument, lets go of the interpreter, and works in place.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <memory>
#include <optional>
#include <string>

#include "arguments.hpp"
#include "batch.hpp"
#include "check.hpp"
#include "exchange.hpp"
#ifdef CRAFTAX_FFI
#include "ffi.hpp"
#endif

namespace craftax {
namespace {

nb::object py_new_state(nb::object num_envs, nb::object goals, nb::object episode_limit, nb::object queue_capacity) {
  const std::int32_t envs = in_range("num_envs", num_envs, 1, kMaxEnvs);
  const std::int32_t limit = in_range("episode_limit", episode_limit, 1, 1000000000);
  const std::int32_t capacity = in_range("queue_capacity", queue_capacity, 0, kMaxEnvs);
  std::optional<Array<std::uint8_t>> table;
  if (!goals.is_none()) table.emplace("goals", goals, std::initializer_list<std::int64_t>{kAnyLength, sizeof(Goal)});
  const std::int64_t rows = table ? table->length() : 0;
  if (rows > kMaxGoals) {
    refuse("goals has " + std::to_string(rows) + " rows, but may have at most " + std::to_string(kMaxGoals));
  }
  const std::int32_t num_goals = static_cast<std::int32_t>(rows);
  std::uint8_t* bytes = nullptr;
  nb::object state = new_array<std::uint8_t>({Batch::size(envs, num_goals, capacity)}, &bytes);
  make_batch(bytes, envs, num_goals, limit, capacity);
  for (int g = 0; g < num_goals; ++g) {
    const std::uint8_t* const codes = table->data() + sizeof(Goal) * static_cast<std::size_t>(g);
    Goal& goal = Batch(bytes).goals()[g];
    std::memcpy(&goal, codes, sizeof(Goal));
    if (!is_valid(goal)) {
      std::string row;
      for (std::size_t i = 0; i < sizeof(Goal); ++i) row.append(" ").append(std::to_string(codes[i]));
      refuse("goals contain in row " + std::to_string(g) + " the codes" + row + ", which are no goal's");
    }
  }
  return state;
}

void py_generate(nb::object state, nb::object keys, nb::object threads) {
  const StateArray batch(state);
  const Array<std::uint32_t> words("keys", keys, {batch.num_envs(), 2});
  const int workers = in_range("threads", threads, 1, kMaxThreads);
  const nb::gil_scoped_release unlocked;
  generate(*batch, as_keys(words.data()), workers);
}

void py_step_games(nb::object state, nb::object actions, nb::object keys, nb::object reward, nb::object done,
                   nb::object reached, nb::object threads) {
  const StateArray batch(state);
  const std::int64_t n = batch.num_envs();
  const Array<std::int32_t> chosen("actions", actions, {n});
  check_range("actions", chosen.data(), n, kActions);
  std::optional<Array<std::uint32_t>> words;
  if (!keys.is_none()) words.emplace("keys", keys, std::initializer_list<std::int64_t>{n, 2});
  const Array<float> rewards("reward", reward, {n}, true);
  const Array<bool> ends("done", done, {n}, true);
  std::optional<Array<bool>> flags;
  if (!reached.is_none()) {
    flags.emplace("reached", reached, std::initializer_list<std::int64_t>{n, batch.num_goals()}, true);
  }
  const int workers = in_range("threads", threads, 1, kMaxThreads);
  if (batch->header().mode != Mode::games) refuse("state holds episodes of training or evaluation, not plain games");
  const nb::gil_scoped_release unlocked;
  step_games(*batch, chosen.data(), words ? as_keys(words->data()) : nullptr, rewards.data(), ends.data(),
             flags ? flags->data() : nullptr, workers);
}

// Arguments that start episodes: their keys and goals.
struct Episodes {
  Array<std::uint32_t> keys;
  Array<std::int32_t> goals;

  Episodes(const StateArray& batch, nb::handle keys_given, nb::handle goals_given, std::int64_t count)
      : keys("keys", keys_given, {count, 2}), goals("goals", goals_given, {keys.length()}) {
    if (batch.num_goals() == 0) refuse("state has no goals: name them in new_state()");
    check_range("goals", goals.data(), goals.length(), static_cast<int>(batch.num_goals()));
  }
};

struct ObservationArrays {
  Array<std::uint8_t> cells;
  Array<float> features;

  ObservationArrays(const StateArray& batch, nb::handle cells_given, nb::handle features_given)
      : cells("cells", cells_given, {batch.num_envs(), kViewRows, kViewCols, kChannels}, true),
        features("features", features_given, {batch.num_envs(), kFeatures}, true) {}

  Observations targets() const { return {cells.data(), features.data()}; }
};

void py_start(nb::object state, nb::object keys, nb::object goals, nb::object cells, nb::object features,
              nb::object threads, bool training) {
  const StateArray batch(state);
  const Episodes episodes(batch, keys, goals, batch.num_envs());
  const ObservationArrays seen(batch, cells, features);
  const int workers = in_range("threads", threads, 1, kMaxThreads);
  if (!training && batch->header().queue_capacity == 0) refuse("state has no queue: give new_state() a queue_capacity");
  const nb::gil_scoped_release unlocked;
  const auto start = training ? reset : begin;
  start(*batch, as_keys(episodes.keys.data()), episodes.goals.data(), seen.targets(), workers);
}

void py_reset(nb::object state, nb::object keys, nb::object goals, nb::object cells, nb::object features,
              nb::object threads) {
  py_start(state, keys, goals, cells, features, threads, true);
}

void py_begin(nb::object state, nb::object keys, nb::object goals, nb::object cells, nb::object features,
              nb::object threads) {
  py_start(state, keys, goals, cells, features, threads, false);
}

void py_enqueue(nb::object state, nb::object keys, nb::object goals) {
  const StateArray batch(state);
  const Episodes episodes(batch, keys, goals, kAnyLength);
  const Header& header = batch->header();
  if (header.mode != Mode::evaluation) {
    refuse("episodes are queued after begin(), but this state comes from " +
           std::string(header.mode == Mode::training ? "reset()" : "new_state() or generate()"));
  }
  const std::int64_t left = static_cast<std::int64_t>(room(header));
  if (episodes.goals.length() > left) {
    refuse(std::to_string(episodes.goals.length()) + " episodes to queue, but there is room for " +
           std::to_string(left) + " of " + std::to_string(header.queue_capacity));
  }
  enqueue(*batch, as_keys(episodes.keys.data()), episodes.goals.data(), static_cast<int>(episodes.goals.length()));
}

void py_step(nb::object state, nb::object actions, nb::object cells, nb::object features, nb::object success,
             nb::object terminated, nb::object truncated, nb::object threads) {
  const StateArray batch(state);
  const std::int64_t n = batch.num_envs();
  const Array<std::int32_t> chosen("actions", actions, {n});
  check_range("actions", chosen.data(), n, kActions);
  const ObservationArrays seen(batch, cells, features);
  const Array<bool> successes("success", success, {n}, true);
  const Array<bool> terminations("terminated", terminated, {n}, true);
  const Array<bool> truncations("truncated", truncated, {n}, true);
  const int workers = in_range("threads", threads, 1, kMaxThreads);
  if (const char* fault = find_fault_to_step(*batch)) refuse(fault);
  const nb::gil_scoped_release unlocked;
  step(*batch, chosen.data(), seen.targets(), {successes.data(), terminations.data(), truncations.data()}, workers);
}

nb::tuple py_assignment(nb::object state) {
  const StateArray batch(state, false);
  const std::size_t n = static_cast<std::size_t>(batch.num_envs());
  std::int32_t *goal = nullptr, *step = nullptr;
  std::uint32_t* key = nullptr;
  bool* active = nullptr;
  const nb::tuple made = nb::make_tuple(new_array<std::int32_t>({n}, &goal), new_array<std::uint32_t>({n, 2}, &key),
                                        new_array<std::int32_t>({n}, &step), new_array<bool>({n}, &active));
  read_assignment(*batch, {goal, key, step, active});
  return made;
}

nb::dict py_counts(nb::object state) {
  const StateArray batch(state, false);
  nb::dict counts;
  for (int i = 0; i < kCounts; ++i) counts[kCountNames[i]] = count(batch->header(), i);
  return counts;
}

void py_check(nb::object state) {
  const StateArray batch(state, false);
  if (const std::string fault = find_damage(*batch); !fault.empty()) refuse("state is damaged: " + fault);
}

nb::dict py_describe(nb::object state) {
  const StateArray batch(state, false);
  const Header& header = batch->header();
  static const char* const kModes[] = {"games", "training", "evaluation"};
  nb::dict facts;
  facts["mode"] = kModes[static_cast<int>(header.mode)];
  facts["num_envs"] = header.num_envs;
  facts["num_goals"] = header.num_goals;
  facts["episode_limit"] = header.episode_limit;
  facts["queue_capacity"] = header.queue_capacity;
  facts["waiting"] = header.queued - header.taken;
  return facts;
}

void py_observe(nb::object state, nb::object cells, nb::object features) {
  const StateArray batch(state, false);
  const ObservationArrays seen(batch, cells, features);
  const nb::gil_scoped_release unlocked;
  for (int env = 0; env < batch.num_envs(); ++env) seen.targets().take(batch->state(env), env);
}

nb::object py_holds(nb::object state) {
  const StateArray batch(state, false);
  bool* flags = nullptr;
  nb::object made = new_array<bool>(
      {static_cast<std::size_t>(batch.num_envs()), static_cast<std::size_t>(batch.num_goals())}, &flags);
  judge_start(*batch, flags);
  return made;
}

nb::object py_reached(nb::object before, nb::object after, nb::object out) {
  const StateArray earlier(before, false), later(after, false);
  const std::size_t n = static_cast<std::size_t>(later.num_envs()), g = static_cast<std::size_t>(later.num_goals());
  if (earlier.num_envs() != later.num_envs()) {
    refuse("before has " + std::to_string(earlier.num_envs()) + " environments, but after has " + std::to_string(n));
  }
  bool* flags = nullptr;
  std::optional<Array<bool>> given;
  if (out.is_none()) {
    out = new_array<bool>({n, g}, &flags);
  } else {
    given.emplace("out", out, std::initializer_list<std::int64_t>{later.num_envs(), later.num_goals()}, true);
    flags = given->data();
  }
  for (std::size_t env = 0; env < n; ++env) {
    const int i = static_cast<int>(env);
    for (std::size_t goal = 0; goal < g; ++goal) {
      flags[g * env + goal] = reached(earlier->state(i), later->state(i), later->goals()[goal]);
    }
  }
  return out;
}

void make_all_floors(State& game) {
  for (int floor = 0; floor < kFloors; ++floor) generate_floor(game, floor);
}

nb::dict py_export_env(nb::object state, nb::object env) {
  const StateArray batch(state);
  State& game = batch->state(in_range("env", env, 0, batch.num_envs() - 1));
  make_all_floors(game);
  Exporter exporter;
  exporter.write(game, 0);
  return exporter.fields;
}

nb::dict py_export_all(nb::object state, nb::object out) {
  const StateArray batch(state);
  Exporter exporter(batch.num_envs(), out.is_none() ? nb::dict() : as_dict("out", out));
  for (int env = 0; env < batch.num_envs(); ++env) {
    make_all_floors(batch->state(env));
    exporter.write(batch->state(env), env);
  }
  return exporter.fields;
}

void py_import_env(nb::object state, nb::object env, nb::object fields) {
  const StateArray batch(state);
  State& target = batch->state(in_range("env", env, 0, batch.num_envs() - 1));
  const std::unique_ptr<State> game(new State{});
  Importer importer(as_dict("fields", fields));
  visit_env_state(*game, importer);
  importer.finish();
  game->generated = (1u << kFloors) - 1;
  for (Floor& floor : game->floors) derive_maps(floor);
  target = *game;
}

// An argument that may be None as far as nanobind is concerned, so that the error is ours.
auto operator""_arg(const char* name, std::size_t) { return nb::arg(name).none(); }

}  // namespace

NB_MODULE(_core, m) {
  m.def("new_state", &py_new_state, "num_envs"_arg, "goals"_arg = nb::none(), "episode_limit"_arg = 4096,
        "queue_capacity"_arg = 0);
  m.def("generate", &py_generate, "state"_arg, "keys"_arg, "threads"_arg = 1);
  m.def("reset", &py_reset, "state"_arg, "keys"_arg, "goals"_arg, "cells"_arg, "features"_arg, "threads"_arg = 1);
  m.def("begin", &py_begin, "state"_arg, "keys"_arg, "goals"_arg, "cells"_arg, "features"_arg, "threads"_arg = 1);
  m.def("enqueue", &py_enqueue, "state"_arg, "keys"_arg, "goals"_arg);
  m.def("step", &py_step, "state"_arg, "actions"_arg, "cells"_arg, "features"_arg, "success"_arg, "terminated"_arg,
        "truncated"_arg, "threads"_arg = 1);
  m.def("assignment", &py_assignment, "state"_arg);
  m.def("check", &py_check, "state"_arg);
  m.def("describe", &py_describe, "state"_arg);
  m.def("counts", &py_counts, "state"_arg);
  m.def("step_games", &py_step_games, "state"_arg, "actions"_arg, "keys"_arg, "reward"_arg, "done"_arg,
        "reached"_arg = nb::none(), "threads"_arg = 1);
  m.def("observe", &py_observe, "state"_arg, "cells"_arg, "features"_arg);
  m.def("holds", &py_holds, "state"_arg);
  m.def("export_env", &py_export_env, "state"_arg, "env"_arg);
  m.def("export_all", &py_export_all, "state"_arg, "out"_arg = nb::none());
  m.def("reached", &py_reached, "before"_arg, "after"_arg, "out"_arg = nb::none());
  m.def("import_env", &py_import_env, "state"_arg, "env"_arg, "fields"_arg);
#ifdef CRAFTAX_FFI
  nb::dict targets;
  for (const ForeignFunction* function = foreign_functions(); function->name != nullptr; ++function) {
    targets[function->name] = nb::capsule(function->address, "xla._CUSTOM_CALL_TARGET");
  }
  m.attr("ffi_targets") = targets;
#endif
}

}  // namespace craftax
