// Einsum, determinants, Fourier transforms with their windows and filter banks, losses, counts of n-grams.
#include <cmath>
#include <collage/io/onnx/lowering.hpp>
#include <collage/op/algebra.hpp>
#include <collage/op/comparison.hpp>
#include <collage/op/conv.hpp>
#include <collage/op/elementwise.hpp>
#include <collage/op/gather.hpp>
#include <collage/op/matmul.hpp>
#include <collage/op/movement.hpp>
#include <collage/op/norm.hpp>
#include <collage/op/reduce.hpp>
#include <collage/op/slice.hpp>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numbers>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lower_einsum.hpp"
#include "lower_tf_idf.hpp"
#include "rules.hpp"

namespace collage::inline v0::onnx {
namespace {

void lower_det(lowering& n) { n.result(0, n(ops::determinant, n.operand(0))); }

// Losses

/// The sum over all elements.
value total(lowering& n, value x) { return n(ops::reduce_sum, x, {.keep_dims = false}); }

/// The loss of log-probabilities [N, C, ...] for the targets [N, ...] of operand 1, with the classes' weights of operand 2.
void finish_loss(lowering& n, value log_probability) {
  const shape x = n.dims_of(log_probability);
  const dtype type = n.element_type_of(log_probability);
  const value target = n.operand(1);
  const shape places = n.dims_of(target);
  if (x.size() < 2 || places.size() + 1 != x.size())
    n.invalid("its operands must have shapes [N, C, ...] and [N, ...]");
  shape column = x;
  column[1] = 1;
  std::optional<value> counts;
  value classes = target;
  if (n.has_attribute("ignore_index")) {
    const value ignored = n.scalar(static_cast<double>(n.integer("ignore_index", 0)), n.element_type_of(target));
    const value zero = n.scalar(0, n.element_type_of(target));
    counts = n(ops::logical_not, n(ops::equal, target, ignored));
    classes = n(ops::where, *counts, target, zero);  // any class will do: its loss is replaced by 0
  }
  const value picked = n(ops::gather_elements, log_probability, n.reshape(classes, column), {.axis = 1});
  value loss = n(ops::neg, n.reshape(picked, places));
  std::optional<value> weights;
  if (n.has(2)) {
    weights = n(ops::gather, n.operand(2), classes, {.axis = 0});
    loss = n(ops::mul, loss, *weights);
  }
  if (counts) {
    const value zero = n.scalar(0, type);
    loss = n(ops::where, *counts, loss, zero);
    weights = n(ops::where, *counts, weights ? *weights : n.filled({type, places}, 1), zero);
  }
  const std::string reduction = n.text("reduction", "mean");
  if (reduction == "none") n.result(0, loss);
  else if (reduction == "sum") n.result(0, total(n, loss));
  else if (reduction != "mean") n.invalid("its reduction is \"" + reduction + "\", which is none of those defined");
  else if (weights) n.result(0, n(ops::div, total(n, loss), total(n, *weights)));
  else n.result(0, n(ops::reduce_mean, loss, {.keep_dims = false}));
}

void lower_negative_log_likelihood_loss(lowering& n) { finish_loss(n, n.operand(0)); }

void lower_softmax_cross_entropy_loss(lowering& n) {
  if (n.rank_of(n.operand(0)) < 2) n.invalid("its scores must have shape [N, C, ...]");
  const value log_probability = n(ops::log_softmax, n.operand(0), {.axis = 1});
  n.result(1, log_probability);
  finish_loss(n, log_probability);
}

// Tables

/// The most elements of a table that is computed while loading.
constexpr std::int64_t most_table_elements = std::int64_t{1} << 25;

/// A constant of the element type that the attribute output_datatype names.
value table(lowering& n, const shape& dims, std::span<const double> contents) {
  const std::int64_t number = n.integer("output_datatype", 1);
  const bool fits = number > 0 && number <= std::numeric_limits<int>::max();
  const std::optional<dtype> type = fits ? element_type_of(static_cast<int>(number)) : std::nullopt;
  if (!type) n.unsupported("the output_datatype " + std::to_string(number));
  oracle_value t(tensor_type{dtype::f64, dims});
  t.real.assign(contents.begin(), contents.end());
  return n.cast(n.constant(t), *type);
}

/// A sum of cosines: terms[k] * cos(2 pi k i / period).
template <std::size_t Terms>
void lower_window(lowering& n, const double (&terms)[Terms]) {
  const std::int64_t size = n.integer_of(0, "its size");
  if (size < 0) n.invalid("its size must not be negative");
  if (size > most_table_elements) n.unsupported("a window of more than 2^25 elements");
  const std::int64_t period = n.integer("periodic", 1) != 0 ? size : size - 1;
  std::vector<double> window;
  for (std::int64_t i = 0; i < size; ++i) {
    double sum = 0;
    // A symmetric window of one element has only its middle, half a period in.
    const double turn = period == 0 ? 0.5 : static_cast<double>(i) / static_cast<double>(period);
    for (std::size_t k = 0; k < Terms; ++k)
      sum += terms[k] * std::cos(2 * std::numbers::pi * static_cast<double>(k) * turn);
    window.push_back(sum);
  }
  n.result(0, table(n, {size}, window));
}
void lower_hann_window(lowering& n) { lower_window(n, {0.5, -0.5}); }
void lower_hamming_window(lowering& n) { lower_window(n, {25.0 / 46.0, -21.0 / 46.0}); }
void lower_blackman_window(lowering& n) { lower_window(n, {0.42, -0.5, 0.08}); }

/// Triangular filters over the bins of a spectrum. Their corners are evenly spaced on the mel scale.
void lower_mel_weight_matrix(lowering& n) {
  const std::int64_t bands = n.integer_of(0, "its number of bands");
  const std::int64_t length = n.integer_of(1, "the length of its transform");
  const auto rate = static_cast<double>(n.integer_of(2, "its sample rate"));
  const double low = n.number_of(3, "its lower edge"), high = n.number_of(4, "its upper edge");
  if (length > most_table_elements) n.unsupported("a transform of more than 2^25 elements");
  if (bands < 0 || length < 0 || !(rate > 0) || !(low >= 0) || !(high >= low))
    n.invalid("its bands, length, rate and edges must be positive numbers, and the edges in order");
  const std::int64_t bins = length / 2 + 1;
  if (bands > most_table_elements / bins) n.unsupported("a matrix of more than 2^25 elements");
  const auto mel = [](double hertz) { return 2595 * std::log10(1 + hertz / 700); };
  const double step = (mel(high) - mel(low)) / static_cast<double>(bands + 2);
  std::vector<std::int64_t> corners;
  for (std::int64_t i = 0; i < bands + 2; ++i) {
    const double hertz = 700 * (std::pow(10.0, (static_cast<double>(i) * step + mel(low)) / 2595) - 1);
    const double bin = std::floor(static_cast<double>(length + 1) * hertz / rate);
    if (!(bin < static_cast<double>(bins))) n.invalid("its upper edge is beyond half of its sample rate");
    corners.push_back(static_cast<std::int64_t>(bin));
  }
  std::vector<double> weights(static_cast<std::size_t>(bins * bands), 0.0);
  for (std::int64_t band = 0; band < bands; ++band) {
    const auto at = static_cast<std::size_t>(band);
    const std::int64_t left = corners[at], middle = corners[at + 1], right = corners[at + 2];
    for (std::int64_t bin = left; bin <= right; ++bin) {
      double& weight = weights[static_cast<std::size_t>(bin * bands + band)];
      if (bin == middle) weight = 1;
      else if (bin < middle) weight = static_cast<double>(bin - left) / static_cast<double>(middle - left);
      else weight = static_cast<double>(right - bin) / static_cast<double>(right - middle);
    }
  }
  n.result(0, table(n, {bins, bands}, weights));
}

// Fourier transforms

/// The sizes and the direction of a Fourier transform.
struct transform {
  std::int64_t length = 0;
  std::int64_t taken = 0;  ///< elements of the input that are used; the rest of the length is zeros
  std::int64_t parts = 1;  ///< 2 where the input is complex
  std::int64_t bins = 0;
  bool inverse = false;
  bool is_half = false;  ///< the input is half of a spectrum, whose signal is real

  std::int64_t result_parts() const { return is_half ? 1 : 2; }
};

transform transform_of(lowering& n, std::int64_t length, std::int64_t taken, std::int64_t parts, bool one_sided) {
  if (parts != 1 && parts != 2)
    n.invalid("the last dimension of its input must be 1 for real or 2 for complex numbers");
  if (length < 1) n.invalid("the length of its transform must be positive");
  transform t{.length = length, .taken = std::min(taken, length), .parts = parts, .bins = length, .inverse = false};
  t.inverse = n.integer("inverse", 0) != 0;
  if (one_sided && t.inverse) {
    if (parts == 1) n.invalid("half of a spectrum has complex numbers");
    t.is_half = true;
    t.taken = std::min(taken, length / 2 + 1);
  } else if (one_sided) {
    if (parts == 2) n.invalid("only the spectrum of real numbers can be one-sided");
    t.bins = length / 2 + 1;
  }
  if (t.bins > most_table_elements / 4 / std::max<std::int64_t>(t.taken, 1))
    n.unsupported("a transform of " + std::to_string(length) + " elements (its matrix is too large)");
  return t;
}

/// Calls put(element, part, bin, bin_part, factor) for every factor of the transform's matrix.
template <class Put>
void for_each_factor(const transform& t, const Put& put) {
  const double scale = t.inverse ? 1 / static_cast<double>(t.length) : 1.0;
  for (std::int64_t i = 0; i < t.taken; ++i)
    for (std::int64_t k = 0; k < t.bins; ++k) {
      // Whole turns are removed first, in integers, so that the angle stays exact.
      const double turn = static_cast<double>(i * k % t.length) / static_cast<double>(t.length);
      const double angle = (t.inverse ? 2 : -2) * std::numbers::pi * turn;
      const double real = scale * std::cos(angle), imaginary = scale * std::sin(angle);
      if (t.is_half) {
        // The other half are the conjugates, except of the first element and of one in the middle.
        const double weight = i == 0 || 2 * i == t.length ? 1 : 2;
        put(i, 0, k, 0, weight * real);
        put(i, 1, k, 0, -weight * imaginary);
        continue;
      }
      put(i, 0, k, 0, real);
      put(i, 0, k, 1, imaginary);
      if (t.parts == 1) continue;
      put(i, 1, k, 0, -imaginary);
      put(i, 1, k, 1, real);
    }
}

/// Multiplies by the matrix of the transform, along one axis.
void lower_dft(lowering& n) {
  value x = n.operand(0);
  const std::size_t rank = n.rank_of(x);
  if (rank < 2)
    n.invalid("its input must have rank 2 or more: an axis to transform, and last the real and imaginary parts");
  std::int64_t given = n.opset() < 20 ? n.integer("axis", 1) : -2;
  if (n.opset() >= 20 && n.has(2)) given = n.integer_of(2, "its axis");
  const auto axis = static_cast<std::size_t>(n.axis(given, rank));
  if (axis + 1 == rank) n.invalid("its axis must not be the last axis, which holds the real and imaginary parts");
  shape dims = n.dims_of(x);
  const bool one_sided = n.integer("onesided", 0) != 0;
  const std::int64_t usual = one_sided && n.integer("inverse", 0) != 0 ? 2 * (dims[axis] - 1) : dims[axis];
  const std::int64_t length = n.has(1) ? n.integer_of(1, "its length") : usual;
  const transform t = transform_of(n, length, dims[axis], dims[rank - 1], one_sided);
  const std::int64_t columns = t.bins * t.result_parts();
  // `there` moves the axis next to the last dimension, and `back` moves it back.
  shape there, back;
  for (std::size_t d = 0; d < rank; ++d)
    if (d != axis && d + 1 < rank) there.push_back(static_cast<std::int64_t>(d));
  there.push_back(static_cast<std::int64_t>(axis));
  there.push_back(static_cast<std::int64_t>(rank - 1));
  for (std::size_t d = 0; d < rank; ++d)
    for (std::size_t i = 0; i < rank; ++i)
      if (there[i] == static_cast<std::int64_t>(d)) back.push_back(static_cast<std::int64_t>(i));
  if (t.taken < dims[axis]) {
    dims[axis] = t.taken;
    x = n(ops::slice, x, {.starts = shape::filled(rank, 0), .steps = shape::filled(rank, 1), .extents = dims});
  }
  oracle_value matrix(tensor_type{n.element_type_of(x), {t.taken * t.parts, columns}});
  if (!is_floating(matrix.type.type)) n.invalid("its input must be of a floating-point type");
  for_each_factor(t, [&](std::int64_t i, std::int64_t part, std::int64_t k, std::int64_t bin_part, double factor) {
    matrix.real[static_cast<std::size_t>((i * t.parts + part) * columns + k * t.result_parts() + bin_part)] = factor;
  });
  x = n(ops::transpose, x, {.permutation = there});
  shape result = n.dims_of(x);
  std::int64_t rows = 1;
  for (std::size_t d = 0; d + 2 < rank; ++d) rows *= result[d];
  x = n(ops::matmul, n.reshape(x, {rows, t.taken * t.parts}), n.constant(matrix));
  result[rank - 2] = t.bins;
  result[rank - 1] = t.result_parts();
  n.result(0, n(ops::transpose, n.reshape(x, result), {.permutation = back}));
}

/// A convolution of the signal [N, parts, length]. Each filter is the real or imaginary part of a bin in the transform's matrix,
/// multiplied by the window.
void lower_stft(lowering& n) {
  value x = n.operand(0);
  shape dims = n.dims_of(x);
  if (dims.size() == 2) dims.push_back(1);
  if (dims.size() != 3) n.invalid("its signal must have shape [N, length, 1] or [N, length, 2]");
  const dtype type = n.element_type_of(x);
  if (!is_floating(type)) n.invalid("its signal must be of a floating-point type");
  const std::int64_t step = n.integer_of(1, "its step");
  std::int64_t length = dims[1];
  if (n.has(2) && n.rank_of(n.operand(2)) != 1) n.invalid("its window must be a list");
  if (n.has(2)) length = n.dims_of(n.operand(2))[0];
  if (n.has(3)) length = n.integer_of(3, "the length of its frames");
  if (n.has(2) && n.dims_of(n.operand(2))[0] != length) n.invalid("its window must be as long as its frames");
  if (length > dims[1]) n.invalid("its frames must not be longer than its signal");
  const transform t = transform_of(n, length, length, dims[2], n.integer("onesided", 1) != 0);
  oracle_value filters(tensor_type{type, {t.bins * 2, t.parts, length}});
  for_each_factor(t, [&](std::int64_t i, std::int64_t part, std::int64_t k, std::int64_t bin_part, double factor) {
    filters.real[static_cast<std::size_t>(((k * 2 + bin_part) * t.parts + part) * length + i)] = factor;
  });
  value weights = n.constant(filters);
  if (n.has(2)) weights = n(ops::mul, weights, n.operand(2));
  x = n(ops::transpose, n.reshape(x, dims), {.permutation = {0, 2, 1}});
  x = n(ops::conv, x, weights, {.strides = {step}});
  const std::int64_t frames = n.dims_of(x)[2];
  x = n.reshape(x, {dims[0], t.bins, 2, frames});
  n.result(0, n(ops::transpose, x, {.permutation = {0, 3, 1, 2}}));
}

}  // namespace

std::span<const lowering_rule> algebra_rules() {
  static constexpr lowering_rule algebra_lowerings[] = {
      {"", "Einsum", lower_einsum},
      {"", "Det", lower_det},
      {"", "NegativeLogLikelihoodLoss", lower_negative_log_likelihood_loss},
      {"", "SoftmaxCrossEntropyLoss", lower_softmax_cross_entropy_loss},
      {"", "HannWindow", lower_hann_window},
      {"", "HammingWindow", lower_hamming_window},
      {"", "BlackmanWindow", lower_blackman_window},
      {"", "MelWeightMatrix", lower_mel_weight_matrix},
      {"", "DFT", lower_dft},
      {"", "STFT", lower_stft},
      {"", "TfIdfVectorizer", lower_tf_idf_vectorizer}};
  return algebra_lowerings;
}

}  // namespace collage::inline v0::onnx
