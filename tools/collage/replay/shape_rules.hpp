// Operators of published networks: the shapes and the arithmetic that follow from their attributes.
#pragma once

#include "published_costs.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace program::replay {

/// One operator of a network, with everything that is known about it.
struct operator_call {
  std::string op;  ///< as placed; adding one constant per channel is "nn.bias_add" if a table has that operator
  std::vector<std::int32_t> operands;  ///< calls, or -1 if no call computes it; the fields of tuples are operands
  std::vector<extents> shapes;         ///< of the operands
  extents result;
  attribute_list attributes;  ///< as a record would state them
  double flops = 0;
  bool assumed = false;  ///< no record has its strides, padding or axes: the usual ones are assumed
  std::uint32_t group = 0;
  std::string backend;
};

inline double elements_of(const extents& shape) {
  double count = 1;
  for (const std::int64_t extent : shape) count *= static_cast<double>(extent);
  return count;
}

namespace detail {

inline const extents* find(const attribute_list& list, const char* name) {
  const auto found = list.find(name);
  return found == list.end() ? nullptr : &found->second;
}

/// The result's shape for a sliding window; nothing if the attributes do not fit the operand.
inline std::optional<extents> slide(const extents& in, const extents& kernel, const attribute_list& given) {
  const extents* strides = find(given, "strides");
  const extents* padding = find(given, "padding");
  const extents* dilation = find(given, "dilation");
  const std::size_t dims = kernel.size();
  if (in.size() != dims + 2 || strides == nullptr || padding == nullptr) return std::nullopt;
  if (strides->size() != dims || padding->size() != 2 * dims) return std::nullopt;
  if (dilation != nullptr && dilation->size() != dims) return std::nullopt;
  const extents* ceil = find(given, "ceil_mode");
  const bool up = ceil != nullptr && *ceil != extents{0};
  extents out(in.begin(), in.begin() + 2);
  for (std::size_t i = 0; i < dims; ++i) {
    const std::int64_t step = (*strides)[i];
    const std::int64_t reach = (dilation != nullptr ? (*dilation)[i] : 1) * (kernel[i] - 1) + 1;
    const std::int64_t room = in[i + 2] + (*padding)[i] + (*padding)[i + dims] - reach;
    if (step <= 0 || room < 0) return std::nullopt;
    out.push_back((room + (up ? step - 1 : 0)) / step + 1);
  }
  return out;
}

/// The result's shape for an operator with these attributes; nothing if they do not fit its operands. Operators that
/// are not named here count as elementwise.
inline std::optional<extents> result_of(const operator_call& c, const attribute_list& given) {
  const extents& in = c.shapes[0];
  if (c.op == "nn.conv2d" || c.op == "nn.conv3d") {
    const extents& weight = c.shapes[1];
    if (weight.size() < 3 || weight.size() != in.size()) return std::nullopt;
    auto out = slide(in, extents(weight.begin() + 2, weight.end()), given);
    if (out) (*out)[1] = weight[0];
    return out;
  }
  if (c.op == "nn.avg_pool2d" || c.op == "nn.max_pool2d") {
    const extents* window = find(given, "pool_size");
    return window == nullptr ? std::nullopt : slide(in, *window, given);
  }
  if (c.op == "nn.dense") {
    if (in.size() != 2 || c.shapes[1].size() != 2 || in[1] != c.shapes[1][1]) return std::nullopt;
    return extents{in[0], c.shapes[1][0]};
  }
  if (c.op == "nn.batch_matmul") {  // the second operand is transposed
    const extents& other = c.shapes[1];
    if (in.size() != 3 || other.size() != 3 || in[0] != other[0] || in[2] != other[2]) return std::nullopt;
    return extents{in[0], in[1], other[1]};
  }
  if (c.op == "reshape") {
    const extents* shape = find(given, "newshape");
    if (shape == nullptr || elements_of(*shape) != elements_of(in)) return std::nullopt;
    return *shape;
  }
  if (c.op == "transpose") {
    const extents* axes = find(given, "axes");
    if (axes == nullptr || axes->size() != in.size()) return std::nullopt;
    extents out;
    for (const std::int64_t axis : *axes) {
      if (axis < 0 || axis >= static_cast<std::int64_t>(in.size())) return std::nullopt;
      out.push_back(in[static_cast<std::size_t>(axis)]);
    }
    return out;
  }
  if (c.op == "concatenate") {
    const extents* axis = find(given, "axis");
    if (axis == nullptr || axis->size() != 1 || (*axis)[0] < 0 || (*axis)[0] >= static_cast<std::int64_t>(in.size()))
      return std::nullopt;
    const auto along = static_cast<std::size_t>((*axis)[0]);
    extents out = in;
    for (std::size_t i = 1; i < c.shapes.size(); ++i) {
      extents field = c.shapes[i];
      if (field.size() != in.size()) return std::nullopt;
      out[along] += field[along];
      field[along] = in[along];
      if (field != in) return std::nullopt;
    }
    return out;
  }
  if (c.shapes.size() == 1) return in;                    // elementwise
  for (std::size_t i = 0; i < c.shapes[1].size(); ++i) {  // the second operand has the same extents, or is broadcast
    const extents& other = c.shapes[1];
    if (other.size() > in.size()) return std::nullopt;
    if (other[other.size() - 1 - i] != 1 && other[other.size() - 1 - i] != in[in.size() - 1 - i]) return std::nullopt;
  }
  return in;
}

/// The arithmetic of a call. A multiply-add counts as two operations. Moving data counts as none. Any other operator
/// counts one for each element of the result, times the elements of its window.
inline double flops_of(const operator_call& c) {
  const double results = elements_of(c.result);
  if (c.op == "nn.conv2d" || c.op == "nn.conv3d")
    return 2 * results * elements_of(c.shapes[1]) / static_cast<double>(c.shapes[1][0]);
  if (c.op == "nn.dense" || c.op == "nn.batch_matmul") return 2 * results * static_cast<double>(c.shapes[0].back());
  if (c.op == "reshape" || c.op == "transpose" || c.op == "concatenate") return 0;
  const extents* window = find(c.attributes, "pool_size");
  return window != nullptr ? results * elements_of(*window) : results;
}

}  // namespace detail
}  // namespace program::replay
