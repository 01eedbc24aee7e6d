// Resampling of the spatial dimensions.
#pragma once

#include <collage/op/kind.hpp>

namespace collage::inline v0::ops {

/// How an output element picks or mixes input elements.
enum class resize_mode : std::uint8_t { nearest = 0, linear = 1, cubic = 2 };
/// Where an output index lies in the input (names as in ONNX Resize).
enum class resize_coordinates : std::uint8_t {
  half_pixel = 0,
  asymmetric = 1,
  align_corners = 2,
  pytorch_half_pixel = 3
};
/// Which neighbour `nearest` takes: halves down, halves up, always the lower, always the upper one.
enum class resize_rounding : std::uint8_t { prefer_floor = 0, prefer_ceil = 1, down = 2, up = 3 };

/// The output's shape is stated; the scale of a dimension is output extent / input extent.
struct resize_attributes {
  shape sizes{};  ///< the output's shape, all dimensions
  resize_mode mode = resize_mode::nearest;
  resize_coordinates coordinates = resize_coordinates::half_pixel;
  resize_rounding rounding = resize_rounding::prefer_floor;
  template <class Self, class Visitor>
  static constexpr void visit(Self& self, Visitor&& visitor) {
    visitor("sizes", self.sizes);
    visitor("mode", self.mode);
    visitor("coordinates", self.coordinates);
    visitor("rounding", self.rounding);
  }
};

/// resize(x): an output index o lies at (asymmetric) o * in / out or (half_pixel) (o + 0.5) * in / out - 0.5 and so on.
inline constexpr struct resize : kind<resize> {
  static constexpr char name[] = "resize";
  static constexpr fusion_kind fusion = fusion_kind::injective;
  using attributes = resize_attributes;

  static constexpr verdict infer(const attributes& a, inference& io) {
    if (a.sizes.size() != io.in[0].rank()) return {false, "its sizes must have one entry per dimension of its input"};
    for (std::size_t i = 0; i < a.sizes.size(); ++i) {
      if (a.sizes[i] < 0) return {false, "its sizes must not be negative"};
      if (io.in[0].dims[i] == 0 && a.sizes[i] > 0) return {false, "an empty dimension cannot be resized"};
    }
    if (a.mode == resize_mode::cubic) return {false, "cubic resampling is not supported; nearest and linear are"};
    io.out[0] = {io.in[0].type, a.sizes};
    return {};
  }
  static constexpr work count(const attributes& a, const inference& io) {
    return {a.mode == resize_mode::nearest ? 0.0 : 8.0 * static_cast<double>(io.out[0].dims.elements())};
  }
  static void reference(const attributes& a, const reference_call& call);
} resize{};

}  // namespace collage::inline v0::ops
