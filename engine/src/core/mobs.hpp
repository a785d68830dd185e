// What the creatures and projectiles of the player's floor do in one step.
#pragma once

#include "chances.hpp"
#include "combat.hpp"

namespace craftax {

namespace detail {

// One of the four directions from the low two bits.
CRAFTAX_FN Cell random_direction(std::uint32_t bits) { return offset(static_cast<int>(bits & 3) + 1); }

// One step towards the player along the axis on which it is farther away; `bits` decides a tie.
CRAFTAX_FN Cell towards_player(const State& state, Cell from, std::uint32_t bits) {
  const Cell way = state.player.cell() - from;
  const int rows = absolute(way.row), cols = absolute(way.col);
  const bool along_rows = rows != cols ? rows > cols : bits >> 31;
  return along_rows ? Cell{sign(way.row), 0} : Cell{0, sign(way.col)};
}

CRAFTAX_FN void wake(State& state) {
  state.player.sleeping = false;
  state.player.resting = false;
}

// Moves a living creature, or removes it when it is too far from the player.
CRAFTAX_FN void relocate(State& state, Mob& mob, Cell target, Movement movement, bool stays) {
  const Cell old = mob.cell();
  if (can_enter(state, target, movement)) mob.move_to(target);
  put(state.floor().occupied, old, false);
  mob.alive = stays || manhattan(old, state.player.cell()) < kDespawnDistance;
  if (mob.alive) put(state.floor().occupied, mob.cell(), true);
}

CRAFTAX_FN void act_melee(State& state, Mob& mob, const Chances& chances, int slot) {
  const Cell cell = mob.cell();
  const int distance = manhattan(cell, state.player.cell());
  Cell target = cell;
  if (distance == 1 && mob.cooldown <= 0) {
    const float factor = state.player.sleeping ? 3.5f : 1.0f;
    state.player.health -= damage_to_player(state, scaled(kMeleeDamage[mob.type & 7], factor));
    state.earn(Achievement::wake_up, state.player.sleeping);
    wake(state);
    mob.cooldown = 5;
  } else {
    mob.cooldown -= 1;
    const bool pursues = (distance < 10 || state.fighting_boss()) && chances.melee_pursuit(slot) < 0.75f;
    target = cell + (pursues ? towards_player(state, cell, chances.melee_axis(slot))
                             : random_direction(chances.melee_direction(slot)));
  }
  relocate(state, mob, target, kMeleeMovement[mob.type & 7], state.fighting_boss());
}

CRAFTAX_FN void act_passive(State& state, Mob& mob, std::uint32_t bits) {
  const Cell step = bits & 4 ? Cell{0, 0} : random_direction(bits);
  relocate(state, mob, mob.cell() + step, kPassiveMovement[mob.type & 7], false);
}

CRAFTAX_FN void act_ranged(State& state, Mob& mob, const Chances& chances, int slot) {
  const Cell cell = mob.cell();
  const int distance = manhattan(cell, state.player.cell());
  const Movement movement = kRangedMovement[mob.type & 7];
  const Cell towards = towards_player(state, cell, chances.ranged_axis(slot));
  Cell step = random_direction(chances.ranged_direction(slot));
  if (chances.ranged_resolve(slot) > 0.85f) {
    if (distance >= 6) step = towards;
    if (distance <= 3) step = Cell{0, 0} - towards;
  }
  Cell target = cell + step;
  const bool in_range = distance == 4 || distance == 5;
  const bool cornered = distance <= 3 && !can_enter(state, target, movement);
  if ((in_range || cornered) && mob.cooldown <= 0) {
    launch(state.here().projectiles, cell, towards, kShoots[mob.type & 7]);
    target = cell;
    mob.cooldown = 4;
  } else {
    mob.cooldown -= 1;
  }
  relocate(state, mob, target, movement, state.fighting_boss());
}

// Whether a projectile stops at the cell. It flies over water.
CRAFTAX_FN bool stops_projectile(const State& state, Cell cell) {
  return !in_bounds(cell) || is_solid(state.floor().blocks[cell.row][cell.col]);
}

CRAFTAX_FN void fly_at_player(State& state, Mob& shot) {
  const Cell here = shot.cell();
  const Cell next = here + Cell{shot.row_step, shot.col_step};
  const Cell player = state.player.cell();
  const bool hits = here == player || next == player;
  const bool flies_on = !stops_projectile(state, next) && !is_taken(state, next) && !hits;
  const Block block = block_at(state.floor(), next);
  if (block == Block::furnace || block == Block::crafting_table) put_block(state.floor(), next, Block::path);
  if (hits) {
    state.player.health -= damage_to_player(state, kProjectileDamage[shot.type & 7]);
    wake(state);
  }
  shot.move_to(next);
  shot.alive = flies_on;
}

CRAFTAX_FN void fly_at_creatures(State& state, Mob& shot) {
  Elements attack = projectile_attack(state.player, static_cast<Projectile>(shot.type));
  const Cell here = shot.cell();
  const Cell next = here + Cell{shot.row_step, shot.col_step};
  const bool stops = stops_projectile(state, next);
  const bool hits_here = attack_cell(state, here, attack, false);
  if (hits_here) attack = scaled(attack, 0.0f);
  const bool hits_next = attack_cell(state, next, attack, false);
  shot.move_to(next);
  shot.alive = !stops && !hits_here && !hits_next;
}

}  // namespace detail

CRAFTAX_FN void update_mobs(State& state, const Chances& chances) {
  Mobs& mobs = state.here();
  for (int slot = 0; slot < kMeleeSlots; ++slot) {
    Mob& mob = mobs.melee[slot];
    if (mob.alive) {
      detail::act_melee(state, mob, chances, slot);
    } else {
      mob.cooldown -= 1;
    }
  }
  for (int slot = 0; slot < kPassiveSlots; ++slot) {
    if (mobs.passive[slot].alive) detail::act_passive(state, mobs.passive[slot], chances.passive_direction(slot));
  }
  for (int slot = 0; slot < kRangedSlots; ++slot) {
    Mob& mob = mobs.ranged[slot];
    if (mob.alive) {
      detail::act_ranged(state, mob, chances, slot);
    } else {
      mob.cooldown -= 1;
    }
  }
  for (Mob& shot : mobs.projectiles) {
    if (shot.alive) detail::fly_at_player(state, shot);
  }
  for (Mob& shot : mobs.player_projectiles) {
    if (shot.alive) detail::fly_at_creatures(state, shot);
  }
}

}  // namespace craftax
