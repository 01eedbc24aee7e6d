// Resampling: Resize, Upsample, GridSample, AffineGrid, RoiAlign, Col2Im, DeformConv.
#include <algorithm>
#include <cmath>
#include <collage/io/onnx/lowering.hpp>
#include <collage/op/deform_conv.hpp>
#include <collage/op/elementwise.hpp>
#include <collage/op/matmul.hpp>
#include <collage/op/resize.hpp>
#include <collage/op/sampling.hpp>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "rules.hpp"

namespace collage::inline v0::onnx {
namespace {

/// One of the words that an attribute may be, by its place in the list.
template <class Enumeration>
Enumeration choice_of(lowering& n, const char* attribute, const char* otherwise,
                      std::span<const std::pair<const char*, Enumeration>> words) {
  const std::string given = n.text(attribute, otherwise);
  for (const auto& [word, meaning] : words)
    if (given == word) return meaning;
  n.invalid(std::string("its attribute ") + attribute + " is \"" + given + "\", which is none of those defined");
}

bool flag_of(lowering& n, const char* attribute, bool otherwise) {
  return n.integer(attribute, otherwise ? 1 : 0) != 0;
}

/// The mean of integers is computed as float32 and loses its fraction.
value resized(lowering& n, value x, const ops::resize_attributes& a) {
  const dtype type = n.element_type_of(x);
  if (a.mode == ops::resize_mode::nearest || is_floating(type)) return n(ops::resize, x, a);
  return n.cast(n(ops::resize, n.cast(x, dtype::f32), a), type);
}

/// Extents of the output, from scales: rounded down, in float32, in which a scale that stands for a fraction gives a
/// whole extent.
shape scaled_extents(lowering& n, const shape& x, std::span<const double> scales) {
  shape y;
  for (std::size_t d = 0; d < x.size(); ++d) {
    const float extent = static_cast<float>(x[d]) * static_cast<float>(scales[d]);
    if (!(scales[d] > 0) || !(extent < 0x1p40F))
      n.invalid("its scales must be positive, and the scaled extents below 2^40");
    y.push_back(static_cast<std::int64_t>(std::floor(extent)));
  }
  return y;
}

real_list to_reals(std::span<const double> list) {
  real_list reals;
  for (const double number : list) reals.push_back(number);
  return reals;
}

/// Upsample, and Resize as it was in operator set 10: scales for all dimensions, and no say in anything else. An element
/// lies at o / scale; where an image shrinks, `nearest` takes the next one, not the one before.
void lower_upsample(lowering& n) {
  static constexpr std::pair<const char*, ops::resize_mode> modes[] = {{"nearest", ops::resize_mode::nearest},
                                                                       {"linear", ops::resize_mode::linear},
                                                                       {"bilinear", ops::resize_mode::linear}};
  value x = n.operand(0);
  const shape dims = n.dims_of(x);
  const std::vector<double> scales = n.has(1) ? n.numbers_of(1, "its scales") : n.reals("scales");
  if (scales.size() != dims.size()) n.invalid("its scales must be one for each dimension of its input");
  ops::resize_attributes a;
  a.mode = choice_of<ops::resize_mode>(n, "mode", "nearest", modes);
  a.coordinates = ops::resize_coordinates::asymmetric;
  const shape target = scaled_extents(n, dims, scales);
  if (a.mode == ops::resize_mode::linear) {
    a.sizes = target;
    a.scales = to_reals(scales);
    n.result(0, resized(n, x, a));
    return;
  }
  for (const bool grows : {true, false}) {
    a.sizes = n.dims_of(x);
    a.scales = {};
    bool any = false;
    for (std::size_t d = 0; d < dims.size(); ++d) {
      const bool now = scales[d] != 1 && (scales[d] > 1) == grows;
      any = any || now;
      if (now) a.sizes[d] = target[d];
      a.scales.push_back(now ? scales[d] : 1.0);
    }
    a.rounding = grows ? ops::resize_rounding::down : ops::resize_rounding::up;
    if (any) x = n(ops::resize, x, a);
  }
  n.result(0, x);
}

/// The dimensions that scales, sizes and regions are about: all, or those of `axes`.
std::vector<std::size_t> resized_axes(lowering& n, std::size_t rank) {
  std::vector<std::size_t> axes(rank);
  std::iota(axes.begin(), axes.end(), std::size_t{0});
  if (!n.has_attribute("axes")) return axes;
  axes.clear();
  for (const std::int64_t given : n.integers("axes")) {
    const auto axis = static_cast<std::size_t>(n.axis(given, rank));
    if (std::find(axes.begin(), axes.end(), axis) != axes.end()) n.invalid("its axes name a dimension twice");
    axes.push_back(axis);
  }
  return axes;
}

/// One number for each dimension, from numbers for some of them.
std::vector<double> spread(lowering& n, std::span<const double> list, std::span<const std::size_t> axes,
                           std::size_t rank, double otherwise, const char* what) {
  if (list.size() != axes.size()) n.invalid(std::string(what) + " must have one entry for each of its axes");
  std::vector<double> all(rank, otherwise);
  for (std::size_t i = 0; i < axes.size(); ++i) all[axes[i]] = list[i];
  return all;
}

/// Output extents, and scales where they are not the ratio of the extents, from the operand `sizes`.
void take_sizes(lowering& n, ops::resize_attributes& a, const shape& x, std::span<const std::size_t> axes) {
  const std::vector<std::int64_t> sizes = n.integers_of(3, "its sizes");
  if (sizes.size() != axes.size()) n.invalid("its sizes must have one entry for each of its axes");
  a.sizes = x;
  for (std::size_t i = 0; i < axes.size(); ++i) a.sizes[axes[i]] = sizes[i];
  const std::string policy = n.text("keep_aspect_ratio_policy", "stretch");
  if (policy == "stretch") return;
  if (policy != "not_larger" && policy != "not_smaller")
    n.invalid("its keep_aspect_ratio_policy is \"" + policy + "\", which is none of those defined");
  double scale = 0;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    if (x[axes[i]] < 1 || sizes[i] < 0 || sizes[i] > (std::int64_t{1} << 40))
      n.invalid("its aspect ratio cannot be kept: an extent is 0, or a size is negative or too large");
    const double own = static_cast<double>(sizes[i]) / static_cast<double>(x[axes[i]]);
    scale = i == 0 ? own : policy == "not_larger" ? std::min(scale, own) : std::max(scale, own);
  }
  std::vector<double> scales(x.size(), 1.0);
  for (const std::size_t axis : axes) {
    const double extent = std::floor(scale * static_cast<double>(x[axis]) + 0.5);
    if (!(extent < 0x1p40)) n.invalid("its sizes are too large");
    a.sizes[axis] = static_cast<std::int64_t>(extent);
    scales[axis] = scale;
  }
  a.scales = to_reals(scales);
}

void lower_resize(lowering& n) {
  if (n.opset() < 11) return lower_upsample(n);
  using how = ops::resize_coordinates;
  using rounding = ops::resize_rounding;
  static constexpr std::pair<const char*, ops::resize_mode> modes[] = {
      {"nearest", ops::resize_mode::nearest}, {"linear", ops::resize_mode::linear}, {"cubic", ops::resize_mode::cubic}};
  static constexpr std::pair<const char*, rounding> roundings[] = {{"round_prefer_floor", rounding::prefer_floor},
                                                                   {"round_prefer_ceil", rounding::prefer_ceil},
                                                                   {"floor", rounding::down},
                                                                   {"ceil", rounding::up}};
  static constexpr std::pair<const char*, how> coordinates[] = {
      {"half_pixel", how::half_pixel},          {"half_pixel_symmetric", how::half_pixel_symmetric},
      {"asymmetric", how::asymmetric},          {"pytorch_half_pixel", how::pytorch_half_pixel},
      {"align_corners", how::align_corners},    {"tf_crop_and_resize", how::tf_crop_and_resize},
      {"tf_half_pixel_for_nn", how::half_pixel}};
  const value x = n.operand(0);
  const shape dims = n.dims_of(x);
  const std::vector<std::size_t> axes = resized_axes(n, dims.size());
  ops::resize_attributes a;
  a.mode = choice_of<ops::resize_mode>(n, "mode", "nearest", modes);
  a.coordinates = choice_of<how>(n, "coordinate_transformation_mode", "half_pixel", coordinates);
  a.rounding = choice_of<rounding>(n, "nearest_mode", "round_prefer_floor", roundings);
  a.cubic_coefficient = n.real("cubic_coeff_a", -0.75);
  a.extrapolation = n.real("extrapolation_value", 0);
  a.exclude_outside = flag_of(n, "exclude_outside", false);
  a.antialias = flag_of(n, "antialias", false);
  if (a.antialias && a.mode == ops::resize_mode::nearest)
    n.invalid("only linear and cubic resizing can be antialiased");
  if (n.text("coordinate_transformation_mode", "") == "tf_half_pixel_for_nn") {
    // It lies half an element further on than half_pixel, which is the same as rounding differently.
    if (a.mode != ops::resize_mode::nearest || (a.rounding != rounding::down && a.rounding != rounding::prefer_floor))
      n.unsupported("tf_half_pixel_for_nn in another mode than nearest, or with a nearest_mode that rounds up,");
    a.rounding = a.rounding == rounding::down ? rounding::prefer_ceil : rounding::up;
  }
  // Either may be there and be empty.
  const bool has_sizes = n.has(3) && n.dims_of(n.operand(3)).elements() != 0;
  const bool has_scales = n.has(2) && n.dims_of(n.operand(2)).elements() != 0;
  if (has_sizes && has_scales) n.invalid("it has both scales and sizes");
  if (has_sizes) {
    take_sizes(n, a, dims, axes);
  } else if (has_scales) {
    const std::vector<double> scales = spread(n, n.numbers_of(2, "its scales"), axes, dims.size(), 1.0, "its scales");
    a.sizes = scaled_extents(n, dims, scales);
    a.scales = to_reals(scales);
  } else {
    if (!dims.empty()) n.invalid("it has neither scales nor sizes");
  }
  if (a.coordinates == how::tf_crop_and_resize) {
    const std::vector<double> region = n.numbers_of(1, "its region");
    if (region.size() != 2 * axes.size()) n.invalid("its region must have a begin and an end for each of its axes");
    const std::span<const double> begin(region.data(), axes.size()), end(region.data() + axes.size(), axes.size());
    a.region_begin = to_reals(spread(n, begin, axes, dims.size(), 0.0, "its region"));
    a.region_end = to_reals(spread(n, end, axes, dims.size(), 1.0, "its region"));
  }
  n.result(0, resized(n, x, a));
}

void lower_grid_sample(lowering& n) {
  using ops::resize_mode, ops::sample_padding;
  static constexpr std::pair<const char*, resize_mode> modes[] = {{"bilinear", resize_mode::linear},
                                                                  {"linear", resize_mode::linear},
                                                                  {"nearest", resize_mode::nearest},
                                                                  {"bicubic", resize_mode::cubic},
                                                                  {"cubic", resize_mode::cubic}};
  static constexpr std::pair<const char*, sample_padding> paddings[] = {
      {"zeros", sample_padding::zeros}, {"border", sample_padding::border}, {"reflection", sample_padding::reflection}};
  ops::grid_sample_attributes a;
  a.mode = choice_of<resize_mode>(n, "mode", n.opset() < 20 ? "bilinear" : "linear", modes);
  a.padding = choice_of<sample_padding>(n, "padding_mode", "zeros", paddings);
  a.align_corners = flag_of(n, "align_corners", false);
  n.result(0, n(ops::grid_sample, n.operand(0), n.operand(1), a));
}

/// Where element `i` of `extent` lies between -1 and 1.
double grid_coordinate(std::int64_t i, std::int64_t extent, bool align_corners) {
  if (!align_corners) return static_cast<double>(2 * i + 1) / static_cast<double>(extent) - 1;
  // A single element is both the first and the last; other runtimes answer the last.
  return extent == 1 ? 1.0 : 2.0 * static_cast<double>(i) / static_cast<double>(extent - 1) - 1;
}

/// The product of each image's matrix with all places of an image, as homogeneous coordinates.
void lower_affine_grid(lowering& n) {
  const value theta = n.operand(0);
  const std::vector<std::int64_t> size = n.integers_of(1, "the size of its output");
  if (size.size() != 4 && size.size() != 5) n.invalid("the size of its output must have four or five extents");
  const std::size_t rank = size.size() - 2;
  const auto columns = static_cast<std::int64_t>(rank) + 1;
  if (n.dims_of(theta) != shape(size[0], columns - 1, columns))
    n.invalid("its matrices must be one of two or three rows, and one column more, for each image");
  constexpr std::int64_t most_places = std::int64_t{1} << 28;
  std::int64_t places = 1;
  for (std::size_t d = 2; d < size.size(); ++d) {
    if (size[d] < 0) n.invalid("the size of its output must not be negative");
    if (size[d] > 0 && places > most_places / size[d]) n.unsupported("a grid of more than 2^28 places");
    places *= size[d];
  }
  const bool align_corners = flag_of(n, "align_corners", false);
  oracle_value base(tensor_type{n.element_type_of(theta), {places, columns}});
  if (base.real.empty() && places > 0) n.invalid("its matrices must be of a floating-point type");
  for (std::int64_t p = 0; p < places; ++p) {
    double* const row = base.real.data() + p * columns;
    std::int64_t rest = p;
    for (std::size_t d = rank; d-- > 0; rest /= size[d + 2])
      row[rank - 1 - d] = grid_coordinate(rest % size[d + 2], size[d + 2], align_corners);
    row[rank] = 1;
  }
  shape grid{size[0]};
  for (std::size_t d = 2; d < size.size(); ++d) grid.push_back(size[d]);
  grid.push_back(columns - 1);
  n.result(0, n.reshape(n(ops::matmul, n.constant(base), theta, {.transpose_b = true}), grid));
}

void lower_roi_align(lowering& n) {
  static constexpr std::pair<const char*, ops::roi_mode> modes[] = {{"avg", ops::roi_mode::average},
                                                                    {"max", ops::roi_mode::largest}};
  static constexpr std::pair<const char*, bool> offsets[] = {{"half_pixel", true}, {"output_half_pixel", false}};
  ops::roi_align_attributes a;
  a.mode = choice_of<ops::roi_mode>(n, "mode", "avg", modes);
  a.half_pixel = n.opset() >= 16 && choice_of<bool>(n, "coordinate_transformation_mode", "half_pixel", offsets);
  a.height = n.integer("output_height", 1);
  a.width = n.integer("output_width", 1);
  a.samples = n.integer("sampling_ratio", 0);
  a.scale = n.real("spatial_scale", 1);
  n.result(0, n(ops::roi_align, n.operand(0), n.operand(1), n.cast(n.operand(2), dtype::i64), a));
}

/// Strides, dilations and pads of a window.
template <class Attributes>
void take_window(lowering& n, Attributes& a) {
  a.strides = n.to_shape(n.integers("strides"), "its strides");
  a.dilations = n.to_shape(n.integers("dilations"), "its dilations");
  const std::vector<std::int64_t> pads = n.integers("pads");
  if (pads.size() % 2 != 0) n.invalid("its pads must have a begin and an end for each dimension");
  a.pads_begin = n.to_shape(std::span(pads).first(pads.size() / 2), "its pads");
  a.pads_end = n.to_shape(std::span(pads).last(pads.size() / 2), "its pads");
}

void lower_col2im(lowering& n) {
  ops::col2im_attributes a;
  a.image = n.to_shape(n.integers_of(1, "the shape of its image"), "the shape of its image");
  a.window = n.to_shape(n.integers_of(2, "the shape of its blocks"), "the shape of its blocks");
  take_window(n, a);
  n.result(0, n(ops::col2im, n.operand(0), a));
}

void lower_deform_conv(lowering& n) {
  if (n.rank_of(n.operand(0)) != 4) n.unsupported("a deformable convolution with other than two spatial dimensions");
  ops::deform_conv_attributes a;
  a.groups = n.integer("group", 1);
  a.offset_groups = n.integer("offset_group", 1);
  take_window(n, a);
  const shape w = n.dims_of(n.operand(1));
  const std::vector<std::int64_t> window = n.integers("kernel_shape");
  if (w.size() != 4 || (!window.empty() && !std::equal(window.begin(), window.end(), w.begin() + 2, w.end())))
    n.invalid("its weights must have rank 4, and its kernel_shape must be theirs");
  std::vector<value> operands{n.operand(0), n.operand(1), n.operand(2)};
  if (n.has(4)) operands.push_back(n.operand(4));
  value y = n(ops::deform_conv, std::span<const value>(operands), a);
  if (n.has(3)) y = n(ops::add, y, n.reshape(n.operand(3), {w[0], 1, 1}));
  n.result(0, y);
}

}  // namespace

std::span<const lowering_rule> sampling_rules() {
  static constexpr lowering_rule sampling_lowerings[] = {
      {"", "Resize", lower_resize},          {"", "Upsample", lower_upsample},  {"", "GridSample", lower_grid_sample},
      {"", "AffineGrid", lower_affine_grid}, {"", "RoiAlign", lower_roi_align}, {"", "Col2Im", lower_col2im},
      {"", "DeformConv", lower_deform_conv}};
  return sampling_lowerings;
}

}  // namespace collage::inline v0::onnx
