// A thorough look at bytes from outside, before the engine works with them: a damaged game must not lead it astray.
#pragma once

#include <cmath>
#include <string>

#include "convert.hpp"
#include "layout.hpp"

namespace craftax {

namespace detail {

// Finds the first field of a game with an element that it cannot have.
class Checker {
 public:
  std::string fault;

  template <class Place>
  void integers(const char* name, const char* suffix, std::initializer_list<int> shape, Range range, Place place) {
    integers(name, suffix, shape, range, place, [](int) { return true; });
  }
  template <class Place, class Checked>
  void integers(const char* name, const char* suffix, std::initializer_list<int> shape, Range range, Place place,
                Checked checked) {
    find(name, suffix, shape, [&](int i) {
      const double value = static_cast<double>(place(i));
      return checked(i) && (value < range.low || value > range.high);
    });
  }
  template <class Place>
  void reals(const char* name, const char* suffix, std::initializer_list<int> shape, Place place) {
    find(name, suffix, shape, [&](int i) { return !std::isfinite(place(i)); });
  }
  template <class Place>
  void flags(const char* name, const char* suffix, std::initializer_list<int> shape, Place place) {
    find(name, suffix, shape, [&](int i) { return place(i) > 1; });
  }
  // Any word is a key, and any bit a flag.
  template <class Place>
  void words(const char*, const char*, std::initializer_list<int>, Range, Place) {}
  template <class Get, class Set>
  void bits(const char*, const char*, std::initializer_list<int>, Get, Set) {}

 private:
  template <class IsWrong>
  void find(const char* name, const char* suffix, std::initializer_list<int> shape, IsWrong is_wrong) {
    int count = 1;
    for (const int length : shape) count *= length;
    for (int i = 0; i < count && fault.empty(); ++i) {
      if (is_wrong(i)) fault = std::string(name) + suffix + " is damaged";
    }
  }
};

// The maps of bits must have none beyond the last column.
inline bool has_stray_bits(const Floor& floor) {
  std::uint64_t any = 0;
  for (int row = 0; row < kSize; ++row) any |= floor.occupied[row] | floor.ground[row] | floor.lit[row];
  return any >> kSize != 0;
}

inline std::string find_damage(State& state) {
  Checker checker;
  visit_env_state(state, checker);
  if (!checker.fault.empty()) return checker.fault;
  if (state.generated >> kFloors != 0 || !(state.generated >> state.player.floor & 1)) return "the floors are damaged";
  for (int floor = 0; floor < kFloors; ++floor) {
    if (has_stray_bits(state.floors[floor])) return "the maps of floor " + std::to_string(floor) + " are damaged";
  }
  return {};
}

}  // namespace detail

// What is wrong with a batch whose header is right; empty if nothing is.
inline std::string find_damage(const Batch& batch) {
  const Header& header = batch.header();
  const auto is_goal = [&](std::int32_t goal) { return goal >= 0 && goal < (header.num_goals ? header.num_goals : 1); };
  for (int g = 0; g < header.num_goals; ++g) {
    if (!is_valid(batch.goals()[g])) return "goal " + std::to_string(g) + " is damaged";
  }
  for (int place = 0; place < header.queue_capacity; ++place) {
    if (!is_goal(batch.queue()[place].goal)) return "the queue is damaged";
  }
  for (int env = 0; env < header.num_envs; ++env) {
    if (batch.idle()[env] < 0 || batch.idle()[env] >= header.num_envs) return "the queue of environments is damaged";
    const std::string where = "environment " + std::to_string(env) + ": ";
    if (!is_goal(batch.seat(env).goal)) return where + "its goal is damaged";
    if (const std::string fault = detail::find_damage(batch.state(env)); !fault.empty()) return where + fault;
  }
  return {};
}

}  // namespace craftax
