// A game's fields as a dictionary of NumPy arrays, and back.
#pragma once

#include <nanobind/nanobind.h>

#include <cmath>
#include <string>
#include <type_traits>
#include <vector>

#include "arguments.hpp"
#include "convert.hpp"

namespace craftax {

inline std::size_t count_of(std::initializer_list<int> shape) {
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
    if (fields.contains(name.c_str())) {
      const int axes = static_cast<int>(lengths.size());
      return Array<T>(name.c_str(), fields[name.c_str()], lengths.data(), axes, true).data();
    }
    T* data = nullptr;
    fields[name.c_str()] = new_array<T>({lengths.begin(), lengths.end()}, &data);
    return data;
  }

  std::int64_t rows_ = -1;
  std::int64_t row_ = 0;
  std::size_t field_ = 0;
  std::vector<void*> places_;
};

// Reads a game's fields from arrays by name. Raises ValueError or TypeError, naming the field.
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
    read<bool>(name, suffix, shape, [&](const std::string&, int i, bool value) { set(i, value); });
  }
  void finish() const {
    if (fields_.size() == known_) return;
    for (const auto [key, value] : fields_) {
      const std::string name = nb::str(key).c_str();
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

}  // namespace craftax
