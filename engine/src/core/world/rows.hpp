// Whole floors at once: cells as bits, and random numbers for just the cells that need one.
#pragma once

#include <cstring>

#include "../choice.hpp"
#include "../random.hpp"
#include "../state.hpp"

namespace craftax {

using Rows = std::uint64_t[kSize];  // one word a row, bit c for column c

inline constexpr std::uint64_t kWholeRow = (std::uint64_t{1} << kSize) - 1;
inline constexpr int kBlock = 16;  // cells of a row that are drawn for together
inline constexpr std::uint64_t kBlockMask = (std::uint64_t{1} << kBlock) - 1;

// A uniform draw has 23 bits. As whole numbers, the draws less than the chance are those below this one ...
CRAFTAX_FN constexpr std::uint32_t draws_below(float chance) {
  const double count = static_cast<double>(chance) * (1 << 23);
  const auto whole = static_cast<std::uint32_t>(count);
  return whole < count ? whole + 1 : whole;
}

// ... and those greater than the chance are those from this one on.
CRAFTAX_FN constexpr std::uint32_t first_draw_above(float chance) {
  return static_cast<std::uint32_t>(static_cast<double>(chance) * (1 << 23)) + 1;
}

// Packs 48 bytes that are 0 or 1 into bits (on a little-endian machine).
CRAFTAX_FN std::uint64_t pack(const std::uint8_t (&flags)[kSize]) {
  std::uint64_t bits = 0;
  for (int i = 0; i < kSize; i += 8) {
    std::uint64_t eight;
    std::memcpy(&eight, flags + i, 8);
    bits |= (eight * 0x0102040810204080u >> 56) << i;
  }
  return bits;
}

// The cells of the row with this block.
CRAFTAX_FN std::uint64_t cells_with(const Block (&blocks)[kSize], Block block) {
  std::uint8_t flags[kSize];
  for (int col = 0; col < kSize; ++col) flags[col] = blocks[col] == block;
  return pack(flags);
}

// The cells of the floor with this block; returns how many there are.
CRAFTAX_FN int cells_with(const Floor& floor, Block block, Rows& rows) {
  int count = 0;
  for (int row = 0; row < kSize; ++row) {
    rows[row] = cells_with(floor.blocks[row], block);
    count += detail::count_bits(rows[row]);
  }
  return count;
}

CRAFTAX_FN Cell cell_at(int index) { return {index / kSize, index % kSize}; }

CRAFTAX_FN void set_ladders(FloorFacts& facts, Cell down, Cell up) {
  facts.down_row = static_cast<std::int8_t>(down.row);
  facts.down_col = static_cast<std::int8_t>(down.col);
  facts.up_row = static_cast<std::int8_t>(up.row);
  facts.up_col = static_cast<std::int8_t>(up.col);
}

// The draws, from 0 to 2^23 - 1, of a block of cells.
CRAFTAX_FN void draw_block(Key key, int row, int col, std::uint32_t (&draws)[kBlock]) {
  const auto first = static_cast<std::uint32_t>(row * kSize + col);
  for (std::uint32_t i = 0; i < kBlock; ++i) draws[i] = random_bits(key, first + i) >> 9;
}

// Turns each `from` into `to` where its draw of jax.random.uniform(key, (kSize, kSize)) is less than the chance.
CRAFTAX_FN void scatter(Floor& floor, Key key, Block from, Block to, float chance) {
  const std::uint32_t limit = draws_below(chance);
  for (int row = 0; row < kSize; ++row) {
    const std::uint64_t present = cells_with(floor.blocks[row], from);
    for (int col = 0; col < kSize; col += kBlock) {
      if ((present >> col & kBlockMask) == 0) continue;
      std::uint32_t draws[kBlock];
      draw_block(key, row, col, draws);
      Block* blocks = &floor.blocks[row][col];
      for (int i = 0; i < kBlock; ++i) blocks[i] = (blocks[i] == from) & (draws[i] < limit) ? to : blocks[i];
    }
  }
}

}  // namespace craftax
