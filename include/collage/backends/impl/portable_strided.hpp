// Copies between tensors with arbitrary steps: the work of transposing, slicing, tiling and concatenating.
#pragma once

#include <algorithm>
#include <collage/backends/impl/team.hpp>
#include <collage/dtype.hpp>
#include <collage/shape.hpp>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

namespace collage::inline v0::detail::host {
namespace {

/// One dimension of a copy: its extent, and the step in either tensor, in elements.
struct copied_dimension {
  std::int64_t extent = 1, in = 0, out = 0;
};

/// A position in both tensors. It advances by counting, since dividing costs more than copying a short run.
class copy_walk {
 public:
  copy_walk(std::span<const copied_dimension> dims, std::int64_t index) : dims_(dims) {
    for (std::size_t d = dims_.size(); d-- > 0; index /= dims_[d].extent) {
      at_[d] = index % dims_[d].extent;
      in_ += at_[d] * dims_[d].in;
      out_ += at_[d] * dims_[d].out;
    }
  }
  std::int64_t in() const { return in_; }
  std::int64_t out() const { return out_; }
  void next() {
    for (std::size_t d = dims_.size(); d-- > 0;) {
      in_ += dims_[d].in;
      out_ += dims_[d].out;
      if (++at_[d] < dims_[d].extent) return;
      in_ -= at_[d] * dims_[d].in;
      out_ -= at_[d] * dims_[d].out;
      at_[d] = 0;
    }
  }

 private:
  std::span<const copied_dimension> dims_;
  std::int64_t at_[2 * shape::max_rank] = {};
  std::int64_t in_ = 0, out_ = 0;
};

/// Calls memcpy only where there is enough to copy.
template <class Element>
void copy_elements(const Element* from, std::int64_t count, Element* to) {
  if (count * static_cast<std::int64_t>(sizeof(Element)) >= 64)
    std::memcpy(to, from, static_cast<std::size_t>(count) * sizeof(Element));
  else
    for (std::int64_t i = 0; i < count; ++i) to[i] = from[i];
}

/// Any copy with steps. Dimensions are given in order of falling steps of the output. Adjacent dimensions that both
/// tensors traverse with one step are merged. The copy goes by runs of the innermost dimension. Where the input is
/// contiguous along another dimension than the output, the copy transposes blocks of these two.
template <class Element>
class strided_copy {
 public:
  strided_copy(std::span<const copied_dimension> dims, int threads) : threads_(threads) {
    for (const copied_dimension& d : dims) {
      if (d.extent == 0) columns_.extent = 0;
      if (d.extent == 0) return;
      if (d.extent == 1) continue;
      if (!outer_.empty() && outer_.back().in == d.in * d.extent && outer_.back().out == d.out * d.extent)
        outer_.back() = {outer_.back().extent * d.extent, d.in, d.out};
      else outer_.push_back(d);
    }
    columns_ = {1, 1, 1};
    if (!outer_.empty()) {
      columns_ = outer_.back();
      outer_.pop_back();
    }
    if (columns_.in != 0 && columns_.in != 1 && columns_.out == 1) {
      const auto neighbours = std::find_if(outer_.begin(), outer_.end(), [](const auto& d) { return d.in == 1; });
      if (neighbours != outer_.end()) {
        rows_ = *neighbours;
        outer_.erase(neighbours);
      }
    }
    for (const copied_dimension& d : outer_) count_ *= d.extent;
  }

  void operator()(const Element* in, Element* out) const {
    if (columns_.extent == 0) return;
    if (rows_.extent > 1) transpose_blocks(in, out);
    else copy_runs(in, out);
  }

 private:
  static constexpr std::int64_t longest_run = 16384 / static_cast<std::int64_t>(sizeof(Element));
  /// A cache line, in either direction.
  static constexpr std::int64_t tile = std::min<std::int64_t>(64 / static_cast<std::int64_t>(sizeof(Element)), 32);
  static constexpr std::int64_t rows_at_once = 16 * tile;

  static std::int64_t parts(std::int64_t count, std::int64_t most) { return (count + most - 1) / most; }

  /// Calls body(piece, in, out) for each piece of each element of the outer dimensions, in parallel.
  template <class Body>
  void for_each(std::int64_t pieces, double cost, const Body& body) const {
    parallel_parts(threads_, count_ * pieces, 1, cost, [&](std::int64_t first, std::int64_t last) {
      copy_walk walk(outer_, first / pieces);
      std::int64_t piece = first % pieces;
      for (std::int64_t i = first; i < last; ++i) {
        body(piece, walk.in(), walk.out());
        if (++piece < pieces) continue;
        piece = 0;
        walk.next();
      }
    });
  }

  void copy_runs(const Element* in, Element* out) const {
    const auto [extent, in_step, out_step] = columns_;
    const double cost = static_cast<double>(std::min(extent, longest_run) + 16);
    for_each(parts(extent, longest_run), cost, [&](std::int64_t piece, std::int64_t in_at, std::int64_t out_at) {
      const std::int64_t first = piece * longest_run;
      const std::int64_t count = std::min(extent - first, longest_run);
      const Element* const from = in + in_at + first * in_step;
      Element* const to = out + out_at + first * out_step;
      if (out_step != 1)
        for (std::int64_t i = 0; i < count; ++i) to[i * out_step] = from[i * in_step];
      else if (in_step == 1) copy_elements(from, count, to);
      else if (in_step == 0) std::fill_n(to, count, *from);
      else
        for (std::int64_t i = 0; i < count; ++i) to[i] = from[i * in_step];
    });
  }

  void transpose_blocks(const Element* in, Element* out) const {
    const std::int64_t across = parts(columns_.extent, tile);
    const std::int64_t down = parts(rows_.extent, rows_at_once);
    const double cost =
        2.0 * static_cast<double>(std::min(columns_.extent, tile) * std::min(rows_.extent, rows_at_once));
    for_each(across * down, cost, [&](std::int64_t piece, std::int64_t in_at, std::int64_t out_at) {
      const std::int64_t column = piece % across * tile;
      const std::int64_t first = piece / across * rows_at_once;
      const std::int64_t last = std::min(first + rows_at_once, rows_.extent);
      const std::int64_t columns = std::min(tile, columns_.extent - column);
      for (std::int64_t row = first; row < last; row += tile) {
        const Element* const from = in + in_at + column * columns_.in + row;
        Element* const to = out + out_at + row * rows_.out + column;
        const std::int64_t rows = std::min(tile, last - row);
        if (columns == tile && rows == tile) transpose_tile(from, to);
        else
          for (std::int64_t r = 0; r < rows; ++r)
            for (std::int64_t c = 0; c < columns; ++c) to[r * rows_.out + c] = from[c * columns_.in + r];
      }
    });
  }

  /// Reads whole cache lines into a local block, and writes whole lines from there.
  void transpose_tile(const Element* from, Element* to) const {
    Element block[tile][tile];
    for (std::int64_t c = 0; c < tile; ++c) std::memcpy(block[c], from + c * columns_.in, sizeof(block[c]));
    for (std::int64_t r = 0; r < tile; ++r)
      for (std::int64_t c = 0; c < tile; ++c) to[r * rows_.out + c] = block[c][r];
  }

  int threads_;
  std::vector<copied_dimension> outer_;
  std::int64_t count_ = 1;    ///< elements of all outer dimensions together
  copied_dimension columns_;  ///< the output's innermost dimension
  copied_dimension rows_;     ///< the dimension along which the input is contiguous, where blocks are transposed
};

/// The steps of a dense tensor.
inline shape steps_of_dense(const shape& dims) {
  shape steps = shape::filled(dims.size(), 1);
  for (std::size_t i = dims.size(); i-- > 1;) steps[i - 1] = steps[i] * dims[i];
  return steps;
}

/// Calls body with an unsigned zero of the element's size: code that only moves elements need not know their type.
template <class Body>
auto with_moved_type(dtype type, const Body& body) {
  switch (size_of(type)) {
    case 1: return body(std::uint8_t{});
    case 2: return body(std::uint16_t{});
    case 4: return body(std::uint32_t{});
    default: return body(std::uint64_t{});
  }
}

}  // namespace
}  // namespace collage::inline v0::detail::host
