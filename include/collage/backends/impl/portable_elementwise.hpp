// Elementwise operators of every element type in plain loops.
#pragma once

#include <collage/backends/any_match.hpp>
#include <collage/backends/impl/element_blocks.hpp>
#include <collage/backends/impl/element_operators.hpp>
#include <collage/backends/impl/elementwise_program.hpp>
#include <collage/backends/impl/elementwise_run.hpp>
#include <collage/run/kernel.hpp>
#include <cstdint>
#include <string>

namespace collage::inline v0::detail::host {
namespace {

/// T is what the body is computed in; operands and results of other types are converted block by block.
template <class T>
struct portable_elementwise {
  elementwise_program program;
  int threads = 1;
  void operator()(const kernel_call& call) const {
    run_program<standard_math>(program, threads, call.in, static_cast<T*>(call.out[0]));
  }
};

/// Whether there are loops for an operator.
inline bool portable_takes_elementwise(const any_match& m, std::uint32_t node) {
  return m.kind_of(node).body != nullptr;
}

/// A kernel for a match of one elementwise operator. Throws if its body needs more intermediate results than a program has
/// room for.
inline kernel build_portable_elementwise(const any_match& m, build_context& context) {
  const elementwise_program program = make_program(m, m.nodes());
  const std::string name = std::string("elementwise ") + m.kind_of(m.nodes().back()).name;
  kernel made = with_computed_type(
      program.type, [&]<class T>(T) { return kernel(name, portable_elementwise<T>{program, context.threads()}); });
  drop_constants(made, program);
  allow_in_place(made, program);
  return made;
}

}  // namespace
}  // namespace collage::inline v0::detail::host
