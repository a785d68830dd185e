// When a goal of the benchmark is reached.
//
// A goal is judged on the pair of states around a step, the later one taken before any reset. Only the floor that the
// player is on after the step is looked at, in both states.
#pragma once

#include <cstring>

#include "observe.hpp"

namespace craftax {

// A goal as four bytes, made by forethought/craftax/goal_table.py, which lists the same codes.
struct Goal {
  std::uint8_t family;  // a Family
  std::uint8_t thing;   // what the family looks at, see there
  std::uint8_t amount;  // the threshold of a quantity, the element of an enchantment, otherwise 1
  std::uint8_t floor;   // the floor that ladders and kills name, otherwise kAnyFloor
};

enum class Family : std::uint8_t {
  quantity,           // thing: a Quantity, at least `amount`
  enchantment,        // thing: a Piece, enchanted with element `amount` (1 fire, 2 ice)
  placement,          // thing: an Achievement, earned at any time
  see_block,          // thing: a Block in a visible cell of the window; `grave` stands for every kind of grave
  see_item,           // thing: an Item in a visible cell of the window
  see_creature,       // thing: a creature, 8 x Kind + type, alive in a visible cell of the window
  adjacent_block,     // the same three in the four cells beside the player, lit or not
  adjacent_item,
  adjacent_creature,
  damage,             // thing: a creature that lost health in this step, or whose kind was killed for the first time
  defeat,             // thing: a creature killed in this step or, where the game keeps a flag, at any time
};
inline constexpr int kFamilies = 11;

enum class Quantity : std::uint8_t {
  wood, stone, coal, iron, diamond, sapphire, ruby, sapling, torch, arrow, book,
  pickaxe, sword, bow, chestplate, leggings, boots, armour,   // tiers; of armour the best of the four pieces
  dexterity, strength, intelligence, floor, monsters_killed,  // the last on the floor that the goal names
};
inline constexpr int kQuantities = 23;

enum class Piece : std::uint8_t { sword, bow, armour };  // of armour, any of the four pieces
inline constexpr int kPieces = 3;

inline constexpr std::uint8_t kAnyFloor = 255;

// Whether the codes are among those above. Others are safe to judge, and never reached.
CRAFTAX_FN constexpr bool is_valid(Goal goal);

struct Creatures {
  Mob melee[kMeleeSlots];
  Mob passive[kPassiveSlots];
  Mob ranged[kRangedSlots];
};

// What the tests of fights need of the state before a step: creatures of the floors on which the step can end. A floor
// is left only by the ladder that the player stands on, so there are at most two.
struct Before {
  std::uint64_t achievements[2];
  int floors[2];  // -1: none
  Creatures creatures[2];
};

CRAFTAX_FN Before look(const State& state);

// Whether the step from the state that was looked at to this one reaches the goal.
CRAFTAX_FN bool reached(const Before& before, const State& after, Goal goal);

// The same for any two states, though no step leads from one to the other.
CRAFTAX_FN bool reached(const State& before, const State& after, Goal goal);

// Whether the goal holds without a step taken, as some "see" goals do in a fresh world.
CRAFTAX_FN bool holds(const State& state, Goal goal) { return reached(state, state, goal); }

namespace detail {

CRAFTAX_FN constexpr int kind_of(std::uint8_t creature) { return creature / kCreatureTypes; }
CRAFTAX_FN constexpr int type_of(std::uint8_t creature) { return creature % kCreatureTypes; }

// Whether the code names a creature that lives in the game: 3 passive ones, 8 of melee and 8 of ranged fighting.
CRAFTAX_FN constexpr bool is_creature(std::uint8_t code) {
  return kind_of(code) == 0 ? type_of(code) < 3 : kind_of(code) < 3;
}

struct Slots {
  const Mob* first;
  int count;
};

// From Mobs or from Creatures; empty for an unknown kind.
template <class Group>
CRAFTAX_FN Slots slots_of(const Group& group, std::uint8_t creature) {
  switch (kind_of(creature)) {
    case 0: return {group.passive, kPassiveSlots};
    case 1: return {group.melee, kMeleeSlots};
    case 2: return {group.ranged, kRangedSlots};
    default: return {nullptr, 0};
  }
}

CRAFTAX_FN constexpr Achievement kill_of(std::uint8_t creature) {
  const int type = type_of(creature);
  switch (kind_of(creature)) {
    case 0: return kPassiveKill[type];
    case 1: return kMeleeKill[type];
    default: return kRangedKill[type];
  }
}

CRAFTAX_FN bool has(const std::uint64_t (&achievements)[2], std::uint8_t index) {
  return index < kAchievements && achievements[index >> 6] >> (index & 63) & 1;
}

CRAFTAX_FN int quantity(const State& state, Goal goal) {
  const Player& player = state.player;
  const Inventory& carried = player.inventory;
  switch (static_cast<Quantity>(goal.thing)) {
    case Quantity::wood: return carried.wood;
    case Quantity::stone: return carried.stone;
    case Quantity::coal: return carried.coal;
    case Quantity::iron: return carried.iron;
    case Quantity::diamond: return carried.diamond;
    case Quantity::sapphire: return carried.sapphire;
    case Quantity::ruby: return carried.ruby;
    case Quantity::sapling: return carried.sapling;
    case Quantity::torch: return carried.torches;
    case Quantity::arrow: return carried.arrows;
    case Quantity::book: return carried.books;
    case Quantity::pickaxe: return carried.pickaxe;
    case Quantity::sword: return carried.sword;
    case Quantity::bow: return carried.bow;
    case Quantity::chestplate: return carried.armour[1];
    case Quantity::leggings: return carried.armour[2];
    case Quantity::boots: return carried.armour[3];
    case Quantity::armour: {
      int best = carried.armour[0];
      for (const std::int32_t piece : carried.armour) best = at_least(best, piece);
      return best;
    }
    case Quantity::dexterity: return player.dexterity;
    case Quantity::strength: return player.strength;
    case Quantity::intelligence: return player.intelligence;
    case Quantity::floor: return player.floor;
    case Quantity::monsters_killed: return goal.floor < kFloors ? state.facts[goal.floor].monsters_killed : -1;
  }
  return -1;
}

CRAFTAX_FN bool is_enchanted(const Player& player, Goal goal) {
  switch (static_cast<Piece>(goal.thing)) {
    case Piece::sword: return player.sword_enchantment == goal.amount;
    case Piece::bow: return player.bow_enchantment == goal.amount;
    case Piece::armour: {
      bool any = false;
      for (const std::int32_t element : player.armour_enchantments) any |= element == goal.amount;
      return any;
    }
  }
  return false;
}

// One bit for each of the eight bytes of a little-endian word that holds the value.
CRAFTAX_FN constexpr std::uint64_t bytes_equal(std::uint64_t word, std::uint8_t value) {
  constexpr std::uint64_t kOnes = 0x0101010101010101, kLow = 0x7F7F7F7F7F7F7F7F;
  const std::uint64_t difference = word ^ kOnes * value;
  const std::uint64_t zero = ~(((difference & kLow) + kLow) | difference | kLow);  // the top bit of each equal byte
  return (zero >> 7) * 0x0102040810204080 >> 56;
}

// Whether a visible cell of the window holds the id.
template <class Id>
CRAFTAX_FN bool in_view(const State& state, const Id (&layer)[kSize][kSize], std::uint8_t id) {
  static_assert(sizeof(Id) == 1 && kViewCols <= 16);
  const Floor& floor = state.floor();
  const std::uint64_t columns = view_columns(state.player.col);
  // Sixteen cells of each row are compared at once: all of the window's, and some more that `columns` leaves out.
  const int start = at_most(at_least(state.player.col - kViewCols / 2, 0), kSize - 16);
  const int last_row = last_view_row(state.player.row);
  std::uint64_t found = 0;
  for (int row = first_view_row(state.player.row); row <= last_row; ++row) {
    std::uint64_t left, right;
    std::memcpy(&left, &layer[row][start], sizeof left);
    std::memcpy(&right, &layer[row][start + 8], sizeof right);
    found |= (bytes_equal(left, id) | bytes_equal(right, id) << 8) & (columns & floor.lit[row]) >> start;
  }
  return found != 0;
}

template <class Id>
CRAFTAX_FN bool beside(const State& state, const Id (&layer)[kSize][kSize], std::uint8_t id) {
  bool found = false;
  for (int direction = 1; direction <= 4; ++direction) {
    const Cell cell = state.player.cell() + offset(direction);
    found |= in_bounds(cell) && static_cast<std::uint8_t>(layer[cell.row][cell.col]) == id;
  }
  return found;
}

// Whether the test holds for the block, or for some kind of grave.
template <class Test>
CRAFTAX_FN bool any_block(std::uint8_t block, Test test) {
  if (static_cast<Block>(block) != Block::grave) return test(block);
  return test(static_cast<std::uint8_t>(Block::grave)) | test(static_cast<std::uint8_t>(Block::grave2)) |
         test(static_cast<std::uint8_t>(Block::grave3));
}

template <class Test>
CRAFTAX_FN bool any_living(const State& state, std::uint8_t creature, Test test) {
  const Slots slots = slots_of(state.here(), creature);
  for (int i = 0; i < slots.count; ++i) {
    const Mob& mob = slots.first[i];
    if (mob.alive && mob.type == type_of(creature) && test(mob.cell())) return true;
  }
  return false;
}

CRAFTAX_FN bool is_visible(const State& state, Cell cell) {
  const Cell away = cell - state.player.cell();
  if (absolute(away.row) > kViewRows / 2 || absolute(away.col) > kViewCols / 2) return false;
  // Beyond the map, the light of the nearest cell counts.
  const int row = at_most(at_least(cell.row, 0), kSize - 1), col = at_most(at_least(cell.col, 0), kSize - 1);
  return state.floor().lit[row] >> col & 1;
}

// Whether the test holds for some slot whose creature was alive before, given as it was and as it is. A kind that
// changed has no part in it: another creature took the slot.
template <class Test>
CRAFTAX_FN bool any_fought(const Before& before, const State& after, std::uint8_t creature, Test test) {
  const int floor = after.player.floor;
  if (floor != before.floors[0] && floor != before.floors[1]) return false;
  const Slots was = slots_of(before.creatures[floor != before.floors[0]], creature);
  const Slots is = slots_of(after.here(), creature);
  for (int i = 0; i < was.count; ++i) {
    const Mob &old = was.first[i], &now = is.first[i];
    const int type = type_of(creature);
    if (old.alive && old.type == type && now.type == type && test(old, now)) return true;
  }
  return false;
}

CRAFTAX_FN Creatures creatures_of(const Mobs& mobs) {
  Creatures kept;
  std::memcpy(kept.melee, mobs.melee, sizeof kept.melee);
  std::memcpy(kept.passive, mobs.passive, sizeof kept.passive);
  std::memcpy(kept.ranged, mobs.ranged, sizeof kept.ranged);
  return kept;
}

}  // namespace detail

CRAFTAX_FN constexpr bool is_valid(Goal goal) {
  const auto family = static_cast<Family>(goal.family);
  const bool any_floor = goal.floor == kAnyFloor;
  const bool plain = any_floor && goal.amount == 1;
  switch (family) {
    case Family::quantity:
      if (goal.thing >= kQuantities) return false;
      return static_cast<Quantity>(goal.thing) == Quantity::monsters_killed ? goal.floor < kFloors : any_floor;
    case Family::enchantment: return goal.thing < kPieces && (goal.amount == 1 || goal.amount == 2) && any_floor;
    case Family::placement: return goal.thing < kAchievements && plain;
    case Family::see_block:
    case Family::adjacent_block: return goal.thing < kBlocks && plain;
    case Family::see_item:
    case Family::adjacent_item: return goal.thing < kItems && goal.amount == 1 && (any_floor || goal.floor < kFloors);
    case Family::see_creature:
    case Family::adjacent_creature:
    case Family::damage:
    case Family::defeat: return detail::is_creature(goal.thing) && plain;
  }
  return false;
}

CRAFTAX_FN Before look(const State& state) {
  Before before;
  before.achievements[0] = state.achievements[0];
  before.achievements[1] = state.achievements[1];
  const int floor = state.player.floor;
  before.floors[0] = floor;
  before.creatures[0] = detail::creatures_of(state.mobs[floor]);
  const Item underfoot = item_at(state.floor(), state.player.cell());
  const int next = floor + (underfoot == Item::ladder_down) - (underfoot == Item::ladder_up);
  const bool leads_on = next != floor && 0 <= next && next < kFloors;
  before.floors[1] = leads_on ? next : -1;
  if (leads_on) before.creatures[1] = detail::creatures_of(state.mobs[next]);
  return before;
}

CRAFTAX_FN bool reached(const Before& before, const State& after, Goal goal) {
  const std::uint8_t thing = goal.thing;
  const Cell player = after.player.cell();
  const bool on_floor = goal.floor == kAnyFloor || goal.floor == after.player.floor;
  switch (static_cast<Family>(goal.family)) {
    case Family::quantity: return detail::quantity(after, goal) >= goal.amount;
    case Family::enchantment: return detail::is_enchanted(after.player, goal);
    case Family::placement: return detail::has(after.achievements, thing);
    case Family::see_block:
      return detail::any_block(thing, [&](std::uint8_t id) { return detail::in_view(after, after.floor().blocks, id); });
    case Family::see_item: return on_floor && detail::in_view(after, after.floor().items, thing);
    case Family::see_creature:
      return detail::any_living(after, thing, [&](Cell cell) { return detail::is_visible(after, cell); });
    case Family::adjacent_block:
      return detail::any_block(thing, [&](std::uint8_t id) { return detail::beside(after, after.floor().blocks, id); });
    case Family::adjacent_item: return on_floor && detail::beside(after, after.floor().items, thing);
    case Family::adjacent_creature:
      return detail::any_living(after, thing, [&](Cell cell) { return manhattan(cell, player) == 1; });
    case Family::damage: {
      if (!detail::is_creature(thing)) return false;
      const auto flag = static_cast<std::uint8_t>(detail::kill_of(thing));
      if (detail::has(after.achievements, flag) && !detail::has(before.achievements, flag)) return true;
      return detail::any_fought(before, after, thing,
                                [](const Mob& old, const Mob& now) { return now.health < old.health; });
    }
    case Family::defeat: {
      if (!detail::is_creature(thing)) return false;
      if (detail::has(after.achievements, static_cast<std::uint8_t>(detail::kill_of(thing)))) return true;
      // A creature that only vanished keeps its health.
      return detail::any_fought(before, after, thing,
                                [](const Mob&, const Mob& now) { return !now.alive && now.health <= 0; });
    }
  }
  return false;
}

CRAFTAX_FN bool reached(const State& before, const State& after, Goal goal) {
  Before kept;
  kept.achievements[0] = before.achievements[0];
  kept.achievements[1] = before.achievements[1];
  kept.floors[0] = after.player.floor;
  kept.floors[1] = -1;
  kept.creatures[0] = detail::creatures_of(before.mobs[after.player.floor]);
  return reached(kept, after, goal);
}

}  // namespace craftax
