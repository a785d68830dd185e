// The player's body: sleep and rest, hunger, thirst, fatigue, health and mana.
#pragma once

#include <bit>

#include "terrain.hpp"

namespace craftax {

namespace detail {

CRAFTAX_FN void sleep_or_rest(State& state, Action action) {
  Player& player = state.player;
  if (action == Action::sleep && player.energy < player.max_energy()) player.sleeping = true;
  if (player.sleeping && player.energy >= player.max_energy()) {
    player.sleeping = false;
    state.earn(Achievement::wake_up);
  }
  const float full_health = static_cast<float>(player.max_health());
  if (action == Action::rest && player.health < full_health) player.resting = true;
  if (player.health >= full_health || player.food <= 0 || player.drink <= 0) player.resting = false;
}

// Adds to a want; when it exceeds the limit it starts anew and the supply sinks by `loss`.
CRAFTAX_FN void wear(float& want, float added, float limit, std::int32_t& supply, int loss) {
  want += added;
  if (want > limit) {
    supply = at_least(supply - loss, 0);
    want = 0;
  }
}

CRAFTAX_FN void tire(Player& player, float effort, int loss) {
  if (player.sleeping) {
    const float rested = player.fatigue - 1;
    player.fatigue = rested < 0 ? rested : 0;
  } else {
    player.fatigue += effort;
  }
  if (player.fatigue > 30) {
    player.energy = at_least(player.energy - loss, 0);
    player.fatigue = 0;
  }
  if (player.fatigue < -10) {
    player.energy = at_most(player.energy + 1, player.max_energy());
    player.fatigue = 0;
  }
}

CRAFTAX_FN void heal(Player& player, bool fighting_boss) {
  const bool cared_for = player.food > 0 && player.drink > 0 && (player.energy > 0 || player.sleeping);
  const float recovery = player.sleeping ? 2.0f : 1.0f;
  const float decline = fighting_boss ? 0.0f : player.sleeping ? -0.5f : -1.0f;
  player.recover += cared_for ? recovery : decline;
  if (player.recover > 25) {
    const float more = player.health + 1, full = static_cast<float>(player.max_health());
    player.health = more < full ? more : full;
    player.recover = 0;
  }
  if (player.recover < -15) {
    player.health -= 1;
    player.recover = 0;
  }
}

CRAFTAX_FN void gather_mana(Player& player) {
  const float coefficient = 1.0f + 0.25f * static_cast<float>(player.intelligence - 1);
  player.recover_mana = (player.recover_mana + (player.sleeping ? 2.0f : 1.0f)) * coefficient;
  if (player.recover_mana > 30) {
    player.mana += 1;
    player.recover_mana = 0;
  }
}

}  // namespace detail

CRAFTAX_FN void update_body(State& state, Action action) {
  Player& player = state.player;
  detail::sleep_or_rest(state, action);
  const int loss = state.fighting_boss() ? 0 : 1;
  const float effort = 1.0f - 0.125f * static_cast<float>(player.dexterity - 1);
  const float awake = player.sleeping ? 0.5f : 1.0f;
  detail::wear(player.hunger, awake * effort, 25, player.food, loss);
  detail::wear(player.thirst, awake * effort, 20, player.drink, loss);
  detail::tire(player, effort, loss);
  detail::heal(player, state.fighting_boss());
  detail::gather_mana(player);
}

// Nothing exceeds what the player can hold.
CRAFTAX_FN void clip(Player& player) {
  struct Counts {
    std::int32_t each[sizeof(Inventory) / sizeof(std::int32_t)];
  };
  Counts counts = std::bit_cast<Counts>(player.inventory);
  for (std::int32_t& count : counts.each) count = at_most(count, kMaxCount);
  player.inventory = std::bit_cast<Inventory>(counts);
  const float full = static_cast<float>(player.max_health());
  const float health = player.health > 0 ? player.health : 0;
  player.health = health < full ? health : full;
  player.food = at_most(at_least(player.food, 0), player.max_food());
  player.drink = at_most(at_least(player.drink, 0), player.max_drink());
  player.energy = at_most(at_least(player.energy, 0), player.max_energy());
  player.mana = at_most(at_least(player.mana, 0), player.max_mana());
}

}  // namespace craftax
