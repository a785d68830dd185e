// Arguments that are arrays: NumPy's memory as it is, checked, never copied.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <initializer_list>
#include <string>
#include <type_traits>

namespace craftax {

namespace nb = nanobind;

// Raises ValueError.
[[noreturn]] inline void refuse(const std::string& message) { throw nb::value_error(message.c_str()); }

// Raises TypeError.
[[noreturn]] inline void mistake(const std::string& name, nb::handle given, const std::string& wanted) {
  throw nb::type_error((name + " is a " + nb::inst_name(given).c_str() + ", but must be " + wanted).c_str());
}

template <class T>
struct TypeName;
template <>
struct TypeName<bool> {
  static constexpr const char* kName = "bool";
  static constexpr const char* kCodes = "?";
};
template <>
struct TypeName<std::uint8_t> {
  static constexpr const char* kName = "uint8";
  static constexpr const char* kCodes = "B";
};
template <>
struct TypeName<std::int32_t> {
  static constexpr const char* kName = "int32";
  static constexpr const char* kCodes = "i";
};
template <>
struct TypeName<std::uint32_t> {
  static constexpr const char* kName = "uint32";
  static constexpr const char* kCodes = "I";
};
template <>
struct TypeName<float> {
  static constexpr const char* kName = "float32";
  static constexpr const char* kCodes = "f";
};

inline constexpr int kAnyLength = -1;

// An array of T in C order, held for as long as this lives. Raises TypeError or ValueError, naming what was given.
template <class T>
class Array {
 public:
  Array(const char* name, nb::handle given, std::initializer_list<std::int64_t> shape, bool writable = false)
      : Array(name, given, shape.begin(), static_cast<int>(shape.size()), writable) {}
  Array(const char* name, nb::handle given, const std::int64_t* shape, int axes, bool writable = false) {
    if (PyObject_GetBuffer(given.ptr(), &view_, PyBUF_FORMAT | PyBUF_STRIDES) != 0) {
      PyErr_Clear();
      mistake(name, given, std::string("an array of ") + TypeName<T>::kName);
    }
    const std::string wanted = std::string(TypeName<T>::kName) + text(shape, axes);
    const char* code = view_.format == nullptr ? "B" : view_.format;
    bool fits = view_.ndim == axes;
    for (int axis = 0; fits && axis < view_.ndim; ++axis) {
      fits = shape[axis] == kAnyLength || shape[axis] == view_.shape[axis];
    }
    std::string fault;
    if (std::string(code) != TypeName<T>::kCodes || view_.itemsize != sizeof(T)) {
      const bool named = nb::hasattr(given, "dtype");
      const std::string type = named ? nb::str(nb::getattr(given, "dtype")).c_str() : "'" + std::string(code) + "'";
      fault = "has elements of type " + type + ", but must be " + wanted;
    } else if (!fits) {
      fault = "has shape " + text(view_.shape, view_.ndim) + ", but must be " + wanted;
    } else if (!PyBuffer_IsContiguous(&view_, 'C')) {
      fault = "has gaps between its elements, but must be contiguous, in C order";
    } else if (writable && view_.readonly) {
      fault = "is read-only, but is to be written";
    } else if (reinterpret_cast<std::uintptr_t>(view_.buf) % alignof(T)) {
      fault = "is not aligned to its elements";
    } else {
      return;
    }
    PyBuffer_Release(&view_);
    refuse(std::string(name) + " " + fault);
  }
  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;
  ~Array() { PyBuffer_Release(&view_); }

  T* data() const { return static_cast<T*>(view_.buf); }
  T at(std::int64_t index) const {
    // A view of bytes as bool may hold others than 0 and 1, which must not be read as one.
    if constexpr (std::is_same_v<T, bool>) return static_cast<const std::uint8_t*>(view_.buf)[index] != 0;
    return data()[index];
  }
  std::int64_t length() const { return view_.shape[0]; }

 private:
  template <class Number>
  static std::string text(const Number* shape, int axes) {
    std::string text = "[";
    for (int axis = 0; axis < axes; ++axis) {
      text += (axis ? ", " : "") + (shape[axis] == kAnyLength ? std::string("any") : std::to_string(shape[axis]));
    }
    return text + "]";
  }

  Py_buffer view_;
};

}  // namespace craftax
