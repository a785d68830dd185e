// One step of the game.
#pragma once

#include "chances.hpp"
#include "craft.hpp"
#include "interact.hpp"
#include "items.hpp"
#include "mobs.hpp"
#include "place.hpp"
#include "spawn.hpp"
#include "survive.hpp"
#include "world/world.hpp"

namespace craftax {

struct Rules {
  int max_timesteps = 100000;
};

struct StepResult {
  float reward;
  bool terminated;  // dead, or the last round against the boss is won
  bool truncated;   // out of time
};

namespace detail {

CRAFTAX_FN void change_floor(State& state, Action action) {
  Player& player = state.player;
  const FloorFacts* facts = &state.facts[player.floor];
  const Item under = item_at(state.floor(), player.cell());
  if (action == Action::descend && under == Item::ladder_down && facts->monsters_killed >= kKillsToClear &&
      player.floor < kFloors - 1) {
    player.floor += 1;
    generate_floor(state, player.floor);
    facts = &state.facts[player.floor];
    player.arrive(facts->up_row, facts->up_col);
  } else if (action == Action::ascend && under == Item::ladder_up && player.floor > 0) {
    player.floor -= 1;
    generate_floor(state, player.floor);
    facts = &state.facts[player.floor];
    player.arrive(facts->down_row, facts->down_col);
  }
  if (player.floor != 0 && !state.has(kEnterFloor[player.floor])) {
    state.earn(kEnterFloor[player.floor]);
    player.xp += 1;
  }
}

CRAFTAX_FN void act(State& state, Action action, const Chances& chances) {
  switch (action) {
    case Action::interact: return interact(state, chances);
    case Action::place_stone:
    case Action::place_table:
    case Action::place_furnace:
    case Action::place_plant:
    case Action::place_torch: return place(state, action);
    case Action::shoot_arrow: return shoot_arrow(state);
    case Action::cast_fireball: return cast_spell(state, false);
    case Action::cast_iceball: return cast_spell(state, true);
    case Action::drink_red:
    case Action::drink_green:
    case Action::drink_blue:
    case Action::drink_pink:
    case Action::drink_cyan:
    case Action::drink_yellow:
      return drink_potion(state, static_cast<int>(action) - static_cast<int>(Action::drink_red));
    case Action::read_book: return read_book(state, chances);
    case Action::enchant_sword:
    case Action::enchant_armour:
    case Action::enchant_bow: return enchant(state, action, chances);
    default: return craft(state, action);
  }
}

CRAFTAX_FN void settle(State& state, Action action) {
  Player& player = state.player;
  state.earn(Achievement::defeat_necromancer, has_beaten_boss(state));
  if (state.fighting_boss()) state.boss_spawn_turns -= 1;
  if (action == Action::level_up_dexterity) level_up(player, player.dexterity);
  if (action == Action::level_up_strength) level_up(player, player.strength);
  if (action == Action::level_up_intelligence) level_up(player, player.intelligence);
}

CRAFTAX_FN void move_player(State& state, Action action) {
  if (action < Action::left || action > Action::down) return;
  Player& player = state.player;
  player.direction = static_cast<std::int32_t>(action);
  const Cell target = player.front();
  if (!can_enter(state, target, kLand)) return;
  player.row = target.row;
  player.col = target.col;
}

CRAFTAX_FN void grow_plants(State& state) {
  for (Plant& plant : state.plants) {
    plant.age = plant.growing ? plant.age + 1 : 0;
    if (plant.age >= kRipeAge) put_block(state.floors[0], {plant.row, plant.col}, Block::ripe_plant);
  }
}

// Achievements of having something, however it was come by.
CRAFTAX_FN void count_possessions(State& state) {
  using enum Achievement;
  const Inventory& items = state.player.inventory;
  state.earn(collect_wood, items.wood > 0);
  state.earn(collect_stone, items.stone > 0);
  state.earn(collect_coal, items.coal > 0);
  state.earn(collect_iron, items.iron > 0);
  state.earn(collect_diamond, items.diamond > 0);
  state.earn(collect_ruby, items.ruby > 0);
  state.earn(collect_sapphire, items.sapphire > 0);
  state.earn(collect_sapling, items.sapling > 0);
  state.earn(find_bow, items.bow > 0);
  state.earn(make_arrow, items.arrows > 0);
  state.earn(make_torch, items.torches > 0);
  state.earn(make_wood_pickaxe, items.pickaxe >= 1);
  state.earn(make_stone_pickaxe, items.pickaxe >= 2);
  state.earn(make_iron_pickaxe, items.pickaxe >= 3);
  state.earn(make_diamond_pickaxe, items.pickaxe >= 4);
  state.earn(make_wood_sword, items.sword >= 1);
  state.earn(make_stone_sword, items.sword >= 2);
  state.earn(make_iron_sword, items.sword >= 3);
  state.earn(make_diamond_sword, items.sword >= 4);
}

CRAFTAX_FN int reward_of_new(std::uint64_t earned, int first) {
  int sum = 0;
  for (; earned != 0; earned &= earned - 1) {
    sum += reward_of(static_cast<Achievement>(first + std::countr_zero(earned)));
  }
  return sum;
}

}  // namespace detail

// Advances the game. The order of the parts is part of the rules.
CRAFTAX_FN StepResult step(State& state, Action action, const Chances& chances, const Rules& rules) {
  const std::uint64_t achievements_before[2] = {state.achievements[0], state.achievements[1]};
  const float health_before = state.player.health;
  if (state.player.sleeping || state.player.resting) action = Action::noop;

  detail::change_floor(state, action);
  detail::act(state, action, chances);
  detail::settle(state, action);
  detail::move_player(state, action);
  update_mobs(state, chances);
  spawn_mobs(state, chances);
  detail::grow_plants(state);
  update_body(state, action);
  clip(state.player);
  detail::count_possessions(state);

  const int earned = detail::reward_of_new(state.achievements[0] & ~achievements_before[0], 0) +
                     detail::reward_of_new(state.achievements[1] & ~achievements_before[1], 64);
  state.timestep += 1;
  state.light_level = daylight(state.timestep);
  state.rng = chances.next();
  return {std::fma(state.player.health - health_before, 0.1f, static_cast<float>(earned)),
          state.player.health <= 0 || has_beaten_boss(state), state.timestep >= rules.max_timesteps};
}

// The same with the words drawn here, for single games.
CRAFTAX_FN StepResult step(State& state, Action action, const Rules& rules) {
  std::uint32_t words[kChanceWords];
  draw_chances(state.rng, words);
  return step(state, action, Chances{words, 1}, rules);
}

}  // namespace craftax
