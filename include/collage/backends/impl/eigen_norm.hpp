// Softmax and layer norm with Eigen's array expressions.
#pragma once

#include <algorithm>
#include <cmath>
#include <collage/backends/impl/eigen_math.hpp>
#include <collage/backends/impl/elementwise_run.hpp>
#include <collage/backends/impl/team.hpp>
#include <collage/op/norm.hpp>
#include <collage/run/kernel.hpp>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

namespace collage::inline v0::detail::host {
namespace {

inline std::int64_t product(const shape& dims, std::size_t first, std::size_t last) {
  std::int64_t result = 1;
  for (std::size_t i = first; i < last; ++i) result *= dims[i];
  return result;
}

/// For how many rows a program is run at once: enough to be worth starting it, few enough for the first-level cache.
inline std::int64_t rows_together(std::int64_t length) { return std::max<std::int64_t>(2048 / length, 1); }

/// Along any axis; what computes its input first (a scale) goes into the output, where softmax finds it.
class eigen_softmax {
 public:
  eigen_softmax(const any_match& m, std::uint32_t node, std::size_t argument, int threads, elementwise_program program)
      : before_(std::move(program)), argument_(argument), threads_(threads) {
    const shape& dims = m.type_of(m.output_of(node)).dims;
    const auto axis = static_cast<std::size_t>(m.attributes(node, ops::softmax).axis);
    outer_ = product(dims, 0, axis);
    length_ = dims[axis];
    inner_ = product(dims, axis + 1, dims.size());
  }
  kernel make() && { return kernel(inner_ == 1 ? "softmax of rows" : "softmax of columns", std::move(*this)); }

  void operator()(const kernel_call& call) const {
    const std::int64_t slab = length_ * inner_;
    if (slab == 0) return;
    float* const out = static_cast<float*>(call.out[0]);
    const std::int64_t together = rows_together(slab);
    parallel_parts(threads_, outer_, 1, 24.0 * static_cast<double>(slab), [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t i = first; i < last; ++i) {
        if ((i - first) % together == 0)
          run_program<eigen_math>(before_, call.in, out, i * slab, std::min(i + together, last) * slab);
        const float* const from =
            before_.empty() ? static_cast<const float*>(call.in[argument_]) + i * slab : out + i * slab;
        if (inner_ == 1) row(from, out + i * slab);
        else columns(from, out + i * slab);
      }
    });
  }

 private:
  // NaN needs no care: one anywhere makes the sum NaN, and an infinite maximum gives NaN too.
  void row(const float* from, float* to) const {
    const const_array_map x(from, length_);
    array_map y(to, length_);
    y = (x - x.maxCoeff()).exp();
    y *= 1.0F / y.sum();
  }
  void columns(const float* from, float* to) const {
    constexpr std::int64_t block = 256;
    float largest_memory[block];
    float sum_memory[block];
    for (std::int64_t c = 0; c < inner_; c += block) {
      const std::int64_t n = std::min(block, inner_ - c);
      array_map largest(largest_memory, n);
      array_map sum(sum_memory, n);
      largest = const_array_map(from + c, n);
      for (std::int64_t k = 1; k < length_; ++k) largest = largest.max(const_array_map(from + k * inner_ + c, n));
      sum.setZero();
      for (std::int64_t k = 0; k < length_; ++k) {
        array_map y(to + k * inner_ + c, n);
        y = (const_array_map(from + k * inner_ + c, n) - largest).exp();
        sum += y;
      }
      sum = 1.0F / sum;
      for (std::int64_t k = 0; k < length_; ++k) array_map(to + k * inner_ + c, n) *= sum;
    }
  }

  elementwise_program before_;
  std::size_t argument_;
  int threads_;
  std::int64_t outer_ = 0, length_ = 0, inner_ = 0;
};

/// Over the last dimensions; a sum before it goes into the output first.
class eigen_layer_norm {
 public:
  eigen_layer_norm(const any_match& m, std::uint32_t node, std::size_t argument, int threads,
                   elementwise_program program)
      : before_(std::move(program)), argument_(argument), threads_(threads) {
    const ops::layer_norm_attributes a = m.attributes(node, ops::layer_norm);
    const std::uint32_t result = m.output_of(node);
    const shape& dims = m.type_of(result).dims;
    const auto axis = static_cast<std::size_t>(a.axis);
    rows_ = product(dims, 0, axis);
    length_ = product(dims, axis, dims.size());
    epsilon_ = static_cast<float>(a.epsilon);
    // Scale and bias broadcast like any operands.
    const std::span<const std::uint32_t> inputs = m.inputs_of(node);
    program_maker maker(m, dims, result);
    program_operand whole = maker.step(opcode::multiply, maker.read(result), maker.read(inputs[1]));
    if (inputs.size() == 3) whole = maker.step(opcode::add, whole, maker.read(inputs[2]));
    then_ = maker.take(whole);
  }
  kernel make() && {
    const elementwise_program before = before_;
    const elementwise_program then = then_;
    const std::size_t read[] = {argument_};
    kernel k("layer norm of rows", std::move(*this));
    drop_constants(k, then, read);
    return k;
  }

  void operator()(const kernel_call& call) const {
    if (length_ == 0) return;
    float* const out = static_cast<float*>(call.out[0]);
    const std::int64_t together = rows_together(length_);
    parallel_parts(threads_, rows_, 1, 12.0 * static_cast<double>(length_), [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t row = first; row < last; row += together) {
        const std::int64_t start = row * length_;
        const std::int64_t end = std::min(row + together, last) * length_;
        run_program<eigen_math>(before_, call.in, out, start, end);
        const float* const from = before_.empty() ? static_cast<const float*>(call.in[argument_]) : out;
        for (std::int64_t at = start; at < end; at += length_) normalise(from + at, out + at);
        run_program<eigen_math>(then_, call.in, out, start, end);
      }
    });
  }

 private:
  void normalise(const float* from, float* to) const {
    const const_array_map x(from, length_);
    const float scale = 1.0F / static_cast<float>(length_);
    const float mean = x.sum() * scale;
    const float variance = (x - mean).square().sum() * scale;
    array_map(to, length_) = (x - mean) * (1.0F / std::sqrt(variance + epsilon_));
  }

  elementwise_program before_, then_;
  std::size_t argument_;
  int threads_;
  std::int64_t rows_ = 0, length_ = 0;
  float epsilon_ = 0;
};

}  // namespace
}  // namespace collage::inline v0::detail::host
