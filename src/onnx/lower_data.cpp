// Operators that are computed while loading, because the shape of their output depends on their data.
#include "rules.hpp"

#include <collage/op/gather.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

namespace collage::inline v0::onnx {
namespace {

oracle_value integers_value(const shape& dims, const std::vector<std::int64_t>& list) {
  oracle_value v(tensor_type{dtype::i64, dims});
  v.integer = list;
  return v;
}
value integer_list(lowering& n, const std::vector<std::int64_t>& list) { return n.integers_constant(list); }

/// The coordinates of all elements that are not 0: a row for each dimension, a column for each element. A scalar counts
/// as a list of one.
void lower_non_zero(lowering& n) {
  const oracle_value x = n.contents_of(0, "its input");
  shape dims = x.type.dims;
  if (dims.empty()) dims = {1};
  std::vector<std::int64_t> found;
  for (std::size_t i = 0; i < x.size(); ++i)
    if (x.real.empty() ? x.integer[i] != 0 : x.real[i] != 0) found.push_back(static_cast<std::int64_t>(i));
  std::vector<std::int64_t> rows(dims.size() * found.size());
  for (std::size_t c = 0; c < found.size(); ++c) {
    std::int64_t rest = found[c];
    for (std::size_t d = dims.size(); d-- > 0; rest /= dims[d]) rows[d * found.size() + c] = rest % dims[d];
  }
  n.result(0, n.constant(integers_value({static_cast<std::int64_t>(dims.size()), std::ssize(found)}, rows)));
}

/// The slices (without an axis: the elements) whose condition holds. Only the condition must be known.
void lower_compress(lowering& n) {
  value x = n.operand(0);
  if (n.rank_of(n.operand(1)) != 1) n.invalid("its condition must be a list");
  const std::vector<std::int64_t> condition = n.integers_of(1, "its condition");
  std::int64_t axis = 0;
  if (n.has_attribute("axis")) axis = n.axis(n.integer("axis", 0), n.rank_of(x));
  else x = n.reshape(x, {n.dims_of(x).elements()});
  const std::int64_t extent = n.dims_of(x)[static_cast<std::size_t>(axis)];
  std::vector<std::int64_t> kept;
  for (std::int64_t i = 0; i < std::min(extent, std::ssize(condition)); ++i)
    if (condition[static_cast<std::size_t>(i)] != 0) kept.push_back(i);
  n.result(0, n(ops::gather, x, integer_list(n, kept), {.axis = axis}));
}

/// A tensor's slices along an axis, compared element by element. NaN equals NaN and comes last.
class compared_slices {
 public:
  compared_slices(const oracle_value& x, std::size_t axis) : x_(x), count_(x.type.dims[axis]) {
    for (std::size_t d = 0; d < x.type.dims.size(); ++d)
      if (d != axis) (d < axis ? outer_ : inner_) *= x.type.dims[d];
  }
  std::int64_t count() const { return count_; }
  std::int64_t inner() const { return inner_; }
  std::int64_t outer() const { return outer_; }
  std::size_t at(std::int64_t outer, std::int64_t slice, std::int64_t inner) const {
    return static_cast<std::size_t>((outer * count_ + slice) * inner_ + inner);
  }
  /// Negative if slice a comes before slice b, 0 if they are equal.
  int compare(std::int64_t a, std::int64_t b) const {
    for (std::int64_t o = 0; o < outer_; ++o)
      for (std::int64_t i = 0; i < inner_; ++i)
        if (const int order = compare_elements(at(o, a, i), at(o, b, i)); order != 0) return order;
    return 0;
  }

 private:
  int compare_elements(std::size_t i, std::size_t j) const {
    if (!x_.real.empty()) {
      const double a = x_.real[i], b = x_.real[j];
      if (std::isnan(a) || std::isnan(b)) return (std::isnan(a) ? 1 : 0) - (std::isnan(b) ? 1 : 0);
      return (a > b ? 1 : 0) - (a < b ? 1 : 0);
    }
    const std::int64_t a = x_.integer[i], b = x_.integer[j];
    if (x_.type.type == dtype::u64) {
      const auto c = static_cast<std::uint64_t>(a), d = static_cast<std::uint64_t>(b);
      return (c > d ? 1 : 0) - (c < d ? 1 : 0);
    }
    return (a > b ? 1 : 0) - (a < b ? 1 : 0);
  }

  const oracle_value& x_;
  std::int64_t count_, outer_ = 1, inner_ = 1;
};

void lower_unique(lowering& n) {
  oracle_value x = n.contents_of(0, "its input");
  std::size_t axis = 0;
  if (n.has_attribute("axis")) axis = static_cast<std::size_t>(n.axis(n.integer("axis", 0), x.type.rank()));
  else x.type.dims = {static_cast<std::int64_t>(x.size())};
  const compared_slices slices(x, axis);

  std::vector<std::int64_t> order(static_cast<std::size_t>(slices.count()));
  std::iota(order.begin(), order.end(), std::int64_t{0});
  // Equal slices stay in the order of the input.
  std::sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
    const int compared = slices.compare(a, b);
    return compared != 0 ? compared < 0 : a < b;
  });
  std::vector<std::int64_t> first, counts, inverse(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (i == 0 || slices.compare(order[i - 1], order[i]) != 0) {
      first.push_back(order[i]);
      counts.push_back(0);
    }
    ++counts.back();
    inverse[static_cast<std::size_t>(order[i])] = std::ssize(first) - 1;
  }
  if (n.integer("sorted", 1) == 0) {
    std::vector<std::size_t> by_place(first.size());
    std::iota(by_place.begin(), by_place.end(), std::size_t{0});
    std::sort(by_place.begin(), by_place.end(), [&](std::size_t a, std::size_t b) { return first[a] < first[b]; });
    std::vector<std::int64_t> rank(first.size()), sorted_first, sorted_counts;
    for (const std::size_t group : by_place) {
      rank[group] = std::ssize(sorted_first);
      sorted_first.push_back(first[group]);
      sorted_counts.push_back(counts[group]);
    }
    for (std::int64_t& group : inverse) group = rank[static_cast<std::size_t>(group)];
    first = sorted_first;
    counts = sorted_counts;
  }

  if (n.wants(0)) {
    tensor_type type = x.type;
    type.dims[axis] = std::ssize(first);
    oracle_value y(type);
    std::size_t to = 0;
    for (std::int64_t o = 0; o < slices.outer(); ++o)
      for (const std::int64_t slice : first)
        for (std::int64_t i = 0; i < slices.inner(); ++i, ++to) {
          if (x.real.empty()) y.integer[to] = x.integer[slices.at(o, slice, i)];
          else y.real[to] = x.real[slices.at(o, slice, i)];
        }
    n.result(0, n.constant(y));
  }
  if (n.wants(1)) n.result(1, integer_list(n, first));
  if (n.wants(2)) n.result(2, integer_list(n, inverse));
  if (n.wants(3)) n.result(3, integer_list(n, counts));
}

/// A box by its corners, in float32 as in the operator: rounding decides for boxes close to the threshold.
struct corner_box {
  float top = 0, left = 0, bottom = 0, right = 0;
  float area() const { return (bottom - top) * (right - left); }
};
corner_box box_at(const oracle_value& boxes, std::size_t at, bool by_center) {
  float e[4] = {};
  for (std::size_t i = 0; i < 4; ++i) e[i] = static_cast<float>(boxes.real[at + i]);
  if (by_center) {  // x, y, width, height
    return {e[1] - e[3] / 2, e[0] - e[2] / 2, e[1] + e[3] / 2, e[0] + e[2] / 2};
  }
  return {std::min(e[0], e[2]), std::min(e[1], e[3]), std::max(e[0], e[2]), std::max(e[1], e[3])};
}
/// Whether the intersection of two boxes, divided by their union, exceeds the threshold.
bool overlap(const corner_box& a, const corner_box& b, float threshold) {
  const float height = std::min(a.bottom, b.bottom) - std::max(a.top, b.top);
  const float width = std::min(a.right, b.right) - std::max(a.left, b.left);
  if (!(height > 0) || !(width > 0)) return false;
  const float common = height * width;
  const float together = a.area() + b.area() - common;
  return a.area() > 0 && b.area() > 0 && together > 0 && common / together > threshold;
}

void lower_non_max_suppression(lowering& n) {
  const oracle_value boxes = n.contents_of(0, "its boxes");
  const oracle_value scores = n.contents_of(1, "its scores");
  const std::int64_t most = n.has(2) ? n.integer_of(2, "its number of boxes per class") : 0;
  const auto threshold = static_cast<float>(n.has(3) ? n.number_of(3, "its threshold of overlap") : 0.0);
  const bool limited = n.has(4);
  const double least = limited ? n.number_of(4, "its threshold of scores") : 0.0;
  const std::int64_t center = n.integer("center_point_box", 0);
  const shape& b = boxes.type.dims;
  const shape& s = scores.type.dims;
  if (!is_floating(boxes.type.type) || !is_floating(scores.type.type))
    n.invalid("its boxes and scores must be floating-point numbers");
  if (b.size() != 3 || s.size() != 3 || b[2] != 4 || b[0] != s[0] || b[1] != s[2])
    n.invalid("its boxes must be [batch, boxes, 4] and its scores [batch, classes, boxes]");
  if (!(threshold >= 0 && threshold <= 1)) n.invalid("its threshold of overlap must be from 0 to 1");
  if (center != 0 && center != 1) n.invalid("its attribute center_point_box must be 0 or 1");

  std::vector<std::int64_t> rows;
  for (std::int64_t batch = 0; batch < b[0]; ++batch) {
    std::vector<corner_box> corners;
    for (std::int64_t i = 0; i < b[1]; ++i)
      corners.push_back(box_at(boxes, static_cast<std::size_t>((batch * b[1] + i) * 4), center == 1));
    for (std::int64_t category = 0; category < s[1]; ++category) {
      const double* const score = scores.real.data() + (batch * s[1] + category) * s[2];
      std::vector<std::int64_t> order, kept;
      for (std::int64_t i = 0; i < b[1]; ++i)
        if (limited ? score[i] > least : !std::isnan(score[i])) order.push_back(i);
      std::sort(order.begin(), order.end(),
                [&](std::int64_t i, std::int64_t j) { return score[i] != score[j] ? score[i] > score[j] : i < j; });
      for (const std::int64_t i : order) {
        if (std::ssize(kept) >= most) break;
        const bool covered = std::any_of(kept.begin(), kept.end(), [&](std::int64_t other) {
          return overlap(corners[static_cast<std::size_t>(i)], corners[static_cast<std::size_t>(other)], threshold);
        });
        if (covered) continue;
        kept.push_back(i);
        rows.insert(rows.end(), {batch, category, i});
      }
    }
  }
  n.result(0, n.constant(integers_value({std::ssize(rows) / 3, 3}, rows)));
}

constexpr lowering_rule data_lowerings[] = {
    {"", "Compress", lower_compress},
    {"", "NonMaxSuppression", lower_non_max_suppression},
    {"", "NonZero", lower_non_zero},
    {"", "Unique", lower_unique},
};

}  // namespace

std::span<const lowering_rule> data_rules() { return data_lowerings; }

}  // namespace collage::inline v0::onnx
