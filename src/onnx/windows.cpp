// Sliding windows as ONNX's attributes describe them.
#include "windows.hpp"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace collage::inline v0::onnx {

shape entries_of(const lowering& n, const char* name, std::size_t count, std::int64_t otherwise, std::int64_t least) {
  const std::vector<std::int64_t> list = n.integers(name);
  if (list.empty()) return shape::filled(count, otherwise);
  if (list.size() != count)
    n.invalid("its " + std::string(name) + " have " + std::to_string(list.size()) + " entries, not " +
              std::to_string(count));
  for (const std::int64_t entry : list)
    if (entry < least || entry > 0x7FFFFFFF)
      n.invalid("its " + std::string(name) + " contain " + std::to_string(entry) + ", and must be from " +
                std::to_string(least) + " to 2147483647");
  return shape(list);
}

shape spatial_extents(const lowering& n, const shape& x) {
  if (x.rank < 3)
    n.invalid("its input has rank " + std::to_string(x.rank) + ", and must be [N, C, spatial...] with at least one " +
              "spatial dimension");
  return x.from(2);
}

std::int64_t reach(const sliding_window& w, std::size_t d) { return w.dilations[d] * (w.size[d] - 1) + 1; }

void divide_pads(sliding_window& w, std::size_t d, std::int64_t total) {
  const std::int64_t smaller = total / 2;
  w.pads_begin[d] = w.automatic == "SAME_UPPER" ? smaller : total - smaller;
  w.pads_end[d] = total - w.pads_begin[d];
}

sliding_window window_of(const lowering& n, const shape& size) {
  const std::size_t rank = size.size();
  sliding_window w;
  w.size = size;
  for (const std::int64_t extent : size)
    if (extent < 1 || extent > 0x7FFFFFFF) n.invalid("its window has the extent " + std::to_string(extent));
  w.strides = entries_of(n, "strides", rank, 1, 1);
  w.dilations = entries_of(n, "dilations", rank, 1, 1);
  w.automatic = n.text("auto_pad", "NOTSET");
  w.pads_begin = w.pads_end = shape::filled(rank, 0);
  if (w.automatic == "NOTSET" || w.automatic.empty()) {
    const std::vector<std::int64_t> pads = n.integers("pads");
    if (!pads.empty() && pads.size() != 2 * rank)
      n.invalid("its pads have " + std::to_string(pads.size()) + " entries, not " + std::to_string(2 * rank));
    for (std::size_t d = 0; d < rank && !pads.empty(); ++d) {
      w.pads_begin[d] = pads[d];
      w.pads_end[d] = pads[rank + d];
    }
  } else if (w.automatic != "VALID" && !w.is_same()) {
    n.invalid("its auto_pad is \"" + w.automatic + "\", and must be NOTSET, VALID, SAME_UPPER or SAME_LOWER");
  }
  return w;
}

sliding_window padded_window(const lowering& n, const shape& extents, const shape& size) {
  sliding_window w = window_of(n, size);
  for (std::size_t d = 0; w.is_same() && d < size.size(); ++d) {
    const std::int64_t places = (extents[d] + w.strides[d] - 1) / w.strides[d];
    divide_pads(w, d, std::max<std::int64_t>((places - 1) * w.strides[d] + reach(w, d) - extents[d], 0));
  }
  return w;
}

shape weights_window(const lowering& n, const shape& w, std::size_t spatial) {
  if (w.rank != spatial + 2)
    n.invalid("its weights have rank " + std::to_string(w.rank) + ", but its input has rank " +
              std::to_string(spatial + 2));
  const shape window = w.from(2);
  if (n.has_attribute("kernel_shape") && !(n.to_shape(n.integers("kernel_shape"), "its kernel_shape") == window))
    n.invalid("its kernel_shape is not the window of its weights");
  return window;
}

}  // namespace collage::inline v0::onnx
