// The operators of random models (random_model.hpp): each function adds one to a model, with the arithmetic over shapes that it needs.
// It returns false where the values that it picked do not suit.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "random_model.hpp"

namespace collage_test::drawn {

using model = random_model;
using dims_list = std::vector<numbers_of_runs>;

/// The extents of two operands together, if they can be broadcast in every run.
inline std::optional<dims_list> together(const dims_list& a, const dims_list& b) {
  const std::size_t rank = std::max(a.size(), b.size());
  dims_list made(rank, model::always(1));
  for (std::size_t d = 0; d < rank; ++d) {
    const numbers_of_runs x = d + a.size() < rank ? model::always(1) : a[d + a.size() - rank];
    const numbers_of_runs y = d + b.size() < rank ? model::always(1) : b[d + b.size() - rank];
    for (std::size_t r = 0; r < model::runs; ++r) {
      if (x[r] != y[r] && x[r] != 1 && y[r] != 1) return std::nullopt;
      made[d][r] = x[r] == 1 ? y[r] : x[r];
    }
  }
  if (!model::fits(made)) return std::nullopt;
  return made;
}

inline bool unary(model& m) {
  const char* const all[] = {"Relu", "Tanh", "Sigmoid", "Neg", "Abs", "Identity"};
  const drawn_value x = m.any_value();
  m.node(all[m.pick(std::size(all))], {x.name}, x.dims);
  return true;
}

inline bool binary(model& m) {
  const char* const all[] = {"Add", "Sub", "Mul", "Max"};
  const char* const which = all[m.pick(std::size(all))];
  const drawn_value x = m.any_value();
  if (m.random.chance(0.3)) {
    const bool has_rows = x.rank() > 0 && model::is_constant(x.dims.back()) && x.dims.back()[0] > 0;
    m.node(which, {x.name, m.weights(has_rows ? std::vector{x.dims.back()[0]} : std::vector<std::int64_t>{})}, x.dims);
    return true;
  }
  const auto y = m.value_with([&](const drawn_value& v) { return together(x.dims, v.dims).has_value(); });
  if (!y || !together(x.dims, y->dims)) return false;
  m.node(which, {x.name, y->name}, *together(x.dims, y->dims));
  return true;
}

inline bool matmul(model& m) {
  const drawn_value x = m.any_value();
  if (x.rank() < 2) return false;
  dims_list dims = x.dims;
  if (model::is_constant(dims.back()) && m.random.chance(0.7)) {
    const std::int64_t columns = m.random.number(1, 6);
    const std::string w = m.weights({x.dims.back()[0], columns});
    dims.back() = model::always(columns);
    if (!model::fits(dims)) return false;
    m.node("MatMul", {x.name, w}, dims);
    return true;
  }
  // x times another value, or its own transpose.
  const auto y = m.value_with([&](const drawn_value& v) {
    return v.rank() >= 2 && v.dims[v.rank() - 2] == x.dims.back() &&
           together({x.dims.begin(), x.dims.end() - 2}, {v.dims.begin(), v.dims.end() - 2});
  });
  std::string other;
  if (y && m.random.chance(0.5)) {
    dims = *together({x.dims.begin(), x.dims.end() - 2}, {y->dims.begin(), y->dims.end() - 2});
    dims.push_back(x.dims[x.rank() - 2]);
    dims.push_back(y->dims.back());
    other = y->name;
  } else {
    std::vector<std::int64_t> order;
    for (std::size_t d = 0; d < x.rank(); ++d) order.push_back(static_cast<std::int64_t>(d));
    std::swap(order[order.size() - 1], order[order.size() - 2]);
    other = m.helper("Transpose", {x.name}, {attribute("perm", order)});
    dims.back() = x.dims[x.rank() - 2];
  }
  if (!model::fits(dims)) return false;
  // Attention and the like: scaled, so that chains of products do not grow.
  m.node("Mul", {m.helper("MatMul", {x.name, other}), m.weights({}, 0.25)}, dims);
  return true;
}

inline std::optional<drawn_value> image(model& m) {
  return m.value_with([](const drawn_value& v) { return v.rank() == 4 && model::is_constant(v.dims[1]); });
}
/// The extent of the output of a window, where it fits in every run.
inline std::optional<numbers_of_runs> slid(const numbers_of_runs& extent, std::int64_t window, std::int64_t stride,
                                           std::int64_t pad) {
  if (model::least(extent) + 2 * pad < window) return std::nullopt;
  return model::each([&](std::int64_t e) { return (e + 2 * pad - window) / stride + 1; }, extent);
}

inline bool convolution(model& m) {
  const auto x = image(m);
  if (!x) return false;
  const std::int64_t window = m.random.number(1, 3), stride = m.random.number(1, 2), pad = m.random.number(0, 1);
  const auto h = slid(x->dims[2], window, stride, pad), w = slid(x->dims[3], window, stride, pad);
  const std::int64_t channels = m.random.number(1, 4);
  if (!h || !w || x->dims[1][0] == 0 || !model::fits({x->dims[0], model::always(channels), *h, *w})) return false;
  m.node("Conv", {x->name, m.weights({channels, x->dims[1][0], window, window}, 0.3), m.weights({channels})},
         {x->dims[0], model::always(channels), *h, *w},
         {attribute("pads", std::vector(4, pad)), attribute("strides", std::vector(2, stride))});
  return true;
}

inline bool pool(model& m) {
  const auto x = image(m);
  if (!x) return false;
  if (m.random.chance(0.2) && model::least(x->dims[2]) > 0 && model::least(x->dims[3]) > 0) {
    m.node("GlobalAveragePool", {x->name}, {x->dims[0], x->dims[1], model::always(1), model::always(1)});
    return true;
  }
  const std::int64_t window = m.random.number(2, 3), stride = m.random.number(1, 2), pad = m.random.number(0, 1);
  const auto h = slid(x->dims[2], window, stride, pad), w = slid(x->dims[3], window, stride, pad);
  if (!h || !w) return false;
  m.node(m.random.chance(0.5) ? "MaxPool" : "AveragePool", {x->name}, {x->dims[0], x->dims[1], *h, *w},
         {attribute("kernel_shape", std::vector(2, window)), attribute("pads", std::vector(4, pad)),
          attribute("strides", std::vector(2, stride))});
  return true;
}

/// Two neighbouring dimensions become one, by a product of extents or by -1; or the last is split.
inline bool reshape(model& m) {
  const drawn_value x = m.any_value();
  if (x.rank() < 2) return false;
  const std::size_t at = m.pick(x.rank() - 1);
  std::vector<drawn_list> target;
  dims_list dims;
  bool has_zero = false;
  for (std::size_t d = 0; d < x.rank(); ++d) has_zero = has_zero || model::least(x.dims[d]) == 0;
  const bool by_rest = !has_zero && m.random.chance(0.4);
  for (std::size_t d = 0; d < x.rank(); ++d) {
    if (d != at) {
      target.push_back(m.element(x.dims[d]));
      dims.push_back(x.dims[d]);
      continue;
    }
    dims.push_back(model::each([](std::int64_t a, std::int64_t b) { return a * b; }, x.dims[d], x.dims[d + 1]));
    if (by_rest) {
      target.push_back({m.integers({-1}), {model::always(-1)}});
    } else {
      const drawn_list a = m.extent_of(x, d), b = m.extent_of(x, d + 1);
      target.push_back(m.list_node("Mul", {a.name, b.name}, {dims.back()}));
    }
    ++d;
  }
  m.node("Reshape", {x.name, m.joined(target).name}, dims, {attribute("allowzero", 1)});
  return true;
}

inline bool flatten(model& m) {
  const drawn_value x = m.any_value();
  const std::size_t axis = m.pick(x.rank() + 1);
  dims_list dims(2, model::always(1));
  for (std::size_t d = 0; d < x.rank(); ++d)
    dims[d < axis ? 0 : 1] =
        model::each([](std::int64_t a, std::int64_t b) { return a * b; }, dims[d < axis ? 0 : 1], x.dims[d]);
  m.node("Flatten", {x.name}, dims, {attribute("axis", axis)});
  return true;
}

/// Up to an end that is computed from the shape, or from an input; or from an input's start.
inline bool slice(model& m) {
  const drawn_value x = m.any_value();
  if (x.rank() == 0) return false;
  const std::size_t axis = m.pick(x.rank());
  const std::int64_t start = m.random.number(0, 1), step = m.random.number(1, 2);
  dims_list dims = x.dims;
  const auto taken = [&](const numbers_of_runs& starts, const numbers_of_runs& ends) {
    return model::each(
        [&](std::int64_t extent, std::int64_t s, std::int64_t e) {
          s = std::clamp<std::int64_t>(s < 0 ? s + extent : s, 0, extent);
          e = std::clamp<std::int64_t>(e < 0 ? e + extent : e, 0, extent);
          return e > s ? (e - s - 1) / step + 1 : 0;
        },
        x.dims[axis], starts, ends);
  };
  drawn_list starts{m.integers({start}), {model::always(start)}}, ends;
  if (m.random.chance(0.2)) starts = m.given_list({m.draw([&] { return m.random.number(-3, 3); })});
  if (m.random.chance(0.3)) {
    ends = {m.integers({-1}), {model::always(-1)}};
  } else {
    const drawn_list extent = m.extent_of(x, axis);
    const std::int64_t by = m.random.number(1, 2);
    ends = m.random.chance(0.5)
               ? m.list_node("Div", {extent.name, m.integers({by})},
                             {model::each([&](std::int64_t e) { return e / by; }, extent.elements[0])})
               : m.list_node("Sub", {extent.name, m.integers({by})},
                             {model::each([&](std::int64_t e) { return e - by; }, extent.elements[0])});
  }
  dims[axis] = taken(starts.elements[0], ends.elements[0]);
  m.node("Slice", {x.name, starts.name, ends.name, m.integers({static_cast<std::int64_t>(axis)}), m.integers({step})},
         dims);
  return true;
}

inline bool transpose(model& m) {
  const drawn_value x = m.any_value();
  std::vector<std::int64_t> order;
  for (std::size_t d = 0; d < x.rank(); ++d) order.push_back(static_cast<std::int64_t>(d));
  std::shuffle(order.begin(), order.end(), m.random.engine());
  dims_list dims;
  for (const std::int64_t d : order) dims.push_back(x.dims[static_cast<std::size_t>(d)]);
  m.node("Transpose", {x.name}, dims, {attribute("perm", order)});
  return true;
}

inline bool concat(model& m) {
  const drawn_value x = m.any_value();
  if (x.rank() == 0) return false;
  const std::size_t axis = m.pick(x.rank());
  const auto y = m.value_with([&](const drawn_value& v) {
    if (v.rank() != x.rank()) return false;
    for (std::size_t d = 0; d < x.rank(); ++d)
      if (d != axis && v.dims[d] != x.dims[d]) return false;
    return true;
  });
  dims_list dims = x.dims;
  dims[axis] = model::each([](std::int64_t a, std::int64_t b) { return a + b; }, x.dims[axis], y->dims[axis]);
  if (!model::fits(dims)) return false;
  m.node("Concat", {x.name, y->name}, dims, {attribute("axis", axis)});
  return true;
}

/// A new dimension, expanded to an extent of another value.
inline bool expand(model& m) {
  const drawn_value x = m.any_value(), other = m.any_value();
  if (other.rank() == 0 || x.rank() > 4) return false;
  const std::size_t axis = m.pick(x.rank() + 1);
  const numbers_of_runs extent = other.dims[m.pick(other.rank())];
  dims_list dims = x.dims;
  dims.insert(dims.begin() + static_cast<std::ptrdiff_t>(axis), extent);
  if (!model::fits(dims)) return false;
  const std::string spread = m.helper("Unsqueeze", {x.name, m.integers({static_cast<std::int64_t>(axis)})});
  const drawn_list target = m.list_of(dims);
  m.node("Expand", {spread, target.name}, dims);
  return true;
}

inline bool reduce(model& m) {
  const char* const all[] = {"ReduceMean", "ReduceMax", "ReduceL2"};
  const drawn_value x = m.any_value();
  if (x.rank() == 0) return false;
  const std::size_t axis = m.pick(x.rank());
  if (model::least(x.dims[axis]) == 0) return false;
  const bool keeps = m.random.chance(0.5);
  dims_list dims = x.dims;
  if (keeps) dims[axis] = model::always(1);
  else dims.erase(dims.begin() + static_cast<std::ptrdiff_t>(axis));
  m.node(all[m.pick(std::size(all))], {x.name}, dims,
         {attribute("axes", std::vector{static_cast<std::int64_t>(axis)}), attribute("keepdims", keeps ? 1 : 0)});
  return true;
}

inline bool softmax(model& m) {
  const drawn_value x = m.any_value();
  if (x.rank() == 0) return false;
  m.node("Softmax", {x.name}, x.dims, {attribute("axis", m.pick(x.rank()))});
  return true;
}

/// The numbers from 0 to an extent, as int64[n]: its name.
inline std::string range_to(model& m, const drawn_list& n) {
  return m.helper("Range", {m.integer(0), m.helper("Squeeze", {n.name, m.integers({0})}), m.integer(1)});
}

inline bool gather(model& m) {
  const drawn_value x = m.any_value();
  if (x.rank() == 0) return false;
  const std::size_t axis = m.pick(x.rank());
  if (model::least(x.dims[axis]) == 0) return false;
  dims_list dims = x.dims;
  std::string indices;
  if (m.random.chance(0.5)) {
    indices = m.integers({-1, 0, -1});
    dims[axis] = model::always(3);
  } else {  // backwards
    const drawn_list n = m.extent_of(x, axis);
    const std::string last = m.helper("Sub", {n.name, m.integers({1})});
    indices = m.helper("Sub", {last, range_to(m, n)});
  }
  if (!model::fits(dims)) return false;
  m.node("Gather", {x.name, indices}, dims, {attribute("axis", axis)});
  return true;
}

inline bool tile(model& m) {
  const drawn_value x = m.any_value();
  if (x.rank() == 0) return false;
  dims_list dims = x.dims, repeats;
  for (numbers_of_runs& d : dims) {
    repeats.push_back(m.random.chance(0.5) ? model::always(1) : model::always(m.random.number(1, 3)));
    d = model::each([](std::int64_t a, std::int64_t b) { return a * b; }, d, repeats.back());
  }
  if (!model::fits(dims)) return false;
  const drawn_list list = m.random.chance(0.3) ? m.given_list(repeats) : m.list_of(repeats);
  m.node("Tile", {x.name, list.name}, dims);
  return true;
}

inline bool positions(model& m) {
  const drawn_value x = m.any_value();
  if (x.rank() == 0) return false;
  const std::size_t axis = m.pick(x.rank());
  const std::string numbers = range_to(m, m.extent_of(x, axis));
  const std::string real = m.helper("Cast", {numbers}, {attribute("to", 1)});
  m.node("Mul", {real, m.weights({})}, {x.dims[axis]});
  return true;
}

inline bool filled(model& m) {
  const drawn_value x = m.any_value();
  const drawn_list target = m.list_of(x.dims);
  m.node("ConstantOfShape", {target.name}, x.dims, {attribute("value", tensor_of<float>("", {1}, {0.75F}))});
  return true;
}

/// To sizes that are computed from the shape: by a factor, or those of another image.
inline bool resize(model& m) {
  const auto x = image(m);
  if (!x || model::least(x->dims[2]) == 0 || model::least(x->dims[3]) == 0) return false;
  dims_list dims = x->dims;
  drawn_list sides;
  const bool doubles = m.random.chance(0.5);
  if (doubles) {
    for (std::size_t d : {2U, 3U}) dims[d] = model::each([](std::int64_t e) { return 2 * e; }, dims[d]);
    const std::string whole = m.helper("Shape", {x->name});
    const std::string own = m.helper("Slice", {whole, m.integers({2}), m.integers({4})});
    if (m.random.chance(0.5)) {
      sides = m.list_node("Mul", {own, m.integers({2, 2})}, {dims[2], dims[3]});
    } else {  // by real numbers, as exporters do
      const std::string real = m.helper("Cast", {own}, {attribute("to", 1)});
      const std::string two = m.fresh("w");
      add_initializer(m.graph(), tensor_of<float>(two, {}, {2.0F}));
      const std::string scaled = m.helper("Floor", {m.helper("Mul", {real, two})});
      sides = m.list_node("Cast", {scaled}, {dims[2], dims[3]}, {attribute("to", 7)});
    }
  } else {
    const auto like = image(m);
    if (!like || model::least(like->dims[2]) == 0 || model::least(like->dims[3]) == 0) return false;
    dims[2] = like->dims[2];
    dims[3] = like->dims[3];
    sides = m.joined({m.extent_of(*like, 2), m.extent_of(*like, 3)});
  }
  if (!model::fits(dims)) return false;
  const std::string first = m.helper("Slice", {m.helper("Shape", {x->name}), m.integers({0}), m.integers({2})});
  const std::string sizes = m.helper("Concat", {first, sides.name}, {attribute("axis", 0)});
  // The nearest element of a ratio that is no whole number may be a matter of rounding.
  const bool nearest = doubles && m.random.chance(0.5);
  m.node("Resize", {x->name, "", "", sizes}, dims,
         {attribute("mode", nearest ? "nearest" : "linear"),
          attribute("coordinate_transformation_mode", nearest ? "asymmetric" : "half_pixel"),
          attribute("nearest_mode", "floor")});
  return true;
}

/// A mask of positions, as of causal attention or of padding.
inline bool where(model& m) {
  const drawn_value x = m.any_value();
  if (x.rank() == 0) return false;
  const std::string columns = range_to(m, m.extent_of(x, x.rank() - 1));
  std::string limit = m.integer(m.random.number(0, 3));
  if (x.rank() > 1 && m.random.chance(0.5))
    limit = m.helper("Unsqueeze", {range_to(m, m.extent_of(x, x.rank() - 2)), m.integers({1})});
  const std::string mask = m.helper("LessOrEqual", {columns, limit});
  m.node("Where", {mask, x.name, m.weights({})}, x.dims);
  return true;
}

/// Up to the next multiple, as window attention does.
inline bool pad(model& m) {
  const drawn_value x = m.any_value();
  if (x.rank() == 0) return false;
  const std::int64_t to = m.random.number(2, 4);
  dims_list dims = x.dims;
  const drawn_list own = m.extent_of(x, x.rank() - 1);
  const auto rest = [&](std::int64_t e) { return (to - e % to) % to; };
  const std::string over = m.helper("Mod", {own.name, m.integers({to})});
  const std::string missing = m.helper("Sub", {m.integers({to}), over});
  const drawn_list more = m.list_node("Mod", {missing, m.integers({to})}, {model::each(rest, dims.back())});
  dims.back() = model::each([&](std::int64_t e) { return e + rest(e); }, dims.back());
  if (!model::fits(dims)) return false;
  const std::string zeros = m.integers(std::vector<std::int64_t>(2 * x.rank() - 1, 0));
  m.node("Pad", {x.name, m.helper("Concat", {zeros, more.name}, {attribute("axis", 0)})}, dims);
  return true;
}

/// The largest elements: as many as an input says, or as the shape has at most.
inline bool top(model& m) {
  const drawn_value x = m.any_value();
  if (x.rank() == 0) return false;
  const std::size_t axis = m.pick(x.rank());
  dims_list dims = x.dims;
  drawn_list k;
  if (m.random.chance(0.5)) {
    numbers_of_runs wanted = x.dims[axis];
    for (std::int64_t& n : wanted) n = m.random.number(0, n);
    k = m.given_list({wanted});
  } else {
    const std::int64_t most = m.random.number(1, 5);
    k = m.list_node("Min", {m.extent_of(x, axis).name, m.integers({most})},
                    {model::each([&](std::int64_t e) { return std::min(e, most); }, x.dims[axis])});
  }
  dims[axis] = k.elements[0];
  m.node("TopK", {x.name, k.name}, dims, {attribute("axis", axis)});
  return true;
}

/// All that needs no data.
inline constexpr bool (*by_shapes[])(model&) = {unary,  binary,  binary,  matmul,  matmul, convolution, convolution,
                                                pool,   reshape, reshape, flatten, slice,  slice,       transpose,
                                                concat, expand,  reduce,  softmax, gather, tile,        positions,
                                                filled, resize,  where,   pad,     top};

}  // namespace collage_test::drawn
