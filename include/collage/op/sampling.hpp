// Sampling an image at computed places (grids, regions of interest), and summing blocks back into an image.
#pragma once

#include <collage/op/extents.hpp>
#include <collage/op/resize.hpp>
#include <collage/op/window.hpp>

namespace collage::inline v0::ops {

/// The value of a sampled place outside the image: zero, the nearest border, or the image mirrored at its borders.
enum class sample_padding : std::uint8_t { zeros = 0, border = 1, reflection = 2 };

struct grid_sample_attributes {
  resize_mode mode = resize_mode::linear;
  sample_padding padding = sample_padding::zeros;
  bool align_corners = false;  ///< -1 and 1 are the centres of the outermost elements, not their outer edges
  template <class Self, class Visitor>
  static constexpr void visit(Self& self, Visitor&& visitor) {
    visitor("mode", self.mode);
    visitor("padding", self.padding);
    visitor("align_corners", self.align_corners);
  }
};

/// grid_sample(x, grid): reads x [N, C, spatial...] at the places of grid [N, places..., R]. The grid's last dimension
/// holds the coordinates in the R spatial dimensions, the last of these first, each from -1 to 1. Output:
/// [N, C, places...]. `nearest` takes the even of two equally near elements; `cubic` is Keys' kernel with a = -0.75.
inline constexpr struct grid_sample : kind<grid_sample> {
  static constexpr char name[] = "grid_sample";
  static constexpr fusion_kind fusion = fusion_kind::opaque;
  static constexpr arity inputs{2, 2};
  using attributes = grid_sample_attributes;

  static constexpr verdict infer(const attributes& a, auto& io) {
    const auto& x = io.in[0].dims;
    const auto& grid = io.in[1].dims;
    if (a.mode > resize_mode::cubic || a.padding > sample_padding::reflection)
      return {false, "its mode must be a value of resize_mode, and its padding one of sample_padding"};
    if (x.rank < 3) return {false, "its input must have shape [N, C, spatial...]", 0};
    if (a.mode != resize_mode::nearest && !is_floating(io.in[0].type))
      return {false, "only floating-point elements can be mixed", 0};
    if (!is_floating(io.in[1].type)) return {false, "its grid must be of a floating-point type", 1};
    const std::int64_t rank = static_cast<std::int64_t>(x.rank) - 2;
    if (grid.rank != x.rank || (grid[grid.rank - 1] >= 0 && grid[grid.rank - 1] != rank))
      return {false, "its grid must have shape [N, places..., R] for an input of R spatial dimensions", 1};
    if (x[0] >= 0 && grid[0] >= 0 && x[0] != grid[0]) return {false, "its grid must be one for each image", 1};
    io.out[0] = {io.in[0].type, {x[0] >= 0 ? x[0] : grid[0], x[1]}};
    for (std::size_t i = 1; i + 1 < grid.rank; ++i) io.out[0].dims.push_back(grid[i]);
    for (std::size_t i = 2; i < x.rank; ++i)
      if (x[i] == 0) return {false, "an empty image cannot be sampled", 0};
    if (!detail::is_countable(io.out[0].dims)) return {false, "its output is too large"};
    return {};
  }
  static constexpr work count(const attributes& a, const auto& io) {
    const double elements = static_cast<double>(io.out[0].dims.elements());
    double taps = 1;
    for (std::size_t i = 2; i < io.in[0].rank(); ++i)
      taps *= a.mode == resize_mode::cubic ? 4 : a.mode == resize_mode::linear ? 2 : 1;
    return {a.mode == resize_mode::nearest ? 0.0 : 2.0 * taps * elements};
  }
  static void reference(const attributes& a, const reference_call& call);
} grid_sample{};

enum class roi_mode : std::uint8_t { average = 0, largest = 1 };

struct roi_align_attributes {
  std::int64_t height = 1;  ///< of the output
  std::int64_t width = 1;
  std::int64_t samples = 0;  ///< per side of an output element; 0: as many as the input elements that it covers
  double scale = 1;          ///< of the input relative to the image in which the regions are given
  roi_mode mode = roi_mode::average;
  bool half_pixel = true;  ///< regions lie half an element before their coordinates, and may be empty
  template <class Self, class Visitor>
  static constexpr void visit(Self& self, Visitor&& visitor) {
    visitor("height", self.height);
    visitor("width", self.width);
    visitor("samples", self.samples);
    visitor("scale", self.scale);
    visitor("mode", self.mode);
    visitor("half_pixel", self.half_pixel);
  }
};

/// roi_align(x, regions, images): samples regions of x [N, C, H, W]. `regions` [R, 4] holds (x1, y1, x2, y2) of each
/// region, and `images` [R] (int64) the number of its image. An output element is the mean of linearly interpolated
/// samples, or the largest weighted element in them. Output: [R, C, height, width].
inline constexpr struct roi_align : kind<roi_align> {
  static constexpr char name[] = "roi_align";
  static constexpr fusion_kind fusion = fusion_kind::opaque;
  static constexpr arity inputs{3, 3};
  using attributes = roi_align_attributes;

  static constexpr verdict infer(const attributes& a, auto& io) {
    const auto& x = io.in[0].dims;
    const auto& regions = io.in[1].dims;
    const auto& images = io.in[2].dims;
    if (x.rank != 4 || !is_floating(io.in[0].type))
      return {false, "its input must have shape [N, C, H, W] and a floating-point type", 0};
    if (x[2] == 0 || x[3] == 0) return {false, "an empty image cannot be sampled", 0};
    if (regions.rank != 2 || (regions[1] >= 0 && regions[1] != 4) || io.in[1].type != io.in[0].type)
      return {false, "its regions must have shape [R, 4] and its input's element type", 1};
    if (images.rank != 1 || io.in[2].type != dtype::i64 ||
        (images[0] >= 0 && regions[0] >= 0 && images[0] != regions[0]))
      return {false, "its third operand must be a list of int64: the index of the image of each region", 2};
    if (a.mode > roi_mode::largest) return {false, "its mode must be a value of roi_mode"};
    if (a.height < 0 || a.width < 0 || a.height > 0xFFFF || a.width > 0xFFFF)
      return {false, "its output's height and width must be from 0 to 65535"};
    if (a.samples < 0 || a.samples > 0xFFFF) return {false, "its samples per side must be from 0 to 65535"};
    if (!(a.scale > 0 && a.scale < 1e9)) return {false, "its scale must be a positive number below 1e9"};
    io.out[0] = {io.in[0].type, {regions[0] >= 0 ? regions[0] : images[0], x[1], a.height, a.width}};
    if (!detail::is_countable(io.out[0].dims)) return {false, "its output is too large"};
    return {};
  }
  static constexpr work count(const attributes& a, const auto& io) {
    const double samples = a.samples == 0 ? 4.0 : static_cast<double>(a.samples) * static_cast<double>(a.samples);
    return {8.0 * samples * static_cast<double>(io.out[0].dims.elements())};
  }
  /// Throws if `images` holds a number without an image.
  static void reference(const attributes& a, const reference_call& call);
} roi_align{};

/// Lists left empty mean strides and dilations of 1 and pads of 0; they are filled in when a node is added.
struct col2im_attributes {
  shape image{};   ///< the spatial extents of the output
  shape window{};  ///< of a block
  shape strides{}, dilations{}, pads_begin{}, pads_end{};
  template <class Self, class Visitor>
  static constexpr void visit(Self& self, Visitor&& visitor) {
    visitor("image", self.image);
    visitor("window", self.window);
    visitor("strides", self.strides);
    visitor("dilations", self.dilations);
    visitor("pads_begin", self.pads_begin);
    visitor("pads_end", self.pads_end);
  }
};

/// col2im(x): x [N, C * window, places] holds the blocks that a window reads at each of its places. The output
/// [N, C, image...] has, for each element, its sum over all blocks that hold it. Elements in the pads are dropped.
inline constexpr struct col2im : kind<col2im> {
  static constexpr char name[] = "col2im";
  static constexpr fusion_kind fusion = fusion_kind::opaque;
  using attributes = col2im_attributes;

  static constexpr void normalise(attributes& a, list_view<const tensor_type>) {
    detail::default_window(a.image.size(), a.strides, a.dilations, a.pads_begin, a.pads_end);
  }
  static constexpr verdict infer(const attributes& a, auto& io) {
    const auto& x = io.in[0].dims;
    if (x.rank != 3) return {false, "its input must have shape [N, C * window, places]"};
    if (a.image.empty() || a.image.size() > shape::max_rank - 2)
      return {false, "its image must have one to six spatial dimensions"};
    if (verdict v = detail::check_window(a.image.size(), a.window, a.strides, a.dilations, a.pads_begin, a.pads_end);
        !v)
      return v;
    shape places;
    for (std::size_t i = 0; i < a.image.size(); ++i) {
      if (a.image[i] < 1 || a.image[i] > 0x7FFFFFFF) return {false, "its image's extents must be from 1 to 2^31 - 1"};
      places.push_back(detail::window_places(a.image[i], a.window[i], a.strides[i], a.dilations[i], a.pads_begin[i],
                                             a.pads_end[i], false));
    }
    if (!detail::is_countable(a.image) || !detail::is_countable(a.window) || !detail::is_countable(places))
      return {false, "its image is too large"};
    if (x[2] >= 0 && x[2] != places.elements())
      return {false, "its input must have as many columns as its window has places in the image"};
    const std::int64_t taps = a.window.elements();
    if (x[1] >= 0 && x[1] % taps != 0)
      return {false, "its input must have as many rows as its window has elements, for each channel"};
    io.out[0] = {io.in[0].type, {x[0], x[1] < 0 ? unknown : x[1] / taps}};
    for (const std::int64_t extent : a.image) io.out[0].dims.push_back(extent);
    if (!detail::is_countable(io.out[0].dims)) return {false, "its output is too large"};
    return {};
  }
  static constexpr work count(const attributes&, const auto& io) {
    return {static_cast<double>(io.in[0].dims.elements())};
  }
  static void reference(const attributes& a, const reference_call& call);
} col2im{};

}  // namespace collage::inline v0::ops
