// Operators on the order of elements along an axis: triangles, reversed sequences, running sums, largest elements and
// their positions.
#pragma once

#include <collage/op/extents.hpp>
#include <collage/op/kind.hpp>
#include <cstddef>
#include <cstdint>

namespace collage::inline v0::ops {

struct trilu_attributes {
  bool upper = true;
  std::int64_t k = 0;  ///< the diagonal that bounds the triangle: 0 is the main one, positive ones are above it
  template <class Self, class Visitor>
  static constexpr void visit(Self& self, Visitor&& visitor) {
    visitor("upper", self.upper);
    visitor("k", self.k);
  }
};

/// trilu(x): the upper or lower triangle of the last two dimensions, including its diagonal; 0 elsewhere.
inline constexpr struct trilu : kind<trilu> {
  static constexpr char name[] = "trilu";
  static constexpr bool takes_small_types = true;
  static constexpr fusion_kind fusion = fusion_kind::injective;
  using attributes = trilu_attributes;

  static constexpr void normalise(attributes& a, list_view<const tensor_type> in) {
    if (in[0].rank() < 2) return;
    const std::int64_t rows = in[0].dims[in[0].rank() - 2];
    const std::int64_t columns = in[0].dims[in[0].rank() - 1];
    // All diagonals beyond a corner of the matrix have the same effect.
    if (rows >= 0 && a.k < -rows) a.k = -rows;
    if (columns >= 0 && a.k > columns) a.k = columns;
  }
  static constexpr verdict infer(const attributes&, auto& io) {
    if (io.in[0].rank() < 2) return {false, "its input must have at least two dimensions"};
    io.out[0] = io.in[0];
    return {};
  }
  static void reference(const attributes& a, const reference_call& call);
} trilu{};

struct reverse_sequence_attributes {
  std::int64_t batch_axis = 1;
  std::int64_t time_axis = 0;
  template <class Self, class Visitor>
  static constexpr void visit(Self& self, Visitor&& visitor) {
    visitor("batch_axis", self.batch_axis);
    visitor("time_axis", self.time_axis);
  }
};

/// reverse_sequence(x, lengths): for each index of the batch axis, reverses the first elements along the time axis.
/// `lengths` has their number, int32 or int64, from 0 to the extent of the time axis. Other elements stay as they are.
/// Any other length is an error in the reference; kernels take the nearest valid length.
inline constexpr struct reverse_sequence : kind<reverse_sequence> {
  static constexpr char name[] = "reverse_sequence";
  static constexpr bool takes_small_types = true;
  static constexpr fusion_kind fusion = fusion_kind::injective;
  static constexpr arity inputs{2, 2};
  using attributes = reverse_sequence_attributes;

  static constexpr void normalise(attributes& a, list_view<const tensor_type> in) {
    a.batch_axis = detail::wrap_axis(a.batch_axis, in[0].rank());
    a.time_axis = detail::wrap_axis(a.time_axis, in[0].rank());
  }
  static constexpr verdict infer(const attributes& a, auto& io) {
    const auto& x = io.in[0].dims;
    const auto& lengths = io.in[1];
    if (!detail::is_axis(a.batch_axis, x) || !detail::is_axis(a.time_axis, x) || a.batch_axis == a.time_axis)
      return {false, "its two axes must be different ones within the rank of its input"};
    if (lengths.type != dtype::i64 && lengths.type != dtype::i32)
      return {false, "its lengths must be int32 or int64", 1};
    const std::int64_t batch = x[static_cast<std::size_t>(a.batch_axis)];
    if (lengths.rank() != 1 || (batch >= 0 && lengths.dims[0] >= 0 && lengths.dims[0] != batch))
      return {false, "it must be given one length for each index of its batch axis", 1};
    io.out[0] = io.in[0];
    return {};
  }
  static void reference(const attributes& a, const reference_call& call);
} reverse_sequence{};

struct cumulative_sum_attributes {
  std::int64_t axis = 0;   ///< counted from the end if negative; stored non-negative
  bool exclusive = false;  ///< a sum leaves out the element at its own place
  bool reverse = false;    ///< sums from the end
  template <class Self, class Visitor>
  static constexpr void visit(Self& self, Visitor&& visitor) {
    visitor("axis", self.axis);
    visitor("exclusive", self.exclusive);
    visitor("reverse", self.reverse);
  }
};

/// cumulative_sum(x): the sums of the elements along an axis up to each place. Integers wrap around.
inline constexpr struct cumulative_sum : kind<cumulative_sum> {
  static constexpr char name[] = "cumulative_sum";
  static constexpr fusion_kind fusion = fusion_kind::opaque;
  using attributes = cumulative_sum_attributes;

  static constexpr void normalise(attributes& a, list_view<const tensor_type> in) {
    a.axis = detail::wrap_axis(a.axis, in[0].rank());
  }
  static constexpr verdict infer(const attributes& a, auto& io) {
    if (!detail::is_axis(a.axis, io.in[0].dims)) return {false, "its axis must be within the rank of its input"};
    io.out[0] = io.in[0];
    return {};
  }
  static constexpr work count(const attributes&, const auto& io) {
    return {static_cast<double>(io.in[0].dims.elements())};
  }
  static void reference(const attributes& a, const reference_call& call);
} cumulative_sum{};

struct top_k_attributes {
  std::int64_t k = 1;
  std::int64_t axis = -1;  ///< counted from the end if negative; stored non-negative
  bool largest = true;
  template <class Self, class Visitor>
  static constexpr void visit(Self& self, Visitor&& visitor) {
    visitor("k", self.k);
    visitor("axis", self.axis);
    visitor("largest", self.largest);
  }
};

/// top_k(x): the k largest or smallest elements along an axis, in that order, and their positions as int64. Among equal
/// elements the first comes first. NaN counts as larger than all numbers.
inline constexpr struct top_k : kind<top_k> {
  static constexpr char name[] = "top_k";
  static constexpr fusion_kind fusion = fusion_kind::opaque;
  static constexpr std::uint32_t outputs = 2;
  using attributes = top_k_attributes;

  static constexpr void normalise(attributes& a, list_view<const tensor_type> in) {
    a.axis = detail::wrap_axis(a.axis, in[0].rank());
  }
  static constexpr verdict infer(const attributes& a, auto& io) {
    if (!detail::is_axis(a.axis, io.in[0].dims)) return {false, "its axis must be within the rank of its input"};
    const auto axis = static_cast<std::size_t>(a.axis);
    const std::int64_t extent = io.in[0].dims[axis];
    if (a.k < 0 || (extent >= 0 && a.k > extent)) return {false, "its k must be within the extent of its axis"};
    shape y = io.in[0].dims;
    y[axis] = a.k;
    if (!detail::is_countable(y)) return {false, "its output is too large"};
    io.out[0] = {io.in[0].type, y};
    io.out[1] = {dtype::i64, y};
    return {};
  }
  static void reference(const attributes& a, const reference_call& call);
} top_k{};

struct arg_attributes {
  std::int64_t axis = 0;     ///< counted from the end if negative; stored non-negative
  bool keep_dims = true;     ///< the axis stays, with extent 1
  bool select_last = false;  ///< the last of equal elements, not the first
  template <class Self, class Visitor>
  static constexpr void visit(Self& self, Visitor&& visitor) {
    visitor("axis", self.axis);
    visitor("keep_dims", self.keep_dims);
    visitor("select_last", self.select_last);
  }
};

template <class Derived>
struct arg_kind : kind<Derived> {
  static constexpr fusion_kind fusion = fusion_kind::reduction;
  using attributes = arg_attributes;

  static constexpr void normalise(attributes& a, list_view<const tensor_type> in) {
    a.axis = detail::wrap_axis(a.axis, in[0].rank());
  }
  static constexpr verdict infer(const attributes& a, auto& io) {
    const auto& x = io.in[0].dims;
    if (!detail::is_axis(a.axis, x)) return {false, "its axis must be within the rank of its input"};
    shape y;
    bool empty = false;
    for (std::size_t i = 0; i < x.size(); ++i) {
      if (static_cast<std::int64_t>(i) != a.axis) y.push_back(x[i]);
      else if (a.keep_dims) y.push_back(1);
      empty = empty || (static_cast<std::int64_t>(i) != a.axis && x[i] == 0);
    }
    if (!empty && x[static_cast<std::size_t>(a.axis)] == 0) return {false, "an empty axis has no extreme element"};
    io.out[0] = {dtype::i64, y};
    return {};
  }
  static constexpr work count(const attributes&, const auto& io) {
    return {static_cast<double>(io.in[0].dims.elements())};
  }
};

/// arg_max(x): the position of the largest element along an axis, as int64. A NaN counts as the largest.
inline constexpr struct arg_max : arg_kind<arg_max> {
  static constexpr char name[] = "arg_max";
  static void reference(const attributes& a, const reference_call& call);
} arg_max{};

/// arg_min(x): the position of the smallest element along an axis, as int64. A NaN counts as the smallest.
inline constexpr struct arg_min : arg_kind<arg_min> {
  static constexpr char name[] = "arg_min";
  static void reference(const attributes& a, const reference_call& call);
} arg_min{};

}  // namespace collage::inline v0::ops
