// Which elements of a value are read. An access holds a start and a step for each dimension of the value, by the
// dimensions that a kernel walks over. Operators that move elements change these steps.
#pragma once

#include <algorithm>
#include <collage/graph/graph.hpp>
#include <collage/op/movement.hpp>
#include <collage/op/order.hpp>
#include <collage/op/slice.hpp>
#include <collage/ops.hpp>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace collage::inline v0::detail::host {
namespace {

/// Maps an element of the walked shape to an element of a value. Dimension i of the value has the index offset[i] +
/// step[i] * (the walked index in dimension from[i]).
struct element_access {
  static constexpr std::int64_t nowhere = -1;
  shape offset{}, step{}, from{};

  void push_back(std::int64_t o, std::int64_t s, std::int64_t f) {
    const bool fixed = s == 0 || f == nowhere;
    offset.push_back(o);
    step.push_back(fixed ? 0 : s);
    from.push_back(fixed ? nowhere : f);
  }
  void set(std::size_t i, std::int64_t o, std::int64_t s, std::int64_t f) {
    offset[i] = o;
    step[i] = s;
    from[i] = s == 0 ? nowhere : f;
  }
  std::size_t size() const { return offset.size(); }
};

/// The access to an operand that broadcasts to the accessed shape.
inline element_access broadcast_access(const element_access& to, const shape& operand) {
  element_access a;
  const std::size_t more = to.size() - operand.size();
  for (std::size_t i = 0; i < operand.size(); ++i)
    if (operand[i] == 1) a.push_back(0, 0, element_access::nowhere);
    else a.push_back(to.offset[i + more], to.step[i + more], to.from[i + more]);
  return a;
}

/// A part of the walked shape: indices [begin, end) of each dimension.
struct walked_box {
  shape begin{}, end{};

  static walked_box whole(const shape& dims) { return {shape::filled(dims.size(), 0), dims}; }
  bool is_empty() const {
    for (std::size_t i = 0; i < begin.size(); ++i)
      if (end[i] <= begin[i]) return true;
    return false;
  }
  shape extents() const {
    shape s;
    for (std::size_t i = 0; i < begin.size(); ++i) s.push_back(end[i] - begin[i]);
    return s;
  }
};

/// Where to cut a box so that each part reads from one place; `at` is the first index of the second part.
struct walked_cut {
  std::int64_t dimension = -1;
  std::int64_t at = 0;
  explicit operator bool() const { return dimension >= 0; }

  std::pair<walked_box, walked_box> parts(const walked_box& box) const {
    std::pair<walked_box, walked_box> two{box, box};
    two.first.end[static_cast<std::size_t>(dimension)] = at;
    two.second.begin[static_cast<std::size_t>(dimension)] = at;
    return two;
  }
};

/// The elements of an argument in the order in which the kernel walks them.
struct walked_leaf {
  std::uint32_t argument = 0;
  std::int64_t offset = 0;
  shape steps{};
  bool is_bytes = false;  ///< booleans

  friend bool operator==(const walked_leaf&, const walked_leaf&) = default;
};

/// The leaf of a value that lies in one piece.
inline walked_leaf leaf_of(std::uint32_t argument, const tensor_type& type, const element_access& at,
                           std::size_t walked) {
  walked_leaf leaf{.argument = argument, .is_bytes = type.type == dtype::boolean};
  leaf.steps = shape::filled(walked, 0);
  std::int64_t stride = 1;
  for (std::size_t i = at.size(); i-- > 0; stride *= type.dims[i]) {
    leaf.offset += at.offset[i] * stride;
    if (at.step[i] != 0) leaf.steps[static_cast<std::size_t>(at.from[i])] += at.step[i] * stride;
  }
  return leaf;
}

/// The source of a box for an operator that moves elements: elements of one operand, or zeros. If `cut` is set, the box
/// has several sources and must be cut there.
struct moved_access {
  std::uint32_t value = 0;
  element_access at{};
  bool is_zero = false;
  walked_cut cut{};
};

/// Finds the sources of operators that move elements.
class movers {
 public:
  explicit movers(const graph& network) : network_(network), view_(network.view()) {}

  bool contain(std::uint32_t n) const {
    return is(n, ops::transpose) || is(n, ops::slice) || is(n, ops::expand) || is(n, ops::concat) || is(n, ops::tile) ||
           is(n, ops::pad);
  }

  /// The source of elements `at` of the result of node n. The node must be one for which contain(n) holds.
  moved_access through(std::uint32_t n, const element_access& at, const walked_box& box) const {
    if (box.is_empty()) return {.is_zero = true};
    const list_view<const std::uint32_t> in = view_.inputs_of(n);
    if (is(n, ops::concat)) return concat(n, at, box);
    if (is(n, ops::tile)) return tile(n, at, box);
    if (is(n, ops::pad)) return pad(n, at, box);
    moved_access read{.value = in[0]};
    if (is(n, ops::transpose)) {
      const shape permutation = attributes(n, ops::transpose).permutation;
      read.at = at;
      for (std::size_t i = 0; i < at.size(); ++i) {
        const auto to = static_cast<std::size_t>(permutation[i]);
        read.at.offset[to] = at.offset[i];
        read.at.step[to] = at.step[i];
        read.at.from[to] = at.from[i];
      }
    } else if (is(n, ops::slice)) {
      const ops::slice_attributes a = attributes(n, ops::slice);
      for (std::size_t i = 0; i < at.size(); ++i)
        read.at.push_back(a.starts[i] + a.steps[i] * at.offset[i], a.steps[i] * at.step[i], at.from[i]);
    } else {
      read.at = broadcast_access(at, dims_of(in[0]));
    }
    return read;
  }

 private:
  template <class Kind>
  bool is(std::uint32_t node, const Kind&) const {
    return view_.kind_id_of(node) == kind_id<Kind>;
  }
  template <class Kind>
  typename Kind::attributes attributes(std::uint32_t node, const Kind&) const {
    return from_words<typename Kind::attributes>(view_.words_of(node));
  }
  const shape& dims_of(std::uint32_t value) const { return network_.type_of(value).dims; }

  static std::int64_t first_index(const element_access& at, std::size_t d, const walked_box& box) {
    return at.step[d] == 0 ? at.offset[d] : at.offset[d] + at.step[d] * box.begin[static_cast<std::size_t>(at.from[d])];
  }
  /// The cut at which dimension d of the access leaves [low, high). The access begins inside; if it stays there, there
  /// is no cut.
  static walked_cut leaving(const element_access& at, std::size_t d, const walked_box& box, std::int64_t low,
                            std::int64_t high) {
    if (at.step[d] == 0) return {};
    const std::int64_t o = at.offset[d], s = at.step[d];
    const std::int64_t first_outside = s > 0 ? (high - o + s - 1) / s : (o - low) / -s + 1;
    if (first_outside >= box.end[static_cast<std::size_t>(at.from[d])]) return {};
    return {at.from[d], first_outside};
  }

  moved_access concat(std::uint32_t n, const element_access& at, const walked_box& box) const {
    const auto axis = static_cast<std::size_t>(attributes(n, ops::concat).axis);
    const std::int64_t index = first_index(at, axis, box);
    std::int64_t low = 0;
    for (const std::uint32_t v : view_.inputs_of(n)) {
      const std::int64_t high = low + dims_of(v)[axis];
      if (index < high) {
        moved_access read{.value = v, .at = at, .cut = leaving(at, axis, box, low, high)};
        read.at.offset[axis] -= low;
        return read;
      }
      low = high;
    }
    return {.is_zero = true};
  }

  moved_access tile(std::uint32_t n, const element_access& at, const walked_box& box) const {
    moved_access read{.value = view_.inputs_of(n)[0], .at = at};
    const shape& x = dims_of(read.value);
    for (std::size_t d = 0; d < at.size(); ++d) {
      if (x[d] == 1) {
        read.at.set(d, 0, 0, element_access::nowhere);
        continue;
      }
      const std::int64_t low = first_index(at, d, box) / x[d] * x[d];
      read.cut = leaving(at, d, box, low, low + x[d]);
      if (read.cut) return read;
      read.at.offset[d] -= low;
    }
    return read;
  }

  /// Negative pads cut the input; the padding is then made from the part that is left.
  moved_access pad(std::uint32_t n, const element_access& at, const walked_box& box) const {
    const ops::pad_attributes a = attributes(n, ops::pad);
    const list_view<const std::uint32_t> in = view_.inputs_of(n);
    moved_access read{.value = in[0], .at = at};
    const shape& x = dims_of(in[0]);
    for (std::size_t d = 0; d < at.size(); ++d) {
      const std::int64_t before = std::max<std::int64_t>(a.pads_begin[d], 0);
      const std::int64_t lost = std::max<std::int64_t>(-a.pads_begin[d], 0);
      const std::int64_t left = x[d] - lost + std::min<std::int64_t>(a.pads_end[d], 0);
      const std::int64_t extent = x[d] + a.pads_begin[d] + a.pads_end[d];
      const std::int64_t place = first_index(at, d, box) - before;  // 0 is the first element that is left
      const std::int64_t o = at.offset[d] - before, s = at.step[d], f = at.from[d];
      std::int64_t low = 0, high = left;
      if (place >= 0 && place < left) {
        read.at.set(d, o + lost, s, f);
      } else if (a.mode == ops::pad_mode::constant || a.mode == ops::pad_mode::edge || left == 1) {
        low = place < 0 ? -before : left;
        high = place < 0 ? 0 : extent - before;
        if (a.mode != ops::pad_mode::constant)
          read.at.set(d, place < 0 ? lost : lost + left - 1, 0, element_access::nowhere);
      } else {
        // wrap repeats the input; reflect alternates the input and its mirror image, which share their end elements.
        const std::int64_t period = a.mode == ops::pad_mode::wrap ? left : left - 1;
        const std::int64_t which = place >= 0 ? place / period : -((-place + period - 1) / period);
        low = which * period;
        high = low + period;
        const bool is_mirrored = a.mode == ops::pad_mode::reflect && which % 2 != 0;
        if (is_mirrored) read.at.set(d, lost + high - o, -s, f);
        else read.at.set(d, lost + o - low, s, f);
      }
      read.cut = leaving(at, d, box, low + before, high + before);
      if (read.cut) return read;
      const bool is_outside = place < 0 || place >= left;
      if (!is_outside || a.mode != ops::pad_mode::constant) continue;
      if (in.size() == 1) return {.is_zero = true};
      moved_access filled{.value = in[1]};
      for (std::size_t i = 0; i < dims_of(in[1]).size(); ++i) filled.at.push_back(0, 0, element_access::nowhere);
      return filled;
    }
    return read;
  }

  const graph& network_;
  graph_view view_;
};

}  // namespace
}  // namespace collage::inline v0::detail::host
