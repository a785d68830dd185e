// A new world: everything of the state, and each floor when it is first entered.
#pragma once

#include "../draw.hpp"
#include "../light.hpp"
#include "dungeon.hpp"
#include "smooth.hpp"

// The generators' loops are compiled for each instruction set as parts of the one function that is.
#if defined(__GNUC__) && !defined(__CUDACC__)
#define CRAFTAX_WITH_PARTS __attribute__((flatten))
#else
#define CRAFTAX_WITH_PARTS
#endif

namespace craftax {

namespace detail {

// One key for each floor's generator, and the key that everything else of the world is drawn with.
CRAFTAX_FN Key after_smooth_floors(Key world) { return child(world, 0); }

}  // namespace detail

// Makes the floor from the world's key, unless it has been made.
CRAFTAX_FOR_EACH_CPU CRAFTAX_WITH_PARTS CRAFTAX_FN void generate_floor(State& state, int floor) {
  if (state.generated >> floor & 1) return;
  state.generated |= 1u << floor;
  // Where each floor stands among those of its kind, counted from one; the other kind then has none.
  constexpr std::uint32_t kSmooth[kFloors] = {1, 0, 2, 0, 0, 3, 4, 5, 6};
  constexpr std::uint32_t kDungeon[kFloors] = {0, 1, 0, 2, 3, 0, 0, 0, 0};
  Floor& made = state.floors[floor];
  FloorFacts& facts = state.facts[floor];
  if (kSmooth[floor] != 0) {
    generate_smooth(made, facts, child(state.world, kSmooth[floor]), kSmoothRules[kSmooth[floor] - 1]);
  } else {
    const Key key = child(detail::after_smooth_floors(state.world), kDungeon[floor]);
    generate_dungeon(made, facts, key, kDungeonRules[kDungeon[floor] - 1]);
  }
  std::memset(made.occupied, 0, sizeof made.occupied);
  derive_maps(made);
}

// Daylight at timestep 0, which the reference's compiler computes from other roundings than in a step.
inline constexpr float kFirstLight = 0.7969252f;

// A state as the reference generates it with its standard options; of the floors, the first is made.
CRAFTAX_FN void generate_world(State& state, Key world_key) {
  state.world = world_key;
  KeyChain keys{child(detail::after_smooth_floors(world_key), 0)};

  // jax.random.permutation: a stable sort by random numbers.
  const Key sort_key = child(keys.next(), 1);
  std::uint32_t ranks[6];
  for (std::uint32_t i = 0; i < 6; ++i) ranks[i] = random_bits(sort_key, i);
  state.player = {};
  for (int i = 0; i < 6; ++i) {
    int place = 0;
    for (int j = 0; j < 6; ++j) place += ranks[j] < ranks[i] || (ranks[j] == ranks[i] && j < i);
    state.player.potion_mapping[place] = i;
  }
  state.rng = keys.next();

  state.timestep = 0;
  state.light_level = kFirstLight;
  state.boss_progress = 0;
  state.boss_spawn_turns = kSpawnTurns;
  state.achievements[0] = state.achievements[1] = 0;

  Player& player = state.player;
  player.row = player.col = kSize / 2;
  player.direction = 3;
  player.health = 9;
  player.food = player.drink = player.energy = player.mana = 9;
  player.dexterity = player.strength = player.intelligence = 1;

  for (Plant& plant : state.plants) plant = {};
  Mob creature{};
  creature.health = 1;
  Mob projectile = creature;
  projectile.row_step = projectile.col_step = 1;
  for (Mobs& mobs : state.mobs) {
    for (Mob& mob : mobs.melee) mob = creature;
    for (Mob& mob : mobs.passive) mob = creature;
    for (Mob& mob : mobs.ranged) mob = creature;
    for (Mob& mob : mobs.projectiles) mob = projectile;
    for (Mob& mob : mobs.player_projectiles) mob = projectile;
  }
  for (FloorFacts& facts : state.facts) facts = {};
  state.facts[0].monsters_killed = 10;  // the first way down is open

  state.generated = 0;
  generate_floor(state, 0);
}

}  // namespace craftax
