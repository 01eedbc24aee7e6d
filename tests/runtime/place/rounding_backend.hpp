// A backend that multiplies in float32 or in bfloat16, on a clock of its own.
#pragma once

#include <collage/backend_set.hpp>
#include <collage/calibrate/samples.hpp>
#include <collage/graph/graph.hpp>
#include <collage/op/convert_layout.hpp>
#include <collage/ops.hpp>
#include <collage/pattern/single.hpp>
#include <collage/place.hpp>
#include <collage/run/elements.hpp>
#include <collage/run/plan.hpp>
#include <collage/run/precision.hpp>
#include <collage/run/tensor.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "support/placing.hpp"

namespace place_rounding_backend {

namespace c = collage;
namespace op = collage::ops;

/// The time of kernels, on a clock that stands still otherwise.
inline double now_ms = 0;

using product = c::single<op::matmul>;
using relu = c::single<op::relu>;
using conversion = c::single<op::convert_layout>;

constexpr std::int64_t rows = 2, width = 8;
inline const c::form bf16 = c::form().of(c::dtype::bf16);

/// Reads elements of either type, and writes them.
inline std::vector<double> read(c::dtype type, const void* from, std::int64_t count) {
  std::vector<double> numbers(static_cast<std::size_t>(count));
  c::load_elements(type, from, numbers);
  return numbers;
}
inline void write(c::dtype type, const std::vector<double>& numbers, void* to) {
  c::store_elements(type, std::span<const double>(numbers), to);
}

/// Choice 0 is in float32. Choice 1 is in bfloat16, and takes a fraction of the time.
struct rounder : c::backend<"rounder"> {
  using patterns = c::patterns<product, relu, conversion>;

  template <class P>
  static std::size_t choices(const c::match<P>&) {
    return 2;
  }
  template <class P>
  static void layouts(const c::match<P>& m, std::size_t choice, c::value_forms& to) {
    if (choice == 0) return;
    to.set(m.record().argument[0], bf16);
    to.set(m.record().output[0], bf16);
  }
  static void layouts(const c::match<conversion>& m, std::size_t choice, c::value_forms& to) {
    to.set(choice == 0 ? m.record().argument[0] : m.record().output[0], bf16);
  }
  static c::kernel build(const c::match<product>& m, c::build_context& context) {
    const bool is_rounded = context.choice() == 1;
    const c::dtype type = is_rounded ? c::dtype::bf16 : c::dtype::f32;
    std::vector<double> w = read(c::dtype::f32, context.constant<std::byte>(m.record().argument[1]), width * width);
    std::vector<std::byte> rounded(w.size() * c::size_of(type));
    write(type, w, rounded.data());
    w = read(type, rounded.data(), width * width);
    return {is_rounded ? "product in bf16" : "product", [type, is_rounded, w](const c::kernel_call& call) {
              const std::vector<double> x = read(type, call.in[0], rows * width);
              std::vector<double> y(static_cast<std::size_t>(rows * width));
              for (std::size_t i = 0; i < y.size(); ++i)
                for (std::size_t k = 0; k < width; ++k) y[i] += x[i / width * width + k] * w[k * width + i % width];
              write(type, y, call.out[0]);
              now_ms += is_rounded ? 1 : 4;
            }};
  }
  static c::kernel build(const c::match<relu>&, c::build_context& context) {
    const c::dtype type = context.choice() == 1 ? c::dtype::bf16 : c::dtype::f32;
    return {type == c::dtype::bf16 ? "relu in bf16" : "relu", [type](const c::kernel_call& call) {
              std::vector<double> x = read(type, call.in[0], rows * width);
              for (double& element : x) element = std::max(element, 0.0);
              write(type, x, call.out[0]);
              now_ms += 0.25;
            }};
  }
  static c::kernel build(const c::match<conversion>&, c::build_context& context) {
    const bool widens = context.choice() == 0;
    return {widens ? "widen" : "round", [widens](const c::kernel_call& call) {
              const std::vector<double> x = read(widens ? c::dtype::bf16 : c::dtype::f32, call.in[0], rows * width);
              write(widens ? c::dtype::f32 : c::dtype::bf16, x, call.out[0]);
              now_ms += 0.125;
            }};
  }
};
using set = c::backend_set<rounder>;

/// Weights are more often positive, so that no relu makes zeros of all.
inline c::graph layers(std::size_t count) {
  c::graph_builder g;
  c::value x = g.input("x", {c::dtype::f32, {rows, width}});
  for (std::size_t i = 0; i < count; ++i) {
    const std::string name = "w" + std::to_string(i);
    const c::value w = g.constant(name.c_str(), {c::dtype::f32, {width, width}}, c::uniform{-0.25F, 0.5F});
    x = g(op::relu, g(op::matmul, x, w));
  }
  g.output("y", x);
  c::graph made = g.finish();
  c::fill_constants(made);
  return made;
}

inline c::place_options options(double most_error, std::shared_ptr<const c::rounding_errors> errors) {
  c::place_options how = collage_test::clock_options(now_ms);
  how.precision = {c::precisions::bf16, most_error, std::move(errors)};
  return how;
}

/// The same error for each value, and for each weight.
inline std::shared_ptr<c::rounding_errors> equal_errors(const c::graph& network, double of_values, double of_weights) {
  auto made = std::make_shared<c::rounding_errors>();
  for (std::uint32_t v = 0; v < network.values().size(); ++v)
    made->set(v, c::dtype::bf16, network.at(v).role == c::value_role::constant ? of_weights : of_values);
  return made;
}
inline std::ptrdiff_t count(const c::plan& made, const std::string& kernel) {
  return std::ranges::count(made.chosen.groups, kernel, &c::plan_group::kernel);
}

/// Samples of normal numbers around 1.
inline c::sample_source samples_of(std::size_t count) {
  return [count](std::size_t which, std::span<const c::tensor_view> inputs) {
    if (which >= count) return false;
    std::mt19937_64 random(which);
    std::normal_distribution<float> normal(1);
    auto* const x = static_cast<float*>(inputs[0].data);
    for (std::int64_t i = 0; i < inputs[0].type.dims.elements(); ++i) x[i] = normal(random);
    return true;
  };
}

}  // namespace place_rounding_backend
