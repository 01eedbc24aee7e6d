// Operators that move elements: transpose and concat.
#pragma once

#include <algorithm>
#include <collage/backends/impl/eigen_reduce.hpp>
#include <collage/backends/impl/eigen_tile.hpp>
#include <collage/backends/impl/im2col.hpp>
#include <collage/backends/impl/team.hpp>
#include <collage/op/movement.hpp>
#include <collage/run/kernel.hpp>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace collage::inline v0::detail::host {
namespace {

/// Calls `body` with an unsigned zero of the size of an element: only the size matters for moving elements.
template <class Body>
auto with_element_size(dtype type, const Body& body) {
  switch (size_of(type)) {
    case 1: return body(std::uint8_t{});
    case 2: return body(std::uint16_t{});
    case 4: return body(std::uint32_t{});
    default: return body(std::uint64_t{});
  }
}

/// A position in two tensors, each with its own strides. It advances by counting, since a division costs more than copying a
/// short row.
class paired_walk {
 public:
  paired_walk(const strided_dims& a, const strided_dims& b, std::int64_t index)
      : a_(a), b_(b), a_at_(a.offset(index)), b_at_(b.offset(index)) {
    for (std::size_t d = a.dims.size(); d-- > 0; index /= a.dims[d]) at_[d] = index % a.dims[d];
  }
  std::int64_t a() const { return a_at_; }
  std::int64_t b() const { return b_at_; }
  void next() {
    for (std::size_t d = a_.dims.size(); d-- > 0;) {
      a_at_ += a_.steps[d];
      b_at_ += b_.steps[d];
      if (++at_[d] < a_.dims[d]) return;
      a_at_ -= at_[d] * a_.steps[d];
      b_at_ -= at_[d] * b_.steps[d];
      at_[d] = 0;
    }
  }

 private:
  const strided_dims& a_;
  const strided_dims& b_;
  std::int64_t a_at_, b_at_;
  std::int64_t at_[shape::max_rank] = {};
};

/// Transposes in one of two ways. If the innermost dimension stays innermost, it copies rows. Otherwise it transposes blocks,
/// between the innermost dimensions of the input and of the output.
template <class Element>
class eigen_transpose {
 public:
  eigen_transpose(const any_match& m, std::uint32_t node, std::size_t argument, int threads)
      : argument_(argument), threads_(threads) {
    const ops::transpose_attributes a = m.attributes(node, ops::transpose);
    const shape& x = m.type_of(m.inputs_of(node)[0]).dims;
    shape in_steps = x;
    std::int64_t step = 1;
    for (std::size_t i = x.size(); i-- > 0; step *= x[i]) in_steps[i] = step;
    strided_dims walk;  // the output's dimensions, with strides in the input
    for (const std::int64_t from : a.permutation)
      walk.append(x[static_cast<std::size_t>(from)], in_steps[static_cast<std::size_t>(from)]);
    if (walk.dims.empty()) walk = {{x.elements()}, {1}};

    shape out_steps = walk.dims;
    step = 1;
    for (std::size_t i = walk.dims.size(); i-- > 0; step *= walk.dims[i]) out_steps[i] = step;
    const std::size_t inner = walk.dims.size() - 1;
    columns_ = walk.dims[inner];
    column_step_ = walk.steps[inner];
    for (std::size_t i = 0; i < inner; ++i) {
      if (column_step_ != 1 && walk.steps[i] == 1) {
        rows_ = walk.dims[i];
        row_step_ = out_steps[i];
        continue;
      }
      outer_in_.dims.push_back(walk.dims[i]);
      outer_in_.steps.push_back(walk.steps[i]);
      outer_out_.dims.push_back(walk.dims[i]);
      outer_out_.steps.push_back(out_steps[i]);
    }
  }
  kernel make() && { return kernel(column_step_ == 1 ? "transpose by rows" : "transpose by blocks", std::move(*this)); }

  void operator()(const kernel_call& call) const {
    const Element* const in = static_cast<const Element*>(call.in[argument_]);
    Element* const out = static_cast<Element*>(call.out[0]);
    if (columns_ == 0 || rows_ == 0) return;
    if (column_step_ == 1)
      return parallel_parts(threads_, outer_in_.size(), 1, static_cast<double>(columns_ + 16),
                            [&](std::int64_t first, std::int64_t last) {
                              paired_walk walk(outer_in_, outer_out_, first);
                              for (std::int64_t i = first; i < last; ++i, walk.next())
                                copy_elements(in + walk.a(), columns_, out + walk.b());
                            });
    // The block is divided into stripes of columns, which fill whole cache lines of the output.
    const std::int64_t stripes = divide_up(columns_, stripe);
    parallel_parts(threads_, outer_in_.size() * stripes, 1,
                   2.0 * static_cast<double>(rows_ * std::min(stripe, columns_)),
                   [&](std::int64_t first, std::int64_t last) {
                     for (std::int64_t i = first; i < last; ++i) {
                       const std::int64_t column = i % stripes * stripe;
                       block(in + outer_in_.offset(i / stripes) + column * column_step_,
                             std::min(stripe, columns_ - column), out + outer_out_.offset(i / stripes) + column);
                     }
                   });
  }

 private:
  static constexpr std::int64_t stripe = 64;

  static void copy_elements(const Element* from, std::int64_t count, Element* to) {
    if constexpr (sizeof(Element) == sizeof(float))
      copy_run(reinterpret_cast<const float*>(from), count, reinterpret_cast<float*>(to));
    else std::memcpy(to, from, static_cast<std::size_t>(count) * sizeof(Element));
  }

  /// Sets to[r][c] = from[c][r], for all rows and `columns` columns of the output.
  void block(const Element* from, std::int64_t columns, Element* to) const {
    if constexpr (sizeof(Element) == sizeof(float))
      // The bits are moved as they are, whatever they mean as floats.
      transpose_block(reinterpret_cast<const float*>(from), column_step_, columns, rows_, reinterpret_cast<float*>(to),
                      row_step_);
    else
      for (std::int64_t r = 0; r < rows_; ++r)
        for (std::int64_t c = 0; c < columns; ++c) to[r * row_step_ + c] = from[c * column_step_ + r];
  }

  std::size_t argument_;
  int threads_;
  strided_dims outer_in_, outer_out_;
  std::int64_t columns_ = 0, column_step_ = 1;  ///< the output's innermost dimension, and its stride in the input
  std::int64_t rows_ = 1, row_step_ = 0;        ///< the input's innermost dimension, and its stride in the output
};

/// Copies the operands one after the other, as bytes.
class eigen_concat {
 public:
  eigen_concat(const any_match& m, std::uint32_t node, int threads) : threads_(threads) {
    const auto axis = static_cast<std::size_t>(m.attributes(node, ops::concat).axis);
    const std::uint32_t result = m.output_of(node);
    for (const std::uint32_t operand : m.inputs_of(node)) {
      const tensor_type& t = m.type_of(operand);
      std::int64_t length = static_cast<std::int64_t>(size_of(t.type));
      for (std::size_t i = axis; i < t.dims.size(); ++i) length *= t.dims[i];
      parts_.push_back({m.index_of(operand), length});
      row_ += length;
    }
    bytes_ = static_cast<std::int64_t>(m.type_of(result).bytes());
  }
  kernel make() && { return kernel("concat by copies", std::move(*this)); }

  void operator()(const kernel_call& call) const {
    // Each thread writes a range of the output's bytes, which may come from several operands.
    parallel_parts(threads_, bytes_, 64, 0.5, [&](std::int64_t first, std::int64_t last) {
      std::int64_t row = first / row_;
      std::int64_t at = first % row_;
      while (first < last) {
        std::int64_t begin = 0;
        for (const part& p : parts_) {
          if (at < begin + p.length && first < last) {
            const std::int64_t skip = at - begin;
            const std::int64_t count = std::min(p.length - skip, last - first);
            std::memcpy(static_cast<char*>(call.out[0]) + first,
                        static_cast<const char*>(call.in[p.argument]) + row * p.length + skip,
                        static_cast<std::size_t>(count));
            first += count;
            at += count;
          }
          begin += p.length;
        }
        ++row;
        at = 0;
      }
    });
  }

 private:
  struct part {
    std::size_t argument;
    std::int64_t length;  ///< bytes in each row
  };
  int threads_;
  std::vector<part> parts_;
  std::int64_t row_ = 0, bytes_ = 0;
};

}  // namespace
}  // namespace collage::inline v0::detail::host
