// JAX's random numbers: Threefry-2x32 with 20 rounds (Salmon et al. 2011) in the partitionable layout.
//
// The generator is a template over its word, so that one text hashes a single key or a vector of keys.
#pragma once

#include <bit>

#include "core.hpp"

namespace craftax {

template <class Word>
struct BasicKey {
  Word a;
  Word b;
};

using Key = BasicKey<std::uint32_t>;

CRAFTAX_FN constexpr bool operator==(Key x, Key y) { return x.a == y.a && x.b == y.b; }

template <int kBits, class Word>
CRAFTAX_PART_OF_CALLER CRAFTAX_FN constexpr Word rotate_left(Word x) {
  return (x << kBits) | (x >> (32 - kBits));
}

// Encrypts the counter (high, low) with the key; both words of the result.
template <class Word>
CRAFTAX_PART_OF_CALLER CRAFTAX_FN constexpr BasicKey<Word> threefry(BasicKey<Word> key, Word high, Word low) {
  const Word third = key.a ^ key.b ^ 0x1BD11BDAu;
  Word x = high + key.a;
  Word y = low + key.b;
  const auto four_rounds = [&]<int r0, int r1, int r2, int r3>() CRAFTAX_PART_OF_CALLER {
    x += y, y = rotate_left<r0>(y) ^ x;
    x += y, y = rotate_left<r1>(y) ^ x;
    x += y, y = rotate_left<r2>(y) ^ x;
    x += y, y = rotate_left<r3>(y) ^ x;
  };
  four_rounds.template operator()<13, 15, 26, 6>();
  x += key.b, y += third + 1u;
  four_rounds.template operator()<17, 29, 16, 24>();
  x += third, y += key.a + 2u;
  four_rounds.template operator()<13, 15, 26, 6>();
  x += key.a, y += key.b + 3u;
  four_rounds.template operator()<17, 29, 16, 24>();
  x += key.b, y += third + 4u;
  four_rounds.template operator()<13, 15, 26, 6>();
  x += third, y += key.a + 5u;
  return {x, y};
}

// Element `index` of jax.random.split(key, n), for any n; also jax.random.fold_in(key, index).
template <class Word>
CRAFTAX_PART_OF_CALLER CRAFTAX_FN constexpr BasicKey<Word> child(BasicKey<Word> key, std::uint32_t index) {
  return threefry(key, Word{}, Word(Word{} + index));
}

// Element `index` of jax.random.bits(key, shape), counted in row-major order.
template <class Word>
CRAFTAX_PART_OF_CALLER CRAFTAX_FN constexpr Word random_bits(BasicKey<Word> key, std::uint32_t index = 0) {
  const BasicKey<Word> words = child(key, index);
  return words.a ^ words.b;
}

// A float32 in [0, 1) from 32 random bits, as jax.random.uniform makes it.
CRAFTAX_FN constexpr float unit_interval(std::uint32_t bits) {
  return std::bit_cast<float>((bits >> 9) | 0x3F800000u) - 1.0f;
}

// Element `index` of jax.random.uniform(key, shape).
CRAFTAX_FN constexpr float uniform(Key key, std::uint32_t index = 0) { return unit_interval(random_bits(key, index)); }

// Element `index` of jax.random.randint(key, shape, low, high), with low < high.
CRAFTAX_FN constexpr int random_int(Key key, int low, int high, std::uint32_t index = 0) {
  const std::uint32_t span = static_cast<std::uint32_t>(high - low);
  const std::uint32_t half = (std::uint32_t{1} << 16) % span;
  const std::uint32_t multiplier = half * half % span;
  std::uint32_t offset = random_bits(child(key, 1), index) % span;
  // The high word does not count when 2^32 is a multiple of the span.
  if (multiplier != 0) offset += random_bits(child(key, 0), index) % span * multiplier;
  return low + static_cast<int>(offset % span);
}

// A chain of keys: each draw splits the key in two, keeps the first half and gives the second.
struct KeyChain {
  Key key;

  CRAFTAX_FN constexpr Key next() {
    const Key given = child(key, 1);
    key = child(key, 0);
    return given;
  }
  CRAFTAX_FN constexpr void skip() { key = child(key, 0); }
};

}  // namespace craftax
