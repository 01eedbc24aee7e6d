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

  static constexpr void normalise(attributes& a, std::span<const tensor_type> in) {
    const std::size_t rank = in[0].rank();
    shape sorted;
    for (std::size_t i = 0; i < rank; ++i) {
      bool listed = a.axes.empty();
      for (std::int64_t axis : a.axes) listed = listed || detail::wrap_axis(axis, rank) == static_cast<std::int64_t>(i);
      if (listed) sorted.push_back(static_cast<std::int64_t>(i));
    }
    // An axis out of range or named twice must reach the shape rule as it is.
    if (a.axes.empty() || sorted.size() == a.axes.size()) a.axes = sorted;
  }
  static constexpr bool reduces(const attributes& a, std::size_t axis) {
    for (std::int64_t listed : a.axes)
      if (listed == static_cast<std::int64_t>(axis)) return true;
    return false;
  }
  static constexpr verdict infer(const attributes& a, inference& io) {
    const shape& x = io.in[0].dims;
    for (std::size_t i = 0; i < a.axes.size(); ++i)
      if (a.axes[i] < 0 || a.axes[i] >= static_cast<std::int64_t>(x.rank) || (i > 0 && a.axes[i] <= a.axes[i - 1]))
        return {false, "its axes must be distinct and within the rank of its input"};
    io.out[0].type = io.in[0].type;
    io.out[0].dims = {};
    for (std::size_t i = 0; i < x.rank; ++i) {
      if (!reduces(a, i)) io.out[0].dims.push_back(x[i]);
      else if (a.keep_dims) io.out[0].dims.push_back(1);
    }
    return {};
  }
  static constexpr work count(const attributes&, const inference& io) {
    return {static_cast<double>(io.in[0].dims.elements())};
  }
};

/// Of no elements: NaN, for integers 0. Integers are added in 64 bits; their mean is truncated toward zero.
inline constexpr struct reduce_mean : reduce_kind<reduce_mean> {
  static constexpr char name[] = "reduce_mean";
  static void reference(const attributes& a, const reference_call& call);
} reduce_mean{};

inline constexpr struct reduce_sum : reduce_kind<reduce_sum> {
  static constexpr char name[] = "reduce_sum";
  static void reference(const attributes& a, const reference_call& call);
} reduce_sum{};

/// Of no elements: the lowest value of the type, for floating-point types -infinity.
inline constexpr struct reduce_max : reduce_kind<reduce_max> {
  static constexpr char name[] = "reduce_max";
  static void reference(const attributes& a, const reference_call& call);
} reduce_max{};

/// Of no elements: the highest value of the type, for floating-point types infinity.
inline constexpr struct reduce_min : reduce_kind<reduce_min> {
  static constexpr char name[] = "reduce_min";
  static void reference(const attributes& a, const reference_call& call);
} reduce_min{};

/// Of no elements: 1. Integers wrap around.
inline constexpr struct reduce_prod : reduce_kind<reduce_prod> {
  static constexpr char name[] = "reduce_prod";
  static void reference(const attributes& a, const reference_call& call);
} reduce_prod{};

/// log(sum of exp(x)), computed from the distances to the largest element, so that nothing overflows. Of no elements:
/// -infinity.
inline constexpr struct reduce_log_sum_exp : reduce_kind<reduce_log_sum_exp> {
  static constexpr char name[] = "reduce_log_sum_exp";
  static constexpr verdict infer(const attributes& a, inference& io) {
    if (!is_floating(io.in[0].type)) return {false, "its input must have a floating-point type", 0};
    return reduce_kind::infer(a, io);
  }
  static void reference(const attributes& a, const reference_call& call);
} reduce_log_sum_exp{};

}  // namespace collage::inline v0::ops
