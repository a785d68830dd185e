// New creatures on the player's floor: at most one of each class in a step.
#pragma once

#include <bit>

#include "chances.hpp"
#include "choice.hpp"
#include "terrain.hpp"

namespace craftax {

namespace detail {

// Distances from the player at which creatures appear, squared: more than `above`, at most `limit`.
struct Ring {
  int above;
  int limit;
};
inline constexpr int kWithinReach = kDespawnDistance * kDespawnDistance - 1;

// The columns of a row that lie in the ring, as bits.
CRAFTAX_FN std::uint64_t ring_columns(Ring ring, int rows_away, int centre) {
  const auto reach = [&](int squared) {  // columns at most this far away, or -1
    int cols = -1;
    while ((cols + 1) * (cols + 1) + rows_away * rows_away <= squared) ++cols;
    return cols;
  };
  const auto columns = [&](int cols) -> std::uint64_t {
    if (cols < 0) return 0;
    const int first = at_least(centre - cols, 0), last = at_most(centre + cols, kSize - 1);
    return ((std::uint64_t{2} << last) - 1) & ~((std::uint64_t{1} << first) - 1);
  };
  return columns(reach(ring.limit)) & ~columns(reach(ring.above));
}

// The cells of a floor on which a class of creatures appears.
enum class Habitat : std::uint8_t { ground, water, graves };

CRAFTAX_FN std::uint64_t habitat_columns(const Floor& floor, Habitat habitat, int row) {
  if (habitat == Habitat::ground) return floor.ground[row];
  std::uint64_t columns = 0;
  for (int col = 0; col < kSize; ++col) {
    const Block block = floor.blocks[row][col];
    const bool fits = habitat == Habitat::water ? block == Block::water : is_grave(block);
    columns |= std::uint64_t{fits} << col;
  }
  return columns;
}

// Chooses among the free cells of the habitat in the ring; false if there is none.
CRAFTAX_FN bool choose_place(const State& state, Habitat habitat, Ring ring, Key key, Cell& place) {
  const Floor& floor = state.floor();
  const Cell centre = state.player.cell();
  std::uint64_t rows[kSize] = {};
  int count = 0;
  const int last = at_most(centre.row + kDespawnDistance - 1, kSize - 1);
  for (int row = at_least(centre.row - kDespawnDistance + 1, 0); row <= last; ++row) {
    const std::uint64_t ring_bits = ring_columns(ring, row - centre.row, centre.col);
    if (ring_bits == 0) continue;
    rows[row] = habitat_columns(floor, habitat, row) & ring_bits & ~floor.occupied[row];
    count += std::popcount(rows[row]);
  }
  if (count == 0) return false;
  const int index = choose_among_bits(rows, count, uniform(child(key, 1)));
  place = {index / kSize, index % kSize};
  return true;
}

// The first empty slot, or -1. The slot that a new creature would take, the first one if all are taken, assumes the
// new type whether a creature appears or not.
template <int kSlots>
CRAFTAX_FN int prepare_slot(Floor& floor, Mob (&mobs)[kSlots], std::uint8_t type) {
  for (int slot = 0; slot < kSlots; ++slot) {
    if (mobs[slot].alive) continue;
    mobs[slot].type = type;
    return slot;
  }
  mobs[0].type = type;
  put(floor.occupied, mobs[0].cell(), true);
  return -1;
}

CRAFTAX_FN void appear(State& state, Mob& mob, Cell place, float health) {
  mob.move_to(place);
  mob.health = health;
  mob.alive = true;
  put(state.floor().occupied, place, true);
}

}  // namespace detail

CRAFTAX_FN void spawn_mobs(State& state, const Chances& chances) {
  using detail::Habitat;
  Mobs& mobs = state.here();
  Floor& floor = state.floor();
  const SpawnChance chance = kSpawnChance[state.player.floor];
  const Inhabitants inhabitants = kInhabitants[state.player.floor];
  const bool boss = state.fighting_boss();
  // Floors not cleared are more dangerous; against the boss everything rises at once, or nothing.
  int hostility = state.facts[state.player.floor].monsters_killed < kKillsToClear ? 3 : 1;
  if (boss) hostility *= state.boss_spawn_turns >= 1 ? 1000 : 0;
  Cell place;

  const int passive = detail::prepare_slot(floor, mobs.passive, inhabitants.passive);
  if (passive >= 0 && !boss && chances.spawn_chance(0) < chance.passive &&
      detail::choose_place(state, Habitat::ground, {9, detail::kWithinReach}, chances.spawn_place(0), place)) {
    detail::appear(state, mobs.passive[passive], place, kPassiveHealth[inhabitants.passive]);
  }

  const std::uint8_t hostile =
      boss ? kInhabitants[at_most(at_least(state.boss_progress, 0), kFloors - 1)].hostile : inhabitants.hostile;
  const detail::Ring ring = boss ? detail::Ring{-1, 36} : detail::Ring{81, detail::kWithinReach};

  const float darkness = 1.0f - state.light_level;
  const float melee_chance = std::fma(chance.melee_in_the_dark, darkness * darkness, chance.melee);
  const int melee = detail::prepare_slot(floor, mobs.melee, hostile);
  if (melee >= 0 && chances.spawn_chance(1) < melee_chance * static_cast<float>(hostility) &&
      detail::choose_place(state, boss ? Habitat::graves : Habitat::ground, ring, chances.spawn_place(1), place)) {
    detail::appear(state, mobs.melee[melee], place, kMeleeHealth[hostile]);
  }

  const Habitat shelter = boss ? Habitat::graves : hostile == 5 ? Habitat::water : Habitat::ground;
  const int ranged = detail::prepare_slot(floor, mobs.ranged, hostile);
  if (ranged >= 0 && chances.spawn_chance(2) < chance.ranged * static_cast<float>(hostility) &&
      detail::choose_place(state, shelter, ring, chances.spawn_place(2), place)) {
    detail::appear(state, mobs.ranged[ranged], place, kRangedHealth[hostile]);
  }
}

}  // namespace craftax
