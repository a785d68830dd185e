// The action "interact": hit, mine, drink, eat, open, or strike the necromancer, whichever is in front.
#pragma once

#include "chances.hpp"
#include "choice.hpp"
#include "combat.hpp"

namespace craftax {

namespace detail {

// Chances of the contents; one key each, whether the thing is found or not.
CRAFTAX_FN void open_chest(State& state, Key key) {
  Inventory& items = state.player.inventory;
  KeyChain chain{key};

  const bool finds_torches = uniform(chain.next()) < 0.6f;
  const Key torches = chain.next();
  if (finds_torches) items.torches += random_int(torches, 4, 8);

  const bool finds_ore = uniform(chain.next()) < 0.6f;
  const Key ore = chain.next();
  const Key amount = chain.next();
  if (finds_ore) {
    constexpr float kOreWeights[] = {0.3f, 0.3f, 0.15f, 0.125f, 0.125f};
    switch (choose(kOreWeights, uniform(ore))) {
      case 0: items.coal += random_int(amount, 1, 4); break;
      case 1: items.iron += random_int(amount, 1, 3); break;
      case 2: items.diamond += 1; break;
      case 3: items.sapphire += 1; break;
      default: items.ruby += 1; break;
    }
  }

  const bool finds_potions = uniform(chain.next()) < 0.5f;
  const Key colour = chain.next();
  const Key potions = chain.next();
  if (finds_potions) items.potions[random_int(colour, 0, 6)] += random_int(potions, 1, 3);

  const bool finds_arrows = uniform(chain.next()) < 0.25f;
  const Key arrows = chain.next();
  if (finds_arrows) items.arrows += random_int(arrows, 1, 5);

  const bool finds_tool = uniform(chain.next()) < 0.2f;
  const Key tool = chain.next();
  const Key pickaxe = chain.next();
  const Key sword = chain.next();
  if (finds_tool) {
    constexpr float kTierWeights[] = {0.4f, 0.3f, 0.2f, 0.1f};
    const bool is_pickaxe = random_int(tool, 0, 2) == 0;
    std::int32_t& tier = is_pickaxe ? items.pickaxe : items.sword;
    tier = at_least(tier, 1 + choose(kTierWeights, uniform(is_pickaxe ? pickaxe : sword)));
  }

  // The first chest of some floors holds more.
  if (!state.facts[state.player.floor].chest_opened) {
    if (state.player.floor == 1) items.bow = 1;
    if (state.player.floor == 3 || state.player.floor == 4) items.books += 1;
  }
}

CRAFTAX_FN void mine(State& state, Cell cell, Block left_behind, std::int32_t& count) {
  put_block(state.floor(), cell, left_behind);
  count += 1;
}

CRAFTAX_FN void drink_water(State& state) {
  Player& player = state.player;
  player.drink = at_most(player.drink + 1, player.max_drink());
  player.thirst = 0;
  state.earn(Achievement::collect_drink);
}

CRAFTAX_FN void eat_plant(State& state, Cell cell) {
  Player& player = state.player;
  put_block(state.floor(), cell, Block::plant);
  player.food = at_most(player.food + 4, player.max_food());
  player.hunger = 0;
  state.earn(Achievement::eat_plant);
  int eaten = 0;
  while (eaten < kPlants && !(state.plants[eaten].row == cell.row && state.plants[eaten].col == cell.col)) ++eaten;
  state.plants[eaten < kPlants ? eaten : 0].age = 0;
}

CRAFTAX_FN void use_block(State& state, Cell cell, Block block, Key key) {
  Floor& floor = state.floor();
  Inventory& items = state.player.inventory;
  switch (block) {
    case Block::tree: mine(state, cell, Block::grass, items.wood); break;
    case Block::fire_tree: mine(state, cell, Block::fire_grass, items.wood); break;
    case Block::ice_shrub: mine(state, cell, Block::ice_grass, items.wood); break;
    case Block::stone:
    case Block::stalagmite:
      if (items.pickaxe >= 1) mine(state, cell, Block::path, items.stone);
      break;
    case Block::coal:
      if (items.pickaxe >= 1) mine(state, cell, Block::path, items.coal);
      break;
    case Block::iron:
      if (items.pickaxe >= 2) mine(state, cell, Block::path, items.iron);
      break;
    case Block::diamond:
      if (items.pickaxe >= 3) mine(state, cell, Block::path, items.diamond);
      break;
    case Block::sapphire:
      if (items.pickaxe >= 4) mine(state, cell, Block::path, items.sapphire);
      break;
    case Block::ruby:
      if (items.pickaxe >= 4) mine(state, cell, Block::path, items.ruby);
      break;
    case Block::furnace:
    case Block::crafting_table: put_block(floor, cell, Block::path); break;
    case Block::grass:
      if (uniform(child(key, 1)) < 0.1f) items.sapling += 1;
      break;
    case Block::water:
    case Block::fountain: drink_water(state); break;
    case Block::ripe_plant: eat_plant(state, cell); break;
    case Block::chest:
      put_block(floor, cell, Block::path);
      open_chest(state, child(child(key, 0), 1));
      state.earn(Achievement::open_chest);
      break;
    default: break;
  }
}

}  // namespace detail

CRAFTAX_FN void interact(State& state, const Chances& chances) {
  const Cell cell = state.player.front();
  const bool attacked = attack_cell(state, cell, melee_attack(state.player), true);
  const Block block = block_at(state.floor(), cell);
  if (in_bounds(cell) && !attacked) detail::use_block(state, cell, block, child(chances.interact(), 1));
  // The rest counts for the cell at the far end of the map, too, when the player faces its edge.
  if (block == Block::chest) state.facts[state.player.floor].chest_opened = true;
  if (block == Block::necromancer && is_boss_vulnerable(state) && state.fighting_boss()) {
    state.boss_progress += 1;
    state.boss_spawn_turns = kSpawnTurns;
    if (in_bounds(cell) && !attacked) state.earn(Achievement::damage_necromancer);
  }
}

}  // namespace craftax
