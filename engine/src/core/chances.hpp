// All random words that one step can need, drawn before it.
//
// The game splits its key in a fixed pattern, whatever happens. Drawn ahead, the words of many games come out of one
// vector computation; what is needed only now and then (a chest's contents, a place to appear) stays a key.
#pragma once

#include "random.hpp"
#include "rules.hpp"

namespace craftax {

namespace detail {

// Where each word lies.
enum ChanceWord : int {
  kInteractKey = 0,
  kReadKey = 2,
  kEnchantKey = 4,
  kNextKey = 6,
  kMeleeWords = 8,                                // direction, axis, pursuit
  kPassiveWords = kMeleeWords + 3 * kMeleeSlots,  // direction
  kRangedWords = kPassiveWords + kPassiveSlots,   // direction, axis, resolve
  kSpawnWords = kRangedWords + 3 * kRangedSlots,  // chance and key of the place, for passive, melee and ranged
  kChanceWords = kSpawnWords + 3 * 3,
};

template <class Word>
CRAFTAX_PART_OF_CALLER CRAFTAX_FN constexpr void put_key(BasicKey<Word> key, Word* words) {
  words[0] = key.a;
  words[1] = key.b;
}

// The low word of jax.random.randint; enough for a span that is a power of two.
template <class Word>
CRAFTAX_PART_OF_CALLER CRAFTAX_FN constexpr Word integer_bits(BasicKey<Word> key) {
  return random_bits(child(key, 1));
}

}  // namespace detail

inline constexpr int kChanceWords = detail::kChanceWords;

// The words of one step, `stride` apart.
struct Chances {
  const std::uint32_t* words;
  int stride;

  // The keys are parents: what they serve is drawn from `child(key, 1)` and what follows.
  CRAFTAX_FN Key interact() const { return key(detail::kInteractKey); }
  CRAFTAX_FN Key read() const { return key(detail::kReadKey); }
  CRAFTAX_FN Key enchant() const { return key(detail::kEnchantKey); }
  // The key of the next step.
  CRAFTAX_FN Key next() const { return key(detail::kNextKey); }

  CRAFTAX_FN std::uint32_t melee_direction(int slot) const { return word(detail::kMeleeWords + 3 * slot); }
  CRAFTAX_FN std::uint32_t melee_axis(int slot) const { return word(detail::kMeleeWords + 3 * slot + 1); }
  CRAFTAX_FN float melee_pursuit(int slot) const { return unit(detail::kMeleeWords + 3 * slot + 2); }
  CRAFTAX_FN std::uint32_t passive_direction(int slot) const { return word(detail::kPassiveWords + slot); }
  CRAFTAX_FN std::uint32_t ranged_direction(int slot) const { return word(detail::kRangedWords + 3 * slot); }
  CRAFTAX_FN std::uint32_t ranged_axis(int slot) const { return word(detail::kRangedWords + 3 * slot + 1); }
  CRAFTAX_FN float ranged_resolve(int slot) const { return unit(detail::kRangedWords + 3 * slot + 2); }

  // `which`: 0 passive, 1 melee, 2 ranged.
  CRAFTAX_FN float spawn_chance(int which) const { return unit(detail::kSpawnWords + 3 * which); }
  CRAFTAX_FN Key spawn_place(int which) const { return key(detail::kSpawnWords + 3 * which + 1); }

 private:
  CRAFTAX_FN std::uint32_t word(int index) const { return words[index * stride]; }
  CRAFTAX_FN float unit(int index) const { return unit_interval(word(index)); }
  CRAFTAX_FN Key key(int index) const { return {word(index), word(index + 1)}; }
};

// Draws the words of a step from the game's key. `Word` may be a vector of keys' words.
template <class Word>
CRAFTAX_PART_OF_CALLER CRAFTAX_FN constexpr void draw_chances(BasicKey<Word> key, Word* words) {
  const auto skip = [](BasicKey<Word>& chain) CRAFTAX_PART_OF_CALLER { chain = child(chain, 0); };

  detail::put_key(key, words + detail::kInteractKey), skip(key);
  detail::put_key(key, words + detail::kReadKey), skip(key);
  detail::put_key(key, words + detail::kEnchantKey), skip(key);
  BasicKey<Word> mobs = child(key, 1);
  skip(key);
  BasicKey<Word> spawn = child(key, 1);
  skip(key);
  detail::put_key(child(key, 1), words + detail::kNextKey);

  skip(mobs);
  for (int slot = 0; slot < kMeleeSlots; ++slot) {
    Word* const own = words + detail::kMeleeWords + 3 * slot;
    own[0] = detail::integer_bits(child(mobs, 1)), skip(mobs);
    own[1] = random_bits(child(mobs, 1)), skip(mobs);
    own[2] = random_bits(child(mobs, 1)), skip(mobs);
    mobs = child(mobs, 1);  // here the game goes on with the other half
  }
  skip(mobs);
  for (int slot = 0; slot < kPassiveSlots; ++slot) {
    words[detail::kPassiveWords + slot] = detail::integer_bits(child(mobs, 1)), skip(mobs);
  }
  skip(mobs);
  for (int slot = 0; slot < kRangedSlots; ++slot) {
    Word* const own = words + detail::kRangedWords + 3 * slot;
    own[0] = detail::integer_bits(child(mobs, 1)), skip(mobs);
    own[1] = random_bits(child(mobs, 1)), skip(mobs);
    own[2] = random_bits(child(mobs, 1)), skip(mobs);
  }

  for (int which = 0; which < 3; ++which) {
    Word* const own = words + detail::kSpawnWords + 3 * which;
    own[0] = random_bits(child(spawn, 1)), skip(spawn);
    detail::put_key(spawn, own + 1), skip(spawn);
  }
}

}  // namespace craftax
