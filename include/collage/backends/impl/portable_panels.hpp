// Products of rows with packed panels, for recurrent cells.
#pragma once

#include <algorithm>
#include <collage/backends/impl/team.hpp>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace collage::inline v0::detail::host {
namespace {

#if defined(__AVX512F__)
inline constexpr int panel_lanes = 16;
inline constexpr int panel_vectors = 2;
inline constexpr int panel_rows = 8;
#elif defined(__AVX__)
inline constexpr int panel_lanes = 8;
inline constexpr int panel_vectors = 4;
inline constexpr int panel_rows = 3;
#else
inline constexpr int panel_lanes = 4;
inline constexpr int panel_vectors = 4;
inline constexpr int panel_rows = 3;
#endif
/// The columns of a panel: the sums of one row fill `panel_vectors` registers.
inline constexpr std::int64_t panel_width = panel_lanes * panel_vectors;

typedef float panel_vector [[gnu::vector_size(panel_lanes * sizeof(float))]];

inline panel_vector load_vector(const float* from) {
  panel_vector v;
  std::memcpy(&v, from, sizeof v);
  return v;
}

/// Computes to[i] = start[i] + x[i] * panel for `Rows` rows. A single row has `Parts` interleaved sums, which hides the
/// latency of additions.
template <int Rows, int Parts>
void multiply_panel(std::int64_t depth, const float* const* x, const float* panel, const float* start,
                    std::int64_t start_step, float* to, std::int64_t to_step) {
  panel_vector sum[Rows][Parts][panel_vectors];
#pragma GCC unroll 8
  for (int i = 0; i < Rows; ++i)
#pragma GCC unroll 8
    for (int p = 0; p < Parts; ++p)
#pragma GCC unroll 8
      for (int j = 0; j < panel_vectors; ++j)
        sum[i][p][j] = p == 0 ? load_vector(start + i * start_step + j * panel_lanes) : panel_vector{};
  std::int64_t k = 0;
  for (; k + Parts <= depth; k += Parts)
#pragma GCC unroll 8
    for (int p = 0; p < Parts; ++p) {
      panel_vector line[panel_vectors];
#pragma GCC unroll 8
      for (int j = 0; j < panel_vectors; ++j) line[j] = load_vector(panel + (k + p) * panel_width + j * panel_lanes);
#pragma GCC unroll 8
      for (int i = 0; i < Rows; ++i)
#pragma GCC unroll 8
        for (int j = 0; j < panel_vectors; ++j) sum[i][p][j] += x[i][k + p] * line[j];
    }
  for (; k < depth; ++k)
    for (int i = 0; i < Rows; ++i)
      for (int j = 0; j < panel_vectors; ++j)
        sum[i][0][j] += x[i][k] * load_vector(panel + k * panel_width + j * panel_lanes);
#pragma GCC unroll 8
  for (int i = 0; i < Rows; ++i)
#pragma GCC unroll 8
    for (int j = 0; j < panel_vectors; ++j) {
      panel_vector all = sum[i][0][j];
#pragma GCC unroll 8
      for (int p = 1; p < Parts; ++p) all += sum[i][p][j];
      std::memcpy(to + i * to_step + j * panel_lanes, &all, sizeof all);
    }
}

/// The same for `rows` <= panel_rows rows.
template <int Rows = panel_rows>
void multiply_rows(std::int64_t rows, std::int64_t depth, const float* const* x, const float* panel, const float* start,
                   std::int64_t start_step, float* to, std::int64_t to_step) {
  constexpr int parts = Rows == 1 ? 8 / panel_vectors : 1;
  if constexpr (Rows > 1)
    if (rows < Rows) return multiply_rows<Rows - 1>(rows, depth, x, panel, start, start_step, to, to_step);
  multiply_panel<Rows, parts>(depth, x, panel, start, start_step, to, to_step);
}

/// Packs weights [directions, gates, hidden, depth] into panels [directions, block, gate, depth, panel_width]. A block
/// is panel_width hidden units; columns beyond the last unit are 0.
inline void pack_gates(const float* from, std::int64_t directions, std::int64_t gates, std::int64_t hidden,
                       std::int64_t depth, float* to) {
  for (std::int64_t d = 0; d < directions; ++d)
    for (std::int64_t unit = 0; unit < hidden; unit += panel_width)
      for (std::int64_t g = 0; g < gates; ++g) {
        const std::int64_t columns = std::min(panel_width, hidden - unit);
        const float* const rows = from + ((d * gates + g) * hidden + unit) * depth;
        for (std::int64_t k = 0; k < depth; ++k, to += panel_width) {
          std::fill_n(to, panel_width, 0.0F);
          for (std::int64_t j = 0; j < columns; ++j) to[j] = rows[j * depth + k];
        }
      }
}

}  // namespace
}  // namespace collage::inline v0::detail::host
