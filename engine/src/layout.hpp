// Many games in one array of bytes: a header, the table of goals, the queue, what the batch knows of each game, and
// the games. The array holds no pointers, so it may be copied, saved and moved.
#pragma once

#include <cstddef>
#include <cstring>

#include "core/goals.hpp"
#include "core/state.hpp"

namespace craftax {

inline constexpr char kMagic[8] = {'c', 'r', 'a', 'f', 't', 'a', 'x', '\n'};
inline constexpr std::uint32_t kVersion = 1;
inline constexpr std::size_t kLine = 64;  // parts start at multiples of a cache line

// What the batch is for. Games are stepped one by one, without goals, restarts or a queue.
enum class Mode : std::int32_t { games, training, evaluation };

struct Header {
  char magic[8];
  std::uint32_t version;
  std::uint32_t state_bytes;  // of one game
  std::uint64_t total_bytes;
  std::int32_t num_envs, num_goals, episode_limit, queue_capacity;
  Mode mode;
  // Environments that wait for an episode, a ring in order of finishing, then of index.
  std::int32_t idle_first, idle_count;
  std::uint64_t taken, queued;  // episodes taken from the queue and put on it since the beginning
  std::uint64_t steps, episodes, successes, successes_at_start, worlds_used;
};

// An episode that waits in the queue.
struct Episode {
  Key key;
  std::int32_t goal;
};

// What the batch knows of one environment, besides its game.
struct Seat {
  Key key;  // of the episode; its world comes from child(key, 0)
  std::int32_t goal;
  std::uint8_t held;    // the goal held before the episode's first step
  std::uint8_t active;  // false: finished, with the queue empty
  // What the step in progress leaves to be added up.
  std::uint8_t stepped, ended, success, success_at_start, starting;
};

constexpr std::size_t round_up(std::size_t bytes) { return (bytes + kLine - 1) / kLine * kLine; }

inline constexpr std::size_t kStride = round_up(sizeof(State));

// A view of the array.
class Batch {
 public:
  explicit Batch(void* bytes) : bytes_(static_cast<std::byte*>(bytes)) {
    const Header& header = this->header();
    goals_ = round_up(sizeof(Header));
    queue_ = goals_ + round_up(sizeof(Goal) * header.num_goals);
    idle_ = queue_ + round_up(sizeof(Episode) * header.queue_capacity);
    seats_ = idle_ + round_up(sizeof(std::int32_t) * header.num_envs);
    states_ = seats_ + round_up(sizeof(Seat) * header.num_envs);
  }

  static std::size_t size(std::size_t num_envs, std::size_t num_goals, std::size_t queue_capacity) {
    return round_up(sizeof(Header)) + round_up(sizeof(Goal) * num_goals) + round_up(sizeof(Episode) * queue_capacity) +
           round_up(sizeof(std::int32_t) * num_envs) + round_up(sizeof(Seat) * num_envs) + kStride * num_envs;
  }

  Header& header() const { return *reinterpret_cast<Header*>(bytes_); }
  Goal* goals() const { return reinterpret_cast<Goal*>(bytes_ + goals_); }
  Episode* queue() const { return reinterpret_cast<Episode*>(bytes_ + queue_); }
  std::int32_t* idle() const { return reinterpret_cast<std::int32_t*>(bytes_ + idle_); }
  Seat& seat(int env) const { return reinterpret_cast<Seat*>(bytes_ + seats_)[env]; }
  State& state(int env) const { return *reinterpret_cast<State*>(bytes_ + states_ + kStride * env); }

 private:
  std::byte* bytes_;
  std::size_t goals_, queue_, idle_, seats_, states_;
};

// What is wrong with bytes that should be a batch; null if nothing is.
inline const char* find_fault(const void* bytes, std::size_t size) {
  if (reinterpret_cast<std::uintptr_t>(bytes) % alignof(State)) return "it must start at a multiple of 8 bytes";
  if (size < sizeof(Header)) return "it is too short to be one";
  const Header& header = *static_cast<const Header*>(bytes);
  if (std::memcmp(header.magic, kMagic, sizeof kMagic) != 0) return "it was not made by new_state()";
  if (header.version != kVersion || header.state_bytes != sizeof(State)) {
    return "it is of another version of the engine";
  }
  if (header.total_bytes != size) return "it is not whole";
  const bool possible = header.num_envs > 0 && header.num_goals >= 0 && header.queue_capacity >= 0 &&
                        header.episode_limit > 0 && Batch::size(header.num_envs, header.num_goals,
                                                                header.queue_capacity) == size;
  const bool consistent = static_cast<std::uint32_t>(header.mode) <= 2 && header.idle_count >= 0 &&
                          header.idle_count <= header.num_envs && header.idle_first >= 0 &&
                          header.idle_first < header.num_envs && header.queued >= header.taken &&
                          header.queued - header.taken <= static_cast<std::uint64_t>(header.queue_capacity);
  if (!possible || !consistent) return "its header is damaged";
  // Games with the player outside of the map would lead the engine astray; check() looks at all the rest.
  const Batch batch(const_cast<void*>(bytes));
  for (int env = 0; env < header.num_envs; ++env) {
    if (!batch.state(env).player.is_somewhere()) return "a game in it is damaged";
  }
  return nullptr;
}

}  // namespace craftax
