// The names and tables of the game: blocks, items, creatures, actions, achievements, and what they do.
#pragma once

#include "core.hpp"

namespace craftax {

enum class Block : std::uint8_t {
  invalid, out_of_bounds, grass, water, stone, tree, wood, path, coal, iron, diamond, crafting_table, furnace, sand,
  lava, plant, ripe_plant, wall, darkness, mossy_wall, stalagmite, sapphire, ruby, chest, fountain, fire_grass,
  ice_grass, gravel, fire_tree, ice_shrub, fire_enchantment_table, ice_enchantment_table, necromancer, grave, grave2,
  grave3, necromancer_vulnerable,
};
inline constexpr int kBlocks = 37;

enum class Item : std::uint8_t { none, torch, ladder_down, ladder_up, ladder_down_blocked };
inline constexpr int kItems = 5;

enum class Action : std::int32_t {
  noop, left, right, up, down, interact, sleep, place_stone, place_table, place_furnace, place_plant,
  make_wood_pickaxe, make_stone_pickaxe, make_iron_pickaxe, make_wood_sword, make_stone_sword, make_iron_sword, rest,
  descend, ascend, make_diamond_pickaxe, make_diamond_sword, make_iron_armour, make_diamond_armour, shoot_arrow,
  make_arrow, cast_fireball, cast_iceball, place_torch, drink_red, drink_green, drink_blue, drink_pink, drink_cyan,
  drink_yellow, read_book, enchant_sword, enchant_armour, make_torch, level_up_dexterity, level_up_strength,
  level_up_intelligence, enchant_bow,
};
inline constexpr int kActions = 43;

enum class Achievement : std::uint8_t {
  collect_wood, place_table, eat_cow, collect_sapling, collect_drink, make_wood_pickaxe, make_wood_sword, place_plant,
  defeat_zombie, collect_stone, place_stone, eat_plant, defeat_skeleton, make_stone_pickaxe, make_stone_sword, wake_up,
  place_furnace, collect_coal, collect_iron, collect_diamond, make_iron_pickaxe, make_iron_sword, make_arrow,
  make_torch, place_torch, make_diamond_sword, make_iron_armour, make_diamond_armour, enter_gnomish_mines,
  enter_dungeon, enter_sewers, enter_vault, enter_troll_mines, enter_fire_realm, enter_ice_realm, enter_graveyard,
  defeat_gnome_warrior, defeat_gnome_archer, defeat_orc_soldier, defeat_orc_mage, defeat_lizard, defeat_kobold,
  defeat_troll, defeat_deep_thing, defeat_pigman, defeat_fire_elemental, defeat_frost_troll, defeat_ice_elemental,
  damage_necromancer, defeat_necromancer, eat_bat, eat_snail, find_bow, fire_bow, collect_sapphire, learn_fireball,
  cast_fireball, learn_iceball, cast_iceball, collect_ruby, make_diamond_pickaxe, open_chest, drink_potion,
  enchant_sword, enchant_armour, defeat_knight, defeat_archer,
};
inline constexpr int kAchievements = 67;

// Classes of creatures, in the order of the game's tables, with the slots that each floor has for them.
enum class Kind : std::uint8_t { passive, melee, ranged, projectile };
inline constexpr int kMeleeSlots = 3;
inline constexpr int kPassiveSlots = 3;
inline constexpr int kRangedSlots = 2;
inline constexpr int kProjectileSlots = 3;  // of creatures, and as many of the player
inline constexpr int kCreatureTypes = 8;

enum class Projectile : std::uint8_t { arrow, dagger, fireball, iceball, arrow2, slimeball, fireball2, iceball2 };

inline constexpr int kPlants = 10;
inline constexpr int kRipeAge = 600;
inline constexpr int kKillsToClear = 8;  // creatures to defeat on a floor before its way down opens
inline constexpr int kBossRounds = kFloors - 1;
inline constexpr int kSpawnTurns = 7;  // steps of spawning in each round against the boss
inline constexpr int kDespawnDistance = 14;
inline constexpr int kMaxAttribute = 5;
inline constexpr int kMaxCount = 99;
inline constexpr int kViewRows = 9;
inline constexpr int kViewCols = 11;

// The cell in front, by direction; every other action points nowhere.
CRAFTAX_FN constexpr Cell offset(int direction) {
  switch (direction) {
    case 1: return {0, -1};
    case 2: return {0, 1};
    case 3: return {-1, 0};
    case 4: return {1, 0};
    default: return {0, 0};
  }
}

namespace detail {

// One bit per block.
CRAFTAX_FN constexpr std::uint64_t blocks() { return 0; }

template <class... Rest>
CRAFTAX_FN constexpr std::uint64_t blocks(Block first, Rest... rest) {
  return std::uint64_t{1} << static_cast<int>(first) | blocks(rest...);
}

CRAFTAX_FN constexpr bool contains(std::uint64_t set, Block block) {
  return set >> (static_cast<int>(block) & 63) & 1;
}

}  // namespace detail

// Nothing walks or flies into these. Water and lava are not among them: what they stop depends on the creature.
CRAFTAX_FN constexpr bool is_solid(Block block) {
  using enum Block;
  return detail::contains(
      detail::blocks(stone, tree, coal, iron, diamond, crafting_table, furnace, plant, ripe_plant, wall, mossy_wall,
                     stalagmite, ruby, sapphire, chest, fountain, fire_tree, fire_enchantment_table,
                     ice_enchantment_table, grave, grave2, grave3, necromancer),
      block);
}

CRAFTAX_FN constexpr bool can_hold_item(Block block) {
  using enum Block;
  return detail::contains(detail::blocks(grass, sand, path, fire_grass, ice_grass), block);
}

// Creatures appear on these (except deep things, which rise from water, and the dead of the last floor, from graves).
CRAFTAX_FN constexpr bool is_spawn_ground(Block block) {
  using enum Block;
  return detail::contains(detail::blocks(grass, path, fire_grass, ice_grass), block);
}

CRAFTAX_FN constexpr bool is_grave(Block block) {
  using enum Block;
  return detail::contains(detail::blocks(grave, grave2, grave3), block);
}

// What stops a creature, besides solid blocks.
struct Movement {
  bool blocked_by_ground;
  bool blocked_by_water;
  bool blocked_by_lava;
};
inline constexpr Movement kLand{false, true, true};
inline constexpr Movement kFlying{false, false, false};
inline constexpr Movement kAquatic{true, false, true};
inline constexpr Movement kAmphibian{false, false, true};

// By type; the types of each class are in the order of the rules.
inline constexpr Movement kPassiveMovement[kCreatureTypes] = {kLand, kFlying, kLand, kLand, kLand, kLand, kLand, kLand};
inline constexpr Movement kMeleeMovement[kCreatureTypes] = {kLand, kLand, kLand, kAmphibian, kLand, kLand, kLand, kLand};
inline constexpr Movement kRangedMovement[kCreatureTypes] = {kLand, kLand,    kLand,   kLand,
                                                             kLand, kAquatic, kFlying, kFlying};

// Physical, fire and ice: of an attack the points it deals, of an armour the share it takes away.
struct Elements {
  float physical;
  float fire;
  float ice;
};

inline constexpr Elements kMeleeDamage[kCreatureTypes] = {{2, 0, 0}, {4, 0, 0}, {3, 0, 0}, {5, 0, 0},
                                                          {6, 0, 0}, {6, 1, 1}, {3, 5, 0}, {4, 0, 5}};
inline constexpr Elements kProjectileDamage[kCreatureTypes] = {{2, 0, 0}, {4, 0, 0}, {0, 3, 0}, {0, 0, 3},
                                                               {5, 0, 0}, {4, 3, 3}, {3, 5, 0}, {4, 0, 5}};

inline constexpr float kPassiveHealth[kCreatureTypes] = {3, 4, 6, 8, 0, 0, 0, 0};
inline constexpr float kMeleeHealth[kCreatureTypes] = {5, 7, 9, 11, 12, 20, 20, 24};
inline constexpr float kRangedHealth[kCreatureTypes] = {3, 5, 6, 8, 12, 4, 14, 16};

inline constexpr Elements kNoDefense{0, 0, 0};
inline constexpr Elements kMeleeDefense[kCreatureTypes] = {
    kNoDefense, kNoDefense, kNoDefense, kNoDefense, {0.5f, 0, 0}, {0.2f, 0, 0}, {0.9f, 1, 0}, {0.9f, 0, 1}};
inline constexpr Elements kRangedDefense[kCreatureTypes] = {
    kNoDefense, kNoDefense, kNoDefense, kNoDefense, {0.5f, 0, 0}, kNoDefense, {0.9f, 1, 0}, {0.9f, 0, 1}};

inline constexpr Projectile kShoots[kCreatureTypes] = {
    Projectile::arrow,  Projectile::arrow,     Projectile::fireball,  Projectile::dagger,
    Projectile::arrow2, Projectile::slimeball, Projectile::fireball2, Projectile::iceball2};

// Which types live on a floor; on the last one, the hostile types follow the round instead.
struct Inhabitants {
  std::uint8_t passive;
  std::uint8_t hostile;  // melee and ranged types have the same number
};
inline constexpr Inhabitants kInhabitants[kFloors] = {{0, 0}, {2, 2}, {1, 1}, {2, 3}, {2, 4},
                                                      {1, 5}, {1, 6}, {1, 7}, {0, 0}};

struct SpawnChance {
  float passive;
  float melee;
  float ranged;
  float melee_in_the_dark;
};
inline constexpr SpawnChance kSpawnChance[kFloors] = {
    {0.1f, 0.02f, 0.05f, 0.1f}, {0.1f, 0.06f, 0.05f, 0}, {0.1f, 0.06f, 0.05f, 0},
    {0.1f, 0.06f, 0.05f, 0},    {0.1f, 0.06f, 0.05f, 0}, {0.1f, 0.06f, 0.05f, 0},
    {0.1f, 0.06f, 0.05f, 0},    {0.0f, 0.06f, 0.05f, 0}, {0.1f, 0.06f, 0.05f, 0}};

// What a kill earns, by type. No creature of the game has a type beyond those listed.
inline constexpr Achievement kPassiveKill[kCreatureTypes] = {
    Achievement::eat_cow,      Achievement::eat_bat,      Achievement::eat_snail,    Achievement::collect_wood,
    Achievement::collect_wood, Achievement::collect_wood, Achievement::collect_wood, Achievement::collect_wood};
inline constexpr Achievement kMeleeKill[kCreatureTypes] = {
    Achievement::defeat_zombie, Achievement::defeat_gnome_warrior, Achievement::defeat_orc_soldier,
    Achievement::defeat_lizard, Achievement::defeat_knight,        Achievement::defeat_troll,
    Achievement::defeat_pigman, Achievement::defeat_frost_troll};
inline constexpr Achievement kRangedKill[kCreatureTypes] = {
    Achievement::defeat_skeleton,       Achievement::defeat_gnome_archer, Achievement::defeat_orc_mage,
    Achievement::defeat_kobold,         Achievement::defeat_archer,       Achievement::defeat_deep_thing,
    Achievement::defeat_fire_elemental, Achievement::defeat_ice_elemental};

inline constexpr Achievement kEnterFloor[kFloors] = {
    Achievement::collect_wood,  // the first floor earns nothing
    Achievement::enter_dungeon,     Achievement::enter_gnomish_mines, Achievement::enter_sewers,
    Achievement::enter_vault,       Achievement::enter_troll_mines,   Achievement::enter_fire_realm,
    Achievement::enter_ice_realm,   Achievement::enter_graveyard};

// The reward of an achievement: 1 for the basic ones, 3, 5 or 8 for those further on.
CRAFTAX_FN constexpr int reward_of(Achievement achievement) {
  using enum Achievement;
  if (static_cast<int>(achievement) <= static_cast<int>(place_torch)) return 1;
  switch (achievement) {
    case collect_sapphire:
    case collect_ruby:
    case make_diamond_pickaxe:
    case make_diamond_sword:
    case make_iron_armour:
    case make_diamond_armour:
    case enter_gnomish_mines:
    case enter_dungeon:
    case defeat_gnome_warrior:
    case defeat_gnome_archer:
    case defeat_orc_soldier:
    case defeat_orc_mage:
    case eat_bat:
    case eat_snail:
    case find_bow:
    case fire_bow:
    case open_chest:
    case drink_potion:
      return 3;
    case enter_fire_realm:
    case enter_ice_realm:
    case enter_graveyard:
    case defeat_pigman:
    case defeat_fire_elemental:
    case defeat_frost_troll:
    case defeat_ice_elemental:
    case damage_necromancer:
    case defeat_necromancer:
      return 8;
    default:
      return 5;
  }
}

}  // namespace craftax
