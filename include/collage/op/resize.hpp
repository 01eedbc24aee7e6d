// Resampling of the spatial dimensions.
#pragma once

#include <collage/op/extents.hpp>
#include <collage/op/kind.hpp>

namespace collage::inline v0::ops {

/// How an output element picks or mixes input elements.
enum class resize_mode : std::uint8_t { nearest = 0, linear = 1, cubic = 2 };
/// Where an output index lies in the input. The names are those of ONNX Resize.
enum class resize_coordinates : std::uint8_t {
  half_pixel = 0,
  asymmetric = 1,
  align_corners = 2,
  pytorch_half_pixel = 3,
  half_pixel_symmetric = 4,
  tf_crop_and_resize = 5
};
/// The neighbour that `nearest` takes: halves down, halves up, always the lower or always the upper neighbour.
enum class resize_rounding : std::uint8_t { prefer_floor = 0, prefer_ceil = 1, down = 2, up = 3 };

/// The output's shape is given. The scale of a dimension is output extent / input extent, unless `scales` differs.
struct resize_attributes {
  shape sizes{};  ///< the output's shape, all dimensions
  resize_mode mode = resize_mode::nearest;
  resize_coordinates coordinates = resize_coordinates::half_pixel;
  resize_rounding rounding = resize_rounding::prefer_floor;
  /// The scale of every dimension, if an output extent is rounded and its ratio is not the exact scale; else empty.
  real_list scales{};
  real_list region_begin{};  ///< tf_crop_and_resize: the region of every dimension, as a fraction of its extent - 1
  real_list region_end{};
  double extrapolation = 0;          ///< tf_crop_and_resize: the value outside the input
  double cubic_coefficient = -0.75;  ///< Keys' `a`
  bool exclude_outside = false;      ///< elements outside get no weight, instead of the border's value
  bool antialias = false;            ///< filters a dimension that shrinks over 1 / scale as many elements
  template <class Self, class Visitor>
  static constexpr void visit(Self& self, Visitor&& visitor) {
    visitor("sizes", self.sizes);
    visitor("mode", self.mode);
    visitor("coordinates", self.coordinates);
    visitor("rounding", self.rounding);
    visitor("scales", self.scales);
    visitor("region_begin", self.region_begin);
    visitor("region_end", self.region_end);
    visitor("extrapolation", self.extrapolation);
    visitor("cubic_coefficient", self.cubic_coefficient);
    visitor("exclude_outside", self.exclude_outside);
    visitor("antialias", self.antialias);
  }
};

/// resize(x): an output index o lies in the input at o / scale (asymmetric), at (o + 0.5) / scale - 0.5 (half_pixel), and so
/// on. The output element is the nearest element, or the weighted mean of 2 (linear) or 4 (cubic) neighbours in each dimension.
inline constexpr struct resize : kind<resize> {
  static constexpr char name[] = "resize";
  static constexpr fusion_kind fusion = fusion_kind::injective;
  using attributes = resize_attributes;

  /// Whether a node needs only the modes nearest and linear, the four common coordinate modes, and scales that are
  /// ratios of extents. Kernels for images usually implement no more.
  static constexpr bool is_common(const attributes& a) {
    return a.mode != resize_mode::cubic && a.coordinates <= resize_coordinates::pytorch_half_pixel &&
           a.scales.empty() && !a.antialias;
  }

  /// Sets attributes without effect to their defaults, so that equal nodes have equal encoded attributes.
  static constexpr void normalise(attributes& a, list_view<const tensor_type> in) {
    const shape& x = in[0].dims;
    const bool known = a.sizes.size() == x.rank && a.scales.size() == x.rank;
    bool ratios = known;
    // Scales come as float32. A scale that is the float32 nearest to a ratio of the extents counts as that ratio.
    for (std::size_t i = 0; i < x.rank && ratios; ++i)
      ratios = x[i] > 0 && a.sizes[i] > 0 && a.scales[i] > 0 && a.scales[i] < 1e9 &&
               static_cast<float>(static_cast<double>(a.sizes[i]) / static_cast<double>(x[i])) ==
                   static_cast<float>(a.scales[i]);
    if (ratios) a.scales = {};
    if (a.scales.empty() && a.coordinates == resize_coordinates::half_pixel_symmetric)
      a.coordinates = resize_coordinates::half_pixel;
    if (a.coordinates != resize_coordinates::tf_crop_and_resize) {
      a.region_begin = a.region_end = {};
      a.extrapolation = 0;
    }
    if (a.mode != resize_mode::cubic) a.cubic_coefficient = attributes{}.cubic_coefficient;
    if (a.mode == resize_mode::nearest) a.antialias = false;
    if (a.antialias && a.scales.empty() && a.sizes.size() == x.rank) {
      bool shrinks = false;
      for (std::size_t i = 0; i < x.rank; ++i) shrinks = shrinks || x[i] < 0 || a.sizes[i] < x[i];
      a.antialias = shrinks;
    }
    if (a.mode != resize_mode::cubic && !a.antialias) a.exclude_outside = false;
  }
  static constexpr verdict infer(const attributes& a, auto& io) {
    const auto& x = io.in[0].dims;
    if (a.sizes.size() != x.rank) return {false, "its sizes must have one entry per dimension of its input"};
    for (std::size_t i = 0; i < a.sizes.size(); ++i) {
      if (a.sizes[i] < 0) return {false, "its sizes must not be negative"};
      if (a.sizes[i] > limit || x[i] > limit) return {false, "its extents must be at most 2^30"};
      if (x[i] == 0 && a.sizes[i] > 0) return {false, "an empty dimension cannot be resized"};
    }
    if (!detail::is_countable(a.sizes)) return {false, "its output is too large"};
    if (a.mode > resize_mode::cubic || a.coordinates > resize_coordinates::tf_crop_and_resize ||
        a.rounding > resize_rounding::up)
      return {false, "its mode, coordinates and rounding must be values of their enumerations"};
    if (!a.scales.empty() && a.scales.size() != x.rank)
      return {false, "its scales must have one entry per dimension of its input"};
    for (std::size_t i = 0; i < a.scales.size(); ++i) {
      if (!(a.scales[i] >= smallest_scale && a.scales[i] <= 1 / smallest_scale))
        return {false, "its scales must be between 2^-20 and 2^20"};
      const double extent = static_cast<double>(x[i]) * a.scales[i];
      const double beyond = static_cast<double>(a.sizes[i]) - extent;
      const double rounding = 1 + 1e-6 * extent;
      if (x[i] >= 0 && (beyond > rounding || beyond < -rounding))
        return {false, "its sizes must be the scaled extents of its input, rounded"};
    }
    if (a.coordinates == resize_coordinates::tf_crop_and_resize &&
        (a.region_begin.size() != x.rank || a.region_end.size() != x.rank))
      return {false, "its region must have a begin and an end per dimension of its input"};
    for (const real_list* list : {&a.region_begin, &a.region_end})
      for (const double number : *list)
        if (!(number > -1e9 && number < 1e9)) return {false, "its region must be made of numbers below 1e9"};
    io.out[0] = {io.in[0].type, a.sizes};
    return {};
  }
  static constexpr work count(const attributes& a, const auto& io) {
    return {a.mode == resize_mode::nearest ? 0.0 : 8.0 * static_cast<double>(io.out[0].dims.elements())};
  }
  static void reference(const attributes& a, const reference_call& call);

 private:
  static constexpr std::int64_t limit = std::int64_t{1} << 30;
  static constexpr double smallest_scale = 0x1p-20;
} resize{};

}  // namespace collage::inline v0::ops
