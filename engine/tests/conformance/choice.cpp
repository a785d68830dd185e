// The engine's choice of a cell behind a C function.
#include "core/choice.hpp"

extern "C" __attribute__((visibility("default"))) void choose_cells(const std::uint64_t (*rows)[craftax::kSize],
                                                                    const std::int32_t* counts, const float* draws,
                                                                    int num_draws, std::int32_t* cells) {
  for (int i = 0; i < num_draws; ++i) cells[i] = craftax::choose_among_bits(rows[i], counts[i], draws[i]);
}
