// Constants, shapes as data, and operators that return the same elements with other extents.
#include "importer.hpp"
#include "rules.hpp"

#include <collage/op/comparison.hpp>
#include <collage/op/elementwise.hpp>
#include <collage/op/movement.hpp>
#include <collage/op/slice.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace collage::inline v0::onnx {
namespace {

/// Extents from an operand or attribute. Throws if no tensor can have them.
shape checked_extents(lowering& n, std::span<const std::int64_t> list) {
  const shape dims = n.to_shape(list, "its extents");
  std::int64_t elements = 1;
  for (const std::int64_t extent : dims) {
    if (extent < 0) n.invalid("an extent of its shape is " + std::to_string(extent));
    if (extent > 0 && elements > (std::int64_t{1} << 48) / extent) n.invalid("its shape has too many elements");
    elements *= std::max<std::int64_t>(extent, 1);
  }
  return dims;
}

/// A constant whose element i is fill(i), as int64 or double. Its bytes are counted before they are allocated.
template <class Fill>
value generated(lowering& n, const tensor_type& type, const Fill& fill) {
  n.driver().spend(static_cast<std::size_t>(type.dims.elements()) * sizeof(double));
  oracle_value made(type);
  for (std::size_t i = 0; i < made.real.size(); ++i) made.real[i] = static_cast<double>(fill(i));
  for (std::size_t i = 0; i < made.integer.size(); ++i) made.integer[i] = static_cast<std::int64_t>(fill(i));
  return n.constant(made);
}

/// A one-dimensional constant of the elements of an attribute.
template <class T>
value listed(lowering& n, dtype type, const std::vector<T>& list) {
  return generated(n, {type, {static_cast<std::int64_t>(list.size())}}, [&](std::size_t i) { return list[i]; });
}

// Constants ----------------------------------------------------------------------------------------------------------

value constant_of(lowering& n) {
  if (const model_tensor* tensor = n.tensor_attribute("value")) return n.constant(*tensor);
  if (n.has_attribute("value_float")) return n.scalar(n.real("value_float", 0), dtype::f32);
  if (n.has_attribute("value_floats")) return listed(n, dtype::f32, n.reals("value_floats"));
  if (n.has_attribute("value_ints")) return listed(n, dtype::i64, n.integers("value_ints"));
  if (n.has_attribute("value_int"))
    return n.reshape(listed(n, dtype::i64, std::vector<std::int64_t>{n.integer("value_int", 0)}), {});
  if (const model_tensor* tensor = n.tensor_attribute("sparse_value")) return n.constant(*tensor);
  if (n.has_attribute("value_string") || n.has_attribute("value_strings")) n.unsupported("a constant of strings");
  n.invalid("it lacks the attribute value");
}
void lower_constant(lowering& n) { n.result(0, constant_of(n)); }

void lower_constant_of_shape(lowering& n) {
  const shape dims = checked_extents(n, n.integers_of(0, "its shape"));
  const model_tensor* const tensor = n.tensor_attribute("value");
  if (tensor == nullptr) return n.result(0, n.filled({dtype::f32, dims}, 0));
  const value element = n.constant(*tensor);
  const tensor_type type = n.type_of(element);
  if (type.dims.elements() != 1 || !n.is_known(element)) n.invalid("its attribute value must hold one number");
  oracle_value contents = to_oracle({n.driver().builder().contents_of(element).bytes.get(), type});
  if (is_floating(type.type)) return n.result(0, n.filled({type.type, dims}, contents.real[0]));
  const std::int64_t number = contents.integer[0];
  constexpr std::int64_t exact = std::int64_t{1} << 53;  // not every larger integer is a double
  if (number >= -exact && number <= exact) return n.result(0, n.filled({type.type, dims}, static_cast<double>(number)));
  n.result(0, generated(n, {type.type, dims}, [&](std::size_t) { return number; }));
}

/// The numbers `first`, `first + step`, ... before `limit`.
void lower_range(lowering& n) {
  const dtype type = n.element_type_of(n.operand(0));
  constexpr std::int64_t most = std::int64_t{1} << 40;
  if (is_floating(type)) {
    const double first = n.number_of(0, "its start"), limit = n.number_of(1, "its limit");
    const double step = n.number_of(2, "its step");
    const double count = std::ceil((limit - first) / step);
    if (!(step != 0) || !(count <= static_cast<double>(most)))
      n.invalid("its step must not be 0, and it must have at most 2^40 elements");
    return n.result(0, generated(n, {type, {count > 0 ? static_cast<std::int64_t>(count) : 0}},
                                 [&](std::size_t i) { return first + static_cast<double>(i) * step; }));
  }
  const std::int64_t first = n.integer_of(0, "its start"), limit = n.integer_of(1, "its limit");
  const std::int64_t step = n.integer_of(2, "its step");
  if (step == 0) n.invalid("its step is 0");
  // Unsigned, because the difference of two int64 may not fit into an int64.
  const auto bits = [](std::int64_t x) { return static_cast<std::uint64_t>(x); };
  const std::uint64_t distance = step > 0 ? bits(limit) - bits(first) : bits(first) - bits(limit);
  const std::uint64_t stride = step > 0 ? bits(step) : 0 - bits(step);
  const bool any = step > 0 ? first < limit : first > limit;
  const std::uint64_t count = any ? (distance - 1) / stride + 1 : 0;
  if (count > bits(most)) n.invalid("it has too many elements");
  n.result(0, generated(n, {type, {static_cast<std::int64_t>(count)}},
                        [&](std::size_t i) { return static_cast<std::int64_t>(bits(first) + i * bits(step)); }));
}

void lower_eye_like(lowering& n) {
  const tensor_type& like = n.type_of(n.operand(0));
  if (like.rank() != 2) n.invalid("its input has rank " + std::to_string(like.rank()) + ", and must be a matrix");
  const std::int64_t number = n.integer("dtype", 0);
  std::optional<dtype> type = like.type;
  if (n.has_attribute("dtype"))
    type = number > 0 && number < 1000 ? element_type_of(static_cast<int>(number)) : std::nullopt;
  if (!type) n.unsupported("the element type " + std::to_string(number));
  const shape dims = like.dims;
  const std::int64_t diagonal = n.integer("k", 0);
  n.result(0, generated(n, {*type, dims}, [&](std::size_t i) {
             const std::int64_t row = static_cast<std::int64_t>(i) / dims[1],
                                column = static_cast<std::int64_t>(i) % dims[1];
             return column - row == diagonal ? 1 : 0;
           }));
}

/// For each index and each number below `depth`: the value for on if the number is the index, else the value for off.
void lower_one_hot(lowering& n) {
  const std::int64_t depth = n.integer_of(1, "its depth");
  if (depth <= 0) n.invalid("its depth is " + std::to_string(depth) + ", and must be at least 1");
  const value indices = n.cast(n.operand(0), dtype::i64), values = n.operand(2);
  if (!(n.dims_of(values) == shape{2})) n.invalid("its values must be two: off and on");
  const std::size_t rank = n.rank_of(indices);
  if (rank == shape::max_rank) n.unsupported("an output of more than 8 dimensions");
  const auto axis = static_cast<std::size_t>(n.axis(n.integer("axis", -1), rank + 1));
  shape spread, along = shape::filled(rank + 1, 1);
  for (std::size_t i = 0; i <= rank; ++i) spread.push_back(i == axis ? 1 : n.dims_of(indices)[i < axis ? i : i - 1]);
  along[axis] = depth;
  checked_extents(n, along.list());

  const auto integer = [&](std::int64_t i) { return n.scalar(static_cast<double>(i), dtype::i64); };
  const value zero = integer(0), from_end = n(ops::add, indices, integer(depth));
  const value wanted = n.reshape(n(ops::where, n(ops::less, indices, zero), from_end, indices), spread);
  const value numbers = generated(n, {dtype::i64, along}, [](std::size_t i) { return static_cast<std::int64_t>(i); });
  const auto one_of = [&](std::int64_t which) {
    return n.reshape(n(ops::slice, values, {.starts = {which}, .steps = {1}, .extents = {1}}), {});
  };
  n.result(0, n(ops::where, n(ops::equal, wanted, numbers), one_of(1), one_of(0)));
}

// Shapes as data -----------------------------------------------------------------------------------------------------

void lower_shape_of(lowering& n) {
  const shape& dims = n.dims_of(n.operand(0));
  const auto rank = static_cast<std::int64_t>(dims.rank);
  const auto place = [&](std::int64_t at) { return std::clamp<std::int64_t>(at < 0 ? at + rank : at, 0, rank); };
  const std::int64_t first = place(n.integer("start", 0)), last = place(n.integer("end", rank));
  const auto count = static_cast<std::size_t>(std::max<std::int64_t>(last - first, 0));
  n.result(0, n.integers_constant(dims.list().subspan(static_cast<std::size_t>(first), count)));
}

void lower_size(lowering& n) {
  const std::int64_t elements[] = {n.dims_of(n.operand(0)).elements()};
  n.result(0, n.reshape(n.integers_constant(elements), {}));
}

// The same elements --------------------------------------------------------------------------------------------------

void lower_identity(lowering& n) { n.result(0, n.operand(0)); }

void lower_dropout(lowering& n) {
  const value x = n.operand(0);
  const bool training = n.has(2) && n.integer_of(2, "whether it is training") != 0;
  if (training && (!n.has(1) || n.number_of(1, "its ratio") != 0)) n.unsupported("dropping at random, as in training,");
  n.result(0, x);
  if (!n.wants(1)) return;
  // The mask of the elements that are kept. Before version 12, it has no meaning outside training, and runtimes return 0.
  const dtype type = n.opset() < 10 ? n.element_type_of(x) : dtype::boolean;
  n.result(1, n.filled({type, n.dims_of(x)}, n.opset() < 12 ? 0 : 1));
}

void lower_reshape(lowering& n) {
  const value x = n.operand(0);
  const shape target = n.to_shape(n.integers_of(1, "its target shape"), "its extents");
  for (const std::int64_t extent : target)
    if (extent < -1) n.invalid("an extent of its target shape is " + std::to_string(extent));
  n.result(0, n(ops::reshape, x, {.dims = target, .allow_zero = n.integer("allowzero", 0) != 0}));
}

void lower_flatten(lowering& n) {
  const value x = n.operand(0);
  const shape& dims = n.dims_of(x);
  const std::int64_t given = n.integer("axis", 1);
  // The axis may be the rank: then all dimensions become rows.
  const std::int64_t axis = given == static_cast<std::int64_t>(dims.rank) ? given : n.axis(given, dims.rank);
  std::int64_t rows = 1, columns = 1;
  for (std::size_t i = 0; i < dims.rank; ++i) (static_cast<std::int64_t>(i) < axis ? rows : columns) *= dims[i];
  n.result(0, n.reshape(x, {rows, columns}));
}

/// For each of `rank` dimensions: whether the list names it. Throws if the list names a dimension twice.
std::vector<bool> listed_axes(lowering& n, std::span<const std::int64_t> list, std::size_t rank) {
  std::vector<bool> named(rank, false);
  for (const std::int64_t axis : list) {
    const auto at = static_cast<std::size_t>(n.axis(axis, rank));
    if (named[at]) n.invalid("its axes name dimension " + std::to_string(at) + " twice");
    named[at] = true;
  }
  return named;
}
/// The axes from the operand (since version 13) or the attribute, if there are any.
std::optional<std::vector<std::int64_t>> axes_of(lowering& n) {
  if (n.has(1)) return n.integers_of(1, "its axes");
  if (n.opset() < 13 && n.has_attribute("axes")) return n.integers("axes");
  return std::nullopt;
}

void lower_squeeze(lowering& n) {
  const value x = n.operand(0);
  const shape dims = n.dims_of(x);
  // An empty list means the same as no list, as in ONNX Runtime.
  const std::vector<std::int64_t> axes = axes_of(n).value_or(std::vector<std::int64_t>{});
  const std::vector<bool> named = listed_axes(n, axes, dims.rank);
  shape kept;
  for (std::size_t i = 0; i < dims.rank; ++i) {
    if (named[i] && dims[i] != 1)
      n.invalid("it removes dimension " + std::to_string(i) + ", whose extent is " + std::to_string(dims[i]) +
                ", not 1");
    if (axes.empty() ? dims[i] != 1 : !named[i]) kept.push_back(dims[i]);
  }
  n.result(0, n.reshape(x, kept));
}

void lower_unsqueeze(lowering& n) {
  const value x = n.operand(0);
  const shape dims = n.dims_of(x);
  const std::optional<std::vector<std::int64_t>> axes = axes_of(n);
  if (!axes) n.invalid("it lacks its axes");
  if (axes->size() > shape::max_rank - dims.rank) n.unsupported("an output of more than 8 dimensions");
  const std::vector<bool> named = listed_axes(n, *axes, dims.rank + axes->size());
  shape spread;
  std::size_t next = 0;
  for (const bool is_new : named) spread.push_back(is_new ? 1 : dims[next++]);
  n.result(0, n.reshape(x, spread));
}

constexpr lowering_rule shape_lowerings[] = {
    {"", "Constant", lower_constant},   {"", "ConstantOfShape", lower_constant_of_shape},
    {"", "Dropout", lower_dropout},     {"", "EyeLike", lower_eye_like},
    {"", "Flatten", lower_flatten},     {"", "Identity", lower_identity},
    {"", "OneHot", lower_one_hot},      {"", "Range", lower_range},
    {"", "Reshape", lower_reshape},     {"", "Shape", lower_shape_of},
    {"", "Size", lower_size},           {"", "Squeeze", lower_squeeze},
    {"", "Unsqueeze", lower_unsqueeze},
};

}  // namespace

std::span<const lowering_rule> shape_rules() { return shape_lowerings; }

}  // namespace collage::inline v0::onnx
