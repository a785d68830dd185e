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

#include "arrays.hpp"
#include "batch.hpp"
#include "convert.hpp"

namespace craftax {
namespace {

constexpr int kMaxThreads = 1024;
constexpr std::int64_t kMaxEnvs = 1 << 24;

[[noreturn]] void refuse(const std::string& message) { throw nb::value_error(message.c_str()); }

std::int32_t in_range(const char* name, std::int64_t value, std::int64_t low, std::int64_t high) {
  if (value < low || value > high) {
    refuse(std::string(name) + " is " + std::to_string(value) + ", but must be from " + std::to_string(low) + " to " +
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
nb::object new_array(std::initializer_list<std::size_t> shape, T** data = nullptr) {
  std::size_t count = 1;
  for (const std::size_t length : shape) count *= length;
  const std::size_t bytes = round_up(count * sizeof(T) + 1);
  void* memory = std::aligned_alloc(kLine, bytes);
  if (memory == nullptr) throw std::bad_alloc();
  std::memset(memory, 0, bytes);
  if (data != nullptr) *data = static_cast<T*>(memory);
  nb::capsule owner(memory, [](void* p) noexcept { std::free(p); });
  return nb::cast(nb::ndarray<nb::numpy, T>(memory, shape, owner), nb::rv_policy::automatic);
}

nb::object py_new_state(std::int64_t num_envs, nb::object goals, std::int64_t episode_limit,
                     std::int64_t queue_capacity) {
  const std::int32_t envs = in_range("num_envs", num_envs, 1, kMaxEnvs);
  const std::int32_t limit = in_range("episode_limit", episode_limit, 1, 1000000000);
  const std::int32_t capacity = in_range("queue_capacity", queue_capacity, 0, kMaxEnvs);
  std::optional<Array<std::uint8_t>> table;
  if (!goals.is_none()) table.emplace("goals", goals, std::initializer_list<std::int64_t>{kAnyLength, sizeof(Goal)});
  const std::int32_t num_goals = table ? in_range("the number of goals", table->length(), 0, 65536) : 0;
  std::uint8_t* bytes = nullptr;
  nb::object state = new_array<std::uint8_t>({Batch::size(envs, num_goals, capacity)}, &bytes);
  make_batch(bytes, envs, num_goals, limit, capacity);
  for (int g = 0; g < num_goals; ++g) {
    Goal& goal = Batch(bytes).goals()[g];
    std::memcpy(&goal, table->data() + sizeof(Goal) * g, sizeof(Goal));
    if (!is_valid(goal)) refuse("goals contain in row " + std::to_string(g) + " what is no goal");
  }
  return state;
}

void py_generate(nb::object state, nb::object keys, std::int64_t threads) {
  const StateArray batch(state);
  const Array<std::uint32_t> words("keys", keys, {batch.num_envs(), 2});
  const int workers = in_range("threads", threads, 1, kMaxThreads);
  const nb::gil_scoped_release unlocked;
  generate(*batch, as_keys(words.data()), workers);
}

void py_step_games(nb::object state, nb::object actions, nb::object keys, nb::object reward, nb::object done,
                   nb::object reached, std::int64_t threads) {
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

void py_observe(nb::object state, nb::object cells, nb::object features) {
  const StateArray batch(state, false);
  const Array<std::uint8_t> ids("cells", cells, {batch.num_envs(), kViewRows, kViewCols, 8}, true);
  const Array<float> numbers("features", features, {batch.num_envs(), kFeatures}, true);
  const nb::gil_scoped_release unlocked;
  for (int env = 0; env < batch.num_envs(); ++env) Observations{ids.data(), numbers.data()}.take(batch->state(env), env);
}

nb::object py_holds(nb::object state) {
  const StateArray batch(state, false);
  bool* flags = nullptr;
  nb::object made = new_array<bool>(
      {static_cast<std::size_t>(batch.num_envs()), static_cast<std::size_t>(batch.num_goals())}, &flags);
  judge_start(*batch, flags);
  return made;
}

int count_of(std::initializer_list<int> shape) {
  int count = 1;
  for (const int length : shape) count *= length;
  return count;
}

class Exporter {
 public:
  nb::dict fields;

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
    std::size_t lengths[4];
    std::size_t axes = 0;
    for (const int length : shape) lengths[axes++] = static_cast<std::size_t>(length);
    const int count = count_of(shape);
    T* data = new T[count];
    nb::capsule owner(data, [](void* p) noexcept { delete[] static_cast<T*>(p); });
    for (int i = 0; i < count; ++i) data[i] = static_cast<T>(get(i));
    const std::string full = std::string(name) + suffix;
    fields[full.c_str()] = nb::ndarray<nb::numpy, T>(data, axes, lengths, owner);
  }
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
    const int count = count_of(shape);
    for (int i = 0; i < count; ++i) set(full, i, array.at(i));
    seen_[full.c_str()] = true;
    ++known_;
  }

  nb::dict fields_;
  nb::dict seen_;
  std::size_t known_ = 0;
};

nb::dict py_export_env(nb::object state, std::int64_t env) {
  const StateArray batch(state);
  State& game = batch->state(in_range("env", env, 0, batch.num_envs() - 1));
  for (int floor = 0; floor < kFloors; ++floor) {
    if (!(game.generated >> floor & 1)) generate_floor(game, floor);
  }
  Exporter exporter;
  visit_env_state(game, exporter);
  return exporter.fields;
}

void py_import_env(nb::object state, std::int64_t env, nb::dict fields) {
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

}  // namespace

NB_MODULE(_core, m) {
  using namespace nb::literals;
  m.def("new_state", &py_new_state, "num_envs"_a, "goals"_a = nb::none(), "episode_limit"_a = 4096,
        "queue_capacity"_a = 0);
  m.def("generate", &py_generate, "state"_a, "keys"_a, "threads"_a = 1);
  m.def("step_games", &py_step_games, "state"_a, "actions"_a, "keys"_a.none(), "reward"_a, "done"_a,
        "reached"_a.none() = nb::none(), "threads"_a = 1);
  m.def("observe", &py_observe, "state"_a, "cells"_a, "features"_a);
  m.def("holds", &py_holds, "state"_a);
  m.def("export_env", &py_export_env, "state"_a, "env"_a);
  m.def("import_env", &py_import_env, "state"_a, "env"_a, "fields"_a);
}

}  // namespace craftax
