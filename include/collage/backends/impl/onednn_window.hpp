// Pooling and resampling on oneDNN.
#pragma once

#include <algorithm>
#include <atomic>
#include <collage/backends/impl/onednn_program.hpp>
#include <collage/backends/impl/team.hpp>
#include <collage/ops.hpp>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <utility>

namespace collage::inline v0::detail::onednn {
namespace {

/// The largest magnitude of some floats, as bits: above infinity's where there is a NaN. Integers, because compilers
/// make vectors of their maximum.
inline std::uint32_t largest_bits(const float* x, std::int64_t first, std::int64_t last) {
  std::uint32_t largest = 0;
  for (std::int64_t i = first; i < last; ++i) {
    std::uint32_t bits;
    std::memcpy(&bits, x + i, sizeof bits);
    largest = std::max(largest, bits & 0x7FFFFFFFU);
  }
  return largest;
}
inline constexpr std::uint32_t infinity_bits = 0x7F800000U;

/// A pooling's geometry in the library's terms.
struct pool_problem {
  dims x, y, window, strides, pads_begin, pads_end;
};

inline pool_problem pool_problem_of(const any_match& m, std::uint32_t node, const ops::pool_attributes& a) {
  pool_problem p;
  p.x = to_dims(m.type_of(m.inputs_of(node)[0]).dims);
  p.y = to_dims(m.type_of(m.output_of(node)).dims);
  p.window = to_dims(a.window);
  p.strides = to_dims(a.strides);
  p.pads_begin = to_dims(a.pads_begin);
  p.pads_end = to_dims(a.pads_end);
  // Where rounding up counts a last, partial window, it ends beyond the pads.
  for (std::size_t i = 0; i < p.window.size(); ++i)
    p.pads_end[i] =
        std::max(p.pads_end[i], (p.y[i + 2] - 1) * p.strides[i] + p.window[i] - p.x[i + 2] - p.pads_begin[i]);
  return p;
}

using pool_descriptor = dnnl::pooling_forward::primitive_desc;

inline pool_descriptor describe_pool(const pool_problem& p, dnnl::algorithm how, const form& stored) {
  return fast(pool_descriptor(cpu(), dnnl::prop_kind::forward_inference, how, desc_in(stored, p.x),
                              desc_in(stored, p.y), p.strides, p.window, dims(p.window.size(), 0), p.pads_begin,
                              p.pads_end, attributes()));
}

/// No operator is fused after it. With plain images, a sum fused in oneDNN 3.2 adds the wrong elements, some from outside the
/// tensor.
inline kernel build_average_pool(const any_match& m, build_context& context, std::uint32_t node, const form& stored) {
  const auto a = m.attributes(node, ops::average_pool);
  const pool_problem p = pool_problem_of(m, node, a);
  using enum dnnl::algorithm;
  const pool_descriptor d =
      describe_pool(p, a.count_padding ? pooling_avg_include_padding : pooling_avg_exclude_padding, stored);
  program_builder program(m, context);
  program.run(d, dnnl::pooling_forward(d),
              {{DNNL_ARG_SRC, program.read(m.inputs_of(node)[0], desc_in(stored, p.x))},
               {DNNL_ARG_DST, program.output(desc_in(stored, p.y))}});
  return program.finish(named(d, stored));
}

/// The library's max_pool forgets NaN and takes -infinity for the smallest number: where the input has one of those,
/// plain loops do the work.
struct run_max_pool {
  std::shared_ptr<const program> steps;
  pool_problem p;
  kernel_input<float> input;
  kernel_output<float> output;
  int threads;
  std::int64_t block;  ///< channels that lie side by side

  void operator()(const kernel_call& call) const {
    const float* const in = input(call);
    std::atomic<bool> odd = false;
    const std::int64_t blocks = (p.x[1] + block - 1) / block;
    host::parallel_parts(threads, product(p.x) / p.x[1] * blocks * block, 1024, 0.125,
                         [&](std::int64_t first, std::int64_t last) {
                           if (largest_bits(in, first, last) >= infinity_bits)
                             odd.store(true, std::memory_order_relaxed);
                         });
    if (odd) return pool(in, output(call));
    steps->run(call);
  }

  void pool(const float* in, float* out) const {
    // Up to three dimensions, those that are missing in front.
    std::int64_t x[3] = {1, 1, 1}, y[3] = {1, 1, 1}, window[3] = {1, 1, 1}, stride[3] = {1, 1, 1}, pad[3] = {};
    const std::size_t rank = p.window.size();
    for (std::size_t i = 0; i < rank; ++i) {
      const std::size_t d = 3 - rank + i;
      x[d] = p.x[i + 2], y[d] = p.y[i + 2], window[d] = p.window[i], stride[d] = p.strides[i], pad[d] = p.pads_begin[i];
    }
    const std::int64_t size = x[0] * x[1] * x[2];
    const std::int64_t blocks = (p.x[1] + block - 1) / block;
    host::parallel(threads, p.x[0] * blocks * block, [&](std::int64_t image, int) {
      const std::int64_t channel = image % (blocks * block);
      const std::int64_t plane = image / block * block;  // where its block begins, in units of an image's places
      const float* const from = in + plane * size + channel % block;
      float* to = out + plane * y[0] * y[1] * y[2] + channel % block;
      if (channel >= p.x[1]) {
        for (std::int64_t i = 0; i < y[0] * y[1] * y[2]; ++i) to[i * block] = 0;
        return;
      }
      for (std::int64_t a = 0; a < y[0]; ++a)
        for (std::int64_t b = 0; b < y[1]; ++b)
          for (std::int64_t c = 0; c < y[2]; ++c) {
            const std::int64_t at[3] = {a * stride[0] - pad[0], b * stride[1] - pad[1], c * stride[2] - pad[2]};
            std::int64_t first[3], last[3];
            for (std::size_t d = 0; d < 3; ++d) {
              first[d] = std::max<std::int64_t>(at[d], 0);
              last[d] = std::min(at[d] + window[d], x[d]);
            }
            float largest = -std::numeric_limits<float>::infinity();
            for (std::int64_t i = first[0]; i < last[0]; ++i)
              for (std::int64_t j = first[1]; j < last[1]; ++j)
                for (std::int64_t k = first[2]; k < last[2]; ++k) {
                  const float v = from[((i * x[1] + j) * x[2] + k) * block];
                  if (v > largest || v != v) largest = v;
                }
            *to = largest;
            to += block;
          }
    });
  }
};

inline kernel build_max_pool(const any_match& m, build_context& context, std::uint32_t node, const form& stored) {
  // Integers are compared as they are.
  if (stored.element && is_8_bit_integer(*stored.element) &&
      context.scale_of(m.inputs_of(node)[0], *stored.element) != context.scale_of(m.output(), *stored.element))
    throw error(error_kind::unsupported, "max_pool of integers needs one scale for its input and its output", "onednn");
  const pool_problem p = pool_problem_of(m, node, m.attributes(node, ops::max_pool));
  const pool_descriptor d = describe_pool(p, dnnl::algorithm::pooling_max, stored);
  program_builder program(m, context);
  program.run(d, dnnl::pooling_forward(d),
              {{DNNL_ARG_SRC, program.read(m.inputs_of(node)[0], desc_in(stored, p.x))},
               {DNNL_ARG_DST, program.output(desc_in(stored, p.y))}});
  if (stored.element) return program.finish(named(d, stored));
  const std::int64_t block = stored == plain ? 1 : stored == channels_last ? p.x[1] : block_size();
  return program.finish(named(d, stored), [&](std::shared_ptr<const collage::detail::onednn::program> steps) {
    return run_max_pool{std::move(steps),  p,    m.in<float>(m.inputs_of(node)[0]), m.out<float>(),
                        context.threads(), block};
  });
}

inline kernel build_resize(const any_match& m, build_context& context, std::uint32_t node) {
  const bool nearest = m.attributes(node, ops::resize).mode == ops::resize_mode::nearest;
  const desc x = dense_of(m.type_of(m.inputs_of(node)[0]).dims);
  const desc y = dense_of(m.type_of(m.output()).dims);
  const auto how = nearest ? dnnl::algorithm::resampling_nearest : dnnl::algorithm::resampling_linear;
  using descriptor = dnnl::resampling_forward::primitive_desc;
  const descriptor d = fast(descriptor(cpu(), dnnl::prop_kind::forward_inference, how, x, y, attributes()));
  program_builder program(m, context);
  program.run(d, dnnl::resampling_forward(d),
              {{DNNL_ARG_SRC, program.read(m.inputs_of(node)[0], x)}, {DNNL_ARG_DST, program.output(y)}});
  return program.finish(d.impl_info_str());
}

}  // namespace
}  // namespace collage::inline v0::detail::onednn
