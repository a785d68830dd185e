// The chances of many games at once, on the host: one lane of a vector for each.
#pragma once

#include "chances.hpp"

// The thread sanitizer cannot start before the choice of an instruction set is made.
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__linux__) && \
    !defined(__SANITIZE_THREAD__)
#define CRAFTAX_FOR_EACH_CPU __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define CRAFTAX_FOR_EACH_CPU
#endif

namespace craftax {

inline constexpr int kLanes = 16;

// The words of kLanes steps, word by word.
struct ChanceBlock {
  alignas(64) std::uint32_t words[kChanceWords][kLanes];

  Chances of(int lane) const { return {&words[0][lane], kLanes}; }
};

#if defined(__GNUC__)

typedef std::uint32_t LaneWord __attribute__((vector_size(4 * kLanes)));

// Integers only: the instruction set changes nothing but the speed.
CRAFTAX_FOR_EACH_CPU inline void draw(const Key (&keys)[kLanes], ChanceBlock& block) {
  BasicKey<LaneWord> key;
  for (int lane = 0; lane < kLanes; ++lane) {
    key.a[lane] = keys[lane].a;
    key.b[lane] = keys[lane].b;
  }
  draw_chances(key, reinterpret_cast<LaneWord*>(block.words));
}

#else

inline void draw(const Key (&keys)[kLanes], ChanceBlock& block) {
  for (int lane = 0; lane < kLanes; ++lane) {
    std::uint32_t words[kChanceWords];
    draw_chances(keys[lane], words);
    for (int i = 0; i < kChanceWords; ++i) block.words[i][lane] = words[i];
  }
}

#endif

}  // namespace craftax
