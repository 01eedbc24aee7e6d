// Sliding windows as ONNX's attributes describe them: kernel_shape, strides, dilations, pads, auto_pad.
#pragma once

#include <collage/io/onnx/lowering.hpp>
#include <cstddef>
#include <cstdint>
#include <string>

namespace collage::inline v0::onnx {

/// A sliding window with all that ONNX may leave out filled in.
struct sliding_window {
  shape size, strides, dilations, pads_begin, pads_end;
  std::string automatic;  ///< auto_pad
  bool is_same() const { return automatic == "SAME_UPPER" || automatic == "SAME_LOWER"; }
};

/// The spatial extents of an input [N, C, spatial...].
shape spatial_extents(const lowering& n, const shape& x);
/// The window of weights [_, _, window...], which kernel_shape may repeat.
shape weights_window(const lowering& n, const shape& w, std::size_t spatial);
/// A list attribute with one entry for each of `count` dimensions, each within [least, 2^31).
shape entries_of(const lowering& n, const char* name, std::size_t count, std::int64_t otherwise, std::int64_t least);

/// What a window reaches over along one dimension.
std::int64_t reach(const sliding_window& w, std::size_t d);
/// Divides `total` pads over both ends; the odd one goes to the end for SAME_UPPER, else to the beginning.
void divide_pads(sliding_window& w, std::size_t d, std::int64_t total);

/// Strides, dilations and explicit pads of a window of `size`. Pads of SAME are left 0: they depend on the operator.
sliding_window window_of(const lowering& n, const shape& size);
/// The same with the pads of SAME: as many places as strides fit into the input, a started one included.
sliding_window padded_window(const lowering& n, const shape& extents, const shape& size);

}  // namespace collage::inline v0::onnx
