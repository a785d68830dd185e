// What the agent sees: ids in the cells around it, and 51 numbers.
#pragma once

#include <cmath>
#include <cstring>

#include "state.hpp"

namespace craftax {

inline constexpr int kChannels = 8;  // block, item, a creature of each of five classes, visible
inline constexpr int kCellBytes = kViewRows * kViewCols * kChannels;
inline constexpr int kFeatures = 51;

namespace detail {

// One bit a column of the map, for those within the window's width around a column.
CRAFTAX_FN constexpr std::uint64_t view_columns(int col) {
  const int first = at_least(col - kViewCols / 2, 0), last = at_most(col + kViewCols / 2, kSize - 1);
  if (first > last) return 0;
  return (std::uint64_t{2} << last) - (std::uint64_t{1} << first);
}

CRAFTAX_FN constexpr int first_view_row(int row) { return at_least(row - kViewRows / 2, 0); }
CRAFTAX_FN constexpr int last_view_row(int row) { return at_most(row + kViewRows / 2, kSize - 1); }

// The reference divides by ten through the reciprocal, which rounds differently.
inline constexpr float kTenth = 0.1f;

struct Roots {
  float tenth_of_root[kMaxCount + 1];
};

// Newton's method in double ends within a unit or two of double's last place, and the root of a count is never so
// near the middle of two floats that this decides its rounding.
CRAFTAX_FN constexpr Roots make_roots() {
  Roots roots{};
  for (int count = 1; count <= kMaxCount; ++count) {
    double root = count;
    for (int i = 0; i < 12; ++i) root = 0.5 * (root + count / root);
    roots.tenth_of_root[count] = static_cast<float>(root) * kTenth;
  }
  return roots;
}

inline constexpr Roots kRoots = make_roots();

CRAFTAX_FN float tenth_of_root(std::int32_t count) {
  if (static_cast<std::uint32_t>(count) <= kMaxCount) return kRoots.tenth_of_root[count];
  return std::sqrt(static_cast<float>(count)) * kTenth;
}

// Shows the living creatures of one class that stand on visible cells; of two in a cell, the larger type.
template <int kSlots>
CRAFTAX_FN void show(const Mob (&mobs)[kSlots], int kind, Cell corner, std::uint8_t* cells) {
  for (const Mob& mob : mobs) {
    if (!mob.alive) continue;
    const Cell at = mob.cell() - corner;
    if (static_cast<unsigned>(at.row) >= kViewRows || static_cast<unsigned>(at.col) >= kViewCols) continue;
    std::uint8_t* cell = cells + (at.row * kViewCols + at.col) * kChannels;
    if (!cell[kChannels - 1]) continue;
    const std::uint8_t id = static_cast<std::uint8_t>(1 + kCreatureTypes * kind + mob.type);
    if (cell[2 + kind] < id) cell[2 + kind] = id;
  }
}

// The eight channels of a cell without creatures, as one little-endian word.
CRAFTAX_FN std::uint64_t channels(Block block, Item item, std::uint64_t visible) {
  const std::uint64_t shown = static_cast<std::uint64_t>(block) | static_cast<std::uint64_t>(item) << 8 |
                              std::uint64_t{1} << 8 * (kChannels - 1);
  return shown & -visible;
}

// One row of the window, from where the map begins to where it ends; `out` is the first of its cells.
CRAFTAX_FN void show_row(const Floor& floor, int row, int first_col, int last_col, std::uint8_t* out) {
  const std::uint64_t lit = floor.lit[row] >> first_col;
  const Block* blocks = floor.blocks[row] + first_col;
  const Item* items = floor.items[row] + first_col;
  const auto write = [&](int i) {
    const std::uint64_t word = channels(blocks[i], items[i], lit >> i & 1);
    std::memcpy(out + i * kChannels, &word, sizeof word);
  };
  if (last_col - first_col + 1 == kViewCols) {
    for (int i = 0; i < kViewCols; ++i) write(i);  // a known length, which compilers unroll
  } else {
    for (int i = 0; i <= last_col - first_col; ++i) write(i);
  }
}

CRAFTAX_FN void observe_cells(const State& state, std::uint8_t* cells) {
  const Floor& floor = state.floor();
  const Cell corner = state.player.cell() - Cell{kViewRows / 2, kViewCols / 2};
  const Cell far_corner = corner + Cell{kViewRows - 1, kViewCols - 1};
  if (!in_bounds(corner) || !in_bounds(far_corner)) std::memset(cells, 0, kCellBytes);
  const int first_col = at_least(corner.col, 0), last_col = at_most(far_corner.col, kSize - 1);
  const int last_row = last_view_row(state.player.row);
  for (int row = first_view_row(state.player.row); row <= last_row; ++row) {
    std::uint8_t* out = cells + ((row - corner.row) * kViewCols + first_col - corner.col) * kChannels;
    show_row(floor, row, first_col, last_col, out);
  }
  const Mobs& mobs = state.here();
  show(mobs.melee, 0, corner, cells);
  show(mobs.passive, 1, corner, cells);
  show(mobs.ranged, 2, corner, cells);
  show(mobs.projectiles, 3, corner, cells);
  show(mobs.player_projectiles, 4, corner, cells);
}

template <int kSlots>
CRAFTAX_FN bool any_alive(const Mob (&mobs)[kSlots]) {
  bool any = false;
  for (const Mob& mob : mobs) any |= mob.alive != 0;
  return any;
}

CRAFTAX_FN void observe_features(const State& state, float* features) {
  const Player& player = state.player;
  const Inventory& carried = player.inventory;
  const std::int32_t counts[] = {carried.wood,     carried.stone, carried.coal,    carried.iron,    carried.diamond,
                                 carried.sapphire, carried.ruby,  carried.sapling, carried.torches, carried.arrows};
  const std::int32_t body[] = {player.food, player.drink,     player.energy,   player.mana,
                               player.xp,   player.dexterity, player.strength, player.intelligence};
  const auto number = [](auto value) { return static_cast<float>(value); };
  float* next = features;

  for (const std::int32_t count : counts) *next++ = tenth_of_root(count);
  *next++ = number(carried.books) * 0.5f;
  *next++ = number(carried.pickaxe) * 0.25f;
  *next++ = number(carried.sword) * 0.25f;
  *next++ = number(player.sword_enchantment);
  *next++ = number(player.bow_enchantment);
  *next++ = number(carried.bow);
  for (const std::int32_t count : carried.potions) *next++ = tenth_of_root(count);

  *next++ = player.health * kTenth;
  for (const std::int32_t points : body) *next++ = number(points) * kTenth;
  for (int direction = 1; direction <= 4; ++direction) *next++ = number(player.direction == direction);
  for (const std::int32_t piece : carried.armour) *next++ = number(piece) * 0.5f;
  for (const std::int32_t element : player.armour_enchantments) *next++ = number(element);

  const Mobs& mobs = state.here();
  *next++ = state.light_level;
  *next++ = number(player.sleeping != 0);
  *next++ = number(player.resting != 0);
  for (const std::uint8_t learned : player.learned_spells) *next++ = number(learned != 0);
  *next++ = number(player.floor) * kTenth;
  *next++ = number(state.facts[player.floor].monsters_killed >= kKillsToClear);
  *next++ = number(!any_alive(mobs.melee) && !any_alive(mobs.ranged) && state.boss_spawn_turns <= 0);
}

}  // namespace detail

// Writes the observation of one game. A cell's channels are its block, its item, one id for each class of creature
// (melee, passive, ranged, creatures' projectiles, player's projectiles; 0 is none, else 1 + 8 x class + type) and
// whether it is visible; all are 0 where it is dark or beyond the map. The features are the last 51 numbers of the
// game's symbolic observation.
CRAFTAX_FN void observe(const State& state, std::uint8_t* cells, float* features) {
  detail::observe_cells(state, cells);
  detail::observe_features(state, features);
}

}  // namespace craftax
