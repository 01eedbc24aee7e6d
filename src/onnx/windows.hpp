// Sliding windows as ONNX's attributes describe them: kernel_shape, strides, dilations, pads, auto_pad.
#pragma once

#include <collage/io/onnx/lowering.hpp>
#include <cstddef>
#include <cstdint>
#include <string>

namespace collage::inline v0::onnx {

/// A sliding window. Attributes that the node leaves out have their defaults.
struct sliding_window {
  shape size, strides, dilations, pads_begin, pads_end;
  std::string automatic;  ///< auto_pad
  bool is_same() const { return automatic == "SAME_UPPER" || automatic == "SAME_LOWER"; }
};

/// The spatial extents of an input [N, C, spatial...].
shape spatial_extents(const lowering& n, const shape& x);
/// The window of weights [_, _, window...]. Throws if kernel_shape is given and differs.
shape weights_window(const lowering& n, const shape& w, std::size_t spatial);
/// A list attribute with one entry for each of `count` dimensions, each within [least, 2^31), or `otherwise` if it is left out.
shape entries_of(const lowering& n, const char* name, std::size_t count, std::int64_t otherwise, std::int64_t least);

/// The number of elements that a window spans along one dimension, gaps of dilation included.
std::int64_t reach(const sliding_window& w, std::size_t d);
/// Divides `total` pads between both ends. An odd pad goes to the end for SAME_UPPER, else to the beginning.
void divide_pads(sliding_window& w, std::size_t d, std::int64_t total);

/// Strides, dilations and explicit pads of a window of `size`. Pads of SAME are left 0: they depend on the operator.
sliding_window window_of(const lowering& n, const shape& size);
/// The same with the pads of SAME, so that the window has ceil(extent / stride) places along each dimension.
sliding_window padded_window(const lowering& n, const shape& extents, const shape& size);

}  // namespace collage::inline v0::onnx
