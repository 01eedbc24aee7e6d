// Operators that move elements to places known from shapes and attributes: joining, cutting, repeating, padding,
// transposing.
#include "rules.hpp"

#include <collage/op/movement.hpp>
#include <collage/op/slice.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace collage::inline v0::onnx {
namespace {

/// A dense part of x; x itself where that is all of it.
value cut(lowering& n, value x, const shape& starts, const shape& extents) {
  if (n.dims_of(x) == extents) return x;
  return n(ops::slice, x, {.starts = starts, .steps = shape::filled(starts.size(), 1), .extents = extents});
}

/// Axes that an operator names, each once, or all of them where it names none; `count` is how many there must be.
std::vector<std::size_t> axes_of(lowering& n, const std::vector<std::int64_t>& given, std::size_t rank,
                                 std::size_t count, const char* what) {
  std::vector<std::size_t> axes;
  std::vector<bool> seen(rank, false);
  for (const std::int64_t axis : given) {
    axes.push_back(static_cast<std::size_t>(n.axis(axis, rank)));
    if (seen[axes.back()]) n.invalid("its axis " + std::to_string(axis) + " is named twice");
    seen[axes.back()] = true;
  }
  if (count != axes.size())
    n.invalid(std::string(what) + " are " + std::to_string(count) + " numbers for " + std::to_string(axes.size()) +
              " axes");
  return axes;
}
/// All axes from the first on, for operators that need not name them.
std::vector<std::int64_t> first_axes(std::size_t count) {
  std::vector<std::int64_t> axes;
  for (std::size_t i = 0; i < count; ++i) axes.push_back(static_cast<std::int64_t>(i));
  return axes;
}

void lower_concat(lowering& n) {
  if (!n.has_attribute("axis")) n.invalid("its attribute axis is missing");
  std::vector<value> parts;
  for (std::size_t i = 0; i < n.operands(); ++i) parts.push_back(n.operand(i));
  if (parts.empty()) n.invalid("it has no operands");
  const std::int64_t axis = n.axis(n.integer("axis", 0), n.rank_of(parts[0]));
  if (parts.size() == 1) return n.result(0, parts[0]);
  n.result(0, n.concatenate(std::move(parts), axis));
}

void lower_transpose(lowering& n) {
  const value x = n.operand(0);
  const shape dims = n.dims_of(x);
  shape permutation = n.to_shape(n.integers("perm"), "its permutation");
  if (!n.has_attribute("perm"))
    for (std::size_t i = dims.size(); i > 0; --i) permutation.push_back(static_cast<std::int64_t>(i - 1));
  // If only dimensions of extent 1 change their places, no element moves, and a view is enough.
  shape turned;
  std::int64_t last = -1;
  std::uint32_t seen = 0;
  bool moves = false;
  for (const std::int64_t from : permutation) {
    if (from < 0 || from >= static_cast<std::int64_t>(dims.size()) || (seen >> from & 1U) != 0) break;
    seen |= 1U << from;
    turned.push_back(dims[static_cast<std::size_t>(from)]);
    if (turned[turned.size() - 1] == 1) continue;
    moves = moves || from < last;
    last = from;
  }
  if (turned.size() != dims.size() || permutation.size() != dims.size())
    n.invalid("its permutation does not name every dimension of its input once");
  n.result(0, moves ? n(ops::transpose, x, {.permutation = permutation}) : n.reshape(x, turned));
}

void lower_split(lowering& n) {
  const value x = n.operand(0);
  const shape dims = n.dims_of(x);
  const auto axis = static_cast<std::size_t>(n.axis(n.integer("axis", 0), dims.size()));
  const auto count = static_cast<std::int64_t>(n.outputs());
  if (count == 0) return;
  std::vector<std::int64_t> sizes;
  if (n.opset() < 13) sizes = n.integers("split");
  else if (n.has(1)) sizes = n.integers_of(1, "its sizes");
  if (sizes.empty()) {
    if (n.has_attribute("num_outputs") && n.integer("num_outputs", 0) != count)
      n.invalid("its attribute num_outputs is not the number of its outputs");
    if (n.opset() < 18 && dims[axis] % count != 0)
      n.invalid("its axis of " + std::to_string(dims[axis]) + " elements cannot be split into " +
                std::to_string(count) + " equal parts");
    const std::int64_t part = dims[axis] / count + (dims[axis] % count != 0 ? 1 : 0);
    sizes.assign(n.outputs(), part);
    sizes.back() = dims[axis] - part * (count - 1);  // the last part takes what is left
  }
  std::int64_t left = dims[axis];
  bool fits = sizes.size() == n.outputs();
  for (std::size_t i = 0; fits && i < sizes.size(); ++i) {
    fits = sizes[i] >= 0 && sizes[i] <= left;
    left -= fits ? sizes[i] : 0;
  }
  if (!fits || left != 0)
    n.invalid("its sizes are not " + std::to_string(count) + " numbers that sum to the " + std::to_string(dims[axis]) +
              " elements of its axis");
  shape starts = shape::filled(dims.size(), 0);
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    shape extents = dims;
    extents[axis] = sizes[i];
    if (n.wants(i)) n.result(i, cut(n, x, starts, extents));
    starts[axis] += sizes[i];
  }
}

void lower_slice(lowering& n) {
  const value x = n.operand(0);
  const shape dims = n.dims_of(x);
  const bool operands = n.opset() >= 10;
  const std::vector<std::int64_t> starts = operands ? n.integers_of(1, "its starts") : n.integers("starts");
  const std::vector<std::int64_t> ends = operands ? n.integers_of(2, "its ends") : n.integers("ends");
  std::vector<std::int64_t> listed = operands && n.has(3) ? n.integers_of(3, "its axes") : n.integers("axes");
  if (!(operands ? n.has(3) : n.has_attribute("axes"))) listed = first_axes(starts.size());
  const std::vector<std::int64_t> steps =
      operands && n.has(4) ? n.integers_of(4, "its steps") : std::vector<std::int64_t>(starts.size(), 1);
  const std::vector<std::size_t> axes = axes_of(n, listed, dims.size(), starts.size(), "its starts");
  if (ends.size() != starts.size() || steps.size() != starts.size())
    n.invalid("its starts, ends and steps must have the same number of entries");

  ops::slice_attributes a{
      .starts = shape::filled(dims.size(), 0), .steps = shape::filled(dims.size(), 1), .extents = dims};
  bool whole = true;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const std::int64_t extent = dims[axes[i]];
    const std::int64_t step = steps[i];
    if (step == 0) n.invalid("a step is 0");
    // Counted from the end where negative, then brought to where the step begins and ends.
    const std::int64_t lowest = step > 0 ? 0 : -1;
    const std::int64_t highest = step > 0 ? extent : extent - 1;
    const auto place = [&](std::int64_t given, std::int64_t low) {
      return std::clamp(given < 0 ? given + extent : given, low, std::max(low, highest));
    };
    const std::int64_t first = place(starts[i], 0);
    const std::int64_t last = place(ends[i], lowest);
    const std::int64_t distance = step > 0 ? last - first : first - last;
    // Any step beyond the tensor takes one element; the lowest number has no opposite.
    const std::int64_t stride = step > 0 ? step : -std::max(step, -std::numeric_limits<std::int64_t>::max());
    a.extents[axes[i]] = extent == 0 || distance <= 0 ? 0 : 1 + (distance - 1) / stride;
    a.starts[axes[i]] = a.extents[axes[i]] == 0 ? 0 : first;
    a.steps[axes[i]] = step;
    whole = whole && a.extents[axes[i]] == extent && (step == 1 || extent <= 1);
  }
  n.result(0, whole ? x : n(ops::slice, x, a));
}

void lower_expand(lowering& n) {
  const value x = n.operand(0);
  const shape dims = n.to_shape(n.integers_of(1, "its shape"), "its extents");
  bool fits = true;
  const bool same = detail::broadcast(n.dims_of(x), dims, fits) == n.dims_of(x);
  n.result(0, fits && same ? x : n(ops::expand, x, {.dims = dims}));
}

void lower_tile(lowering& n) {
  const value x = n.operand(0);
  const shape repeats = n.to_shape(n.integers_of(1, "its repeats"), "its repeats");
  const bool once = repeats == shape::filled(n.rank_of(x), 1);
  n.result(0, once ? x : n(ops::tile, x, {.repeats = repeats}));
}

ops::pad_mode pad_mode_of(lowering& n) {
  const std::string mode = n.text("mode", "constant");
  if (mode == "constant") return ops::pad_mode::constant;
  if (mode == "reflect") return ops::pad_mode::reflect;
  if (mode == "edge") return ops::pad_mode::edge;
  if (mode == "wrap") return ops::pad_mode::wrap;
  n.invalid("its mode is none of constant, reflect, edge and wrap");
}

void lower_pad(lowering& n) {
  const value x = n.operand(0);
  const std::size_t rank = n.rank_of(x);
  const bool operands = n.opset() >= 11;
  const std::vector<std::int64_t> pads = operands ? n.integers_of(1, "its pads") : n.integers("pads");
  const std::vector<std::int64_t> listed = operands && n.has(3) ? n.integers_of(3, "its axes") : first_axes(rank);
  const std::vector<std::size_t> axes = axes_of(n, listed, rank, pads.size() / 2, "its pads at each end");
  if (pads.size() % 2 != 0) n.invalid("its pads must be as many at both ends");
  ops::pad_attributes a{
      .pads_begin = shape::filled(rank, 0), .pads_end = shape::filled(rank, 0), .mode = pad_mode_of(n)};
  for (std::size_t i = 0; i < axes.size(); ++i) {
    a.pads_begin[axes[i]] = pads[i];
    a.pads_end[axes[i]] = pads[axes.size() + i];
  }
  if (std::all_of(pads.begin(), pads.end(), [](std::int64_t p) { return p == 0; })) return n.result(0, x);
  if (a.mode == ops::pad_mode::constant) {
    if (operands && n.has(2)) return n.result(0, n(ops::pad, x, n.operand(2), a));
    const double number = operands ? 0.0 : n.real("value", 0.0);
    if (number != 0) return n.result(0, n(ops::pad, x, n.scalar(number, n.element_type_of(x)), a));
  }
  n.result(0, n(ops::pad, x, a));
}

/// Crops what is too large and pads with zeros what is too small; the odd element is at the end.
void lower_center_crop_pad(lowering& n) {
  const value x = n.operand(0);
  const shape dims = n.dims_of(x);
  const std::vector<std::int64_t> wanted = n.integers_of(1, "its shape");
  const std::vector<std::int64_t> listed = n.has_attribute("axes") ? n.integers("axes") : first_axes(dims.size());
  const std::vector<std::size_t> axes = axes_of(n, listed, dims.size(), wanted.size(), "its extents");
  shape starts = shape::filled(dims.size(), 0), extents = dims;
  ops::pad_attributes a{.pads_begin = starts, .pads_end = starts};
  bool pads = false;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const std::int64_t extent = dims[axes[i]];
    if (wanted[i] < 0) n.invalid("its extents must not be negative");
    if (wanted[i] <= extent) {
      starts[axes[i]] = wanted[i] == 0 ? 0 : (extent - wanted[i]) / 2;
      extents[axes[i]] = wanted[i];
      continue;
    }
    pads = true;
    a.pads_begin[axes[i]] = (wanted[i] - extent) / 2;
    a.pads_end[axes[i]] = wanted[i] - extent - a.pads_begin[axes[i]];
  }
  const value cropped = cut(n, x, starts, extents);
  n.result(0, pads ? n(ops::pad, cropped, a) : cropped);
}

/// The side of the blocks that depth_to_space and space_to_depth move.
std::int64_t block_of(lowering& n, const shape& dims) {
  const std::int64_t block = n.integer("blocksize", 0);
  if (dims.size() != 4) n.invalid("its input has rank " + std::to_string(dims.size()) + ", and must be [N, C, H, W]");
  if (block < 1 || block > 32768) n.invalid("its blocks have the side " + std::to_string(block));
  return block;
}

void lower_depth_to_space(lowering& n) {
  const value x = n.operand(0);
  const shape d = n.dims_of(x);
  const std::int64_t block = block_of(n, d);
  const std::int64_t area = block * block;
  if (d[1] % area != 0) n.invalid("its channels cannot be divided into blocks");
  if (d[2] > detail::most_elements / block || d[3] > detail::most_elements / block)
    n.invalid("its output is too large");
  const std::string mode = n.text("mode", "DCR");
  if (mode != "DCR" && mode != "CRD") n.invalid("its mode is neither DCR nor CRD");
  const bool depth_first = mode == "DCR";
  const shape split = depth_first ? shape{d[0], block, block, d[1] / area, d[2], d[3]}
                                  : shape{d[0], d[1] / area, block, block, d[2], d[3]};
  const shape order = depth_first ? shape{0, 3, 4, 1, 5, 2} : shape{0, 1, 4, 2, 5, 3};
  const value moved = n(ops::transpose, n.reshape(x, split), {.permutation = order});
  n.result(0, n.reshape(moved, {d[0], d[1] / area, d[2] * block, d[3] * block}));
}

void lower_space_to_depth(lowering& n) {
  const value x = n.operand(0);
  const shape d = n.dims_of(x);
  const std::int64_t block = block_of(n, d);
  if (d[2] % block != 0 || d[3] % block != 0) n.invalid("its rows and columns cannot be divided into blocks");
  if (d[1] > detail::most_elements / (block * block)) n.invalid("its output is too large");
  const shape split{d[0], d[1], d[2] / block, block, d[3] / block, block};
  const value moved = n(ops::transpose, n.reshape(x, split), {.permutation = {0, 3, 5, 1, 2, 4}});
  n.result(0, n.reshape(moved, {d[0], d[1] * block * block, d[2] / block, d[3] / block}));
}

constexpr lowering_rule movement_lowerings[] = {
    {"", "CenterCropPad", lower_center_crop_pad},
    {"", "Concat", lower_concat},
    {"", "DepthToSpace", lower_depth_to_space},
    {"", "Expand", lower_expand},
    {"", "Pad", lower_pad},
    {"", "Slice", lower_slice},
    {"", "SpaceToDepth", lower_space_to_depth},
    {"", "Split", lower_split},
    {"", "Tile", lower_tile},
    {"", "Transpose", lower_transpose},
};

}  // namespace

std::span<const lowering_rule> movement_rules() { return movement_lowerings; }

}  // namespace collage::inline v0::onnx
