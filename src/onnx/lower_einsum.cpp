#include "lower_einsum.hpp"

#include <collage/op/elementwise.hpp>
#include <collage/op/matmul.hpp>
#include <collage/op/movement.hpp>
#include <collage/op/reduce.hpp>
#include <collage/op/slice.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace collage::inline v0::onnx {
namespace {

/// The label of a dimension: a letter. A dimension of the ellipsis has its distance from the ellipsis's last dimension.
using label = unsigned char;
using labels = std::vector<label>;

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

bool holds(const labels& list, label l) { return std::find(list.begin(), list.end(), l) != list.end(); }

/// One term of the equation: letters before and after an ellipsis.
struct term {
  labels before, behind;
  bool has_ellipsis = false;

  /// The labels with `covered` dimensions in place of the ellipsis.
  labels spelled(std::size_t covered) const {
    labels all = before;
    for (std::size_t i = covered; i-- > 0;) all.push_back(static_cast<label>(i));
    all.insert(all.end(), behind.begin(), behind.end());
    return all;
  }
};

term parse_term(lowering& n, const std::string& text) {
  term t;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (is_letter(text[i])) {
      (t.has_ellipsis ? t.behind : t.before).push_back(static_cast<label>(text[i]));
    } else if (!t.has_ellipsis && text.compare(i, 3, "...") == 0) {
      t.has_ellipsis = true;
      i += 2;
    } else {
      n.invalid("its equation must be made of letters, commas, at most one ellipsis for each operand, and one arrow");
    }
  }
  return t;
}

struct equation {
  std::vector<term> operands;
  term result;
  bool has_result = false;
};

equation parse_equation(lowering& n) {
  std::string text = n.text("equation", "");
  text.erase(std::remove(text.begin(), text.end(), ' '), text.end());
  equation e;
  const std::size_t arrow = text.find("->");
  if (arrow != std::string::npos) {
    e.has_result = true;
    e.result = parse_term(n, text.substr(arrow + 2));
  }
  const std::string left = text.substr(0, arrow);
  for (std::size_t at = 0; at <= left.size();) {
    const std::size_t comma = std::min(left.find(',', at), left.size());
    e.operands.push_back(parse_term(n, left.substr(at, comma - at)));
    at = comma + 1;
  }
  if (e.operands.size() != n.operands())
    n.invalid("its equation has " + std::to_string(e.operands.size()) + " terms for " + std::to_string(n.operands()) +
              " operands");
  return e;
}

/// A tensor with a label for each dimension.
struct named {
  value v;
  labels names;
};

value permuted(lowering& n, const named& x, const labels& order) {
  if (order == x.names) return x.v;
  shape permutation;
  for (const label l : order) permutation.push_back(std::find(x.names.begin(), x.names.end(), l) - x.names.begin());
  return n(ops::transpose, x.v, {.permutation = permutation});
}

/// Two dimensions with the same label, if there are any.
std::optional<std::pair<std::size_t, std::size_t>> repeated_name(const labels& names) {
  for (std::size_t i = 0; i < names.size(); ++i)
    for (std::size_t j = i + 1; j < names.size(); ++j)
      if (names[i] == names[j]) return std::pair(i, j);
  return std::nullopt;
}

/// Replaces dimensions with the same label by their diagonal.
void take_diagonals(lowering& n, named& x) {
  while (const auto pair = repeated_name(x.names)) {
    const auto [first, second] = *pair;
    const shape dims = n.dims_of(x.v);
    const std::int64_t extent = dims[first];
    if (dims[second] != extent) n.invalid("the extents of a repeated label must be the same");
    shape permutation, flat;
    labels names;
    for (std::size_t d = 0; d < dims.size(); ++d) {
      if (d == first || d == second) continue;
      permutation.push_back(static_cast<std::int64_t>(d));
      flat.push_back(dims[d]);
      names.push_back(x.names[d]);
    }
    permutation.push_back(static_cast<std::int64_t>(first));
    permutation.push_back(static_cast<std::int64_t>(second));
    names.push_back(x.names[first]);
    flat.push_back(extent * extent);
    x.v = n.reshape(n(ops::transpose, x.v, {.permutation = permutation}), flat);
    // In both dimensions taken as one, the diagonal is every (extent + 1)th element.
    shape steps = shape::filled(flat.size(), 1);
    steps[flat.size() - 1] = extent + 1;
    flat[flat.size() - 1] = extent;
    x.v = n(ops::slice, x.v, {.starts = shape::filled(flat.size(), 0), .steps = steps, .extents = flat});
    x.names = names;
  }
}

using extents_by_label = std::array<std::int64_t, 256>;

/// Drops dimensions of extent 1 whose label has a larger extent in another operand, so that nothing needs broadcasting.
void drop_repeated(lowering& n, named& x, const extents_by_label& extents) {
  const shape dims = n.dims_of(x.v);
  shape kept;
  labels names;
  for (std::size_t d = 0; d < dims.size(); ++d) {
    if (dims[d] == 1 && extents[x.names[d]] != 1) continue;
    kept.push_back(dims[d]);
    names.push_back(x.names[d]);
  }
  x = {n.reshape(x.v, kept), names};
}

/// Sums over the dimensions whose labels are not in `wanted`.
void sum_unwanted(lowering& n, named& x, const labels& wanted) {
  shape axes;
  labels names;
  for (std::size_t d = 0; d < x.names.size(); ++d)
    if (holds(wanted, x.names[d])) names.push_back(x.names[d]);
    else axes.push_back(static_cast<std::int64_t>(d));
  if (axes.empty()) return;
  x = {n(ops::reduce_sum, x.v, {.axes = axes, .keep_dims = false}), names};
}

labels joined(const labels& a, const labels& b) {
  labels all = a;
  all.insert(all.end(), b.begin(), b.end());
  return all;
}

/// The product of two tensors, summed over the labels that both have and `wanted` does not have.
named multiplied(lowering& n, const named& a, const named& b, const labels& wanted, const extents_by_label& extents) {
  labels batch, sums, rows, columns;
  for (const label l : a.names) (!holds(b.names, l) ? rows : holds(wanted, l) ? batch : sums).push_back(l);
  for (const label l : b.names)
    if (!holds(a.names, l)) columns.push_back(l);
  // The product reads an operand transposed if this saves a transpose.
  const labels a_plain = joined(batch, joined(rows, sums)), b_plain = joined(batch, joined(sums, columns));
  const bool swap_a = a.names != a_plain && a.names == joined(batch, joined(sums, rows));
  const bool swap_b = b.names != b_plain && b.names == joined(batch, joined(columns, sums));
  const value x = swap_a ? a.v : permuted(n, a, a_plain);
  const value y = swap_b ? b.v : permuted(n, b, b_plain);
  const auto size = [&](const labels& list) {
    std::int64_t product = 1;
    for (const label l : list) product *= extents[l];
    return product;
  };
  const std::int64_t m = size(rows), k = size(sums), count = size(batch), columns_size = size(columns);
  // Without a batch the product has rank 2, which more backends support.
  const auto matrices = [&](std::int64_t first, std::int64_t second, bool swap) {
    if (swap) std::swap(first, second);
    return batch.empty() ? shape{first, second} : shape{count, first, second};
  };
  const value left = n.reshape(x, matrices(m, k, swap_a));
  const value right = n.reshape(y, matrices(k, columns_size, swap_b));
  named result{left, joined(batch, joined(rows, columns))};
  if (result.names.size() > shape::max_rank) n.unsupported("an intermediate product of more than 8 dimensions");
  result.v = sums.empty() ? n(ops::mul, left, right)
                          : n(ops::matmul, left, right, {.transpose_a = swap_a, .transpose_b = swap_b});
  shape dims;
  for (const label l : result.names) dims.push_back(extents[l]);
  result.v = n.reshape(result.v, dims);
  return result;
}

/// The labels of the result: those of the equation. If it has no arrow: those of the ellipsis and, sorted, all letters that occur
/// once.
labels result_names(lowering& n, const equation& e, std::size_t covered, const std::vector<named>& operands) {
  std::array<int, 256> uses{};
  for (const named& x : operands)
    for (const label l : x.names) ++uses[l];
  if (!e.has_result) {
    term implicit;
    implicit.has_ellipsis = true;
    for (label l = 'A'; l <= 'z'; ++l)
      if (uses[l] == 1) implicit.behind.push_back(l);
    return implicit.spelled(covered);
  }
  if (covered > 0 && !e.result.has_ellipsis) n.invalid("its result must have the ellipsis that its operands have");
  const labels names = e.result.spelled(covered);
  if (names.size() > shape::max_rank) n.unsupported("a result of more than 8 dimensions");
  for (std::size_t i = 0; i < names.size(); ++i)
    if (uses[names[i]] == 0 || std::count(names.begin(), names.end(), names[i]) != 1)
      n.invalid("each label of its result must be there once, and in an operand");
  return names;
}

}  // namespace

void lower_einsum(lowering& n) {
  const equation e = parse_equation(n);
  std::vector<named> operands;
  std::size_t covered = 0;
  extents_by_label extents;
  extents.fill(1);
  for (std::size_t i = 0; i < e.operands.size(); ++i) {
    const value v = n.operand(i);
    const shape dims = n.dims_of(v);
    const std::size_t letters = e.operands[i].before.size() + e.operands[i].behind.size();
    if (dims.size() < letters || (dims.size() > letters && !e.operands[i].has_ellipsis))
      n.invalid("term " + std::to_string(i) + " of its equation does not have the rank of its operand, " +
                std::to_string(dims.size()));
    covered = std::max(covered, dims.size() - letters);
    operands.push_back({v, e.operands[i].spelled(dims.size() - letters)});
    for (std::size_t d = 0; d < dims.size(); ++d) {
      std::int64_t& extent = extents[operands[i].names[d]];
      if (extent == 1) extent = dims[d];
      else if (dims[d] != 1 && dims[d] != extent) n.invalid("the extents of one label must be the same, or 1");
    }
  }
  if (operands.empty()) n.invalid("it must have an operand");
  const labels wanted = result_names(n, e, covered, operands);
  for (named& x : operands) {
    take_diagonals(n, x);
    drop_repeated(n, x, extents);
  }
  // `asked[i]` has the labels of the result and of all operands from i on.
  std::vector<labels> asked(operands.size() + 1, wanted);
  for (std::size_t i = operands.size(); i-- > 0;) asked[i] = joined(asked[i + 1], operands[i].names);
  labels before;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const labels own = operands[i].names;
    sum_unwanted(n, operands[i], joined(before, asked[i + 1]));
    before = joined(before, own);
  }
  named result = operands[0];
  for (std::size_t i = 1; i < operands.size(); ++i) result = multiplied(n, result, operands[i], asked[i + 1], extents);
  n.result(0, permuted(n, result, wanted));
}

}  // namespace collage::inline v0::onnx
