// Drawing one index with given weights, as jax.random.choice(key, n, p=weights) does when compiled for the CPU.
//
// The reference adds the weights up in float32, and which index a draw near an edge falls on depends on the order of
// that addition: runs of 16 are summed one by one, the sums of the runs again in runs of 16, and so on; then each
// element gets the sum of all runs before its own. Such sums need not rise everywhere, so the search counts, too.
#pragma once

#include <bit>

#include "core.hpp"

namespace craftax {

inline constexpr int kRun = 16;  // elements summed one by one

// The running sums of `weights`, in the order of the reference.
template <int n>
CRAFTAX_FN void running_sums(const float (&weights)[n], float (&sums)[n]) {
  static_assert(0 < n && n <= kRun * kRun * kRun);
  constexpr int kRuns = (n + kRun - 1) / kRun;
  float runs[kRuns];  // sums up to and with each run, in two steps
  float super_runs[(kRuns + kRun - 1) / kRun];
  for (int run = 0; run < kRuns; ++run) {
    float sum = 0;
    for (int i = run * kRun; i < at_most((run + 1) * kRun, n); ++i) sums[i] = sum += weights[i];
    runs[run] = sum;
  }
  for (int first = 0; first < kRuns; first += kRun) {
    float sum = 0;
    for (int run = first; run < at_most(first + kRun, kRuns); ++run) runs[run] = sum += runs[run];
    super_runs[first / kRun] = first == 0 ? sum : super_runs[first / kRun - 1] + sum;
  }
  for (int run = kRun; run < kRuns; ++run) runs[run] = super_runs[run / kRun - 1] + runs[run];
  for (int i = kRun; i < n; ++i) sums[i] = runs[i / kRun - 1] + sums[i];
}

namespace detail {

// The reference's binary search for `target` among n values, value(0) to value(n - 1).
template <class Value>
CRAFTAX_FN int search(const Value& value, int n, float target) {
  int low = 0, high = n;
  for (int levels = std::bit_width(static_cast<unsigned>(n)); levels > 0; --levels) {
    const int middle = low + (high - low) / 2;
    const float at = value(middle);
    const bool left = target <= at || at != at;
    (left ? high : low) = middle;
  }
  return high;
}

// How many of the bits are set in each quarter of 16 bits.
CRAFTAX_FN constexpr std::uint64_t count_by_quarter(std::uint64_t bits) {
  bits -= bits >> 1 & 0x5555555555555555u;
  bits = (bits & 0x3333333333333333u) + (bits >> 2 & 0x3333333333333333u);
  bits = (bits + (bits >> 4)) & 0x0F0F0F0F0F0F0F0Fu;
  return (bits + (bits >> 8)) & 0x00FF00FF00FF00FFu;
}

CRAFTAX_FN constexpr int count_bits(std::uint64_t bits) {
  const std::uint64_t quarters = count_by_quarter(bits);
  return static_cast<int>((quarters + (quarters >> 16) + (quarters >> 32) + (quarters >> 48)) & 0xFF);
}

// The cell of the set bit that has `before` set bits before it; there must be one.
CRAFTAX_FN int cell_of_bit(const std::uint64_t (&rows)[kSize], int before) {
  for (int row = 0; row < kSize; ++row) {
    const int here = count_bits(rows[row]);
    if (before < here) {
      std::uint64_t bits = rows[row];
      while (before-- > 0) bits &= bits - 1;
      return row * kSize + std::countr_zero(bits);
    }
    before -= here;
  }
  return 0;
}

// choose_among_bits, whatever the draw: the same sums as running_sums, made only where the search looks.
CRAFTAX_FN int choose_among_bits_exactly(const std::uint64_t (&rows)[kSize], int count, float u) {
  constexpr int kRunsPerRow = kSize / kRun;
  constexpr int kRuns = kSize * kRunsPerRow;
  static_assert(kSize % kRun == 0 && kRuns % kRun == 0);

  const float weight = 1.0f / static_cast<float>(count);
  float of_count[kRun + 1] = {};  // the sum of a run with so many bits
  for (int i = 1; i <= kRun; ++i) of_count[i] = of_count[i - 1] + weight;

  float before[kRuns + 1] = {};  // the sum of all runs before
  float earlier = 0, sum = 0;
  for (int row = 0, run = 0; row < kSize; ++row) {
    std::uint64_t counts = count_by_quarter(rows[row]);
    for (int i = 0; i < kRunsPerRow; ++i, ++run, counts >>= 16) {
      if (run % kRun == 0) earlier = before[run], sum = 0;
      sum += of_count[counts & 0xFF];
      before[run + 1] = earlier + sum;
    }
  }
  const auto running_sum = [&](int cell) {
    const std::uint64_t run = rows[cell / kSize] >> (cell % kSize / kRun * kRun);
    return before[cell / kRun] + of_count[count_bits(run & ((std::uint64_t{2} << cell % kRun) - 1))];
  };
  return search(running_sum, kCells, running_sum(kCells - 1) * (1.0f - u));
}

}  // namespace detail

// The index that the uniform number u, in [0, 1), draws; the weights need not sum to one.
template <int n>
CRAFTAX_FN int choose(const float (&weights)[n], float u) {
  float sums[n];
  running_sums(weights, sums);
  return detail::search([&](int i) { return sums[i]; }, n, sums[n - 1] * (1.0f - u));
}

// The cell (row * kSize + column) that u draws among the `count` set bits, bit c of rows[r] for column c, each with
// weight 1 / count. Without any set bit the first cell, as in the reference, where all weights are not a number then.
CRAFTAX_FN int choose_among_bits(const std::uint64_t (&rows)[kSize], int count, float u) {
  if (count == 0) return 0;
  // The float32 sums lie within 64 roundings of the true ones, and so does their last, which scales the draw.
  constexpr double kTolerance = 2 * 64.0 / (1 << 24);
  const double place = static_cast<double>(1.0f - u) * count;
  const int before = static_cast<int>(place);  // set bits before the chosen one, unless near an edge
  const double beyond = place - before;
  if (beyond < kTolerance * count || 1 - beyond < kTolerance * count) {
    return detail::choose_among_bits_exactly(rows, count, u);
  }
  return detail::cell_of_bit(rows, before);
}

// The same where each set bit has weight 1, so that the sums are exact.
CRAFTAX_FN int choose_among_units(const std::uint64_t (&rows)[kSize], int count, float u) {
  if (count == 0) return 0;
  const float target = static_cast<float>(count) * (1.0f - u);
  const int before = static_cast<int>(target);
  return detail::cell_of_bit(rows, static_cast<float>(before) == target ? before - 1 : before);
}

}  // namespace craftax
