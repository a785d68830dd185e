// The floors of rooms and corridors: the dungeon, the sewers and the vaults.
#pragma once

#include "rows.hpp"

namespace craftax {

struct DungeonRules {
  Block special;     // in the first room
  Block fountain;    // in about half of the rooms
  Block rare_floor;  // in place of a tenth of the floor
};

// In the order in which their keys are drawn.
inline constexpr DungeonRules kDungeonRules[3] = {
    {Block::path, Block::fountain, Block::path},
    {Block::ice_enchantment_table, Block::water, Block::water},
    {Block::fire_enchantment_table, Block::fountain, Block::path},
};

namespace detail {

inline constexpr int kRooms = 8;
inline constexpr int kChunks = 9;     // squares of the floor, each the place of at most one room
inline constexpr int kChunkSize = 16;
inline constexpr int kMinRoom = 5, kMaxRoom = 10;

struct Room {
  Cell corner;
  Cell size;  // in rows and columns; what lies outside the floor is cut off
};

CRAFTAX_FN void set_inside(Floor& floor, Cell cell, Block block) {
  if (in_bounds(cell)) floor.blocks[cell.row][cell.col] = block;
}

CRAFTAX_FN void torch_inside(Floor& floor, Cell cell) {
  if (in_bounds(cell)) floor.items[cell.row][cell.col] = Item::torch;
}

CRAFTAX_FN Cell random_inside(const Room& room, Key key) {
  return room.corner + Cell{random_int(key, 1, room.size.row - 1, 0), random_int(key, 1, room.size.col - 1, 1)};
}

CRAFTAX_FN void dig_rooms(Floor& floor, Room (&rooms)[kRooms], KeyChain keys, Block fountain) {
  float free[kChunks];
  for (float& weight : free) weight = 1;
  for (Room& room : rooms) {
    const int chunk = choose(free, uniform(keys.next()));
    free[chunk] = 0;
    const Key corner = keys.next();
    constexpr int kMargin = kChunkSize - kMinRoom;
    room.corner = Cell{chunk % 3 * kChunkSize, chunk / 3 * kChunkSize} +
                  Cell{random_int(corner, 0, kMargin, 0), random_int(corner, 0, kMargin, 1)};
    const Cell end = room.corner + room.size, last = end - Cell{1, 1};
    for (int row = room.corner.row; row < at_most(end.row, kSize); ++row) {
      for (int col = room.corner.col; col < at_most(end.col, kSize); ++col) floor.blocks[row][col] = Block::path;
    }
    torch_inside(floor, room.corner);
    torch_inside(floor, {last.row, room.corner.col});
    torch_inside(floor, {room.corner.row, last.col});
    torch_inside(floor, last);
    set_inside(floor, random_inside(room, keys.next()), Block::chest);
    const Key key = keys.key;
    keys.key = child(key, 0);
    if (uniform(child(key, 2)) > 0.5f) set_inside(floor, random_inside(room, child(key, 1)), fountain);
  }
}

// Joins each room in turn with one that is joined already, along its own row and then the other's column.
CRAFTAX_FN void dig_corridors(Floor& floor, const Room (&rooms)[kRooms], Key key) {
  float joined[kRooms] = {};
  joined[kRooms - 1] = 1;
  const auto dig = [&](Cell from, Cell to, Cell step) {
    for (Cell cell = from;; cell = cell + step) {
      if (in_bounds(cell) && floor.blocks[cell.row][cell.col] == Block::wall) {
        floor.blocks[cell.row][cell.col] = Block::path;
      }
      if (cell == to) return;
    }
  };
  for (int i = 0; i < kRooms; ++i) {
    const Cell from = rooms[i].corner;
    const Cell to = rooms[choose(joined, uniform(child(key, 1)))].corner;
    key = child(child(key, 0), 1);
    joined[i] = 1;
    const Cell turn{from.row, to.col};
    if (from.col != to.col) dig(from, turn, {0, sign(to.col - from.col)});
    if (from.row != to.row) dig(turn, to, {sign(to.row - from.row), 0});
  }
}

// Rock that touches no room or corridor turns dark; a tenth of the walls get moss, a tenth of the floor turns rare.
CRAFTAX_FN void weather(Floor& floor, Key key, Block rare_floor) {
  Rows walls, paths;
  cells_with(floor, Block::wall, walls);
  cells_with(floor, Block::path, paths);
  const std::uint32_t limit = (1u << 23) - first_draw_above(0.9f) + 1;  // 1 - u > 0.9
  for (int row = 0; row < kSize; ++row) {
    const std::uint64_t open = ~walls[row] & kWholeRow;
    const std::uint64_t above = row > 0 ? ~walls[row - 1] : 0, below = row < kSize - 1 ? ~walls[row + 1] : 0;
    const std::uint64_t seen = walls[row] & (open << 1 | open >> 1 | above | below);
    const std::uint64_t rare_places = rare_floor == Block::path ? 0 : paths[row];
    for (int col = 0; col < kSize; col += kBlock) {
      std::uint32_t draws[kBlock] = {};
      if ((seen | rare_places) >> col & kBlockMask) draw_block(key, row, col, draws);
      for (int i = 0; i < kBlock; ++i) {
        Block& block = floor.blocks[row][col + i];
        const bool rare = draws[i] < limit;
        if (block == Block::wall) {
          block = !(seen >> (col + i) & 1) ? Block::darkness : rare ? Block::mossy_wall : Block::wall;
        } else if (block == Block::path && rare && floor.items[row][col + i] == Item::none) {
          block = rare_floor;
        }
      }
    }
  }
}

}  // namespace detail

// Fills all of the floor but its bit maps, and says where its ladders are.
CRAFTAX_FN void generate_dungeon(Floor& floor, FloorFacts& facts, Key key, const DungeonRules& rules) {
  std::memset(floor.blocks, static_cast<int>(Block::wall), sizeof floor.blocks);
  std::memset(floor.items, 0, sizeof floor.items);
  for (auto& row : floor.light) {
    for (float& light : row) light = 1;
  }

  const Key sizes = child(key, 2);
  KeyChain keys{child(key, 0)};
  detail::Room rooms[detail::kRooms];
  for (std::uint32_t i = 0; i < detail::kRooms; ++i) {
    rooms[i].size = {random_int(sizes, detail::kMinRoom, detail::kMaxRoom, 2 * i),
                     random_int(sizes, detail::kMinRoom, detail::kMaxRoom, 2 * i + 1)};
  }
  detail::dig_rooms(floor, rooms, KeyChain{keys.next()}, rules.fountain);
  detail::dig_corridors(floor, rooms, keys.next());
  detail::set_inside(floor, rooms[0].corner + Cell{2, 2}, rules.special);
  detail::weather(floor, keys.next(), rules.rare_floor);

  Rows paths;
  const int count = cells_with(floor, Block::path, paths);
  const Cell down = cell_at(choose_among_bits(paths, count, uniform(keys.next())));
  const Cell up = cell_at(choose_among_units(paths, count, uniform(keys.next())));
  floor.items[down.row][down.col] = Item::ladder_down;
  floor.items[up.row][up.col] = Item::ladder_up;
  set_ladders(facts, down, up);
}

}  // namespace craftax
