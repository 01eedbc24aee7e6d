// LSTM and GRU on oneDNN. Weights are packed once, with the gates in the library's order. Outputs that are not wanted go to scratch
// memory. The library calls its GRU "ref", yet it consists of matrix products and compiled loops.
//
// docs/decisions/onednn-kernels.md has the figures, and why the cell without gates was not kept.
#pragma once

#include <collage/backends/impl/onednn_program.hpp>
#include <collage/op/recurrent.hpp>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace collage::inline v0::detail::onednn {
namespace {

/// The dimensions of a cell and its sequences.
struct cell_problem {
  std::int64_t steps, batch, inputs, hidden, directions, gates;
  dnnl::rnn_direction direction;
  std::vector<std::int64_t> order;  ///< the operator's gates in the library's order

  /// Describes the operator's weights as [layers, directions, depth, gates, hidden].
  desc weights(std::int64_t depth) const {
    const dims steps_of{directions * gates * hidden * depth, gates * hidden * depth, 1, hidden * depth, depth};
    return {{1, directions, depth, gates, hidden}, f32, steps_of};
  }
  desc free_weights(std::int64_t depth) const { return free_layout({1, directions, depth, gates, hidden}); }
  desc states() const { return dense({1, directions, batch, hidden}); }
};

template <operator_kind Kind>
cell_problem cell_problem_of(const any_match& m, std::uint32_t node, const Kind& kind) {
  const std::span<const std::uint32_t> in = m.inputs_of(node);
  const shape& x = m.type_of(in[0]).dims;
  const auto a = m.attributes(node, kind);
  cell_problem p{x[0],
                 x[1],
                 x[2],
                 m.type_of(in[2]).dims[2],
                 Kind::directions(a),
                 Kind::gates,
                 a.direction == recurrent_direction::forward   ? dnnl::rnn_direction::unidirectional_left2right
                 : a.direction == recurrent_direction::reverse ? dnnl::rnn_direction::unidirectional_right2left
                                                               : dnnl::rnn_direction::bidirectional_concat,
                 {}};
  if (Kind::gates == 4) p.order = {0, 2, 3, 1};  // input, forget, new, output
  else
    for (std::int64_t gate = 0; gate < p.gates; ++gate) p.order.push_back(gate);
  return p;
}

/// Copies `size` floats for each gate, in the library's order of gates.
inline void order_gates(const cell_problem& p, const float* from, std::int64_t size, float* to) {
  for (std::int64_t d = 0; d < p.directions; ++d)
    for (std::int64_t gate = 0; gate < p.gates; ++gate)
      std::copy_n(from + (d * p.gates + p.order[static_cast<std::size_t>(gate)]) * size, size,
                  to + (d * p.gates + gate) * size);
}

/// Packs weights in the layout `wanted`, with the gates in the library's order.
inline std::size_t read_weights(program_builder& program, const cell_problem& p, std::uint32_t value,
                                std::int64_t depth, const desc& wanted) {
  const desc from = p.weights(depth);
  return program.pack(value, p.gates == 4 ? "gates reordered, " : "", from, wanted, [&](std::byte* bytes) {
    std::vector<float> ordered(static_cast<std::size_t>(p.directions * p.gates * p.hidden * depth));
    order_gates(p, program.context().constant<float>(value), p.hidden * depth, ordered.data());
    program_builder::repack(from, reinterpret_cast<const std::byte*>(ordered.data()), wanted, bytes);
  });
}

/// Packs the sums of both biases. With `apart` the last gate has only its input bias. Its recurrent bias is added later, and
/// is packed as one more gate.
inline std::size_t read_bias(program_builder& program, const cell_problem& p, std::uint32_t value, bool apart) {
  const desc wanted = dense({1, p.directions, p.gates + (apart ? 1 : 0), p.hidden});
  return program.pack(value, apart ? "bias of one more gate, " : "sums of biases, ",
                      dense({p.directions, 2, p.gates, p.hidden}), wanted, [&](std::byte* bytes) {
                        const float* from = program.context().constant<float>(value);
                        auto* to = reinterpret_cast<float*>(bytes);
                        for (std::int64_t d = 0; d < p.directions; ++d, from += 2 * p.gates * p.hidden) {
                          for (const std::int64_t gate : p.order)
                            for (std::int64_t unit = 0; unit < p.hidden; ++unit) {
                              const float* const both = from + gate * p.hidden + unit;
                              *to++ = apart && gate + 1 == p.gates ? both[0] : both[0] + both[p.gates * p.hidden];
                            }
                          if (apart) to = std::copy_n(from + (2 * p.gates - 1) * p.hidden, p.hidden, to);
                        }
                      });
}

/// Appends the cell that `d` describes, and finishes the kernel.
template <class Cell, class Descriptor>
kernel finish_cell(const any_match& m, build_context& context, std::uint32_t node, const cell_problem& p,
                   const Descriptor& d, bool bias_apart) {
  const std::span<const std::uint32_t> in = m.inputs_of(node);
  const bool has_cell = p.gates == 4;
  program_builder program(m, context);
  const desc y = dense({p.steps, p.batch, p.directions * p.hidden});
  const std::size_t result = program.output(0, y);
  // The library puts both directions of a step side by side; the operator wants them one after the other.
  const std::size_t inner = p.directions == 2 ? program.scratch(y) : result;
  std::vector<std::pair<int, std::size_t>> operands{
      {DNNL_ARG_SRC_LAYER, program.read(in[0], dense({p.steps, p.batch, p.inputs}))},
      {DNNL_ARG_WEIGHTS_LAYER, read_weights(program, p, in[1], p.inputs, d.weights_layer_desc())},
      {DNNL_ARG_WEIGHTS_ITER, read_weights(program, p, in[2], p.hidden, d.weights_iter_desc())},
      {DNNL_ARG_BIAS, read_bias(program, p, in[3], bias_apart)},
      {DNNL_ARG_SRC_ITER, program.read(in[4], p.states())},
      {DNNL_ARG_DST_LAYER, inner},
      {DNNL_ARG_DST_ITER, program.output(1, p.states())}};
  if (has_cell) {
    operands.emplace_back(DNNL_ARG_SRC_ITER_C, program.read(in[5], p.states()));
    operands.emplace_back(DNNL_ARG_DST_ITER_C, program.output(2, p.states()));
  }
  program.run(d, Cell(d), std::move(operands));
  if (p.directions == 2) {
    const dims extents{p.steps, 2, p.batch, p.hidden};
    const std::size_t pairs =
        program.seen_as(inner, {extents, f32, {2 * p.batch * p.hidden, p.hidden, 2 * p.hidden, 1}});
    program.reorder(pairs, program.seen_as(result, dense(extents)));
  }
  return program.finish(std::string(d.impl_info_str()) + ' ' + m.kind_of(node).name);
}

inline kernel build_recurrent(const any_match& m, build_context& context, std::uint32_t node) {
  constexpr auto forward = dnnl::prop_kind::forward_inference;
  const auto describe = [&](const cell_problem& p, const auto& make) {
    return make(dense({p.steps, p.batch, p.inputs}), p.states(), p.free_weights(p.inputs), p.free_weights(p.hidden),
                dense({p.steps, p.batch, p.directions * p.hidden}));
  };
  if (m.is(node, ops::lstm)) {
    const cell_problem p = cell_problem_of(m, node, ops::lstm);
    const auto d = describe(p, [&](const desc& x, const desc& h, const desc& w, const desc& r, const desc& y) {
      return dnnl::lstm_forward::primitive_desc(cpu(), forward, p.direction, x, h, h, w, r,
                                                dense({1, p.directions, p.gates, p.hidden}), y, h, h, attributes());
    });
    return finish_cell<dnnl::lstm_forward>(m, context, node, p, d, false);
  }
  const cell_problem p = cell_problem_of(m, node, ops::gru);
  if (m.attributes(node, ops::gru).linear_before_reset) {
    const auto d = describe(p, [&](const desc& x, const desc& h, const desc& w, const desc& r, const desc& y) {
      return dnnl::lbr_gru_forward::primitive_desc(cpu(), forward, p.direction, x, h, w, r,
                                                   dense({1, p.directions, p.gates + 1, p.hidden}), y, h, attributes());
    });
    return finish_cell<dnnl::lbr_gru_forward>(m, context, node, p, d, true);
  }
  const auto d = describe(p, [&](const desc& x, const desc& h, const desc& w, const desc& r, const desc& y) {
    return dnnl::gru_forward::primitive_desc(cpu(), forward, p.direction, x, h, w, r,
                                             dense({1, p.directions, p.gates, p.hidden}), y, h, attributes());
  });
  return finish_cell<dnnl::gru_forward>(m, context, node, p, d, false);
}

}  // namespace
}  // namespace collage::inline v0::detail::onednn
