// Transposed convolutions on oneDNN, and convolutions of images that a resize made larger by repeating elements.
//
// The latter are transposed convolutions of the small images: where f neighbours are equal, their weights can be added before they
// are multiplied. With a window of k and a factor of f, each result takes (k + f - 1) / f products instead of k, in each dimension.
// For 3x3 and 2 that is 4 products instead of 9.
//
// docs/decisions/onednn-kernels.md has the figures.
#pragma once

#include <algorithm>
#include <collage/backends/impl/onednn_conv.hpp>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace collage::inline v0::detail::onednn {
namespace {

/// Whether a match is computed as a transposed convolution.
inline bool is_deconv(const chain& m) {
  return m.is(m.anchor, ops::conv_transpose) || m.resize != match_record::nothing;
}

struct deconv_problem {
  conv_problem terms;  ///< in the library's terms
  desc filters;        ///< the layout of the weights in memory
  dims factors;        ///< by which a resize before it makes the image larger; empty without a resize
  bool is_upsampled() const { return !factors.empty(); }
};

/// Describes the weights of ops::conv_transpose, [C, M / groups, window...], in the library's order of dimensions: groups,
/// M / groups, C / groups, window.
inline desc transposed_filters(const dims& w, std::int64_t groups) {
  const dims steps = dense_steps(w);
  dims extents{w[1], w[0] / groups}, strides{steps[1], steps[0]};
  if (groups > 1) {
    extents.insert(extents.begin(), groups);
    strides.insert(strides.begin(), steps[0] * (w[0] / groups));
  }
  extents.insert(extents.end(), w.begin() + 2, w.end());
  strides.insert(strides.end(), steps.begin() + 2, steps.end());
  return {extents, f32, strides};
}

inline deconv_problem deconv_problem_of(const chain& m) {
  deconv_problem p;
  if (m.resize != match_record::nothing) {
    conv_problem& t = p.terms = conv_problem_of(m, m.anchor);
    const std::size_t spatial = t.x.size() - 2, front = t.w.size() - spatial;
    p.filters = dense(t.w);
    const dims between = t.x;
    t.x_value = m.inputs_of(m.resize)[0];
    t.x = to_dims(m.type_of(t.x_value).dims);
    for (std::size_t i = 0; i < spatial; ++i) {
      const std::int64_t f = between[i + 2] / t.x[i + 2], window = t.w[front + i];
      p.factors.push_back(f);
      t.strides[i] = f;
      t.pads_begin[i] = window - 1 - t.pads_begin[i];
      t.pads_end[i] = window - 1 - t.pads_end[i];
      t.w[front + i] = window + f - 1;
    }
    return p;
  }
  const auto a = m.attributes(m.anchor, ops::conv_transpose);
  conv_problem& t = p.terms = conv_operands(m, m.anchor);
  t.groups = a.groups;
  p.filters = transposed_filters(t.w, a.groups);
  t.w = p.filters.get_dims();
  for (std::size_t i = 0; i + 2 < t.x.size(); ++i) {
    t.strides.push_back(a.strides[i]);
    t.dilations.push_back(a.dilations[i] - 1);
    t.pads_begin.push_back(a.pads_begin[i]);
    t.pads_end.push_back(a.pads_end[i] - a.output_padding[i]);
  }
  return p;
}

inline std::vector<conv_way> deconv_ways(const conv_problem& p) {
  std::vector<conv_way> ways;
  if (const std::int64_t block = block_size(); block != 0 && (p.x[1] >= block || p.y[1] >= block))
    ways.push_back(conv_way::channels_last);
  ways.push_back(conv_way::library);
  return ways;
}

/// A convolution of either kind in the library's terms, and the ways to compute it.
inline conv_problem terms_of(const chain& m) {
  return is_deconv(m) ? deconv_problem_of(m).terms : conv_problem_of(m, m.anchor);
}
inline std::vector<conv_way> ways_of(const chain& m, const conv_problem& p) {
  return is_deconv(m) ? deconv_ways(p) : conv_ways(p);
}

using deconv_descriptor = dnnl::deconvolution_forward::primitive_desc;

/// Errors: `unsupported` if the library would compute the steps after it in plain loops, or computes the window wrongly.
inline deconv_descriptor describe_deconv(const conv_problem& p, const desc& x, const desc& y, const epilogue& then) {
  const deconv_descriptor d(cpu(), dnnl::prop_kind::forward_inference, dnnl::algorithm::deconvolution_direct, x,
                            free_layout(p.w, x.get_data_type()), bias_of(p), y, p.strides, p.dilations, p.pads_begin,
                            p.pads_end, attributes(then.ops()));
  const std::string name = d.impl_info_str();
  if (then.ops().len() != 0 && name.starts_with("conv:"))
    throw error(error_kind::unsupported, "the library has only slow loops for the operators after it", "onednn");
  // Its kernels (3.2) for AMX read behind images that are smaller than the window in some dimension.
  if (p.strides.size() == 3 && name.find("amx") != std::string::npos)
    throw error(error_kind::unsupported, "the library computes this window over three dimensions wrongly", "onednn");
  return d;
}

/// The filters of a transposed convolution by `factors` that equals a resize and then a convolution with `filters`. Along each
/// dimension, with a window of k and a factor of f, weight j is the sum of weights `k - 1 - j` to `k - 1 - j + f - 1`. Those out
/// of range count as 0.
inline std::vector<float> add_equal(const float* filters, dims extents, const dims& factors) {
  std::vector<double> values(filters, filters + product(extents));
  const std::size_t front = extents.size() - factors.size();
  for (std::size_t d = 0; d < factors.size(); ++d) {
    const std::int64_t k = extents[front + d], f = factors[d], made = k + f - 1;
    const std::int64_t inner = product({extents.begin() + static_cast<std::ptrdiff_t>(front + d) + 1, extents.end()});
    const std::int64_t outer = product({extents.begin(), extents.begin() + static_cast<std::ptrdiff_t>(front + d)});
    std::vector<double> next(static_cast<std::size_t>(outer * made * inner));
    for (std::int64_t o = 0; o < outer; ++o)
      for (std::int64_t j = 0; j < made; ++j)
        for (std::int64_t t = std::max<std::int64_t>(k - 1 - j, 0); t < std::min(k - 1 - j + f, k); ++t)
          for (std::int64_t i = 0; i < inner; ++i)
            next[static_cast<std::size_t>((o * made + j) * inner + i)] +=
                values[static_cast<std::size_t>((o * k + t) * inner + i)];
    values = std::move(next);
    extents[front + d] = made;
  }
  return {values.begin(), values.end()};
}

inline kernel build_deconv(const chain& m, build_context& context, const conv_variant& which) {
  deconv_problem problem = deconv_problem_of(m);
  conv_problem& p = problem.terms;
  const std::size_t first = take_bias(m, p);
  const value_forms borders = conv_forms(m, p, which);
  const auto [d, then] = choose_conv(m, first, p, which.way, borders, describe_deconv);

  program_builder program(m, context);
  std::size_t weights = 0;
  if (problem.is_upsampled()) {
    std::string how = "repeated";
    for (const std::int64_t f : problem.factors) how += ' ' + std::to_string(f);
    const auto* const filters = context.constant<float>(p.w_value);
    const desc to = d.weights_desc();
    weights = program.pack(p.w_value, how + ' ', problem.filters, to, [&](std::byte* bytes) {
      const std::vector<float> made = add_equal(filters, problem.filters.get_dims(), problem.factors);
      program_builder::repack(dense(p.w), reinterpret_cast<const std::byte*>(made.data()), to, bytes);
    });
  } else {
    weights = program.read(p.w_value, problem.filters, d.weights_desc());
  }
  return finish_conv<dnnl::deconvolution_forward>(program, p, d, then, desc_in(borders.of(p.x_value), p.x), weights,
                                                  borders);
}

}  // namespace
}  // namespace collage::inline v0::detail::onednn
