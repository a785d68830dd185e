// Games to and from arrays, behind C functions: what altered rules (see rules.cpp) leave as it is.
#include <string>

#include "convert.hpp"

namespace {

using namespace craftax;

// Copies every field of a game to or from arrays, found by name.
struct Exchange {
  int num_fields;
  const char* const* names;
  void* const* arrays;
  std::size_t row;  // which row of the arrays
  bool into_game;

  template <class Place, class Checked = bool>
  void integers(const char* name, const char* suffix, std::initializer_list<int> shape, Range, Place place, Checked = {}) {
    move<std::int32_t>(name, suffix, shape, place);
  }
  template <class Place>
  void words(const char* name, const char* suffix, std::initializer_list<int> shape, Range, Place place) {
    move<std::uint32_t>(name, suffix, shape, place);
  }
  template <class Place>
  void reals(const char* name, const char* suffix, std::initializer_list<int> shape, Place place) {
    move<float>(name, suffix, shape, place);
  }
  template <class Place>
  void flags(const char* name, const char* suffix, std::initializer_list<int> shape, Place place) {
    move<std::uint8_t>(name, suffix, shape, place);
  }
  template <class Get, class Set>
  void bits(const char* name, const char* suffix, std::initializer_list<int> shape, Get get, Set set) {
    std::uint8_t* const array = find<std::uint8_t>(name, suffix, count(shape));
    for (int i = 0; i < count(shape); ++i) {
      if (into_game) {
        set(i, array[i] != 0);
      } else {
        array[i] = get(i) != 0;
      }
    }
  }

 private:
  static int count(std::initializer_list<int> shape) {
    int product = 1;
    for (const int length : shape) product *= length;
    return product;
  }

  template <class T>
  T* find(const char* name, const char* suffix, int size) const {
    const std::string full = std::string(name) + suffix;
    int field = 0;
    while (field < num_fields && full != names[field]) ++field;
    if (field == num_fields) __builtin_trap();
    return static_cast<T*>(arrays[field]) + row * static_cast<std::size_t>(size);
  }

  template <class T, class Place>
  void move(const char* name, const char* suffix, std::initializer_list<int> shape, Place place) {
    T* const array = find<T>(name, suffix, count(shape));
    for (int i = 0; i < count(shape); ++i) {
      auto& own = place(i);
      if (into_game) {
        own = static_cast<std::remove_reference_t<decltype(own)>>(array[i]);
      } else {
        array[i] = static_cast<T>(own);
      }
    }
  }
};

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

std::size_t game_bytes() { return sizeof(State); }

void load_game(State* game, int num_fields, const char* const* names, void* const* arrays) {
  Exchange exchange{num_fields, names, arrays, 0, true};
  visit_env_state(*game, exchange);
  game->generated = (1u << kFloors) - 1;
  for (Floor& floor : game->floors) derive_maps(floor);
}

void save_games(State* games, int num_games, int num_fields, const char* const* names, void* const* arrays) {
  for (int i = 0; i < num_games; ++i) {
    Exchange exchange{num_fields, names, arrays, static_cast<std::size_t>(i), false};
    visit_env_state(games[i], exchange);
  }
}

}  // extern "C"
#pragma GCC visibility pop
