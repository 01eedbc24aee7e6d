// Operators that copy part of a tensor, or copy it several times: slice, expand, tile, pad.
#pragma once

#include <collage/op/extents.hpp>
#include <collage/op/kind.hpp>
#include <cstddef>
#include <cstdint>

namespace collage::inline v0::ops {

/// Each list has one entry per dimension of the input. Equal slices must have equal encoded attributes. So a step is
/// stored as 1 if at most one element is taken, and a start as 0 if none is taken.
struct slice_attributes {
  shape starts{};
  shape steps{};    ///< not 0; a negative step goes backwards
  shape extents{};  ///< the output's
  template <class Self, class Visitor>
  static constexpr void visit(Self& self, Visitor&& visitor) {
    visitor("starts", self.starts);
    visitor("steps", self.steps);
    visitor("extents", self.extents);
  }
};

/// slice(x): output index o is input index starts + o * steps in every dimension. No such index may be outside the
/// input.
inline constexpr struct slice : kind<slice> {
  static constexpr char name[] = "slice";
  static constexpr bool takes_small_types = true;
  static constexpr fusion_kind fusion = fusion_kind::injective;
  using attributes = slice_attributes;

  static constexpr void normalise(attributes& a, list_view<const tensor_type>) {
    for (std::uint32_t i = 0; i < a.extents.rank; ++i) {
      const std::int64_t extent = a.extents.extent[i];
      if (extent != 0 && extent != 1) continue;
      if (i < a.steps.rank && a.steps.extent[i] != 0) a.steps.extent[i] = 1;
      if (i < a.starts.rank && extent == 0) a.starts.extent[i] = 0;
    }
  }
  static constexpr verdict infer(const attributes& a, auto& io) {
    const auto& x = io.in[0].dims;
    if (a.starts.rank != x.rank || a.steps.rank != x.rank || a.extents.rank != x.rank)
      return {false, "its starts, steps and extents must have one entry per dimension of its input"};
    for (std::uint32_t i = 0; i < x.rank; ++i) {
      const std::int64_t start = a.starts.extent[i], step = a.steps.extent[i], extent = a.extents.extent[i];
      if (step == 0) return {false, "its steps must not be 0"};
      if (extent < 0) return {false, "its extents must not be negative"};
      if (extent == 0) continue;
      const std::int64_t last = x.extent[i] >= 0 ? x.extent[i] - 1 : INT64_MAX;
      if (start < 0 || start > last) return {false, "its starts must be within its input"};
      // Negates the quotient, since the lowest step has no opposite. With that step the quotient is 0.
      const std::int64_t room = step > 0 ? (last - start) / step : -(start / step);
      if (extent - 1 > room) return {false, "its last element must be within its input"};
    }
    if (!detail::is_countable(a.extents)) return {false, "its output is too large"};
    io.out[0] = {io.in[0].type, a.extents};
    return {};
  }
  static void reference(const attributes& a, const reference_call& call);
} slice{};

/// Stored as the output's shape if the input's shape is known.
struct expand_attributes {
  shape dims{};
  template <class Self, class Visitor>
  static constexpr void visit(Self& self, Visitor&& visitor) {
    visitor("dims", self.dims);
  }
};

/// expand(x): repeats x along extents of 1 and along new leading dimensions. The output's shape is that of x and a
/// tensor of `dims` together, by numpy's broadcasting.
inline constexpr struct expand : kind<expand> {
  static constexpr char name[] = "expand";
  static constexpr bool takes_small_types = true;
  static constexpr fusion_kind fusion = fusion_kind::injective;
  using attributes = expand_attributes;

  static constexpr void normalise(attributes& a, list_view<const tensor_type> in) {
    for (const std::int64_t extent : in[0].dims)
      if (extent < 0) return;
    for (const std::int64_t extent : a.dims)
      if (extent < 0) return;
    bool fits = true;
    const shape together = detail::broadcast(in[0].dims, a.dims, fits);
    if (fits) a.dims = together;
  }
  static constexpr verdict infer(const attributes& a, auto& io) {
    for (const std::int64_t extent : a.dims)
      if (extent < 0) return {false, "its extents must not be negative"};
    bool fits = true;
    const shape together = detail::broadcast(io.in[0].dims, a.dims, fits);
    if (!fits) return {false, "its input must fit the shape that it is expanded to"};
    if (!detail::is_countable(together)) return {false, "its output is too large"};
    io.out[0] = {io.in[0].type, together};
    return {};
  }
  static void reference(const attributes& a, const reference_call& call);
} expand{};

struct tile_attributes {
  shape repeats{};  ///< one entry per dimension of the input
  template <class Self, class Visitor>
  static constexpr void visit(Self& self, Visitor&& visitor) {
    visitor("repeats", self.repeats);
  }
};

/// tile(x): repeats x in every dimension.
inline constexpr struct tile : kind<tile> {
  static constexpr char name[] = "tile";
  static constexpr bool takes_small_types = true;
  static constexpr fusion_kind fusion = fusion_kind::injective;
  using attributes = tile_attributes;

  static constexpr verdict infer(const attributes& a, auto& io) {
    const auto& x = io.in[0].dims;
    if (a.repeats.size() != x.size()) return {false, "its repeats must have one entry per dimension of its input"};
    shape y;
    for (std::size_t i = 0; i < x.size(); ++i) {
      if (a.repeats[i] < 0) return {false, "its repeats must not be negative"};
      if (x[i] > 0 && a.repeats[i] > detail::most_elements / x[i]) return {false, "its output is too large"};
      y.push_back(x[i] >= 0 ? x[i] * a.repeats[i] : a.repeats[i] == 0 ? 0 : unknown);
    }
    if (!detail::is_countable(y)) return {false, "its output is too large"};
    io.out[0] = {io.in[0].type, y};
    return {};
  }
  static void reference(const attributes& a, const reference_call& call);
} tile{};

/// The elements outside the input. They are a value; the input mirrored at its end elements, which are not repeated;
/// its nearest element; or the input continued periodically.
enum class pad_mode : std::uint8_t { constant = 0, reflect = 1, edge = 2, wrap = 3 };

/// Each list has one entry per dimension of the input. Negative pads cut off elements. Pads at the other end then
/// mirror, repeat or wrap only the elements that are left.
struct pad_attributes {
  shape pads_begin{};
  shape pads_end{};
  pad_mode mode = pad_mode::constant;
  template <class Self, class Visitor>
  static constexpr void visit(Self& self, Visitor&& visitor) {
    visitor("pads_begin", self.pads_begin);
    visitor("pads_end", self.pads_end);
    visitor("mode", self.mode);
  }
};

/// pad(x[, value]): x with elements added at both ends of its dimensions. `value` is one element of x's type, for the
/// mode `constant`; if left out it is 0. If a pad is longer than the input, mirroring continues back and forth.
inline constexpr struct pad : kind<pad> {
  static constexpr char name[] = "pad";
  static constexpr bool takes_small_types = true;
  static constexpr fusion_kind fusion = fusion_kind::injective;
  static constexpr arity inputs{1, 2};
  using attributes = pad_attributes;

  static constexpr verdict infer(const attributes& a, auto& io) {
    const auto& x = io.in[0].dims;
    if (a.mode > pad_mode::wrap) return {false, "its mode must be constant, reflect, edge or wrap"};
    if (a.pads_begin.size() != x.size() || a.pads_end.size() != x.size())
      return {false, "its pads must have one entry per dimension of its input at each end"};
    if (io.in.size() == 2) {
      if (a.mode != pad_mode::constant) return {false, "only a constant padding takes a value", 1};
      if (io.in[1].type != io.in[0].type || !detail::is_one_element(io.in[1].dims))
        return {false, "its value must be one element of its input's type", 1};
    }
    shape y;
    for (std::size_t i = 0; i < x.size(); ++i) {
      constexpr std::int64_t most = detail::most_elements;
      const std::int64_t before = a.pads_begin[i];
      const std::int64_t behind = a.pads_end[i];
      if (before > most || before < -most || behind > most || behind < -most || x[i] > most)
        return {false, "its output is too large"};
      if (x[i] < 0) {
        y.push_back(unknown);
        continue;
      }
      const std::int64_t extent = before + x[i] + behind;
      if (extent < 0) return {false, "its negative pads must not remove more elements than the input has"};
      const std::int64_t left = x[i] + (before < 0 ? before : 0) + (behind < 0 ? behind : 0);
      if (a.mode != pad_mode::constant && extent > 0 && left <= 0)
        return {false, "an empty dimension can only be padded with a constant"};
      y.push_back(extent);
    }
    if (!detail::is_countable(y)) return {false, "its output is too large"};
    io.out[0] = {io.in[0].type, y};
    return {};
  }
  static void reference(const attributes& a, const reference_call& call);
} pad{};

}  // namespace collage::inline v0::ops
