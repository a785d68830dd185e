// The draws of core/choice.hpp behind C functions, for the tests.
#include "core/choice.hpp"
#include "core/random.hpp"

using namespace craftax;

namespace {

template <int n>
void choose_each(int count, const float* weights, const float* u, std::int32_t* chosen) {
  for (int i = 0; i < count; ++i) chosen[i] = choose(*reinterpret_cast<const float(*)[n]>(weights + n * i), u[i]);
}

}  // namespace

extern "C" {

// From bits[count][kSize]; `way` 0: equal shares, 1: the same, always by the exact sums, 2: weights of one.
void choose_bits(int count, int way, const std::uint64_t* bits, const float* u, std::int32_t* chosen) {
  for (int i = 0; i < count; ++i) {
    const auto& rows = *reinterpret_cast<const std::uint64_t(*)[kSize]>(bits + kSize * i);
    int set = 0;
    for (const std::uint64_t row : rows) set += detail::count_bits(row);
    chosen[i] = way == 0   ? choose_among_bits(rows, set, u[i])
                : way == 1 ? detail::choose_among_bits_exactly(rows, set, u[i])
                           : choose_among_units(rows, set, u[i]);
  }
}

// From weights[count][n]; false if this file lacks n.
bool choose_weights(int count, int n, const float* weights, const float* u, std::int32_t* chosen) {
  switch (n) {
    case 8: choose_each<8>(count, weights, u, chosen); return true;
    case 17: choose_each<17>(count, weights, u, chosen); return true;
    case 300: choose_each<300>(count, weights, u, chosen); return true;
    case kCells: choose_each<kCells>(count, weights, u, chosen); return true;
    default: return false;
  }
}

void uniforms(int count, const std::uint32_t* keys, float* u) {
  for (int i = 0; i < count; ++i) u[i] = uniform(Key{keys[2 * i], keys[2 * i + 1]});
}

}  // extern "C"
