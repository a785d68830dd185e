#pragma once
#include "../../core/state.hpp"
namespace craftax {
CRAFTAX_FN void generate_floor(State& state, int floor) {
  if (state.generated >> floor & 1) return;
  Floor& f = state.floors[floor];
  for (auto& row : f.blocks) for (auto& b : row) b = Block::grass;
  for (auto& row : f.light) for (auto& b : row) b = 1;
  derive_maps(f);
  state.generated |= 1u << floor;
}
CRAFTAX_FN void generate_world(State& state, Key key) {
  state = State{};
  state.world = key;
  state.rng = child(key, 0);
  state.player.row = state.player.col = 24;
  state.player.direction = 3;
  state.player.health = 9;
  state.facts[0].monsters_killed = 10;
  state.boss_spawn_turns = 7;
  generate_floor(state, 0);
}
}
