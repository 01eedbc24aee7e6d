// Operators that read or write at positions from an operand: gathers and scatters.
//
// Indices are int32 or int64, and negative ones count from the end. An index that is still out of range is an error in
// the reference. Kernels cannot throw: they take the nearest element in range, and never touch memory outside.
#pragma once

#include <collage/op/extents.hpp>
#include <collage/op/kind.hpp>
#include <cstddef>
#include <cstdint>

namespace collage::inline v0 {

namespace detail {

constexpr bool is_index_type(dtype type) { return type == dtype::i32 || type == dtype::i64; }

/// The rules for the indices of scatters and gathers along an axis. They have as many dimensions as the data, and no
/// larger extent except along the axis.
constexpr verdict check_element_indices(const shape& data, const tensor_type& indices, std::int64_t axis) {
  if (!is_axis(axis, data)) return {false, "its axis must be within the rank of its data"};
  if (!is_index_type(indices.type)) return {false, "its indices must be int32 or int64", 1};
  if (indices.rank() != data.rank) return {false, "its indices must have as many dimensions as its data", 1};
  for (std::size_t i = 0; i < data.rank; ++i) {
    const std::int64_t extent = indices.dims[i];
    if (static_cast<std::int64_t>(i) != axis && data[i] >= 0 && extent > data[i])
      return {false, "its indices must not be larger than its data except along its axis", 1};
  }
  return {};
}

}  // namespace detail

namespace ops {

struct axis_attributes {
  std::int64_t axis = 0;  ///< counted from the end if negative; stored non-negative
  template <class Self, class Visitor>
  static constexpr void visit(Self& self, Visitor&& visitor) {
    visitor("axis", self.axis);
  }
};

/// gather(x, indices): slices of x along an axis. The dimensions of the indices replace the axis.
inline constexpr struct gather : kind<gather> {
  static constexpr char name[] = "gather";
  static constexpr bool takes_small_types = true;
  static constexpr fusion_kind fusion = fusion_kind::injective;
  static constexpr arity inputs{2, 2};
  using attributes = axis_attributes;

  static constexpr void normalise(attributes& a, list_view<const tensor_type> in) {
    a.axis = detail::wrap_axis(a.axis, in[0].rank());
  }
  static constexpr verdict infer(const attributes& a, auto& io) {
    const auto& x = io.in[0].dims;
    const auto& indices = io.in[1].dims;
    if (!detail::is_axis(a.axis, x)) return {false, "its axis must be within the rank of its data"};
    if (!detail::is_index_type(io.in[1].type)) return {false, "its indices must be int32 or int64", 1};
    if (x.size() - 1 + indices.size() > shape::max_rank) return {false, "its output would have more than 8 dimensions"};
    shape y;
    for (std::size_t i = 0; i < x.size(); ++i) {
      if (static_cast<std::int64_t>(i) != a.axis) y.push_back(x[i]);
      else
        for (const std::int64_t extent : indices) y.push_back(extent);
    }
    if (!detail::is_countable(y)) return {false, "its output is too large"};
    io.out[0] = {io.in[0].type, y};
    return {};
  }
  static void reference(const attributes& a, const reference_call& call);
} gather{};

/// gather_elements(x, indices): each index picks an element of x along the axis. In all other dimensions the element
/// has the position of the index.
inline constexpr struct gather_elements : kind<gather_elements> {
  static constexpr char name[] = "gather_elements";
  static constexpr bool takes_small_types = true;
  static constexpr fusion_kind fusion = fusion_kind::injective;
  static constexpr arity inputs{2, 2};
  using attributes = axis_attributes;

  static constexpr void normalise(attributes& a, list_view<const tensor_type> in) {
    a.axis = detail::wrap_axis(a.axis, in[0].rank());
  }
  static constexpr verdict infer(const attributes& a, auto& io) {
    if (verdict v = detail::check_element_indices(io.in[0].dims, io.in[1], a.axis); !v) return v;
    if (!detail::is_countable(io.in[1].dims)) return {false, "its output is too large"};
    io.out[0] = {io.in[0].type, io.in[1].dims};
    return {};
  }
  static void reference(const attributes& a, const reference_call& call);
} gather_elements{};

struct gather_nd_attributes {
  std::int64_t batch_dims = 0;  ///< leading dimensions that x and the indices share
  template <class Self, class Visitor>
  static constexpr void visit(Self& self, Visitor&& visitor) {
    visitor("batch_dims", self.batch_dims);
  }
};

/// gather_nd(x, indices): the last dimension of the indices holds positions in the dimensions of x after the shared
/// ones. The dimensions of x after those positions are copied whole.
inline constexpr struct gather_nd : kind<gather_nd> {
  static constexpr char name[] = "gather_nd";
  static constexpr bool takes_small_types = true;
  static constexpr fusion_kind fusion = fusion_kind::injective;
  static constexpr arity inputs{2, 2};
  using attributes = gather_nd_attributes;

  static constexpr verdict infer(const attributes& a, auto& io) {
    const auto& x = io.in[0].dims;
    const auto& indices = io.in[1].dims;
    if (!detail::is_index_type(io.in[1].type)) return {false, "its indices must be int32 or int64", 1};
    if (indices.empty()) return {false, "its indices must not be a scalar", 1};
    if (a.batch_dims < 0 || a.batch_dims >= static_cast<std::int64_t>(indices.size()) ||
        a.batch_dims > static_cast<std::int64_t>(x.size()))
      return {false, "its number of shared dimensions must be within the ranks of its operands"};
    const auto shared = static_cast<std::size_t>(a.batch_dims);
    const std::int64_t depth = indices[indices.size() - 1];
    if (depth < 0) return {false, "the length of its indices must be known", 1};
    if (depth > static_cast<std::int64_t>(x.size()) - a.batch_dims)
      return {false, "its indices must not be longer than its data has dimensions", 1};
    for (std::size_t i = 0; i < shared; ++i)
      if (!detail::may_equal(x[i], indices[i])) return {false, "its operands must agree in the shared dimensions", 1};
    const std::size_t copied = shared + static_cast<std::size_t>(depth);
    if (indices.size() - 1 + x.size() - copied > shape::max_rank)
      return {false, "its output would have more than 8 dimensions"};
    shape y;
    for (std::size_t i = 0; i + 1 < indices.size(); ++i) y.push_back(i < shared && x[i] >= 0 ? x[i] : indices[i]);
    for (std::size_t i = copied; i < x.size(); ++i) y.push_back(x[i]);
    if (!detail::is_countable(y)) return {false, "its output is too large"};
    io.out[0] = {io.in[0].type, y};
    return {};
  }
  static void reference(const attributes& a, const reference_call& call);
} gather_nd{};

/// How a scatter treats the element that it writes to: it replaces the element, or combines the update with it.
/// Booleans are added by "or" and multiplied by "and".
enum class scatter_reduction : std::uint8_t { none = 0, sum = 1, product = 2, largest = 3, smallest = 4 };

struct scatter_elements_attributes {
  std::int64_t axis = 0;  ///< counted from the end if negative; stored non-negative
  scatter_reduction reduction = scatter_reduction::none;
  template <class Self, class Visitor>
  static constexpr void visit(Self& self, Visitor&& visitor) {
    visitor("axis", self.axis);
    visitor("reduction", self.reduction);
  }
};

/// scatter_elements(x, indices, updates): x with updates. Each update goes to the element that gather_elements would
/// read with its index. Updates of the same element apply in order: without a reduction the last update stays.
inline constexpr struct scatter_elements : kind<scatter_elements> {
  static constexpr char name[] = "scatter_elements";
  static constexpr bool takes_small_types = true;
  static constexpr fusion_kind fusion = fusion_kind::opaque;
  static constexpr arity inputs{3, 3};
  using attributes = scatter_elements_attributes;

  static constexpr void normalise(attributes& a, list_view<const tensor_type> in) {
    a.axis = detail::wrap_axis(a.axis, in[0].rank());
  }
  static constexpr verdict infer(const attributes& a, auto& io) {
    const auto& updates = io.in[2];
    if (a.reduction > scatter_reduction::smallest) return {false, "its reduction must be none, add, mul, max or min"};
    if (a.reduction != scatter_reduction::none && is_small(io.in[0].type))
      return {false, "its element type is only stored and moved, so it must not have a reduction", 0};
    if (verdict v = detail::check_element_indices(io.in[0].dims, io.in[1], a.axis); !v) return v;
    if (updates.type != io.in[0].type) return {false, "its updates must have its data's type", 2};
    if (updates.rank() != io.in[1].rank()) return {false, "its updates must have the shape of its indices", 2};
    for (std::size_t i = 0; i < updates.rank(); ++i)
      if (!detail::may_equal(updates.dims[i], io.in[1].dims[i]))
        return {false, "its updates must have the shape of its indices", 2};
    io.out[0] = io.in[0];
    return {};
  }
  static void reference(const attributes& a, const reference_call& call);
} scatter_elements{};

struct scatter_nd_attributes {
  scatter_reduction reduction = scatter_reduction::none;
  template <class Self, class Visitor>
  static constexpr void visit(Self& self, Visitor&& visitor) {
    visitor("reduction", self.reduction);
  }
};

/// scatter_nd(x, indices, updates): x with updated slices. Each update goes where gather_nd, without shared dimensions,
/// would read with its indices. Updates apply in order, as in scatter_elements.
inline constexpr struct scatter_nd : kind<scatter_nd> {
  static constexpr char name[] = "scatter_nd";
  static constexpr bool takes_small_types = true;
  static constexpr fusion_kind fusion = fusion_kind::opaque;
  static constexpr arity inputs{3, 3};
  using attributes = scatter_nd_attributes;

  static constexpr verdict infer(const attributes& a, auto& io) {
    const auto& x = io.in[0].dims;
    const auto& indices = io.in[1].dims;
    const auto& updates = io.in[2].dims;
    if (a.reduction > scatter_reduction::smallest) return {false, "its reduction must be none, add, mul, max or min"};
    if (a.reduction != scatter_reduction::none && is_small(io.in[0].type))
      return {false, "its element type is only stored and moved, so it must not have a reduction", 0};
    if (!detail::is_index_type(io.in[1].type)) return {false, "its indices must be int32 or int64", 1};
    if (indices.empty()) return {false, "its indices must not be a scalar", 1};
    const std::int64_t depth = indices[indices.size() - 1];
    if (depth < 0) return {false, "the length of its indices must be known", 1};
    if (depth > static_cast<std::int64_t>(x.size()))
      return {false, "its indices must not be longer than its data has dimensions", 1};
    if (io.in[2].type != io.in[0].type) return {false, "its updates must have its data's type", 2};
    const auto skipped = static_cast<std::size_t>(depth);
    bool fits = updates.size() == indices.size() - 1 + x.size() - skipped;
    for (std::size_t i = 0; fits && i < updates.size(); ++i)
      fits = detail::may_equal(updates[i], i + 1 < indices.size() ? indices[i] : x[i + 1 - indices.size() + skipped]);
    if (!fits) return {false, "its updates must have one slice of its data for each of its indices", 2};
    io.out[0] = io.in[0];
    return {};
  }
  static void reference(const attributes& a, const reference_call& call);
} scatter_nd{};

}  // namespace ops
}  // namespace collage::inline v0
