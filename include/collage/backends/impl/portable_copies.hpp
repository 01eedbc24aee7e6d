// Operators that copy elements to places known when the kernel is built: transpose, concat, slice, expand, tile, pad, trilu. Also
// reverse_sequence, whose lengths are an operand.
#pragma once

#include <algorithm>
#include <collage/backends/any_match.hpp>
#include <collage/backends/impl/portable_strided.hpp>
#include <collage/backends/impl/team.hpp>
#include <collage/op/movement.hpp>
#include <collage/op/order.hpp>
#include <collage/op/slice.hpp>
#include <collage/run/kernel.hpp>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace collage::inline v0::detail::host {
namespace {

/// Copies one or several operands, each as a whole, to their places in the output.
template <class Element>
struct portable_copies {
  struct part {
    std::size_t argument;
    std::int64_t in_base, out_base;  ///< the offsets of its first element
    strided_copy<Element> copy;
  };
  std::vector<part> parts;

  void operator()(const kernel_call& call) const {
    for (const part& p : parts)
      p.copy(static_cast<const Element*>(call.in[p.argument]) + p.in_base,
             static_cast<Element*>(call.out[0]) + p.out_base);
  }
};

/// The dimensions of a copy to a dense output. The only operand is read with the given strides.
inline std::vector<copied_dimension> read_in_steps(const shape& output, const shape& steps) {
  const shape out = steps_of_dense(output);
  std::vector<copied_dimension> dims;
  for (std::size_t i = 0; i < output.size(); ++i) dims.push_back({output[i], steps[i], out[i]});
  return dims;
}

/// The dimensions of the copy that transpose, slice, expand or tile makes. Adds the offset of the first element read to `base`.
inline std::vector<copied_dimension> copied_dimensions(const any_match& m, std::uint32_t node, std::int64_t& base) {
  const shape& x = m.type_of(m.inputs_of(node)[0]).dims;
  const shape& y = m.type_of(m.output_of(node)).dims;
  const shape dense = steps_of_dense(x);
  shape steps = shape::filled(y.size(), 0);
  if (m.is(node, ops::transpose)) {
    const shape from = m.attributes(node, ops::transpose).permutation;
    for (std::size_t i = 0; i < from.size(); ++i) steps[i] = dense[static_cast<std::size_t>(from[i])];
  } else if (m.is(node, ops::slice)) {
    const ops::slice_attributes a = m.attributes(node, ops::slice);
    for (std::size_t i = 0; i < x.size(); ++i) {
      base += a.starts[i] * dense[i];
      if (y[i] > 1) steps[i] = a.steps[i] * dense[i];
    }
  } else if (m.is(node, ops::expand)) {
    for (std::size_t i = 0; i < x.size(); ++i)
      if (x[i] != 1) steps[y.size() - x.size() + i] = dense[i];
  } else {  // tile: each dimension becomes two, the repeats and the repeated elements
    const shape repeats = m.attributes(node, ops::tile).repeats;
    const shape out = steps_of_dense(y);
    std::vector<copied_dimension> dims;
    for (std::size_t i = 0; i < x.size(); ++i) {
      dims.push_back({repeats[i], 0, x[i] * out[i]});
      dims.push_back({x[i], dense[i], out[i]});
    }
    return dims;
  }
  return read_in_steps(y, steps);
}

template <class Element>
kernel make_copy(const any_match& m, std::uint32_t node, int threads) {
  std::int64_t base = 0;
  const std::vector<copied_dimension> dims = copied_dimensions(m, node, base);
  portable_copies<Element> k;
  k.parts.push_back({m.index_of(m.inputs_of(node)[0]), base, 0, strided_copy<Element>(dims, threads)});
  return kernel(std::string(m.kind_of(node).name) + " loops", std::move(k));
}

template <class Element>
kernel make_concat(const any_match& m, std::uint32_t node, int threads) {
  const auto axis = static_cast<std::size_t>(m.attributes(node, ops::concat).axis);
  const shape& y = m.type_of(m.output_of(node)).dims;
  const std::int64_t inner = steps_of_dense(y)[axis];
  portable_copies<Element> k;
  std::int64_t begin = 0;
  for (const std::uint32_t operand : m.inputs_of(node)) {
    const shape& x = m.type_of(operand).dims;
    std::int64_t outer = 1;
    for (std::size_t i = 0; i < axis; ++i) outer *= x[i];
    const copied_dimension dims[] = {{outer, x[axis] * inner, y[axis] * inner}, {x[axis] * inner, 1, 1}};
    k.parts.push_back({m.index_of(operand), 0, begin, strided_copy<Element>(dims, threads)});
    begin += x[axis] * inner;
  }
  return kernel("concat loops", std::move(k));
}

/// Writes the output row by row, along the last padded dimension. The dimensions after it form a block that is never divided. The
/// source of each place is listed when the kernel is built.
template <class Element>
class portable_pad {
 public:
  portable_pad(const any_match& m, std::uint32_t node, int threads) : threads_(threads) {
    const ops::pad_attributes a = m.attributes(node, ops::pad);
    const std::span<const std::uint32_t> inputs = m.inputs_of(node);
    argument_ = m.index_of(inputs[0]);
    value_ = inputs.size() == 2 ? m.index_of(inputs[1]) : argument_;
    has_value_ = inputs.size() == 2;
    shape x = m.type_of(inputs[0]).dims;
    shape y = m.type_of(m.output_of(node)).dims;
    if (y.elements() == 0) return;  // however long its other sides are
    while (!y.empty() && a.pads_begin[y.size() - 1] == 0 && a.pads_end[y.size() - 1] == 0) {
      block_ *= y[y.size() - 1];
      --x.rank;
      --y.rank;
    }
    const shape steps = steps_of_dense(x);
    for (std::size_t d = 0; d < y.size(); ++d) {
      std::vector<std::int64_t> offsets;
      const std::int64_t cut = std::max<std::int64_t>(-a.pads_begin[d], 0);
      const std::int64_t left = x[d] - cut + std::min<std::int64_t>(a.pads_end[d], 0);
      for (std::int64_t o = 0; o < y[d]; ++o) {
        const std::int64_t i = source(a.mode, o - std::max<std::int64_t>(a.pads_begin[d], 0), left);
        offsets.push_back(i < 0 ? nothing : (i + cut) * steps[d] * block_);
      }
      if (d + 1 < y.size()) {
        rows_ *= y[d];
        outer_.push_back(std::move(offsets));
        continue;
      }
      inner_ = std::move(offsets);
      first_ = std::min(std::max<std::int64_t>(a.pads_begin[d], 0), y[d]);
      last_ = std::clamp(first_ + left, first_, y[d]);
    }
    if (inner_.empty() && y.empty()) {  // no pads at all
      inner_ = {0};
      last_ = 1;
    }
  }
  kernel make() && { return kernel("pad loops", std::move(*this)); }

  void operator()(const kernel_call& call) const {
    const auto* const in = static_cast<const Element*>(call.in[argument_]);
    auto* const out = static_cast<Element*>(call.out[0]);
    const Element value = has_value_ ? *static_cast<const Element*>(call.in[value_]) : Element{};
    const auto columns = static_cast<std::int64_t>(inner_.size());
    if (columns * block_ == 0) return;
    parallel_parts(threads_, rows_, 1, static_cast<double>(columns * block_ + 16),
                   [&](std::int64_t first, std::int64_t last) {
                     for (std::int64_t row = first; row < last; ++row) {
                       Element* const to = out + row * columns * block_;
                       const std::int64_t base = offset_of(row);
                       if (base == nothing) {
                         std::fill_n(to, columns * block_, value);
                         continue;
                       }
                       fill(in + base, 0, first_, value, to);
                       if (first_ < last_)
                         copy_elements(in + base + inner_[static_cast<std::size_t>(first_)], (last_ - first_) * block_,
                                       to + first_ * block_);
                       fill(in + base, last_, columns, value, to);
                     }
                   });
  }

 private:
  static constexpr std::int64_t nothing = -1;

  /// The index, below `extent`, of the element that is copied to a place; `nothing` if the place gets the padding value.
  static std::int64_t source(ops::pad_mode mode, std::int64_t place, std::int64_t extent) {
    if (place >= 0 && place < extent) return place;
    if (mode == ops::pad_mode::constant) return nothing;
    if (mode == ops::pad_mode::edge) return place < 0 ? 0 : extent - 1;
    if (extent == 1) return 0;
    const std::int64_t period = mode == ops::pad_mode::wrap ? extent : 2 * (extent - 1);
    const std::int64_t within = (place % period + period) % period;
    return within < extent ? within : period - within;
  }
  std::int64_t offset_of(std::int64_t row) const {
    std::int64_t offset = 0;
    for (std::size_t d = outer_.size(); d-- > 0;) {
      const auto extent = static_cast<std::int64_t>(outer_[d].size());
      const std::int64_t part = outer_[d][static_cast<std::size_t>(row % extent)];
      if (part == nothing) return nothing;
      offset += part;
      row /= extent;
    }
    return offset;
  }
  void fill(const Element* in, std::int64_t first, std::int64_t last, Element value, Element* to) const {
    for (std::int64_t i = first; i < last; ++i) {
      const std::int64_t from = inner_[static_cast<std::size_t>(i)];
      if (from == nothing) std::fill_n(to + i * block_, block_, value);
      else copy_elements(in + from, block_, to + i * block_);
    }
  }

  int threads_;
  std::size_t argument_ = 0, value_ = 0;
  bool has_value_ = false;
  std::int64_t block_ = 1, rows_ = 1;
  std::vector<std::vector<std::int64_t>> outer_;  ///< for each dimension and place, the source's offset or `nothing`
  std::vector<std::int64_t> inner_;               ///< the same along a row
  std::int64_t first_ = 0, last_ = 0;             ///< the places of a row that are contiguous in the input
};

template <class Element>
struct portable_trilu {
  std::size_t argument = 0;
  int threads = 1;
  std::int64_t matrices = 1, rows = 1, columns = 1, k = 0;
  bool upper = true;

  void operator()(const kernel_call& call) const {
    const auto* const in = static_cast<const Element*>(call.in[argument]);
    auto* const out = static_cast<Element*>(call.out[0]);
    parallel_parts(
        threads, matrices * rows, 1, static_cast<double>(columns + 16), [&](std::int64_t first, std::int64_t last) {
          for (std::int64_t row = first; row < last; ++row) {
            // The first column of an upper triangle in this row, or the first column after a lower triangle.
            const std::int64_t bound = std::clamp<std::int64_t>(row % rows + k + (upper ? 0 : 1), 0, columns);
            Element* const to = out + row * columns;
            const std::int64_t begin = upper ? bound : 0;
            const std::int64_t end = upper ? columns : bound;
            std::fill_n(to, begin, Element{});
            copy_elements(in + row * columns + begin, end - begin, to + begin);
            std::fill_n(to + end, columns - end, Element{});
          }
        });
  }
};

template <class Element>
kernel make_trilu(const any_match& m, std::uint32_t node, int threads) {
  const ops::trilu_attributes a = m.attributes(node, ops::trilu);
  const shape& x = m.type_of(m.output_of(node)).dims;
  portable_trilu<Element> k{.argument = m.index_of(m.inputs_of(node)[0]), .threads = threads};
  for (std::size_t i = 0; i + 2 < x.size(); ++i) k.matrices *= x[i];
  k.rows = x[x.size() - 2];
  k.columns = x[x.size() - 1];
  k.k = a.k;
  k.upper = a.upper;
  return kernel("trilu loops", std::move(k));
}

/// Moves blocks of the dimensions after both axes. A length outside of the time axis counts as the nearest length inside.
template <class Element, class Length>
struct portable_reverse {
  std::size_t argument = 0, lengths = 0;
  int threads = 1;
  std::int64_t block = 1, blocks = 1;
  std::int64_t times = 1, time_step = 1;  ///< strides count blocks
  std::int64_t batches = 1, batch_step = 1;

  void operator()(const kernel_call& call) const {
    const auto* const in = static_cast<const Element*>(call.in[argument]);
    const auto* const length = static_cast<const Length*>(call.in[lengths]);
    auto* const out = static_cast<Element*>(call.out[0]);
    if (block == 0) return;
    parallel_parts(threads, blocks, 1, static_cast<double>(block + 16), [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t i = first; i < last; ++i) {
        const std::int64_t time = i / time_step % times;
        const std::int64_t end = std::min<std::int64_t>(length[i / batch_step % batches], times);
        const std::int64_t from = time < end ? i + (end - 1 - 2 * time) * time_step : i;
        copy_elements(in + from * block, block, out + i * block);
      }
    });
  }
};

template <class Element, class Length>
kernel make_reverse(const any_match& m, std::uint32_t node, int threads) {
  const ops::reverse_sequence_attributes a = m.attributes(node, ops::reverse_sequence);
  const std::span<const std::uint32_t> inputs = m.inputs_of(node);
  const shape& x = m.type_of(inputs[0]).dims;
  const auto time = static_cast<std::size_t>(a.time_axis);
  const auto batch = static_cast<std::size_t>(a.batch_axis);
  portable_reverse<Element, Length> k{
      .argument = m.index_of(inputs[0]), .lengths = m.index_of(inputs[1]), .threads = threads};
  for (std::size_t i = x.size(); i-- > 0;) {
    if (i == time) k.time_step = k.blocks;
    if (i == batch) k.batch_step = k.blocks;
    (i > std::max(time, batch) ? k.block : k.blocks) *= x[i];
  }
  k.times = x[time];
  k.batches = x[batch];
  return kernel("reverse_sequence loops", std::move(k));
}

}  // namespace
}  // namespace collage::inline v0::detail::host
