// Operators that move elements without computing: reshape, transpose, concat.
#pragma once

#include <collage/op/extents.hpp>
#include <collage/op/kind.hpp>

namespace collage::inline v0::ops {

/// One extent may be -1: it follows from the others. An extent of 0 copies the input's unless `allow_zero`, as in ONNX.
/// With a second operand the target is that operand's value, and `dims` is empty.
struct reshape_attributes {
  shape dims{};
  bool allow_zero = false;
  template <class Self, class Visitor>
  static constexpr void visit(Self& self, Visitor&& visitor) {
    visitor("dims", self.dims);
    visitor("allow_zero", self.allow_zero);
  }
};

/// reshape(x[, dims]): the same elements in the same order. In an engine it is a view, not a kernel.
inline constexpr struct reshape : kind<reshape> {
  static constexpr char name[] = "reshape";
  static constexpr bool takes_small_types = true;
  static constexpr fusion_kind fusion = fusion_kind::injective;
  static constexpr arity inputs{1, 2};
  using attributes = reshape_attributes;

  static constexpr void normalise(attributes& a, list_view<const tensor_type>) {
    // Without an extent of 0 in the target the flag has no effect. Equal reshapes must have equal encoded attributes.
    if (!a.allow_zero || a.dims.empty()) return;
    bool has_zero = false;
    for (std::int64_t extent : a.dims) has_zero = has_zero || extent == 0;
    a.allow_zero = has_zero;
  }
  static constexpr verdict infer(const attributes& a, auto& io) {
    shape target = a.dims;
    if (io.in.size() == 2) {
      if (io.in[1].type != dtype::i64 || io.in[1].rank() != 1)
        return {false, "its target shape must be a list of int64", 1};
      const list_view<const std::int64_t> list = io.integers(1);
      const std::int64_t rank = io.in[1].dims[0];
      if (rank > static_cast<std::int64_t>(shape::max_rank))
        return {false, "its target shape has more than 8 dimensions", 1};
      if (rank < 0) return {false, "the length of its target shape must be known", 1};
      target = list.size() == static_cast<std::size_t>(rank)
                   ? shape(list)
                   : shape::filled(static_cast<std::size_t>(rank), unknown - 1);
    }
    const auto& x = io.in[0].dims;
    if (!detail::is_countable(x)) return {false, "its input is too large"};
    const std::int64_t total = x.elements();
    std::int64_t rest = -1;  // the dimension whose extent is -1
    std::int64_t known_part = 1;
    bool symbolic = false;
    for (std::uint32_t i = 0; i < target.rank; ++i) {
      std::int64_t& extent = target.extent[i];
      if (extent == -1) {
        if (rest >= 0) return {false, "at most one extent of its target shape may be -1"};
        rest = i;
        continue;
      }
      if (extent == 0 && !a.allow_zero) {
        if (i >= x.rank) return {false, "its target shape copies an extent that its input does not have"};
        extent = x.extent[i];
      }
      if (extent < 0) {
        symbolic = true;
        continue;
      }
      if (extent > 0 && known_part > detail::most_elements / extent) return {false, "its target shape is too large"};
      known_part *= extent;
    }
    if (rest >= 0) {
      if (!symbolic && total >= 0 && (known_part == 0 || total % known_part != 0))
        return {false, "its target shape must hold as many elements as its input"};
      target.extent[rest] = symbolic || total < 0 ? unknown : total / known_part;
    } else if (!symbolic && total >= 0 && known_part != total) {
      return {false, "its target shape must hold as many elements as its input"};
    }
    if (!detail::is_countable(target)) return {false, "its target shape is too large"};
    io.out[0] = {io.in[0].type, target};
    return {};
  }
  static void reference(const attributes& a, const reference_call& call);
} reshape{};

/// An empty permutation reverses the dimensions.
struct transpose_attributes {
  shape permutation{};  ///< output dimension i is input dimension permutation[i]
  template <class Self, class Visitor>
  static constexpr void visit(Self& self, Visitor&& visitor) {
    visitor("permutation", self.permutation);
  }
};

inline constexpr struct transpose : kind<transpose> {
  static constexpr char name[] = "transpose";
  static constexpr bool takes_small_types = true;
  static constexpr fusion_kind fusion = fusion_kind::injective;
  using attributes = transpose_attributes;

  static constexpr void normalise(attributes& a, list_view<const tensor_type> in) {
    if (!a.permutation.empty()) return;
    for (std::size_t i = in[0].rank(); i > 0; --i) a.permutation.push_back(static_cast<std::int64_t>(i - 1));
  }
  static constexpr verdict infer(const attributes& a, auto& io) {
    const auto& x = io.in[0].dims;
    if (a.permutation.size() != x.rank) return {false, "its permutation must name every dimension of its input once"};
    std::uint32_t seen = 0;
    tensor_type& y = io.out[0];
    y = io.in[0];
    for (std::uint32_t i = 0; i < x.rank; ++i) {
      const std::int64_t from = a.permutation.extent[i];
      if (from < 0 || from >= static_cast<std::int64_t>(x.rank) || (seen >> from & 1U) != 0)
        return {false, "its permutation must name every dimension of its input once"};
      seen |= 1U << from;
      y.dims.extent[i] = x.extent[from];
    }
    return {};
  }
  static void reference(const attributes& a, const reference_call& call);
} transpose{};

struct concat_attributes {
  std::int64_t axis = 0;  ///< stored non-negative
  template <class Self, class Visitor>
  static constexpr void visit(Self& self, Visitor&& visitor) {
    visitor("axis", self.axis);
  }
};

/// concat(x...): joins the operands along an axis. All other extents are equal.
inline constexpr struct concat : kind<concat> {
  static constexpr char name[] = "concat";
  static constexpr bool takes_small_types = true;
  static constexpr fusion_kind fusion = fusion_kind::injective;
  static constexpr arity inputs{1, any_number};
  using attributes = concat_attributes;

  static constexpr void normalise(attributes& a, list_view<const tensor_type> in) {
    a.axis = detail::wrap_axis(a.axis, in[0].rank());
  }
  static constexpr verdict infer(const attributes& a, auto& io) {
    io.out[0] = io.in[0];
    shape& sum = io.out[0].dims;
    if (a.axis < 0 || a.axis >= static_cast<std::int64_t>(sum.rank))
      return {false, "its axis must be within the rank of its operands"};
    const auto axis = static_cast<std::size_t>(a.axis);
    for (std::size_t i = 1; i < io.in.size(); ++i) {
      const auto& x = io.in[i].dims;
      const auto which = static_cast<std::int32_t>(i);
      if (io.in[i].type != io.in[0].type) return {false, "its operands must have the same element type", which};
      if (x.rank != sum.rank) return {false, "its operands must have the same rank", which};
      for (std::size_t d = 0; d < x.rank; ++d) {
        const std::int64_t more = x.extent[d];
        std::int64_t& whole = sum.extent[d];
        if (d != axis) {
          if (whole < 0) whole = more;
          else if (more >= 0 && more != whole)
            return {false, "its operands may differ only in the joined dimension", which};
          continue;
        }
        if (whole >= 0 && more > detail::most_elements - whole) return {false, "its output is too large", which};
        whole = whole < 0 || more < 0 ? unknown : whole + more;
      }
    }
    if (!detail::is_countable(sum)) return {false, "its output is too large"};
    return {};
  }
  static void reference(const attributes& a, const reference_call& call);
} concat{};

}  // namespace collage::inline v0::ops
