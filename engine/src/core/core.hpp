// What every part of the game core shares: the function qualifier and the size of the world.
//
// The core is plain C++20 without allocation, exceptions or containers of the standard library in the step path, so
// that a CUDA build can compile the same files as device code: there CRAFTAX_FN becomes `__host__ __device__`.
// Rounding is part of the rules. Build with -ffp-contract=off; where the reference fuses, the code says std::fma.
#pragma once

#include <cstdint>

#if defined(__CUDACC__)
#define CRAFTAX_FN __host__ __device__ inline
#else
#define CRAFTAX_FN inline
#endif

// For functions of vector words, which are compiled for several instruction sets by being part of their caller.
#if defined(__GNUC__) && !defined(__CUDACC__)
#define CRAFTAX_PART_OF_CALLER __attribute__((always_inline))
#else
#define CRAFTAX_PART_OF_CALLER
#endif

namespace craftax {

inline constexpr int kSize = 48;           // rows and columns of a floor
inline constexpr int kCells = kSize * kSize;
inline constexpr int kFloors = 9;
inline constexpr int kBossFloor = kFloors - 1;

// A cell of the current floor, or an offset between two. Row 0 is north, column 0 west.
struct Cell {
  int row = 0;
  int col = 0;

  friend constexpr bool operator==(Cell, Cell) = default;
  friend constexpr Cell operator+(Cell a, Cell b) { return {a.row + b.row, a.col + b.col}; }
  friend constexpr Cell operator-(Cell a, Cell b) { return {a.row - b.row, a.col - b.col}; }
};

CRAFTAX_FN constexpr int absolute(int x) { return x < 0 ? -x : x; }

CRAFTAX_FN constexpr int sign(int x) { return (x > 0) - (x < 0); }

CRAFTAX_FN constexpr int at_most(int x, int limit) { return x < limit ? x : limit; }

CRAFTAX_FN constexpr int at_least(int x, int limit) { return x > limit ? x : limit; }

CRAFTAX_FN constexpr int manhattan(Cell a, Cell b) { return absolute(a.row - b.row) + absolute(a.col - b.col); }

CRAFTAX_FN constexpr bool in_bounds(Cell cell) {
  return 0 <= cell.row && cell.row < kSize && 0 <= cell.col && cell.col < kSize;
}

}  // namespace craftax
