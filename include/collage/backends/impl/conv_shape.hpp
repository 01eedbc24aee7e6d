// A convolution's extents, read from the graph once when a kernel is built.
#pragma once

#include <collage/backends/any_match.hpp>
#include <collage/op/conv.hpp>
#include <collage/shape.hpp>
#include <cstddef>
#include <cstdint>

namespace collage::inline v0::detail::host {
namespace {

/// conv with x: [images, groups * in_channels, extent...], w: [groups * out_channels, in_channels, window...]. Channels
/// are counted per group.
struct conv_shape {
  std::int64_t images = 0, groups = 1, in_channels = 0, out_channels = 0;
  shape extent, places, window;  ///< spatial: of the input, the output, the filter
  shape strides, dilations, pads;
  std::size_t rank() const { return extent.size(); }
  std::int64_t extent_size() const { return extent.elements(); }
  std::int64_t place_count() const { return places.elements(); }
  std::int64_t taps() const { return window.elements(); }
  /// Products per output element: the rows of the matrix that im2col makes.
  std::int64_t depth() const { return in_channels * taps(); }
  /// The whole computation in multiply-adds.
  double work() const {
    return static_cast<double>(images * groups * out_channels) * static_cast<double>(place_count() * depth());
  }

  /// Each place reads the one element at its own position: a plain product of matrices.
  bool pointwise() const {
    for (std::size_t d = 0; d < rank(); ++d)
      if (window[d] != 1 || strides[d] != 1 || pads[d] != 0 || places[d] != extent[d]) return false;
    return true;
  }
};

inline conv_shape conv_shape_of(const any_match& m, std::uint32_t node) {
  const ops::conv_attributes a = m.attributes(node, ops::conv);
  const shape& x = m.type_of(m.inputs_of(node)[0]).dims;
  const shape& w = m.type_of(m.inputs_of(node)[1]).dims;
  const shape& y = m.type_of(m.output_of(node)).dims;
  conv_shape s;
  s.images = x[0];
  s.groups = a.groups;
  s.in_channels = w[1];
  s.out_channels = w[0] / a.groups;
  s.extent = x.from(2);
  s.places = y.from(2);
  s.window = w.from(2);
  s.strides = a.strides;
  s.dilations = a.dilations;
  s.pads = a.pads_begin;
  return s;
}

}  // namespace
}  // namespace collage::inline v0::detail::host
