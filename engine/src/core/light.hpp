// Light: the glow of torches on a floor, and the time of day.
#pragma once

#include <cmath>

#include "state.hpp"

namespace craftax {

inline constexpr int kGlowReach = 4;  // a torch lights 9 x 9 cells

// Light of a torch at an offset of at most kGlowReach in each direction.
CRAFTAX_FN float torch_glow(int rows, int cols) {
  const float distance = std::sqrt(static_cast<float>(rows * rows + cols * cols));
  return std::fmax(1.0f - distance * 0.2f, 0.0f);  // the reference multiplies where its text divides by 5
}

// Adds a torch's glow around the cell.
CRAFTAX_FN void shine(Floor& floor, Cell cell) {
  for (int rows = -kGlowReach; rows <= kGlowReach; ++rows) {
    for (int cols = -kGlowReach; cols <= kGlowReach; ++cols) {
      const Cell target = cell + Cell{rows, cols};
      if (!in_bounds(target)) continue;
      float& light = floor.light[target.row][target.col];
      light = std::fmin(torch_glow(rows, cols) + light, 1.0f);
      put(floor.lit, target, light > kVisible);
    }
  }
}

// Brightest, almost 1, at noon, and dark at midnight; a day has 300 steps. Rounded as the reference is when compiled:
// the division became a multiplication, and the last product is fused with the difference.
CRAFTAX_FN float daylight(int timestep) {
  const float days = static_cast<float>(timestep) * (1.0f / 300.0f);
  const float progress = days - std::trunc(days) + 0.3f;
  const float cosine = std::fabs(std::cos(3.14159274f * progress));
  return std::fma(-cosine * cosine, cosine, 1.0f);
}

}  // namespace craftax
