// Gradient noise (Perlin 2002) over a floor, one octave, as the reference's generator computes it.
//
// The order of operations is that of the compiled reference, so that the values are its own bit for bit; where the
// reference's cosf and sinf are not the platform's, a value may differ in its last place.
#pragma once

#include <cmath>

#include "../random.hpp"

namespace craftax {

struct Noise {
  float values[kSize][kSize];
  float lowest;
  float scale;  // one over the range of the values

  // In [0, 1]: the lowest value of the floor becomes 0, the highest 1.
  CRAFTAX_FN float at(int row, int col) const { return (values[row][col] - lowest) * scale; }
};

namespace detail {

// Blends two neighbours, with zero slope and curvature at both. Exact in float32 for the few fractions in use.
CRAFTAX_FN constexpr float fade(float t) { return t * t * t * (t * (t * 6 - 15) + 10); }

}  // namespace detail

// Fills `noise` with gradients drawn at the corners of kRows x kCols equal tiles.
template <int kRows, int kCols>
CRAFTAX_FN void make_noise(Key key, Noise& noise) {
  static_assert(kSize % kRows == 0 && kSize % kCols == 0);
  constexpr int kTall = kSize / kRows, kWide = kSize / kCols;
  constexpr int kCorners = (kRows + 1) * (kCols + 1);
  constexpr int kLanes = 16;

  const Key angle_key = child(child(key, 1), 1);
  std::uint32_t bits[(kCorners + kLanes - 1) / kLanes * kLanes];
  for (std::uint32_t i = 0; i < sizeof bits / sizeof *bits; ++i) bits[i] = random_bits(angle_key, i);
  float row_parts[kRows + 1][kCols + 1], col_parts[kRows + 1][kCols + 1];  // of each corner's gradient
  for (int i = 0; i < kCorners; ++i) {
    const float angle = unit_interval(bits[i]) * 6.28318548f;
    row_parts[i / (kCols + 1)][i % (kCols + 1)] = std::cos(angle);
    col_parts[i / (kCols + 1)][i % (kCols + 1)] = std::sin(angle);
  }

  float col_fade[kSize];
  for (int col = 0; col < kSize; ++col) col_fade[col] = detail::fade(static_cast<float>(col % kWide) / kWide);
  float low[kLanes], high[kLanes];
  for (int lane = 0; lane < kLanes; ++lane) low[lane] = INFINITY, high[lane] = -INFINITY;

  for (int tile = 0; tile < kRows; ++tile) {
    // By the corner of the tile, first north or south, then west or east, for every column.
    float down[2][2][kSize], along[2][2][kSize];
    for (int south = 0; south < 2; ++south) {
      for (int east = 0; east < 2; ++east) {
        for (int col = 0; col < kSize; ++col) {
          const float offset = static_cast<float>(col % kWide) / kWide - static_cast<float>(east);
          down[south][east][col] = row_parts[tile + south][col / kWide + east];
          along[south][east][col] = offset * col_parts[tile + south][col / kWide + east];
        }
      }
    }
    for (int row = 0; row < kTall; ++row) {
      const float offset = static_cast<float>(row) / kTall;
      const float fade = detail::fade(offset);
      float* values = noise.values[tile * kTall + row];
      for (int col = 0; col < kSize; ++col) {
        const float north_west = offset * down[0][0][col] + along[0][0][col];
        const float south_west = (offset - 1) * down[1][0][col] + along[1][0][col];
        const float north_east = offset * down[0][1][col] + along[0][1][col];
        const float south_east = (offset - 1) * down[1][1][col] + along[1][1][col];
        const float west = north_west * (1 - fade) + fade * south_west;
        const float east = north_east * (1 - fade) + fade * south_east;
        values[col] = ((1 - col_fade[col]) * west + col_fade[col] * east) * 1.41421354f;
      }
      for (int col = 0; col < kSize; col += kLanes) {
        for (int lane = 0; lane < kLanes; ++lane) {
          const float value = values[col + lane];
          low[lane] = value < low[lane] ? value : low[lane];
          high[lane] = value > high[lane] ? value : high[lane];
        }
      }
    }
  }
  for (int lane = 1; lane < kLanes; ++lane) {
    low[0] = low[lane] < low[0] ? low[lane] : low[0];
    high[0] = high[lane] > high[0] ? high[lane] : high[0];
  }
  noise.lowest = low[0];
  noise.scale = 1.0f / (high[0] - low[0]);
}

}  // namespace craftax
