// Putting stones, tables, furnaces, torches and saplings into the cell in front.
#pragma once

#include "light.hpp"
#include "terrain.hpp"

namespace craftax {

namespace detail {

// Marks the sapling's cell as growing, if one of the slots is free; otherwise it never ripens.
CRAFTAX_FN void sow(State& state, Cell cell) {
  for (Plant& plant : state.plants) {
    if (plant.growing) continue;
    plant = {0, static_cast<std::int8_t>(cell.row), static_cast<std::int8_t>(cell.col), true};
    return;
  }
}

CRAFTAX_FN bool put_from(State& state, Cell cell, Block block, std::int32_t& stock, int price, Achievement achievement) {
  if (stock < price) return false;
  stock -= price;
  put_block(state.floor(), cell, block);
  state.earn(achievement);
  return true;
}

}  // namespace detail

CRAFTAX_FN void place(State& state, Action action) {
  const Cell cell = state.player.front();
  if (!in_bounds(cell) || is_taken(state, cell)) return;
  Floor& floor = state.floor();
  Inventory& items = state.player.inventory;
  const Block block = floor.blocks[cell.row][cell.col];
  const bool bare = floor.items[cell.row][cell.col] == Item::none;
  const bool free = bare && !is_solid(block);
  switch (action) {
    case Action::place_table:
      if (free) detail::put_from(state, cell, Block::crafting_table, items.wood, 2, Achievement::place_table);
      break;
    case Action::place_furnace:
      if (free) detail::put_from(state, cell, Block::furnace, items.stone, 1, Achievement::place_furnace);
      break;
    case Action::place_stone:
      if (free || block == Block::water) {
        detail::put_from(state, cell, Block::stone, items.stone, 1, Achievement::place_stone);
      }
      break;
    case Action::place_torch:
      if (bare && can_hold_item(block) && items.torches > 0) {
        items.torches -= 1;
        put_item(floor, cell, Item::torch);
        shine(floor, cell);
        state.earn(Achievement::place_torch);
      }
      break;
    case Action::place_plant:
      if (bare && block == Block::grass &&
          detail::put_from(state, cell, Block::plant, items.sapling, 1, Achievement::place_plant)) {
        detail::sow(state, cell);
      }
      break;
    default: break;
  }
}

}  // namespace craftax
