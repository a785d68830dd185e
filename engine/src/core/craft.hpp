// Making tools, armour, arrows and torches beside a crafting table, and some of them beside a furnace as well.
#pragma once

#include "terrain.hpp"

namespace craftax {

namespace detail {

struct Price {
  std::int32_t wood = 0;
  std::int32_t stone = 0;
  std::int32_t coal = 0;
  std::int32_t iron = 0;
  std::int32_t diamond = 0;
};

// Takes the price, if the player has it and stands in the right place.
CRAFTAX_FN bool pay(State& state, Price price, bool needs_furnace = false) {
  Inventory& items = state.player.inventory;
  const bool affordable = items.wood >= price.wood && items.stone >= price.stone && items.coal >= price.coal &&
                          items.iron >= price.iron && items.diamond >= price.diamond;
  if (!affordable || !is_near(state, Block::crafting_table)) return false;
  if (needs_furnace && !is_near(state, Block::furnace)) return false;
  items.wood -= price.wood;
  items.stone -= price.stone;
  items.coal -= price.coal;
  items.iron -= price.iron;
  items.diamond -= price.diamond;
  return true;
}

CRAFTAX_FN void make_tool(State& state, std::int32_t& tool, int tier, Price price, bool needs_furnace = false) {
  if (tool < tier && pay(state, price, needs_furnace)) tool = tier;
}

// Improves the first piece below the tier.
CRAFTAX_FN void make_armour(State& state, int tier, Price price, bool needs_furnace, Achievement achievement) {
  for (std::int32_t& piece : state.player.inventory.armour) {
    if (piece >= tier) continue;
    if (pay(state, price, needs_furnace)) {
      piece = tier;
      state.earn(achievement);
    }
    return;
  }
}

CRAFTAX_FN void make_several(State& state, std::int32_t& count, int made, Price price) {
  if (count < kMaxCount && pay(state, price)) count += made;
}

}  // namespace detail

CRAFTAX_FN void craft(State& state, Action action) {
  using detail::make_tool;
  Inventory& items = state.player.inventory;
  switch (action) {
    case Action::make_wood_pickaxe: return make_tool(state, items.pickaxe, 1, {.wood = 1});
    case Action::make_stone_pickaxe: return make_tool(state, items.pickaxe, 2, {.wood = 1, .stone = 1});
    case Action::make_iron_pickaxe:
      return make_tool(state, items.pickaxe, 3, {.wood = 1, .stone = 1, .coal = 1, .iron = 1}, true);
    case Action::make_diamond_pickaxe: return make_tool(state, items.pickaxe, 4, {.wood = 1, .diamond = 3});
    case Action::make_wood_sword: return make_tool(state, items.sword, 1, {.wood = 1});
    case Action::make_stone_sword: return make_tool(state, items.sword, 2, {.wood = 1, .stone = 1});
    case Action::make_iron_sword:
      return make_tool(state, items.sword, 3, {.wood = 1, .stone = 1, .coal = 1, .iron = 1}, true);
    case Action::make_diamond_sword: return make_tool(state, items.sword, 4, {.wood = 1, .diamond = 2});
    case Action::make_iron_armour:
      return detail::make_armour(state, 1, {.coal = 3, .iron = 3}, true, Achievement::make_iron_armour);
    case Action::make_diamond_armour:
      return detail::make_armour(state, 2, {.diamond = 3}, false, Achievement::make_diamond_armour);
    case Action::make_arrow: return detail::make_several(state, items.arrows, 2, {.wood = 1, .stone = 1});
    case Action::make_torch: return detail::make_several(state, items.torches, 4, {.wood = 1, .coal = 1});
    default: return;
  }
}

}  // namespace craftax
