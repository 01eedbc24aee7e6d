// The tile in which products and windows are computed: a few outputs by a few packets, held in registers.
//
// Eigen's own matrix product reaches about 70 % of the peak with AVX-512, and needs its operands copied into its order. This loop
// over Eigen's packets reaches nearly the peak, and reads its operands at the offsets that a table lists.
#pragma once

#include <algorithm>
#include <array>
#include <collage/backends/impl/eigen_math.hpp>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace collage::inline v0::detail::host {
namespace {

using packet = Eigen::internal::packet_traits<float>::type;
inline constexpr std::int64_t lanes = Eigen::internal::packet_traits<float>::size;
inline constexpr int max_packets = EIGEN_ARCH_DEFAULT_NUMBER_OF_REGISTERS >= 32 ? 6 : 3;
inline constexpr int max_outputs = 4;

inline std::int64_t divide_up(std::int64_t x, std::int64_t by) { return (x + by - 1) / by; }
inline std::int64_t round_up(std::int64_t x, std::int64_t to) { return divide_up(x, to) * to; }

/// One product: x at an offset, times w at another.
struct tap {
  std::int32_t x = 0;
  std::int32_t w = 0;
};

/// Computes out[o][j] = start + sum over taps of w[o * w_row + tap.w] * x[tap.x + j], for `outputs` <= max_outputs and `columns`
/// <= max_packets * lanes. Reads x up to the next multiple of `lanes` columns, but writes only `columns` columns of out.
struct tile {
  const float* x = nullptr;
  const float* w = nullptr;
  const tap* taps = nullptr;
  std::int64_t depth = 0;
  std::int64_t w_row = 0;
  const float* bias = nullptr;  ///< the start of each output; null for 0
  bool accumulate = false;      ///< start with the contents of `out`
  float* out = nullptr;
  std::int64_t out_row = 0;
  std::int64_t columns = 0;
};

template <int Outputs, int Packets>
void run_tile(const tile& t) {
  using namespace Eigen::internal;
  const std::int64_t last = t.columns - (Packets - 1) * lanes;  // columns in the last packet
  alignas(64) float edge[lanes] = {};
  packet sum[Outputs][Packets];
  const float* w[Outputs];
  for (int o = 0; o < Outputs; ++o) {
    w[o] = t.w + o * t.w_row;
    if (t.accumulate) {
      const float* const from = t.out + o * t.out_row;
      for (int p = 0; p + 1 < Packets; ++p) sum[o][p] = ploadu<packet>(from + p * lanes);
      std::copy_n(from + (Packets - 1) * lanes, last, edge);
      sum[o][Packets - 1] = ploadu<packet>(edge);
    } else {
      for (int p = 0; p < Packets; ++p) sum[o][p] = pset1<packet>(t.bias != nullptr ? t.bias[o] : 0.0F);
    }
  }
  const tap* const end = t.taps + t.depth;
  for (const tap* at = t.taps; at != end; ++at) {
    const float* const from = t.x + at->x;
    packet x[Packets];
    for (int p = 0; p < Packets; ++p) x[p] = ploadu<packet>(from + p * lanes);
    for (int o = 0; o < Outputs; ++o) {
      const packet factor = pset1<packet>(w[o][at->w]);
      for (int p = 0; p < Packets; ++p) sum[o][p] = pmadd(x[p], factor, sum[o][p]);
    }
  }
  for (int o = 0; o < Outputs; ++o) {
    float* const to = t.out + o * t.out_row;
    for (int p = 0; p + 1 < Packets; ++p) pstoreu(to + p * lanes, sum[o][p]);
    if (last == lanes) {
      pstoreu(to + (Packets - 1) * lanes, sum[o][Packets - 1]);
    } else {
      pstoreu(edge, sum[o][Packets - 1]);
      std::copy_n(edge, last, to + (Packets - 1) * lanes);
    }
  }
}

/// Runs the tile for a number of outputs. The number of packets follows from the columns.
inline void run_tile(int outputs, const tile& t) {
  using function = void (*)(const tile&);
  static constexpr auto functions = []<std::size_t... I>(std::index_sequence<I...>) {
    return std::array<function, sizeof...(I)>{
        run_tile<static_cast<int>(I) / max_packets + 1, static_cast<int>(I) % max_packets + 1>...};
  }(std::make_index_sequence<static_cast<std::size_t>(max_outputs * max_packets)>{});
  const std::int64_t packets = divide_up(t.columns, lanes);
  functions[static_cast<std::size_t>((outputs - 1) * max_packets + packets - 1)](t);
}

/// The columns of each tile. `columns` are divided evenly, since wide tiles need fewer loads for each product.
inline std::int64_t tile_columns(std::int64_t columns) {
  const std::int64_t packets = std::max<std::int64_t>(divide_up(columns, lanes), 1);
  return divide_up(packets, divide_up(packets, max_packets)) * lanes;
}

/// Runs tiles over any number of outputs and columns. Tiles that share w run one after the other.
inline void run_tiles(tile t, std::int64_t outputs) {
  const float* const x = t.x;
  const std::int64_t columns = t.columns;
  const std::int64_t step = tile_columns(columns);
  for (std::int64_t o = 0; o < outputs; o += max_outputs) {
    const int here = static_cast<int>(std::min<std::int64_t>(max_outputs, outputs - o));
    float* const out = t.out;
    for (std::int64_t c = 0; c < columns; c += step) {
      t.x = x + c;
      t.out = out + c;
      t.columns = std::min(step, columns - c);
      run_tile(here, t);
    }
    t.out = out + max_outputs * t.out_row;
    t.w += max_outputs * t.w_row;
    if (t.bias != nullptr) t.bias += max_outputs;
  }
}

// g++ warns that a template argument drops the alignment of a packet. Eigen loads the packet correctly all the same.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wignored-attributes"
/// As many packets as a packet has lanes.
struct packet_square {
  Eigen::internal::PacketBlock<packet, static_cast<int>(lanes)> rows;
};
#pragma GCC diagnostic pop

/// Transposes: to[c][r] = from[r][c] for `rows` x `columns` elements.
inline void transpose_block(const float* from, std::int64_t from_row, std::int64_t rows, std::int64_t columns,
                            float* to, std::int64_t to_row) {
  using namespace Eigen::internal;
  std::int64_t r = 0;
  for (; r + lanes <= rows; r += lanes) {
    std::int64_t c = 0;
    for (; c + lanes <= columns; c += lanes) {
      packet_square block;
      for (std::int64_t i = 0; i < lanes; ++i) block.rows.packet[i] = ploadu<packet>(from + (r + i) * from_row + c);
      ptranspose(block.rows);
      for (std::int64_t i = 0; i < lanes; ++i) pstoreu(to + (c + i) * to_row + r, block.rows.packet[i]);
    }
    for (; c < columns; ++c)
      for (std::int64_t i = 0; i < lanes; ++i) to[c * to_row + r + i] = from[(r + i) * from_row + c];
  }
  for (; r < rows; ++r)
    for (std::int64_t c = 0; c < columns; ++c) to[c * to_row + r] = from[r * from_row + c];
}

}  // namespace
}  // namespace collage::inline v0::detail::host
