// Resampling: nearest elements of any type, linear mixtures of float32.
#pragma once

#include <algorithm>
#include <collage/backends/impl/eigen_math.hpp>
#include <collage/backends/impl/eigen_reduce.hpp>
#include <collage/backends/impl/im2col.hpp>
#include <collage/backends/impl/team.hpp>
#include <collage/op/resize.hpp>
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

/// An output index's two neighbours in the input, and how much of the second is in it. Equal: a copy.
struct resize_source {
  std::int64_t low = 0, high = 0;
  float part = 0;
};

/// Floor of num / den for den > 0.
inline std::int64_t floor_divide(std::int64_t num, std::int64_t den) {
  return num >= 0 ? num / den : -((den - 1 - num) / den);
}

/// Where each output index lies among `in` elements. In whole numbers: halves must be halves.
inline std::vector<resize_source> resize_sources(const ops::resize_attributes& a, std::int64_t in, std::int64_t out) {
  using how = ops::resize_coordinates;
  std::vector<resize_source> list;
  for (std::int64_t o = 0; o < out; ++o) {
    if (in == out) {  // the identity in every mode
      list.push_back({o, o, 0});
      continue;
    }
    std::int64_t num = (2 * o + 1) * in - out;  // half_pixel
    std::int64_t den = 2 * out;
    if (a.coordinates == how::asymmetric) {
      num = o * in;
      den = out;
    } else if (a.coordinates == how::align_corners) {
      num = out == 1 ? 0 : o * (in - 1);
      den = out == 1 ? 1 : out - 1;
    } else if (a.coordinates == how::pytorch_half_pixel && out == 1) {
      num = 0;
      den = 1;
    }
    const std::int64_t below = floor_divide(num, den);
    if (a.mode == ops::resize_mode::linear) {
      if (num <= 0) list.push_back({0, 0, 0});
      else if (below >= in - 1) list.push_back({in - 1, in - 1, 0});
      else list.push_back({below, below + 1, static_cast<float>(num - below * den) / static_cast<float>(den)});
      continue;
    }
    std::int64_t nearest = below;
    switch (a.rounding) {
      case ops::resize_rounding::prefer_floor: nearest = -floor_divide(den - 2 * num, 2 * den); break;  // ceil(x - 1/2)
      case ops::resize_rounding::prefer_ceil: nearest = floor_divide(2 * num + den, 2 * den); break;  // floor(x + 1/2)
      case ops::resize_rounding::down: break;
      case ops::resize_rounding::up: nearest = -floor_divide(-num, den); break;
    }
    nearest = std::clamp<std::int64_t>(nearest, 0, in - 1);
    list.push_back({nearest, nearest, 0});
  }
  return list;
}

/// Row by row: an output row is one input row or a mixture of some, whose elements are then picked or mixed.
template <class Element>
class eigen_resize {
 public:
  eigen_resize(const any_match& m, std::uint32_t node, std::size_t argument, int threads)
      : argument_(argument), threads_(threads) {
    const ops::resize_attributes a = m.attributes(node, ops::resize);
    shape x = m.type_of(m.inputs_of(node)[0]).dims;
    shape y = m.type_of(m.output_of(node)).dims;
    if (y.empty()) x = y = {1};
    // Dimensions at the end that keep their extents move as one.
    while (y.size() > 1 && y[y.size() - 1] == x[x.size() - 1] && y[y.size() - 2] == x[x.size() - 2]) {
      for (shape* s : {&x, &y}) {
        s->extent[s->rank - 2] *= s->extent[s->rank - 1];
        --s->rank;
      }
    }
    in_row_ = x[x.size() - 1];
    out_row_ = y[y.size() - 1];
    for (std::size_t d = 0; d + 1 < y.size(); ++d) {
      out_.push_back(y[d]);
      in_.push_back(x[d]);
      outer_.push_back(resize_sources(a, x[d], y[d]));
    }
    inner_ = resize_sources(a, in_row_, out_row_);
    same_row_ = in_row_ == out_row_;
    bool doubles = out_row_ == 2 * in_row_ && a.mode == ops::resize_mode::nearest;
    for (std::int64_t i = 0; doubles && i < out_row_; ++i) doubles = inner_[static_cast<std::size_t>(i)].low == i / 2;
    doubles_ = doubles;
    linear_ = a.mode == ops::resize_mode::linear;
  }

  kernel make() && {
    const auto workspace = linear_ ? static_cast<std::size_t>(threads_ * round_up(in_row_, 16)) * sizeof(Element) : 0;
    return kernel(linear_ ? "linear rows" : "nearest rows", std::move(*this), workspace);
  }

  void operator()(const kernel_call& call) const {
    const std::int64_t rows = out_.elements();
    if (rows == 0 || out_row_ == 0) return;
    const std::int64_t parts = threads_ == 1 ? 1 : std::clamp<std::int64_t>(rows * out_row_ / 16384, 1, 4 * threads_);
    parallel(threads_, parts, [&](std::int64_t part, int thread) {
      Element* const memory = static_cast<Element*>(call.workspace) + thread * round_up(in_row_, 16);
      const Element* before = nullptr;  // the input row that the output row before came from, if from one alone
      for (std::int64_t row = rows * part / parts; row < rows * (part + 1) / parts; ++row)
        before = run_row(call, row, before, memory);
    });
  }

 private:
  const Element* run_row(const kernel_call& call, std::int64_t row, const Element* before, Element* memory) const {
    const Element* const in = static_cast<const Element*>(call.in[argument_]);
    Element* const out = static_cast<Element*>(call.out[0]) + row * out_row_;
    if constexpr (std::is_same_v<Element, float>)
      if (linear_) return mix_row(in, row, memory, out), nullptr;
    std::int64_t source = 0;
    std::int64_t rest = row;
    std::int64_t step = 1;
    for (std::size_t d = out_.size(); d-- > 0; rest /= out_[d], step *= in_[d])
      source += outer_[d][static_cast<std::size_t>(rest % out_[d])].low * step;
    const Element* const from = in + source * in_row_;
    if (same_row_) std::memcpy(out, from, static_cast<std::size_t>(out_row_) * sizeof(Element));
    else if (from == before) std::memcpy(out, out - out_row_, static_cast<std::size_t>(out_row_) * sizeof(Element));
    else if (doubles_)
      for (std::int64_t i = 0; i < in_row_; ++i) out[2 * i] = out[2 * i + 1] = from[i];
    else
      for (std::int64_t i = 0; i < out_row_; ++i) out[i] = from[inner_[static_cast<std::size_t>(i)].low];
    return from;
  }

  /// Adds up to two rows for each outer dimension, by their share; then mixes along the row.
  void mix_row(const float* in, std::int64_t row, float* memory, float* out) const {
    const resize_source* at[shape::max_rank] = {};
    std::int64_t steps[shape::max_rank] = {};
    std::int64_t rest = row;
    std::int64_t step = in_row_;
    for (std::size_t d = out_.size(); d-- > 0; rest /= out_[d], step *= in_[d]) {
      at[d] = &outer_[d][static_cast<std::size_t>(rest % out_[d])];
      steps[d] = step;
    }
    array_map mixed(memory, in_row_);
    bool first = true;
    for (std::size_t choice = 0; choice < std::size_t{1} << out_.size(); ++choice) {
      float share = 1;
      std::int64_t source = 0;
      bool counts = true;
      for (std::size_t d = 0; d < out_.size(); ++d) {
        const bool high = (choice >> d & 1U) != 0;
        counts = counts && !(high && at[d]->low == at[d]->high);
        if (at[d]->low != at[d]->high) share *= high ? at[d]->part : 1.0F - at[d]->part;
        source += (high ? at[d]->high : at[d]->low) * steps[d];
      }
      if (!counts) continue;
      if (first) mixed = share * const_array_map(in + source, in_row_);
      else mixed += share * const_array_map(in + source, in_row_);
      first = false;
    }
    for (std::int64_t i = 0; i < out_row_; ++i) {
      const resize_source& s = inner_[static_cast<std::size_t>(i)];
      out[i] = s.low == s.high ? memory[s.low] : (1.0F - s.part) * memory[s.low] + s.part * memory[s.high];
    }
  }

  std::size_t argument_;
  int threads_;
  shape out_, in_;  ///< all dimensions but the innermost
  std::int64_t in_row_ = 1, out_row_ = 1;
  std::vector<std::vector<resize_source>> outer_;
  std::vector<resize_source> inner_;
  bool same_row_ = false, doubles_ = false, linear_ = false;
};

}  // namespace
}  // namespace collage::inline v0::detail::host
