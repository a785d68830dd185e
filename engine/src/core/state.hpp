// The state of one game: plain bytes of a fixed layout, which may be copied, saved and moved between threads.
#pragma once

#include "random.hpp"
#include "rules.hpp"

namespace craftax {

// A creature or a projectile. Of an empty slot only the cooldown means anything: it outlives its creature.
struct Mob {
  std::int16_t row;
  std::int16_t col;
  float health;
  std::int32_t cooldown;
  std::uint8_t type;
  std::uint8_t alive;
  std::int8_t row_step;  // a projectile's flight; creatures have none
  std::int8_t col_step;

  CRAFTAX_FN Cell cell() const { return {row, col}; }
  CRAFTAX_FN void move_to(Cell cell) {
    row = static_cast<std::int16_t>(cell.row);
    col = static_cast<std::int16_t>(cell.col);
  }
};

struct Mobs {
  Mob melee[kMeleeSlots];
  Mob passive[kPassiveSlots];
  Mob ranged[kRangedSlots];
  Mob projectiles[kProjectileSlots];         // shot by creatures
  Mob player_projectiles[kProjectileSlots];  // shot by the player
};

// One floor. The bit maps hold one word a row, bit c for column c: `occupied` is the game's mob map, the others are
// derived from blocks and light, and spare a search through them.
struct Floor {
  Block blocks[kSize][kSize];
  Item items[kSize][kSize];
  std::uint64_t occupied[kSize];  // cells with a living creature
  std::uint64_t ground[kSize];    // cells where is_spawn_ground(block)
  std::uint64_t lit[kSize];       // cells whose light exceeds kVisible
  float light[kSize][kSize];      // 0 dark to 1 bright
};

inline constexpr float kVisible = 0.05f;

// Ladders are where the floor's generator put them; a floor is left by one and entered by the other.
struct FloorFacts {
  std::int8_t down_row, down_col, up_row, up_col;
  std::int32_t monsters_killed;
  std::uint8_t chest_opened;
};

struct Inventory {
  std::int32_t wood, stone, coal, iron, diamond, sapling;
  std::int32_t pickaxe, sword, bow;  // 0 none, else the tier: wood, stone, iron, diamond
  std::int32_t arrows, torches, ruby, sapphire, books;
  std::int32_t armour[4];  // helmet, chestplate, leggings, boots: 0 none, 1 iron, 2 diamond
  std::int32_t potions[6];
};

struct Player {
  std::int32_t floor, row, col, direction;  // direction: 1 west, 2 east, 3 north, 4 south
  float health, recover, hunger, thirst, fatigue, recover_mana;
  std::int32_t food, drink, energy, mana;
  std::int32_t xp, dexterity, strength, intelligence;
  std::int32_t sword_enchantment, bow_enchantment, armour_enchantments[4];  // 0 none, 1 fire, 2 ice
  std::uint8_t sleeping, resting;
  std::uint8_t learned_spells[2];  // fireball, iceball
  std::int32_t potion_mapping[6];  // effect of each colour
  Inventory inventory;

  CRAFTAX_FN Cell cell() const { return {row, col}; }
  CRAFTAX_FN Cell front() const { return cell() + offset(direction); }
  CRAFTAX_FN bool is_somewhere() const {
    return static_cast<unsigned>(floor) < kFloors && in_bounds(cell());
  }
  // Ladders of a damaged game may be anywhere, the player must not.
  CRAFTAX_FN void arrive(int at_row, int at_col) {
    row = at_most(at_least(at_row, 0), kSize - 1);
    col = at_most(at_least(at_col, 0), kSize - 1);
  }
  CRAFTAX_FN int max_health() const { return 8 + strength; }
  CRAFTAX_FN int max_food() const { return 7 + 2 * dexterity; }
  CRAFTAX_FN int max_drink() const { return 7 + 2 * dexterity; }
  CRAFTAX_FN int max_energy() const { return 7 + 2 * dexterity; }
  CRAFTAX_FN int max_mana() const { return 6 + 3 * intelligence; }
};

struct Plant {
  std::int32_t age;
  std::int8_t row, col;
  std::uint8_t growing;
};

struct State {
  Key rng;         // of the next step
  Key world;       // of the world's generator, from which floors are made on first entry
  std::uint32_t generated;  // bit f: floor f has been made
  std::int32_t timestep;
  float light_level;
  std::int32_t boss_progress, boss_spawn_turns;
  std::uint64_t achievements[2];
  Player player;
  Plant plants[kPlants];
  FloorFacts facts[kFloors];
  Mobs mobs[kFloors];
  Floor floors[kFloors];

  CRAFTAX_FN bool has(Achievement achievement) const {
    const int index = static_cast<int>(achievement);
    return achievements[index >> 6] >> (index & 63) & 1;
  }
  CRAFTAX_FN void earn(Achievement achievement, bool earned = true) {
    const int index = static_cast<int>(achievement);
    achievements[index >> 6] |= std::uint64_t{earned} << (index & 63);
  }

  CRAFTAX_FN Floor& floor() { return floors[player.floor]; }
  CRAFTAX_FN const Floor& floor() const { return floors[player.floor]; }
  CRAFTAX_FN Mobs& here() { return mobs[player.floor]; }
  CRAFTAX_FN const Mobs& here() const { return mobs[player.floor]; }
  CRAFTAX_FN bool fighting_boss() const { return player.floor == kBossFloor; }
};

// How the reference reads and writes at an index that may lie outside: below zero it counts from the far end, then a
// read takes the nearest cell and a write is dropped.
CRAFTAX_FN constexpr int wrap(int index) { return index < 0 ? index + kSize : index; }

CRAFTAX_FN constexpr Cell nearest(Cell cell) {
  return {at_most(at_least(wrap(cell.row), 0), kSize - 1), at_most(at_least(wrap(cell.col), 0), kSize - 1)};
}

CRAFTAX_FN Block block_at(const Floor& floor, Cell cell) {
  const Cell near = nearest(cell);
  return floor.blocks[near.row][near.col];
}

CRAFTAX_FN Item item_at(const Floor& floor, Cell cell) {
  const Cell near = nearest(cell);
  return floor.items[near.row][near.col];
}

CRAFTAX_FN bool is_set(const std::uint64_t (&bits)[kSize], Cell cell) {
  const Cell near = nearest(cell);
  return bits[near.row] >> near.col & 1;
}

CRAFTAX_FN void put(std::uint64_t (&bits)[kSize], Cell cell, bool value) {
  const Cell target{wrap(cell.row), wrap(cell.col)};
  if (!in_bounds(target)) return;
  const std::uint64_t bit = std::uint64_t{1} << target.col;
  bits[target.row] = value ? bits[target.row] | bit : bits[target.row] & ~bit;
}

CRAFTAX_FN void put_block(Floor& floor, Cell cell, Block block) {
  const Cell target{wrap(cell.row), wrap(cell.col)};
  if (!in_bounds(target)) return;
  floor.blocks[target.row][target.col] = block;
  put(floor.ground, target, is_spawn_ground(block));
}

CRAFTAX_FN void put_item(Floor& floor, Cell cell, Item item) {
  const Cell target{wrap(cell.row), wrap(cell.col)};
  if (in_bounds(target)) floor.items[target.row][target.col] = item;
}

// Recomputes the maps derived from blocks and light, after those were written in bulk.
CRAFTAX_FN void derive_maps(Floor& floor) {
  for (int row = 0; row < kSize; ++row) {
    std::uint64_t ground = 0, lit = 0;
    for (int col = 0; col < kSize; ++col) {
      ground |= std::uint64_t{is_spawn_ground(floor.blocks[row][col])} << col;
      lit |= std::uint64_t{floor.light[row][col] > kVisible} << col;
    }
    floor.ground[row] = ground;
    floor.lit[row] = lit;
  }
}

}  // namespace craftax
