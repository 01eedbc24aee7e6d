// Recurrent cells in float32. The products of the input are computed for many steps at once. A step then multiplies the
// hidden state by packed weights, one block of hidden units at a time. It finishes a block's units while its sums are
// in the first-level cache.
#pragma once

#include <algorithm>
#include <collage/backends/any_match.hpp>
#include <collage/backends/impl/portable_activations.hpp>
#include <collage/backends/impl/portable_cells.hpp>
#include <collage/backends/impl/portable_panels.hpp>
#include <collage/backends/impl/team.hpp>
#include <collage/op/recurrent.hpp>
#include <collage/run/kernel.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace collage::inline v0::detail::host {
namespace {

/// The sizes that every cell's kernel needs. Hidden units are padded to whole blocks of panel_width.
struct recurrent_sizes {
  std::int64_t steps = 0, batch = 0, inputs = 0, hidden = 0, directions = 1, gates = 1;
  std::int64_t blocks = 0;  ///< blocks of hidden units
  bool reverse = false;     ///< whether the first direction runs in reverse
  std::int64_t padded() const { return blocks * panel_width; }
  std::int64_t row() const { return gates * padded(); }  ///< one row of products: [block, gate, panel_width]
};

/// A kernel for a cell. Each task is one direction and one part of the batch; tasks are independent.
template <class Cell>
struct recurrent_kernel {
  recurrent_sizes n;
  std::vector<Cell> cells;  ///< one for each direction
  float clip = 0;
  std::shared_ptr<const std::byte> w, r;              ///< panels
  std::shared_ptr<const std::vector<float>> bias;     ///< [directions, block, gate, panel_width]
  std::shared_ptr<const std::vector<float>> further;  ///< memory that the cells' pointers refer to
  std::size_t x_at = 0, h_at = 0, c_at = 0, lengths_at = 0;
  bool has_lengths = false;
  std::int64_t parts = 1, part_rows = 1;  ///< into how many parts the batch is divided, and the rows of one part
  std::int64_t together = 1;              ///< steps whose input products are computed at once
  int task_threads = 1, product_threads = 1, step_threads = 1;

  /// Floats of scratch memory of one task: products and two hidden states. Some cells add the cell state, others the
  /// reset state and the two gates that wait for it.
  std::int64_t scratch() const {
    const std::int64_t states = Cell::two_phases ? 2 + 3 : Cell::has_cell ? 3 : 2;
    return part_rows * (together * n.row() + states * n.padded());
  }

  void operator()(const kernel_call& call) const {
    parallel(task_threads, n.directions * parts, [&](std::int64_t task, int) {
      run(call, task / parts, task % parts * part_rows, static_cast<float*>(call.workspace) + task * scratch());
    });
  }

 private:
  std::int64_t length(const kernel_call& call, std::int64_t b) const {
    if (!has_lengths) return n.steps;
    return std::clamp<std::int64_t>(static_cast<const std::int32_t*>(call.in[lengths_at])[b], 0, n.steps);
  }
  std::int64_t time(std::int64_t direction, std::int64_t step, std::int64_t length) const {
    return (direction == 1 || n.reverse) && step < length ? length - 1 - step : step;
  }
  const float* panel(const std::shared_ptr<const std::byte>& panels, std::int64_t direction, std::int64_t block,
                     std::int64_t gate, std::int64_t depth) const {
    return reinterpret_cast<const float*>(panels.get()) +
           ((direction * n.blocks + block) * n.gates + gate) * depth * panel_width;
  }
  void limit(float* q) const {
    if (clip > 0)
      for (std::int64_t i = 0; i < panel_width; ++i) q[i] = at_most(at_least(q[i], -clip), clip);
  }

  void run(const kernel_call& call, std::int64_t direction, std::int64_t first, float* scratch) const {
    const std::int64_t rows = std::min(part_rows, n.batch - first);
    if (rows <= 0) return;
    float* const products = scratch;
    float* state = products + part_rows * together * n.row();
    float* h = std::exchange(state, state + part_rows * n.padded());
    float* next = std::exchange(state, state + part_rows * n.padded());
    load_states(call.in[h_at], direction, first, rows, h);
    if constexpr (Cell::has_cell) load_states(call.in[c_at], direction, first, rows, state);
    if (has_lengths) clear_ends(call, direction, first, rows);
    for (std::int64_t step = 0; step < n.steps; ++step) {
      const std::int64_t local = step % together;
      if (local == 0) multiply_inputs(call, direction, first, rows, step, products);
      run_step(call, direction, first, rows, step, products + local * rows * n.row(), h, next, state);
      std::swap(h, next);
    }
    store_states(call, 1, direction, first, rows, h);
    if constexpr (Cell::has_cell) store_states(call, 2, direction, first, rows, state);
  }

  /// Input products of the steps from `step` on, with biases added: [step, row, block, gate, panel_width].
  void multiply_inputs(const kernel_call& call, std::int64_t direction, std::int64_t first, std::int64_t rows,
                       std::int64_t step, float* products) const {
    const auto* const x = static_cast<const float*>(call.in[x_at]);
    const std::int64_t count = std::min(together, n.steps - step) * rows;
    parallel(product_threads, n.blocks, [&](std::int64_t block, int) {
      for (std::int64_t gate = 0; gate < n.gates; ++gate) {
        const std::int64_t column = (block * n.gates + gate) * panel_width;
        const float* const weights = panel(w, direction, block, gate, n.inputs);
        for (std::int64_t i = 0; i < count; i += panel_rows) {
          const std::int64_t some = std::min<std::int64_t>(panel_rows, count - i);
          const float* lines[panel_rows];
          for (std::int64_t j = 0; j < some; ++j) {
            const std::int64_t b = first + (i + j) % rows;
            const std::int64_t t = time(direction, step + (i + j) / rows, length(call, b));
            lines[j] = x + (t * n.batch + b) * n.inputs;
          }
          multiply_rows(some, n.inputs, lines, weights, bias->data() + direction * n.row() + column, 0,
                        products + i * n.row() + column, n.row());
        }
      }
    });
  }

  void run_step(const kernel_call& call, std::int64_t direction, std::int64_t first, std::int64_t rows,
                std::int64_t step, float* products, const float* h, float* next, float* state) const {
    const Cell& cell = cells[static_cast<std::size_t>(direction)];
    const auto clipped = [this](float* q) { limit(q); };
    /// Sums of one gate of a block for up to panel_rows rows: `to` is `start` plus the products of `from`.
    const auto recur = [&](std::int64_t block, std::int64_t gate, std::int64_t row, std::int64_t some,
                           const float* from, const float* start, std::int64_t start_step, float* to,
                           std::int64_t to_step) {
      const float* lines[panel_rows];
      for (std::int64_t j = 0; j < some; ++j) lines[j] = from + (row + j) * n.padded();
      multiply_rows(some, n.hidden, lines, panel(r, direction, block, gate, n.hidden), start, start_step, to, to_step);
    };
    const auto for_tiles = [&](const auto& body) {
      parallel(step_threads, n.blocks, [&](std::int64_t block, int) {
        for (std::int64_t row = 0; row < rows; row += panel_rows)
          body(block, row, std::min<std::int64_t>(panel_rows, rows - row));
      });
    };
    const auto sums_of = [&](std::int64_t row, std::int64_t block) {
      return products + row * n.row() + block * n.gates * panel_width;
    };
    /// Finishes a step for one row of a block. A sequence that has ended keeps its state.
    const auto finish = [&](std::int64_t row, std::int64_t block, const auto& compute) {
      const std::int64_t unit = block * panel_width;
      const std::int64_t at = row * n.padded() + unit;
      const std::int64_t steps = length(call, first + row);
      if (step >= steps) return void(std::copy_n(h + at, panel_width, next + at));
      compute(unit_block{sums_of(row, block), h + at, Cell::has_cell ? state + at : nullptr, next + at}, unit);
      if (call.out[0] == nullptr) return;
      float* const y = static_cast<float*>(call.out[0]) +
                       ((time(direction, step, steps) * n.directions + direction) * n.batch + first + row) * n.hidden;
      std::copy_n(next + at, std::min(panel_width, n.hidden - unit), y + unit);
    };
    if constexpr (!Cell::two_phases) {
      for_tiles([&](std::int64_t block, std::int64_t row, std::int64_t some) {
        for (std::int64_t gate = 0; gate < n.gates; ++gate) {
          float* const sums = sums_of(row, block) + gate * panel_width;
          recur(block, gate, row, some, h, sums, n.row(), sums, n.row());
        }
        for (std::int64_t j = 0; j < some; ++j)
          finish(row + j, block, [&](const unit_block& u, std::int64_t unit) { cell.finish(u, clipped, unit); });
      });
    } else if (cell.bias != nullptr) {
      for_tiles([&](std::int64_t block, std::int64_t row, std::int64_t some) {
        for (std::int64_t gate = 0; gate < 2; ++gate) {
          float* const sums = sums_of(row, block) + gate * panel_width;
          recur(block, gate, row, some, h, sums, n.row(), sums, n.row());
        }
        constexpr float zeros[panel_width] = {};
        float recurrent[panel_rows * panel_width];
        recur(block, 2, row, some, h, zeros, 0, recurrent, panel_width);
        for (std::int64_t j = 0; j < some; ++j)
          finish(row + j, block, [&](const unit_block& u, std::int64_t unit) {
            cell.finish_linear(u, recurrent + j * panel_width, clipped, unit);
          });
      });
    } else {
      for_tiles([&](std::int64_t block, std::int64_t row, std::int64_t some) {
        for (std::int64_t gate = 0; gate < 2; ++gate) {
          float* const sums = sums_of(row, block) + gate * panel_width;
          recur(block, gate, row, some, h, sums, n.row(), sums, n.row());
        }
        for (std::int64_t j = 0; j < some; ++j) {
          const std::int64_t at = (row + j) * n.padded() + block * panel_width;
          cell.reset(sums_of(row + j, block) + panel_width, clipped, h + at, state + at);
        }
      });
      for_tiles([&](std::int64_t block, std::int64_t row, std::int64_t some) {
        float* const sums = sums_of(row, block) + 2 * panel_width;
        recur(block, 2, row, some, state, sums, n.row(), sums, n.row());
        for (std::int64_t j = 0; j < some; ++j)
          finish(row + j, block, [&](const unit_block& u, std::int64_t unit) { cell.finish(u, clipped, unit); });
      });
    }
  }

  void load_states(const void* from, std::int64_t direction, std::int64_t first, std::int64_t rows, float* to) const {
    const float* const states = static_cast<const float*>(from) + (direction * n.batch + first) * n.hidden;
    for (std::int64_t row = 0; row < rows; ++row) {
      std::copy_n(states + row * n.hidden, n.hidden, to + row * n.padded());
      std::fill_n(to + row * n.padded() + n.hidden, n.padded() - n.hidden, 0.0F);
    }
  }
  void store_states(const kernel_call& call, std::size_t output, std::int64_t direction, std::int64_t first,
                    std::int64_t rows, const float* from) const {
    if (call.out[output] == nullptr) return;
    float* const to = static_cast<float*>(call.out[output]) + (direction * n.batch + first) * n.hidden;
    for (std::int64_t row = 0; row < rows; ++row)
      if (length(call, first + row) > 0) std::copy_n(from + row * n.padded(), n.hidden, to + row * n.hidden);
      else std::fill_n(to + row * n.hidden, n.hidden, 0.0F);
  }
  void clear_ends(const kernel_call& call, std::int64_t direction, std::int64_t first, std::int64_t rows) const {
    if (call.out[0] == nullptr) return;
    for (std::int64_t row = 0; row < rows; ++row)
      for (std::int64_t t = length(call, first + row); t < n.steps; ++t)
        std::fill_n(
            static_cast<float*>(call.out[0]) + ((t * n.directions + direction) * n.batch + first + row) * n.hidden,
            n.hidden, 0.0F);
  }
};

/// Whether these loops support a recurrent operator: float32 with constant weights.
inline bool portable_recurs(const any_match& m, std::uint32_t node) {
  const bool is_lstm = m.is(node, ops::lstm);
  if (!is_lstm && !m.is(node, ops::gru) && !m.is(node, ops::rnn)) return false;
  const std::span<const std::uint32_t> in = m.inputs_of(node);
  if (m.type_of(in[0]).type != dtype::f32) return false;
  for (const std::size_t i : {std::size_t{1}, std::size_t{2}, std::size_t{3}, std::size_t{7}})
    if (i < in.size() && m.at(in[i]).role != value_role::constant) return false;
  return true;
}

/// A list [directions, count, hidden] with its hidden units padded to whole blocks.
inline std::vector<float> pad_units(const float* from, std::int64_t lists, const recurrent_sizes& n) {
  std::vector<float> to(static_cast<std::size_t>(lists * n.padded()), 0.0F);
  for (std::int64_t i = 0; i < lists; ++i) std::copy_n(from + i * n.hidden, n.hidden, to.data() + i * n.padded());
  return to;
}

/// Prepares the parts that all cells share. For the first `recurrent_bias` gates, the recurrent bias is added in
/// advance.
template <class Cell, class Kind>
recurrent_kernel<Cell> prepare_recurrent(const any_match& m, const Kind& kind, build_context& context,
                                         std::int64_t recurrent_bias) {
  const std::uint32_t node = m.nodes().back();
  const std::span<const std::uint32_t> in = m.inputs_of(node);
  const auto a = m.attributes(node, kind);
  const shape& x = m.type_of(in[0]).dims;
  recurrent_kernel<Cell> k;
  recurrent_sizes& n = k.n;
  n.steps = x[0];
  n.batch = x[1];
  n.inputs = x[2];
  n.hidden = m.type_of(in[2]).dims[2];
  n.directions = Kind::directions(a);
  n.gates = Cell::gates;
  n.blocks = (n.hidden + panel_width - 1) / panel_width;
  n.reverse = a.direction == recurrent_direction::reverse;
  k.clip = static_cast<float>(a.clip);
  k.x_at = m.index_of(in[0]);
  k.h_at = m.index_of(in[4]);
  constexpr std::size_t optional = Cell::has_cell ? 6 : 5;
  if (Cell::has_cell) k.c_at = m.index_of(in[5]);
  k.has_lengths = in.size() > optional;
  if (k.has_lengths) k.lengths_at = m.index_of(in[optional]);

  const auto pack = [&](std::size_t operand, std::int64_t depth) {
    const std::string packing = "portable panels of " + std::to_string(panel_width) + ", " +
                                std::to_string(n.directions) + 'x' + std::to_string(n.gates) + 'x' +
                                std::to_string(n.hidden) + 'x' + std::to_string(depth);
    const auto bytes = static_cast<std::size_t>(n.directions * n.row() * depth) * sizeof(float);
    return context.packed(in[operand], packing, bytes, [&](std::byte* to) {
      pack_gates(context.constant<float>(in[operand]), n.directions, n.gates, n.hidden, depth,
                 reinterpret_cast<float*>(to));
    });
  };
  k.w = pack(1, n.inputs);
  k.r = pack(2, n.hidden);
  const float* const given = context.constant<float>(in[3]);
  std::vector<float> bias(static_cast<std::size_t>(n.directions * n.row()), 0.0F);
  for (std::int64_t d = 0; d < n.directions; ++d)
    for (std::int64_t gate = 0; gate < n.gates; ++gate)
      for (std::int64_t unit = 0; unit < n.hidden; ++unit) {
        const float* const list = given + (d * 2 * n.gates + gate) * n.hidden + unit;
        const std::int64_t to = d * n.row() + (unit / panel_width * n.gates + gate) * panel_width + unit % panel_width;
        bias[static_cast<std::size_t>(to)] = list[0] + (gate < recurrent_bias ? list[n.gates * n.hidden] : 0.0F);
      }
  k.bias = std::make_shared<const std::vector<float>>(std::move(bias));
  return k;
}

/// Divides the work among threads and makes the kernel of `k`, whose cells are complete.
template <class Cell>
kernel finish_recurrent(recurrent_kernel<Cell> k, const any_match& m, build_context& context) {
  const recurrent_sizes& n = k.n;
  const int threads = context.threads();
  // The sizes below are in multiply-adds; entering the team costs about as much as 100000 of them.
  constexpr double worth_a_team = 4e5;
  const double step = static_cast<double>(n.batch) * static_cast<double>(n.gates * n.hidden * n.hidden);
  const double input = static_cast<double>(n.batch) * static_cast<double>(n.gates * n.hidden * n.inputs);
  const double all = static_cast<double>(n.directions * n.steps) * (step + input);
  const bool divide = threads > 1 && all >= worth_a_team;
  k.parts = divide ? std::clamp<std::int64_t>(threads / n.directions, 1, std::max<std::int64_t>(n.batch, 1)) : 1;
  const bool few = n.directions * k.parts * 2 <= threads;
  if (divide && few && step >= worth_a_team) {
    // There are too few independent tasks for the team, but each step is large enough to divide.
    k.parts = 1;
    k.step_threads = k.product_threads = threads;
  } else if (divide && n.directions * k.parts > 1) {
    k.task_threads = threads;
  } else if (divide) {
    k.product_threads = threads;
  }
  k.part_rows = std::max<std::int64_t>((n.batch + k.parts - 1) / k.parts, 1);
  k.together = std::clamp<std::int64_t>(256 / k.part_rows, 1, std::max<std::int64_t>(n.steps, 1));
  const auto workspace = static_cast<std::size_t>(n.directions * k.parts * k.scratch()) * sizeof(float);
  const std::span<const std::uint32_t> in = m.inputs_of(m.nodes().back());
  const std::size_t read[] = {k.x_at, k.h_at, Cell::has_cell ? k.c_at : k.h_at, k.has_lengths ? k.lengths_at : k.x_at};
  kernel made(std::string(m.kind_of(m.nodes().back()).name) + ", packed panels", std::move(k), workspace);
  for (const std::size_t i : {std::size_t{1}, std::size_t{2}, std::size_t{3}, std::size_t{7}})
    if (i < in.size() && std::find(std::begin(read), std::end(read), m.index_of(in[i])) == std::end(read))
      made.does_not_read(m.index_of(in[i]));
  return made;
}

/// Activation `which` of a direction.
template <class Attributes>
activation_function activation_of(const Attributes& a, std::int64_t direction, std::size_t count, std::size_t which) {
  const std::size_t i = static_cast<std::size_t>(direction) * count + which;
  return {static_cast<recurrent_activation>(a.activations[i]), static_cast<float>(a.alphas[i]),
          static_cast<float>(a.betas[i])};
}

inline kernel build_portable_rnn(const any_match& m, build_context& context) {
  const ops::recurrent_attributes a = m.attributes(m.nodes().back(), ops::rnn);
  auto k = prepare_recurrent<rnn_cell>(m, ops::rnn, context, 1);
  for (std::int64_t d = 0; d < k.n.directions; ++d) k.cells.push_back({activation_of(a, d, 1, 0)});
  return finish_recurrent(std::move(k), m, context);
}

inline kernel build_portable_gru(const any_match& m, build_context& context) {
  const std::uint32_t node = m.nodes().back();
  const ops::gru_attributes a = m.attributes(node, ops::gru);
  auto k = prepare_recurrent<gru_cell>(m, ops::gru, context, a.linear_before_reset ? 2 : 3);
  const recurrent_sizes& n = k.n;
  if (a.linear_before_reset)
    k.further = std::make_shared<const std::vector<float>>(
        pad_units(context.constant<float>(m.inputs_of(node)[3]), n.directions * 6, n));
  for (std::int64_t d = 0; d < n.directions; ++d)
    k.cells.push_back({activation_of(a, d, 2, 0), activation_of(a, d, 2, 1),
                       a.linear_before_reset ? k.further->data() + (d * 6 + 5) * n.padded() : nullptr});
  return finish_recurrent(std::move(k), m, context);
}

inline kernel build_portable_lstm(const any_match& m, build_context& context) {
  const std::uint32_t node = m.nodes().back();
  const ops::lstm_attributes a = m.attributes(node, ops::lstm);
  const std::span<const std::uint32_t> in = m.inputs_of(node);
  auto k = prepare_recurrent<lstm_cell>(m, ops::lstm, context, 4);
  const recurrent_sizes& n = k.n;
  if (in.size() > 7)
    k.further =
        std::make_shared<const std::vector<float>>(pad_units(context.constant<float>(in[7]), n.directions * 3, n));
  for (std::int64_t d = 0; d < n.directions; ++d)
    k.cells.push_back({activation_of(a, d, 3, 0), activation_of(a, d, 3, 1), activation_of(a, d, 3, 2), a.input_forget,
                       in.size() > 7 ? k.further->data() + d * 3 * n.padded() : nullptr, n.padded()});
  return finish_recurrent(std::move(k), m, context);
}

/// A kernel for a match of one recurrent operator for which portable_recurs holds.
inline kernel build_portable_recurrent(const any_match& m, build_context& context) {
  const std::uint32_t node = m.nodes().back();
  if (m.is(node, ops::lstm)) return build_portable_lstm(m, context);
  if (m.is(node, ops::gru)) return build_portable_gru(m, context);
  return build_portable_rnn(m, context);
}

}  // namespace
}  // namespace collage::inline v0::detail::host
