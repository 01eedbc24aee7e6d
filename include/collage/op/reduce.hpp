// Reductions over axes.
#pragma once

#include <collage/op/kind.hpp>

namespace collage::inline v0::ops {

/// No axes means all of them; negative axes count from the end. Stored sorted and non-negative.
struct reduce_attributes {
  shape axes{};
  bool keep_dims = true;  ///< reduced dimensions stay, with extent 1
  template <class Self, class Visitor>
  static constexpr void visit(Self& self, Visitor&& visitor) {
    visitor("axes", self.axes);
    visitor("keep_dims", self.keep_dims);
  }
};

template <class Derived>
struct reduce_kind : kind<Derived> {
  static constexpr fusion_kind fusion = fusion_kind::reduction;
  using attributes = reduce_attributes;

  static constexpr void normalise(attributes& a, list_view<const tensor_type> in) {
    const std::uint32_t rank = in[0].dims.rank;
    std::uint32_t listed = a.axes.rank == 0 ? (1U << rank) - 1 : 0;  // a bit for each dimension
    for (std::uint32_t i = 0; i < a.axes.rank; ++i) {
      const std::int64_t axis = detail::wrap_axis(a.axes.extent[i], rank);
      // An axis that is out of range or named twice must reach the shape rule unchanged.
      if (axis < 0 || axis >= rank || (listed >> axis & 1U) != 0) return;
      listed |= 1U << axis;
    }
    a.axes.rank = 0;
    for (std::uint32_t i = 0; i < rank; ++i)
      if ((listed >> i & 1U) != 0) a.axes.extent[a.axes.rank++] = i;
  }
  static constexpr verdict infer(const attributes& a, auto& io) {
    const auto& x = io.in[0].dims;
    std::int64_t least = 0;
    std::uint32_t listed = 0;  // a bit for each dimension
    for (std::uint32_t i = 0; i < a.axes.rank; ++i) {
      const std::int64_t axis = a.axes.extent[i];
      if (axis < least || axis >= x.rank) return {false, "its axes must be distinct and within the rank of its input"};
      least = axis + 1;
      listed |= 1U << axis;
    }
    tensor_type& y = io.out[0];
    y = {io.in[0].type, {}};
    for (std::uint32_t i = 0; i < x.rank; ++i)
      if ((listed >> i & 1U) == 0 || a.keep_dims)
        y.dims.extent[y.dims.rank++] = (listed >> i & 1U) == 0 ? x.extent[i] : 1;
    return {};
  }
  static constexpr work count(const attributes&, const auto& io) {
    return {static_cast<double>(io.in[0].dims.elements())};
  }
};

/// The mean of no elements is NaN, for integers 0. Integers are added in 64 bits; their mean is truncated toward zero.
inline constexpr struct reduce_mean : reduce_kind<reduce_mean> {
  static constexpr char name[] = "reduce_mean";
  static void reference(const attributes& a, const reference_call& call);
} reduce_mean{};

inline constexpr struct reduce_sum : reduce_kind<reduce_sum> {
  static constexpr char name[] = "reduce_sum";
  static void reference(const attributes& a, const reference_call& call);
} reduce_sum{};

/// The largest of no elements is the lowest value of the type, for floating-point types -infinity.
inline constexpr struct reduce_max : reduce_kind<reduce_max> {
  static constexpr char name[] = "reduce_max";
  static void reference(const attributes& a, const reference_call& call);
} reduce_max{};

/// The smallest of no elements is the highest value of the type, for floating-point types infinity.
inline constexpr struct reduce_min : reduce_kind<reduce_min> {
  static constexpr char name[] = "reduce_min";
  static void reference(const attributes& a, const reference_call& call);
} reduce_min{};

/// The product of no elements is 1. Integers wrap around.
inline constexpr struct reduce_prod : reduce_kind<reduce_prod> {
  static constexpr char name[] = "reduce_prod";
  static void reference(const attributes& a, const reference_call& call);
} reduce_prod{};

/// log(sum of exp(x)), computed from the distances to the largest element, so that nothing overflows. For no elements
/// it is -infinity.
inline constexpr struct reduce_log_sum_exp : reduce_kind<reduce_log_sum_exp> {
  static constexpr char name[] = "reduce_log_sum_exp";
  static constexpr verdict infer(const attributes& a, auto& io) {
    if (!is_floating(io.in[0].type)) return {false, "its input must have a floating-point type", 0};
    return reduce_kind::infer(a, io);
  }
  static void reference(const attributes& a, const reference_call& call);
} reduce_log_sum_exp{};

}  // namespace collage::inline v0::ops
