// What the functions of the Python module take and give: batches, numbers in a range, keys and new arrays.
#pragma once

#include <nanobind/ndarray.h>

#include <cstdlib>
#include <new>
#include <string>
#include <vector>

#include "arrays.hpp"
#include "layout.hpp"
#include "threads.hpp"

namespace craftax {

inline constexpr std::int64_t kMaxEnvs = 1 << 24;
inline constexpr std::int64_t kMaxGoals = 1 << 16;

inline std::int32_t in_range(const char* name, nb::handle given, std::int64_t low, std::int64_t high) {
  PyObject* const number = PyNumber_Index(given.ptr());
  if (number == nullptr) {
    PyErr_Clear();
    mistake(name, given, "an integer");
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

inline nb::dict as_dict(const char* name, nb::handle given) {
  if (!nb::isinstance<nb::dict>(given)) mistake(name, given, "a dict of arrays");
  return nb::borrow<nb::dict>(given);
}

inline void check_range(const char* name, const std::int32_t* values, std::int64_t count, int limit) {
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

inline const Key* as_keys(const std::uint32_t* words) { return reinterpret_cast<const Key*>(words); }

// A NumPy array of the shape given, zero, at a multiple of a cache line. Its pages are the system's own zeros until
// they are written to, so that floors that nobody enters take no memory.
template <class T>
nb::object new_array(const std::vector<std::size_t>& shape, T** data) {
  std::size_t bytes = sizeof(T);
  for (const std::size_t length : shape) bytes *= length;
  void* const memory = std::calloc(bytes + kLine, 1);
  if (memory == nullptr) throw std::bad_alloc();
  nb::capsule owner(memory, [](void* p) noexcept { std::free(p); });
  *data = reinterpret_cast<T*>(round_up(reinterpret_cast<std::uintptr_t>(memory)));
  return nb::cast(nb::ndarray<nb::numpy, T>(*data, shape.size(), shape.data(), owner), nb::rv_policy::automatic);
}

}  // namespace craftax
