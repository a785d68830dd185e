// The floors that are shaped by noise: the overworld, the mines, the fire and ice realms, and the graveyard.
#pragma once

#include <cmath>

#include "../light.hpp"
#include "noise.hpp"
#include "rows.hpp"

namespace craftax {

struct Ore {
  Block host;
  Block block;
  float chance;
};

struct SmoothRules {
  Block ground, sea, coast, mountain, tunnel, cave, tree, lava, spawn;  // trees stand on the ground
  Block ladder_ground;
  Ore ores[5];  // each is drawn for, whatever its chance
  bool ladder_down = true, ladder_up = true;
  float mountain_distance = 5, mountain_limit = 1;  // mountains rise away from the centre: how slowly, up to what
  float sea_level = 0.7f;
  float tree_noise = 0.5f, tree_rarity = 0.8f;  // trees stand where the noise and the draw exceed these
  bool bright = false;
};

inline constexpr float kShore = 0.6f, kFoothills = 0.7f, kSummit = 0.85f;  // heights of water and of mountains

namespace detail {

constexpr SmoothRules overworld() {
  using enum Block;
  return {.ground = grass, .sea = water, .coast = sand, .mountain = stone, .tunnel = path, .cave = path, .tree = tree,
          .lava = lava, .spawn = grass, .ladder_ground = path,
          .ores = {{stone, coal, 0.03f}, {stone, iron, 0.02f}, {stone, diamond, 0.001f}, {}, {}},
          .ladder_up = false, .bright = true};
}

constexpr SmoothRules mines(float iron_chance, float diamond_chance, float gem_chance) {
  using enum Block;
  return {.ground = path, .sea = water, .coast = path, .mountain = stone, .tunnel = stone, .cave = stone,
          .tree = stalagmite, .lava = lava, .spawn = path, .ladder_ground = path,
          .ores = {{stone, coal, 0.04f}, {stone, iron, iron_chance}, {stone, diamond, diamond_chance},
                   {stone, sapphire, gem_chance}, {stone, ruby, gem_chance}},
          .mountain_distance = 17, .mountain_limit = 1.5f};
}

constexpr SmoothRules fire_realm() {
  using enum Block;
  return {.ground = fire_grass, .sea = lava, .coast = sand, .mountain = stone, .tunnel = stone, .cave = stone,
          .tree = fire_tree, .lava = lava, .spawn = fire_grass, .ladder_ground = fire_grass,
          .ores = {{stone, coal, 0.05f}, {}, {}, {}, {stone, ruby, 0.025f}},
          .sea_level = 0.5f, .bright = true};
}

constexpr SmoothRules ice_realm() {
  using enum Block;
  return {.ground = ice_grass, .sea = water, .coast = ice_grass, .mountain = stone, .tunnel = stone, .cave = stone,
          .tree = ice_shrub, .lava = water, .spawn = ice_grass, .ladder_ground = ice_grass,
          .ores = {{}, {}, {stone, diamond, 0.005f}, {stone, sapphire, 0.02f}, {}},
          .mountain_distance = 17, .mountain_limit = 1.5f, .sea_level = 0.5f, .tree_rarity = 0.4f};
}

constexpr SmoothRules graveyard() {
  using enum Block;
  return {.ground = path, .sea = path, .coast = path, .mountain = wall, .tunnel = wall, .cave = wall, .tree = grave,
          .lava = wall, .spawn = necromancer, .ladder_ground = path,
          .ores = {{wall, mossy_wall, 0.1f}, {grave, grave2, 0.333f}, {grave, grave3, 0.5f}, {}, {}},
          .ladder_down = false, .ladder_up = false,
          .mountain_distance = 10, .mountain_limit = 10, .tree_noise = -1, .tree_rarity = 0.95f};
}

}  // namespace detail

// In the order in which their keys are drawn.
inline constexpr SmoothRules kSmoothRules[6] = {
    detail::overworld(),  detail::mines(0.02f, 0.005f, 0.0025f), detail::mines(0.03f, 0.01f, 0.01f),
    detail::fire_realm(), detail::ice_realm(),                   detail::graveyard()};

namespace detail {

// A square root for tables.
constexpr float root(int square) {
  double guess = square < 1 ? 0 : square;
  for (int i = 0; i < 20 && guess > 0; ++i) guess = (guess + square / guess) / 2;
  return static_cast<float>(guess);
}

// Distance from the middle of the floor, by rows from the middle row.
struct Distances {
  float of[kSize / 2 + 1][kSize];

  constexpr Distances() : of{} {
    for (int row = 0; row <= kSize / 2; ++row) {
      for (int col = 0; col < kSize; ++col) {
        const int cols = col - kSize / 2;
        of[row][col] = root(row * row + cols * cols);
      }
    }
  }
};
inline constexpr Distances kDistances{};

CRAFTAX_FN float lesser(float x, float y) { return x < y ? x : y; }

template <class Condition>
CRAFTAX_FN void overlay(std::uint8_t (&blocks)[kSize], Block block, const Condition& condition) {
  const auto code = static_cast<std::uint8_t>(block);
  for (int col = 0; col < kSize; ++col) blocks[col] = condition(col) ? code : blocks[col];
}

// Where lava flows, and where its light falls from: the same cells but for rounding, as the compiled reference fuses a
// product and a sum for the one and, on CPUs with AVX-512 and the floors where it matters, not for the other.
struct Lava {
  Rows cells;
  Rows lights;
};

// Lays out sea, coast, mountains, tunnels, caves and trees, and finds where lava will be.
CRAFTAX_FN void lay_out(Floor& floor, KeyChain& keys, const SmoothRules& rules, Lava& lava) {
  Noise water_noise, mountain_noise, tunnel_noise, tree_noise;
  make_noise<3, 3>(keys.next(), water_noise);
  keys.skip();
  make_noise<3, 3>(keys.next(), mountain_noise);
  make_noise<6, 24>(keys.next(), tunnel_noise);
  keys.skip();
  make_noise<12, 12>(keys.next(), tree_noise);
  const Key tree_key = keys.key;  // the reference draws trees with the key that it then goes on splitting

  std::uint8_t tunnels[kSize][kSize];
  for (int row = 0; row < kSize; ++row) {
    for (int col = 0; col < kSize; ++col) tunnels[row][col] = tunnel_noise.at(row, col) > 0.8f;
  }
  const float steepness = 1.0f / rules.mountain_distance, mountain_limit = rules.mountain_limit;
  const std::uint32_t tree_limit = first_draw_above(rules.tree_rarity);
  for (int row = 0; row < kSize; ++row) {
    // Several loops, each without a branch, so that they compile to vector code.
    float off_shore[kSize], slope[kSize], water[kSize], mountain[kSize], unfused_mountain[kSize], forest[kSize];
    for (int col = 0; col < kSize; ++col) {
      const float distance = kDistances.of[absolute(row - kSize / 2)][col];
      off_shore[col] = lesser(distance * 0.2f, 1.0f);
      slope[col] = lesser(distance * steepness, mountain_limit);
    }
    for (int col = 0; col < kSize; ++col) {
      const float depth = water_noise.values[row][col] - water_noise.lowest;
      const float rise = mountain_noise.values[row][col] - mountain_noise.lowest;
      water[col] = std::fma(depth, water_noise.scale, off_shore[col]) - 1.0f;
      mountain[col] = std::fma(rise, mountain_noise.scale, 0.05f) + slope[col] - 1.0f;
      unfused_mountain[col] = rise * mountain_noise.scale + 0.05f + slope[col] - 1.0f;
      forest[col] = tree_noise.at(row, col);
    }
    std::uint8_t dug[kSize], blocks[kSize], trees[kSize], flows[kSize], lights[kSize];
    for (int col = 0; col < kSize; ++col) dug[col] = tunnels[row][col] | tunnels[col][row];
    std::memset(blocks, static_cast<int>(rules.ground), sizeof blocks);
    overlay(blocks, rules.coast, [&](int col) { return (water[col] > kShore) & (rules.sea != rules.ground); });
    overlay(blocks, rules.sea, [&](int col) { return water[col] > rules.sea_level; });
    overlay(blocks, rules.mountain, [&](int col) { return mountain[col] > kFoothills; });
    overlay(blocks, rules.tunnel, [&](int col) { return (mountain[col] > kFoothills) & (dug[col] != 0); });
    overlay(blocks, rules.cave, [&](int col) { return (mountain[col] > kSummit) & (water[col] > 0.4f); });
    for (int col = 0; col < kSize; ++col) {
      floor.blocks[row][col] = static_cast<Block>(blocks[col]);
      trees[col] = (forest[col] > rules.tree_noise) & (blocks[col] == static_cast<std::uint8_t>(rules.ground));
      flows[col] = (mountain[col] > kSummit) & (forest[col] > 0.7f);
      lights[col] = (unfused_mountain[col] > kSummit) & (forest[col] > 0.7f);
    }
    lava.cells[row] = pack(flows);
    lava.lights[row] = pack(lights);
    const std::uint64_t groves = pack(trees);
    for (int col = 0; col < kSize; col += kBlock) {
      if ((groves >> col & kBlockMask) == 0) continue;
      std::uint32_t draws[kBlock];
      draw_block(tree_key, row, col, draws);
      Block* places = &floor.blocks[row][col];
      for (int i = 0; i < kBlock; ++i) {
        places[i] = (trees[col + i] != 0) & (draws[i] >= tree_limit) ? rules.tree : places[i];
      }
    }
  }
}

CRAFTAX_FN void pour(Floor& floor, const Rows& lava, Block block) {
  for (int row = 0; row < kSize; ++row) {
    for (int col = 0; lava[row] != 0 && col < kSize; ++col) {
      if (lava[row] >> col & 1) floor.blocks[row][col] = block;
    }
  }
}

// On a dark floor, light surrounds the way up, 9 x 9 cells of it, and every flow of lava.
CRAFTAX_FN void light_up(Floor& floor, Cell ladder, const Rows& lava, bool lava_glows) {
  constexpr int kPatch = 2 * kGlowReach + 1;
  // The reference moves the patch into the floor; but an index below zero it first counts from the far end.
  const Cell corner{at_most(wrap(ladder.row - kGlowReach), kSize - kPatch),
                    at_most(wrap(ladder.col - kGlowReach), kSize - kPatch)};
  for (int row = 0; row < kPatch; ++row) {
    for (int col = 0; col < kPatch; ++col) {
      floor.light[corner.row + row][corner.col + col] = torch_glow(row - kGlowReach, col - kGlowReach);
    }
  }
  if (!lava_glows) return;
  constexpr float kGlow[3][3] = {{0.2f, 0.7f, 0.2f}, {0.7f, 1.0f, 0.7f}, {0.2f, 0.7f, 0.2f}};
  for (int row = 0; row < kSize; ++row) {
    const std::uint64_t above = row > 0 ? lava[row - 1] : 0, below = row < kSize - 1 ? lava[row + 1] : 0;
    if ((above | lava[row] | below) == 0) continue;
    const std::uint64_t bits[3] = {above << 1, lava[row] << 1, below << 1};  // bit c for column c - 1
    for (int col = 0; col < kSize; ++col) {
      float glow = 0;
      for (int i = 0; i < 3; ++i) {
        for (int j = 0; j < 3; ++j) glow += bits[i] >> (col + j) & 1 ? kGlow[i][j] : 0.0f;
      }
      const float light = floor.light[row][col] + glow;
      floor.light[row][col] = light < 1.0f ? light : 1.0f;
    }
  }
}

}  // namespace detail

// Fills all of the floor but its bit maps, and says where its ladders are (the outermost floors lack one of them: then
// the place is drawn, but holds no ladder).
CRAFTAX_FN void generate_smooth(Floor& floor, FloorFacts& facts, Key key, const SmoothRules& rules) {
  KeyChain keys{key};
  detail::Lava lava;
  Rows rows;
  detail::lay_out(floor, keys, rules, lava);
  KeyChain ore_keys{keys.next()};
  for (const Ore& ore : rules.ores) {
    const Key ore_key = ore_keys.next();
    if (ore.chance > 0) scatter(floor, ore_key, ore.host, ore.block, ore.chance);
  }
  detail::pour(floor, lava.cells, rules.lava);

  // The place of a diamond that only an option of the reference makes; without it, the place becomes stone.
  const int stones = cells_with(floor, Block::stone, rows);
  const Cell stone = cell_at(choose_among_bits(rows, stones, uniform(keys.next())));
  floor.blocks[stone.row][stone.col] = Block::stone;
  floor.blocks[kSize / 2][kSize / 2] = rules.spawn;

  const int grounds = cells_with(floor, rules.ladder_ground, rows);
  const Cell down = cell_at(choose_among_units(rows, grounds, uniform(keys.next())));
  const Cell up = cell_at(choose_among_units(rows, grounds, uniform(keys.next())));
  std::memset(floor.items, 0, sizeof floor.items);
  if (rules.ladder_down) floor.items[down.row][down.col] = Item::ladder_down;
  if (rules.ladder_up) floor.items[up.row][up.col] = Item::ladder_up;
  set_ladders(facts, down, up);

  for (auto& row : floor.light) {
    for (float& light : row) light = rules.bright ? 1.0f : 0.0f;
  }
  if (!rules.bright) detail::light_up(floor, up, lava.lights, rules.lava == Block::lava);
}

}  // namespace craftax
