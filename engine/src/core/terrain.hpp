// Questions about the cells of the player's floor.
#pragma once

#include "state.hpp"

namespace craftax {

// Whether a creature or the player stands in the cell.
CRAFTAX_FN bool is_taken(const State& state, Cell cell) {
  return is_set(state.floor().occupied, cell) || cell == state.player.cell();
}

CRAFTAX_FN bool can_enter(const State& state, Cell cell, Movement movement) {
  if (!in_bounds(cell) || is_taken(state, cell)) return false;
  const Block block = state.floor().blocks[cell.row][cell.col];
  if (is_solid(block)) return false;
  if (block == Block::water) return !movement.blocked_by_water;
  if (block == Block::lava) return !movement.blocked_by_lava;
  return !movement.blocked_by_ground;
}

// Whether the block is among the player's eight neighbours.
CRAFTAX_FN bool is_near(const State& state, Block block) {
  const Cell centre = state.player.cell();
  for (int row = centre.row - 1; row <= centre.row + 1; ++row) {
    for (int col = centre.col - 1; col <= centre.col + 1; ++col) {
      const Cell cell{row, col};
      if (cell != centre && in_bounds(cell) && state.floor().blocks[row][col] == block) return true;
    }
  }
  return false;
}

CRAFTAX_FN bool is_boss_vulnerable(const State& state) {
  int alive = 0;
  for (const Mob& mob : state.here().melee) alive += mob.alive;
  for (const Mob& mob : state.here().ranged) alive += mob.alive;
  return alive == 0 && state.boss_spawn_turns <= 0;
}

CRAFTAX_FN bool has_beaten_boss(const State& state) { return state.boss_progress >= kBossRounds; }

}  // namespace craftax
