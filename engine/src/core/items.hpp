// Using what the player carries or has learned: arrows, spells, potions, books, gems and experience.
#pragma once

#include "combat.hpp"
#include "chances.hpp"

namespace craftax {

CRAFTAX_FN void shoot_arrow(State& state) {
  Player& player = state.player;
  if (player.inventory.bow < 1 || player.inventory.arrows < 1) return;
  if (!launch(state.here().player_projectiles, player.cell(), offset(player.direction), Projectile::arrow2)) return;
  player.inventory.arrows -= 1;
  state.earn(Achievement::fire_bow);
}

CRAFTAX_FN void cast_spell(State& state, bool ice) {
  Player& player = state.player;
  if (player.mana < 2 || !player.learned_spells[ice]) return;
  const Projectile ball = ice ? Projectile::iceball : Projectile::fireball;
  if (!launch(state.here().player_projectiles, player.cell(), offset(player.direction), ball)) return;
  player.mana -= 2;
  state.earn(ice ? Achievement::cast_iceball : Achievement::cast_fireball);
}

// What a colour does differs from game to game.
CRAFTAX_FN void drink_potion(State& state, int colour) {
  Player& player = state.player;
  if (player.inventory.potions[colour] <= 0) return;
  player.inventory.potions[colour] -= 1;
  state.earn(Achievement::drink_potion);
  switch (player.potion_mapping[colour]) {
    case 0: player.health += 8; break;
    case 1: player.health -= 3; break;
    case 2: player.mana += 8; break;
    case 3: player.mana -= 3; break;
    case 4: player.energy += 8; break;
    case 5: player.energy -= 3; break;
    default: break;
  }
}

// Teaches one of the spells not known yet.
CRAFTAX_FN void read_book(State& state, const Chances& chances) {
  Player& player = state.player;
  if (player.inventory.books <= 0) return;
  player.inventory.books -= 1;
  bool ice = player.learned_spells[0];
  if (player.learned_spells[0] == player.learned_spells[1]) {
    // With both known the reference divides zero by zero and ends at the first.
    ice = !player.learned_spells[0] && uniform(child(child(chances.read(), 1), 1)) < 0.5f;
  }
  player.learned_spells[ice] = true;
  state.earn(ice ? Achievement::learn_iceball : Achievement::learn_fireball);
}

namespace detail {

// A piece without enchantment, or, when all have one, a piece with the other; or else the first.
CRAFTAX_FN int armour_to_enchant(const Player& player, int enchantment, Key key) {
  bool chosen[4];
  int count = 0;
  for (int piece = 0; piece < 4; ++piece) count += chosen[piece] = player.armour_enchantments[piece] == 0;
  if (count == 0) {
    for (int piece = 0; piece < 4; ++piece) {
      count += chosen[piece] = player.armour_enchantments[piece] != enchantment;
    }
  }
  const float reach = static_cast<float>(count) * (1.0f - uniform(key));
  int passed = 0;
  for (int piece = 0; piece < 4; ++piece) {
    passed += chosen[piece];
    if (static_cast<float>(passed) >= reach) return piece;
  }
  return 3;
}

}  // namespace detail

// `action` is one of the three that enchant.
CRAFTAX_FN void enchant(State& state, Action action, const Chances& chances) {
  Player& player = state.player;
  Inventory& items = player.inventory;
  const Block table = block_at(state.floor(), player.front());
  if (table != Block::fire_enchantment_table && table != Block::ice_enchantment_table) return;
  const int enchantment = table == Block::fire_enchantment_table ? 1 : 2;
  std::int32_t& gems = enchantment == 1 ? items.ruby : items.sapphire;
  if (player.mana < 9 || gems < 1) return;
  switch (action) {
    case Action::enchant_bow:
      if (items.bow <= 0) return;
      player.bow_enchantment = enchantment;
      break;
    case Action::enchant_sword:
      if (items.sword <= 0) return;
      player.sword_enchantment = enchantment;
      state.earn(Achievement::enchant_sword);
      break;
    default: {
      if (items.armour[0] + items.armour[1] + items.armour[2] + items.armour[3] <= 0) return;
      const Key key = child(child(chances.enchant(), 1), 1);
      player.armour_enchantments[detail::armour_to_enchant(player, enchantment, key)] = enchantment;
      state.earn(Achievement::enchant_armour);
    }
  }
  gems -= 1;
  player.mana -= 9;
}

CRAFTAX_FN void level_up(Player& player, std::int32_t& attribute) {
  if (player.xp < 1 || attribute >= kMaxAttribute) return;
  attribute += 1;
  player.xp -= 1;
}

}  // namespace craftax
