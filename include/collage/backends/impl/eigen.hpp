// The definitions of collage/backends/eigen.hpp. Exactly one file of a program includes them, and is compiled with OpenMP. It is
// src/eigen.cpp, which is the target collage::eigen, or a file of the user that includes nothing else of Eigen.
#pragma once

#include <collage/backends/impl/eigen_math.hpp>  // first: it renames Eigen's namespace

#include <collage/backends/eigen.hpp>
#include <collage/backends/impl/compiled_for.hpp>
#include <collage/backends/impl/eigen_conv.hpp>
#include <collage/backends/impl/eigen_matmul.hpp>
#include <collage/backends/impl/eigen_movement.hpp>
#include <collage/backends/impl/eigen_norm.hpp>
#include <collage/backends/impl/eigen_pool.hpp>
#include <collage/backends/impl/eigen_reduce.hpp>
#include <collage/backends/impl/eigen_resize.hpp>
#include <collage/error.hpp>
#include <collage/run/kernel.hpp>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace collage::inline v0::detail::host {
namespace {

/// A chain of elementwise operators, without any other operator.
template <class T>
struct eigen_elementwise {
  elementwise_program program;
  int threads = 1;
  void operator()(const kernel_call& call) const {
    run_program<eigen_math>(program, threads, call.in, static_cast<T*>(call.out[0]));
  }
};

/// The parts of a match: elementwise operators, then one operator that is not elementwise, then elementwise operators.
struct match_parts {
  std::vector<std::uint32_t> before, after;
  std::uint32_t core = match_record::nothing;
};
inline match_parts parts_of(const any_match& m) {
  match_parts parts;
  for (const std::uint32_t node : m.nodes()) {
    if (m.kind_of(node).body == nullptr) parts.core = node;
    else (parts.core == match_record::nothing ? parts.before : parts.after).push_back(node);
  }
  return parts;
}

inline kernel build_elementwise(const any_match& m, int threads) {
  const elementwise_program program = make_program(m, m.nodes());
  std::string name = "elementwise";
  for (const std::uint32_t node : m.nodes()) name += std::string(" ") + m.kind_of(node).name;
  kernel made = m.type_of(m.output()).type == dtype::i64
                    ? kernel(name, eigen_elementwise<std::int64_t>{program, threads})
                    : kernel(name, eigen_elementwise<float>{program, threads});
  drop_constants(made, program);
  allow_in_place(made, program);
  return made;
}

inline kernel build_conv(const any_match& m, std::uint32_t node, int threads, const elementwise_program& then) {
  const std::span<const std::uint32_t> inputs = m.inputs_of(node);
  conv_arguments arguments{m.index_of(inputs[0]), m.index_of(inputs[1]), match_record::nothing};
  if (inputs.size() == 3) arguments.bias = m.index_of(inputs[2]);
  const conv_shape s = conv_shape_of(m, node);
  if (s.rank() > 3) return eigen_conv_columns(s, arguments, threads, then).make();
  return eigen_conv(s, arguments, threads, then).make();
}

inline kernel build_core(const any_match& m, const match_parts& parts, build_context& context,
                         const elementwise_program& before, const elementwise_program& after) {
  const std::uint32_t node = parts.core;
  const std::size_t x = m.index_of(m.inputs_of(node)[0]);  // `nothing` if an operator of `before` computes it
  const int threads = context.threads();
  const dtype type = m.type_of(m.output()).type;
  if (m.is(node, ops::conv)) return build_conv(m, node, threads, after);
  if (m.is(node, ops::matmul)) return eigen_matmul(m, node, context, after).make();
  if (m.is(node, ops::max_pool)) return eigen_pool(m, node, true, x, threads, after).make();
  if (m.is(node, ops::average_pool)) return eigen_pool(m, node, false, x, threads, after).make();
  if (m.is(node, ops::softmax)) return eigen_softmax(m, node, x, threads, before).make();
  if (m.is(node, ops::layer_norm)) return eigen_layer_norm(m, node, x, threads, before).make();
  if (m.is(node, ops::reduce_sum)) return eigen_reduce(m, node, reduction::sum, x, threads).make();
  if (m.is(node, ops::reduce_mean)) return eigen_reduce(m, node, reduction::mean, x, threads).make();
  if (m.is(node, ops::reduce_max)) return eigen_reduce(m, node, reduction::largest, x, threads).make();
  if (m.is(node, ops::reduce_min)) return eigen_reduce(m, node, reduction::smallest, x, threads).make();
  if (m.is(node, ops::concat)) return eigen_concat(m, node, threads).make();
  if (m.is(node, ops::transpose))
    return with_element_size(type,
                             [&](auto zero) { return eigen_transpose<decltype(zero)>(m, node, x, threads).make(); });
  if (m.is(node, ops::resize)) {
    if (m.attributes(node, ops::resize).mode == ops::resize_mode::linear)
      return eigen_resize<float>(m, node, x, threads).make();
    return with_element_size(type, [&](auto zero) { return eigen_resize<decltype(zero)>(m, node, x, threads).make(); });
  }
  throw error(error_kind::unsupported, std::string("there is no kernel for the operator ") + m.kind_of(node).name,
              "eigen");
}

}  // namespace
}  // namespace collage::inline v0::detail::host

namespace collage::inline v0 {

kernel eigen::build(const any_match& m, build_context& context) {
  using namespace detail::host;
  if (const probe_result here = probe(); !here.available) throw error(error_kind::unsupported, here.reason, name);
  const match_parts parts = parts_of(m);
  if (parts.core == match_record::nothing) return build_elementwise(m, context.threads());
  const elementwise_program before = make_program(m, parts.before);
  const elementwise_program after = make_program(m, parts.after, m.output_of(parts.core));
  kernel made = build_core(m, parts, context, before, after);
  std::vector<std::size_t> read;  // arguments that the core operator reads
  for (const std::uint32_t v : m.inputs_of(parts.core)) read.push_back(m.index_of(v));
  drop_constants(made, before, read);
  drop_constants(made, after, read);
  return made;
}

probe_result eigen::probe() {
  using namespace detail::host;
  if (const char* reason = why_not_here(); *reason != '\0') return {.available = false, .reason = reason};
  static const std::string version = std::to_string(EIGEN_WORLD_VERSION) + '.' + std::to_string(EIGEN_MAJOR_VERSION) +
                                     '.' + std::to_string(EIGEN_MINOR_VERSION);
  static const std::string details = std::string(compiled_for) + ", packets of " + std::to_string(lanes) + " floats";
  return {.version = version.c_str(), .details = details.c_str()};
}

int eigen::enter(int threads) { return detail::host::enter_team(threads); }
void eigen::leave(int token) { detail::host::leave_team(token); }

}  // namespace collage::inline v0
