// A game's state as Craftax's EnvState: every field's name, shape, type and range, for export and import alike.
#pragma once

#include <initializer_list>

#include "core/state.hpp"

namespace craftax {

struct Range {
  double low;
  double high;
};

namespace detail {

inline constexpr Range kAny{-2147483648.0, 2147483647.0};
inline constexpr Range kCount{0, 1000000};
inline constexpr Range kPosition{0, kSize - 1};
inline constexpr Range kWords{0, 4294967295.0};

// One class of creatures, over floors and slots. The mask comes first: what lies in empty slots is not checked.
template <class Visitor, class Slot>
void visit_mobs(Visitor& visit, const char* name, int slots, Slot slot) {
  const auto alive = [=](int i) { return slot(i).alive != 0; };
  visit.flags(name, ".mask", {kFloors, slots}, [=](int i) -> auto& { return slot(i).alive; });
  visit.integers(
      name, ".position", {kFloors, slots, 2}, {-32768, 32767},
      [=](int i) -> auto& { return i % 2 ? slot(i / 2).col : slot(i / 2).row; }, [=](int i) { return alive(i / 2); });
  visit.reals(name, ".health", {kFloors, slots}, [=](int i) -> auto& { return slot(i).health; });
  visit.integers(name, ".attack_cooldown", {kFloors, slots}, kAny, [=](int i) -> auto& { return slot(i).cooldown; });
  visit.integers(
      name, ".type_id", {kFloors, slots}, {0, kCreatureTypes - 1}, [=](int i) -> auto& { return slot(i).type; }, alive);
}

template <class Visitor, class Slot>
void visit_directions(Visitor& visit, const char* name, int slots, Slot slot) {
  visit.integers(name, "", {kFloors, slots, 2}, {-128, 127},
                 [=](int i) -> auto& { return i % 2 ? slot(i / 2).col_step : slot(i / 2).row_step; });
}

}  // namespace detail

// Calls the visitor's member for the type of each field, with the name in two parts, the shape (no number for a single
// value), the range, and a function from the flat index to the place where the element lives:
//   integers(name, suffix, shape, range, place[, checked]), words (the same without the last), reals(name, suffix,
//   shape, place), flags(name, suffix, shape, place) and bits(name, suffix, shape, get, set).
// `checked(i)` tells whether the element's range matters.
template <class Visitor>
void visit_env_state(State& state, Visitor& visit) {
  using namespace detail;
  using Shape = std::initializer_list<int>;
  State* const s = &state;
  Player* const p = &state.player;
  Inventory* const inventory = &state.player.inventory;

  const auto cell = [](int i) { return i % kCells; };
  const Shape map{kFloors, kSize, kSize};
  visit.integers("map", "", map, {0, kBlocks - 1},
                 [=](int i) -> auto& { return (&s->floors[i / kCells].blocks[0][0])[cell(i)]; });
  visit.integers("item_map", "", map, {0, kItems - 1},
                 [=](int i) -> auto& { return (&s->floors[i / kCells].items[0][0])[cell(i)]; });
  visit.bits(
      "mob_map", "", map,
      [=](int i) { return s->floors[i / kCells].occupied[cell(i) / kSize] >> (i % kSize) & 1; },
      [=](int i, bool value) { put(s->floors[i / kCells].occupied, {cell(i) / kSize, i % kSize}, value); });
  visit.reals("light_map", "", map, [=](int i) -> auto& { return (&s->floors[i / kCells].light[0][0])[cell(i)]; });
  visit.integers("down_ladders", "", {kFloors, 2}, kPosition,
                 [=](int i) -> auto& { return i % 2 ? s->facts[i / 2].down_col : s->facts[i / 2].down_row; });
  visit.integers("up_ladders", "", {kFloors, 2}, kPosition,
                 [=](int i) -> auto& { return i % 2 ? s->facts[i / 2].up_col : s->facts[i / 2].up_row; });
  visit.flags("chests_opened", "", {kFloors}, [=](int i) -> auto& { return s->facts[i].chest_opened; });
  visit.integers("monsters_killed", "", {kFloors}, kCount, [=](int i) -> auto& { return s->facts[i].monsters_killed; });

  const auto integer = [&](const char* name, Range range, std::int32_t& value) {
    visit.integers(name, "", {}, range, [place = &value](int) -> auto& { return *place; });
  };
  const auto real = [&](const char* name, float& value) {
    visit.reals(name, "", {}, [place = &value](int) -> auto& { return *place; });
  };
  visit.integers("player_position", "", {2}, kPosition, [=](int i) -> auto& { return i ? p->col : p->row; });
  integer("player_level", {0, kFloors - 1}, p->floor);
  integer("player_direction", {0, 4}, p->direction);
  real("player_health", p->health);
  integer("player_food", kCount, p->food);
  integer("player_drink", kCount, p->drink);
  integer("player_energy", kCount, p->energy);
  integer("player_mana", kCount, p->mana);
  visit.flags("is_sleeping", "", {}, [=](int) -> auto& { return p->sleeping; });
  visit.flags("is_resting", "", {}, [=](int) -> auto& { return p->resting; });
  real("player_recover", p->recover);
  real("player_hunger", p->hunger);
  real("player_thirst", p->thirst);
  real("player_fatigue", p->fatigue);
  real("player_recover_mana", p->recover_mana);
  integer("player_xp", kCount, p->xp);
  integer("player_dexterity", kCount, p->dexterity);
  integer("player_strength", kCount, p->strength);
  integer("player_intelligence", kCount, p->intelligence);

  const auto carried = [&](const char* name, Range range, std::int32_t& value) {
    visit.integers("inventory.", name, {}, range, [place = &value](int) -> auto& { return *place; });
  };
  carried("wood", kCount, inventory->wood);
  carried("stone", kCount, inventory->stone);
  carried("coal", kCount, inventory->coal);
  carried("iron", kCount, inventory->iron);
  carried("diamond", kCount, inventory->diamond);
  carried("sapling", kCount, inventory->sapling);
  carried("pickaxe", {0, 4}, inventory->pickaxe);
  carried("sword", {0, 4}, inventory->sword);
  carried("bow", {0, 1}, inventory->bow);
  carried("arrows", kCount, inventory->arrows);
  visit.integers("inventory.", "armour", {4}, {0, 2}, [=](int i) -> auto& { return inventory->armour[i]; });
  carried("torches", kCount, inventory->torches);
  carried("ruby", kCount, inventory->ruby);
  carried("sapphire", kCount, inventory->sapphire);
  visit.integers("inventory.", "potions", {6}, kCount, [=](int i) -> auto& { return inventory->potions[i]; });
  carried("books", kCount, inventory->books);

  visit_mobs(visit, "melee_mobs", kMeleeSlots,
             [=](int i) -> auto& { return s->mobs[i / kMeleeSlots].melee[i % kMeleeSlots]; });
  visit_mobs(visit, "passive_mobs", kPassiveSlots,
             [=](int i) -> auto& { return s->mobs[i / kPassiveSlots].passive[i % kPassiveSlots]; });
  visit_mobs(visit, "ranged_mobs", kRangedSlots,
             [=](int i) -> auto& { return s->mobs[i / kRangedSlots].ranged[i % kRangedSlots]; });
  const auto shot = [=](int i) -> auto& { return s->mobs[i / kProjectileSlots].projectiles[i % kProjectileSlots]; };
  visit_mobs(visit, "mob_projectiles", kProjectileSlots, shot);
  visit_directions(visit, "mob_projectile_directions", kProjectileSlots, shot);
  const auto own_shot = [=](int i) -> auto& {
    return s->mobs[i / kProjectileSlots].player_projectiles[i % kProjectileSlots];
  };
  visit_mobs(visit, "player_projectiles", kProjectileSlots, own_shot);
  visit_directions(visit, "player_projectile_directions", kProjectileSlots, own_shot);

  visit.integers("growing_plants_positions", "", {kPlants, 2}, kPosition,
                 [=](int i) -> auto& { return i % 2 ? s->plants[i / 2].col : s->plants[i / 2].row; });
  visit.integers("growing_plants_age", "", {kPlants}, kAny, [=](int i) -> auto& { return s->plants[i].age; });
  visit.flags("growing_plants_mask", "", {kPlants}, [=](int i) -> auto& { return s->plants[i].growing; });

  visit.integers("potion_mapping", "", {6}, {0, 5}, [=](int i) -> auto& { return p->potion_mapping[i]; });
  visit.flags("learned_spells", "", {2}, [=](int i) -> auto& { return p->learned_spells[i]; });
  integer("sword_enchantment", {0, 2}, p->sword_enchantment);
  integer("bow_enchantment", {0, 2}, p->bow_enchantment);
  visit.integers("armour_enchantments", "", {4}, {0, 2}, [=](int i) -> auto& { return p->armour_enchantments[i]; });
  integer("boss_progress", {0, 127}, s->boss_progress);
  integer("boss_timesteps_to_spawn_this_round", {-kCount.high, kCount.high}, s->boss_spawn_turns);
  real("light_level", s->light_level);
  visit.bits(
      "achievements", "", {kAchievements}, [=](int i) { return s->achievements[i >> 6] >> (i & 63) & 1; },
      [=](int i, bool value) {
        const std::uint64_t bit = std::uint64_t{1} << (i & 63);
        s->achievements[i >> 6] = value ? s->achievements[i >> 6] | bit : s->achievements[i >> 6] & ~bit;
      });
  visit.words("state_rng", "", {2}, kWords, [=](int i) -> auto& { return i ? s->rng.b : s->rng.a; });
  integer("timestep", {0, 1e9}, s->timestep);
}

}  // namespace craftax
