// The Python module craftax_native._core: checks every argument, lets go of the interpreter, and works in place.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <cmath>
#include <cstdlib>
#include <memory>
#include <new>
#include <optional>
#include <vector>

#include "arrays.hpp"
#include "batch.hpp"
#include "check.hpp"
#include "convert.hpp"
#ifdef CRAFTAX_FFI
#include "ffi.hpp"
#endif

namespace craftax {
namespace {

constexpr int kMaxThreads = 1024;
constexpr std::int64_t kMaxEnvs = 1 << 24;
constexpr std::int64_t kMaxGoals = 1 << 16;

[[noreturn]] void refuse(const std::string& message) { throw nb::value_error(message.c_str()); }

std::int32_t in_range(const char* name, nb::handle given, std::int64_t low, std::int64_t high) {
  PyObject* const number = PyNumber_Index(given.ptr());
  if (number == nullptr) {
    PyErr_Clear();
    throw nb::type_error((std::string(name) + " is a " + nb::inst_name(given).c_str() + ", but must be an integer").c_str());
  }
  int overflow = 0;
  const long long value = PyLong_AsLongLongAndOverflow(number, &overflow);
  const std::string text = nb::str(nb::steal(number)).c_str();
  if (overflow != 0 || value < low || value > high) {
    refuse(std::string(name) + " is " + text + ", but must be from " + std::to_string(low) + " to " +
           std::to_string(high));
  }
  return static_cast<std::int32_t>(value);
}

void check_range(const char* name, const std::int32_t* values, std::int64_t count, int limit) {
  for (std::int64_t i = 0; i < count; ++i) {
    if (values[i] < 0 || values[i] >= limit) {
      refuse(std::string(name) + " contain " + std::to_string(values[i]) + ", but must be from 0 to " +
             std::to_string(limit - 1));
    }
  }
}

// The state argument of every function.
class StateArray {
 public:
  explicit StateArray(nb::handle given, bool writable = true)
      : bytes_("state", given, {kAnyLength}, writable), batch_(checked()) {}

  const Batch* operator->() const { return &batch_; }
  const Batch& operator*() const { return batch_; }
  std::int64_t num_envs() const { return batch_.header().num_envs; }
  std::int64_t num_goals() const { return batch_.header().num_goals; }

 private:
  void* checked() const {
    const char* fault = find_fault(bytes_.data(), static_cast<std::size_t>(bytes_.length()));
    if (fault != nullptr) refuse(std::string("state is not a batch of games: ") + fault);
    return bytes_.data();
  }

  Array<std::uint8_t> bytes_;
  Batch batch_;
};

const Key* as_keys(const std::uint32_t* words) { return reinterpret_cast<const Key*>(words); }

// A NumPy array of the shape given, zero, at a multiple of a cache line.
template <class T>
nb::object new_array(const std::vector<std::size_t>& shape, T** data) {
  std::size_t count = 1;
  for (const std::size_t length : shape) count *= length;
  const std::size_t bytes = round_up(count * sizeof(T) + 1);
  void* memory = std::aligned_alloc(kLine, bytes);
  if (memory == nullptr) throw std::bad_alloc();
  std::memset(memory, 0, bytes);
  *data = static_cast<T*>(memory);
  nb::capsule owner(memory, [](void* p) noexcept { std::free(p); });
  return nb::cast(nb::ndarray<nb::numpy, T>(memory, shape.size(), shape.data(), owner), nb::rv_policy::automatic);
}

nb::object py_new_state(nb::object num_envs, nb::object goals, nb::object episode_limit,
                     nb::object queue_capacity) {
  const std::int32_t envs = in_range("num_envs", num_envs, 1, kMaxEnvs);
  const std::int32_t limit = in_range("episode_limit", episode_limit, 1, 1000000000);
  const std::int32_t capacity = in_range("queue_capacity", queue_capacity, 0, kMaxEnvs);
  std::optional<Array<std::uint8_t>> table;
  if (!goals.is_none()) table.emplace("goals", goals, std::initializer_list<std::int64_t>{kAnyLength, sizeof(Goal)});
  const std::int64_t rows = table ? table->length() : 0;
  if (rows > kMaxGoals) refuse("goals has " + std::to_string(rows) + " rows, but may have " + std::to_string(kMaxGoals));
  const std::int32_t num_goals = static_cast<std::int32_t>(rows);
  std::uint8_t* bytes = nullptr;
  nb::object state = new_array<std::uint8_t>({Batch::size(envs, num_goals, capacity)}, &bytes);
  make_batch(bytes, envs, num_goals, limit, capacity);
  for (int g = 0; g < num_goals; ++g) {
    Goal& goal = Batch(bytes).goals()[g];
    std::memcpy(&goal, table->data() + sizeof(Goal) * g, sizeof(Goal));
    if (!is_valid(goal)) {
      std::string row;
      for (std::size_t i = 0; i < sizeof(Goal); ++i) row.append(" ").append(std::to_string(table->at(sizeof(Goal) * g + i)));
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

std::size_t count_of(std::initializer_list<int> shape) {
  std::size_t count = 1;
  for (const int length : shape) count *= static_cast<std::size_t>(length);
  return count;
}

// Writes a game's fields into arrays by name: new ones, or rows of those of many games.
class Exporter {
 public:
  nb::dict fields;

  // Arrays of one game.
  Exporter() = default;
  // Rows of `rows` games, in the arrays that `given` holds or in new ones.
  Exporter(std::int64_t rows, nb::dict given) : fields(given), rows_(rows) {}

  void write(State& game, std::int64_t row) {
    row_ = row;
    field_ = 0;
    visit_env_state(game, *this);
  }

  template <class Place, class Checked = bool>
  void integers(const char* name, const char* suffix, std::initializer_list<int> shape, Range, Place place,
                Checked = {}) {
    fill<std::int32_t>(name, suffix, shape, [&](int i) { return static_cast<std::int32_t>(place(i)); });
  }
  template <class Place>
  void words(const char* name, const char* suffix, std::initializer_list<int> shape, Range, Place place) {
    fill<std::uint32_t>(name, suffix, shape, place);
  }
  template <class Place>
  void reals(const char* name, const char* suffix, std::initializer_list<int> shape, Place place) {
    fill<float>(name, suffix, shape, place);
  }
  template <class Place>
  void flags(const char* name, const char* suffix, std::initializer_list<int> shape, Place place) {
    fill<bool>(name, suffix, shape, [&](int i) { return place(i) != 0; });
  }
  template <class Get, class Set>
  void bits(const char* name, const char* suffix, std::initializer_list<int> shape, Get get, Set) {
    fill<bool>(name, suffix, shape, get);
  }

 private:
  template <class T, class Get>
  void fill(const char* name, const char* suffix, std::initializer_list<int> shape, Get get) {
    if (row_ == 0) places_.push_back(place<T>(std::string(name) + suffix, shape));
    const std::size_t count = count_of(shape);
    T* const target = static_cast<T*>(places_[field_++]) + count * static_cast<std::size_t>(row_);
    for (std::size_t i = 0; i < count; ++i) target[i] = static_cast<T>(get(static_cast<int>(i)));
  }

  template <class T>
  void* place(const std::string& name, std::initializer_list<int> shape) {
    std::vector<std::int64_t> lengths(shape.begin(), shape.end());
    if (rows_ >= 0) lengths.insert(lengths.begin(), rows_);
    const int axes = static_cast<int>(lengths.size());
    if (fields.contains(name.c_str())) return Array<T>(name.c_str(), fields[name.c_str()], lengths.data(), axes, true).data();
    T* data = nullptr;
    fields[name.c_str()] = new_array<T>({lengths.begin(), lengths.end()}, &data);
    return data;
  }

  std::int64_t rows_ = -1;
  std::int64_t row_ = 0;
  std::size_t field_ = 0;
  std::vector<void*> places_;
};

class Importer {
 public:
  explicit Importer(nb::dict fields) : fields_(fields) {}

  template <class Place>
  void integers(const char* name, const char* suffix, std::initializer_list<int> shape, Range range, Place place) {
    integers(name, suffix, shape, range, place, [](int) { return true; });
  }
  template <class Place, class Checked>
  void integers(const char* name, const char* suffix, std::initializer_list<int> shape, Range range, Place place,
                Checked checked) {
    read<std::int32_t>(name, suffix, shape, [&](const std::string& full, int i, std::int32_t value) {
      if (value < range.low || value > range.high) {
        if (checked(i)) refuse_value(full, std::to_string(value), range);
        value = static_cast<std::int32_t>(value < range.low ? range.low : range.high);
      }
      auto& target = place(i);
      target = static_cast<std::remove_reference_t<decltype(target)>>(value);
    });
  }
  template <class Place>
  void words(const char* name, const char* suffix, std::initializer_list<int> shape, Range, Place place) {
    read<std::uint32_t>(name, suffix, shape, [&](const std::string&, int i, std::uint32_t value) { place(i) = value; });
  }
  template <class Place>
  void reals(const char* name, const char* suffix, std::initializer_list<int> shape, Place place) {
    read<float>(name, suffix, shape, [&](const std::string& full, int i, float value) {
      if (!std::isfinite(value)) refuse(full + " contains " + std::to_string(value) + ", but must be finite");
      place(i) = value;
    });
  }
  template <class Place>
  void flags(const char* name, const char* suffix, std::initializer_list<int> shape, Place place) {
    bits(name, suffix, shape, place, [&](int i, bool value) { place(i) = value; });
  }
  template <class Get, class Set>
  void bits(const char* name, const char* suffix, std::initializer_list<int> shape, Get, Set set) {
    // As bytes, since a byte other than 0 and 1 must not be read as a bool.
    read<bool>(name, suffix, shape, [&](const std::string&, int i, bool value) { set(i, value); });
  }
  void finish() const {
    if (fields_.size() == known_) return;
    for (const auto [key, value] : fields_) {
      const std::string name = nb::cast<std::string>(nb::str(key));
      if (!seen_.contains(name.c_str())) refuse("a game has no field " + name);
    }
  }

 private:
  [[noreturn]] static void refuse_value(const std::string& name, const std::string& value, Range range) {
    refuse(name + " contains " + value + ", but must be from " + std::to_string(static_cast<long long>(range.low)) +
           " to " + std::to_string(static_cast<long long>(range.high)));
  }

  template <class T, class Set>
  void read(const char* name, const char* suffix, std::initializer_list<int> shape, Set set) {
    const std::string full = std::string(name) + suffix;
    if (!fields_.contains(full.c_str())) refuse("the field " + full + " is missing");
    std::int64_t lengths[4] = {};
    int axes = 0;
    for (const int length : shape) lengths[axes++] = length;
    const Array<T> array(full.c_str(), fields_[full.c_str()], lengths, axes);
    const int count = static_cast<int>(count_of(shape));
    for (int i = 0; i < count; ++i) set(full, i, array.at(i));
    seen_[full.c_str()] = true;
    ++known_;
  }

  nb::dict fields_;
  nb::dict seen_;
  std::size_t known_ = 0;
};

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
  Exporter exporter(batch.num_envs(), out.is_none() ? nb::dict() : nb::cast<nb::dict>(out));
  for (int env = 0; env < batch.num_envs(); ++env) {
    make_all_floors(batch->state(env));
    exporter.write(batch->state(env), env);
  }
  return exporter.fields;
}

void py_import_env(nb::object state, nb::object env, nb::dict fields) {
  const StateArray batch(state);
  State& target = batch->state(in_range("env", env, 0, batch.num_envs() - 1));
  const std::unique_ptr<State> game(new State{});
  Importer importer(fields);
  visit_env_state(*game, importer);
  importer.finish();
  game->generated = (1u << kFloors) - 1;
  for (Floor& floor : game->floors) derive_maps(floor);
  target = *game;
}

// An argument that may be None as far as nanobind is concerned, so that the error is ours.
nb::arg operator""_arg(const char* name, std::size_t) { return nb::arg(name).none(); }

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
