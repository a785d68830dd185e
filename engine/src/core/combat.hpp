// Who hurts whom, and how much.
#pragma once

#include <cmath>

#include "terrain.hpp"

namespace craftax {

// Points that get through: each kind of damage is reduced by the share of it that the defense takes away. The
// reference fuses each product with the sum.
CRAFTAX_FN float damage_through(Elements defense, Elements attack) {
  const float physical = (1.0f - defense.physical) * attack.physical;
  const float with_fire = std::fma(1.0f - defense.fire, attack.fire, physical);
  return std::fma(1.0f - defense.ice, attack.ice, with_fire);
}

CRAFTAX_FN Elements scaled(Elements attack, float factor) {
  return {attack.physical * factor, attack.fire * factor, attack.ice * factor};
}

CRAFTAX_FN float damage_to_player(const State& state, Elements attack) {
  const Player& player = state.player;
  Elements defense{0, 0, 0};
  for (int piece = 0; piece < 4; ++piece) {
    defense.physical += static_cast<float>(player.inventory.armour[piece]) * 0.1f;
    defense.fire += player.armour_enchantments[piece] == 1 ? 0.2f : 0.0f;
    defense.ice += player.armour_enchantments[piece] == 2 ? 0.2f : 0.0f;
  }
  return damage_through(defense, scaled(attack, state.fighting_boss() ? 1.5f : 1.0f));
}

// What the player's hand or sword deals.
CRAFTAX_FN Elements melee_attack(const Player& player) {
  constexpr float kBySword[] = {1, 2, 3, 5, 8};
  const float base = kBySword[at_most(at_least(player.inventory.sword, 0), 4)];
  const float enchanted = base * 0.5f * (1.0f + 0.05f * static_cast<float>(player.intelligence - 1));
  return {base * (1.0f + 0.25f * static_cast<float>(player.strength - 1)),
          player.sword_enchantment == 1 ? enchanted : 0.0f, player.sword_enchantment == 2 ? enchanted : 0.0f};
}

// What a flying projectile of the player deals.
CRAFTAX_FN Elements projectile_attack(const Player& player, Projectile type) {
  Elements attack = kProjectileDamage[static_cast<int>(type) & 7];
  if (type == Projectile::arrow || type == Projectile::arrow2) {
    const float enchanted = attack.physical / 2;
    if (player.bow_enchantment == 1) attack.fire += enchanted;
    if (player.bow_enchantment == 2) attack.ice += enchanted;
    return scaled(attack, 1.0f + 0.2f * static_cast<float>(player.dexterity - 1));
  }
  if (type == Projectile::fireball || type == Projectile::iceball) {
    return scaled(attack, 1.0f + 0.5f * static_cast<float>(player.intelligence - 1));
  }
  return attack;
}

namespace detail {

struct Hit {
  bool attacked = false;
  bool killed = false;
  std::uint8_t type = 0;
};

// Hits the first living creature in the cell.
template <int kSlots>
CRAFTAX_FN Hit hit_one_of(Mob (&mobs)[kSlots], const Elements* defense, Cell cell, Elements attack) {
  for (Mob& mob : mobs) {
    if (!mob.alive || mob.cell() != cell) continue;
    mob.health -= damage_through(defense != nullptr ? defense[mob.type & 7] : kNoDefense, attack);
    mob.alive = mob.health > 0;
    return {true, !mob.alive, static_cast<std::uint8_t>(mob.type & 7)};
  }
  return {};
}

}  // namespace detail

// The player hits whatever lives in the cell; true if something does. A passive creature killed by hand is eaten.
CRAFTAX_FN bool attack_cell(State& state, Cell cell, Elements attack, bool by_hand) {
  Mobs& mobs = state.here();
  const detail::Hit melee = detail::hit_one_of(mobs.melee, kMeleeDefense, cell, attack);
  const detail::Hit passive = detail::hit_one_of(mobs.passive, nullptr, cell, attack);
  const detail::Hit ranged = detail::hit_one_of(mobs.ranged, kRangedDefense, cell, attack);
  if (melee.killed) state.earn(kMeleeKill[melee.type]);
  if (ranged.killed) state.earn(kRangedKill[ranged.type]);
  if (passive.killed && by_hand) {
    state.earn(kPassiveKill[passive.type]);
    state.player.food = at_most(state.player.food + 6, state.player.max_food());
    state.player.hunger = 0;
  }
  if (melee.killed || ranged.killed) ++state.facts[state.player.floor].monsters_killed;
  if (melee.killed || ranged.killed || passive.killed) put(state.floor().occupied, cell, false);
  return melee.attacked || passive.attacked || ranged.attacked;
}

// Sends a projectile off from a cell, if one of the slots is free.
CRAFTAX_FN bool launch(Mob (&slots)[kProjectileSlots], Cell from, Cell direction, Projectile type) {
  for (Mob& slot : slots) {
    if (slot.alive) continue;
    slot.move_to(from);
    slot.row_step = static_cast<std::int8_t>(direction.row);
    slot.col_step = static_cast<std::int8_t>(direction.col);
    slot.type = static_cast<std::uint8_t>(type);
    slot.alive = true;
    return true;
  }
  return false;
}

}  // namespace craftax
