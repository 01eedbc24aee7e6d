// The quantised convolutions that the oneDNN adapter accepts, read from their matches.
#pragma once

#include <collage/backends/any_match.hpp>
#include <collage/backends/known_scale.hpp>
#include <collage/backends/onednn_chain.hpp>
#include <collage/backends/onednn_quantised_patterns.hpp>
#include <collage/op/cast.hpp>
#include <collage/ops.hpp>
#include <cstddef>
#include <cstdint>

namespace collage::inline v0::detail::onednn {

template <class P> concept convolves_integers = requires { P::convolves_integers; };

/// One operator after a quantised convolution.
struct quantised_step {
  enum class action : std::uint8_t {
    relu,
    clip,           ///< to [low, high]
    round,          ///< quantise and dequantise again: `node` is the quantize_linear, `back` the dequantize_linear
    add,            ///< a dequantised tensor: `back` is its dequantize_linear
    quantise,       ///< the last step: `node` is the quantize_linear
    integers_cast,  ///< the last step: to int32
  };
  action what = action::relu;
  std::uint32_t node = 0;
  std::uint32_t back = 0;
  double low = 0, high = 0;
};

/// A match of a quantised convolution.
struct quantised_conv_match : any_match {
  using action = quantised_step::action;

  std::uint32_t conv = match_record::nothing;
  std::uint32_t source = 0, weights = 0;  ///< the dequantize_linear nodes of both operands
  quantised_step step[6];
  std::size_t steps = 0;
  verdict why;

  template <class P>
    requires convolves_integers<P>
  constexpr quantised_conv_match(const match<P>& m) : any_match(m) {
    for (const std::uint32_t n : nodes())
      if (is(n, ops::conv)) conv = n;
    source = producer_of(inputs_of(conv)[0]);
    weights = producer_of(inputs_of(conv)[1]);
    std::uint32_t v = output_of(conv);
    while (v != output()) v = read_step(v);
  }

  constexpr std::uint32_t producer_of(std::uint32_t v) const { return static_cast<std::uint32_t>(at(v).producer); }
  /// The quantised tensor that a dequantize_linear reads.
  constexpr std::uint32_t integers_of(std::uint32_t dequantize) const { return inputs_of(dequantize)[0]; }
  /// The values that lie over places of the image, apart from the result: the input, and what is added.
  template <class Visit>
  constexpr void visit_images(const Visit& visit) const {
    visit(integers_of(source));
    for (std::size_t i = 0; i < steps; ++i)
      if (step[i].what == action::add) visit(integers_of(step[i].back));
  }

 private:
  /// The one node in the match that reads a value.
  constexpr std::uint32_t reader_of(std::uint32_t v) const {
    for (const use& u : graph().uses_of(v))
      if (contains(u.node)) return u.node;
    return nodes().back();
  }
  /// Reads the operator after `v`, and returns the value that the next step reads.
  constexpr std::uint32_t read_step(std::uint32_t v) {
    const std::uint32_t node = reader_of(v);
    quantised_step s{.node = node};
    std::uint32_t last = node;
    if (is(node, ops::relu)) {
      s.what = action::relu;
    } else if (is(node, ops::clip)) {
      s.what = action::clip;
      const value_record &low = at(inputs_of(node)[1]), &high = at(inputs_of(node)[2]);
      s.low = low.scalar;
      s.high = high.scalar;
      if (!low.has_scalar || !high.has_scalar || !(s.low <= s.high))
        refuse("onednn clips only to bounds that are known numbers, in ascending order");
    } else if (is(node, ops::add)) {
      s.what = action::add;
      const auto in = inputs_of(node);
      s.back = producer_of(in[0] == v ? in[1] : in[0]);
    } else if (is(node, ops::quantize_linear)) {
      s.what = action::quantise;
      if (output_of(node) != output()) {
        s.what = action::round;
        last = s.back = reader_of(output_of(node));
      }
    } else {
      s.what = action::integers_cast;  // one cast or two
      if (output_of(node) != output()) last = reader_of(output_of(node));
      if (type_of(output()).type != dtype::i32) refuse("the result of a convolution of integers is int32");
    }
    step[steps++] = s;
    return output_of(last);
  }
  constexpr void refuse(const char* rule) {
    if (why) why = {false, rule};
  }
};

/// Whether weights have one scale, or one for each filter.
constexpr bool has_scales_of_filters(const any_match& m, std::uint32_t node) {
  const auto in = m.inputs_of(node);
  const auto a = m.attributes(node, ops::dequantize_linear);
  const tensor_type& w = m.type_of(in[0]);
  if (!is_8_bit_integer(w.type)) return false;
  if (m.type_of(in[1]).dims.elements() == 1) return true;
  return a.axis == 0 && a.block == 0 && m.type_of(in[1]).dims.elements() == w.dims[0];
}

/// Whether a longer match of the same pattern takes in what follows, too. After a relu or clip there is no second one.
constexpr bool ends_before_tail(const quantised_conv_match& m) {
  using enum quantised_step::action;
  const tail next = tail_of(m, m.output());
  const bool is_bounded = m.steps > 0 && (m.step[m.steps - 1].what == relu || m.step[m.steps - 1].what == clip);
  return next == tail::quantises || (next == tail::bounds_and_quantises && !is_bounded);
}

/// Whether the library has kernels for a match, whatever follows it.
constexpr verdict has_kernels(const quantised_conv_match& m) {
  using enum quantised_step::action;
  if (!m.why) return m.why;
  const dtype real = m.type_of(m.output_of(m.conv)).type;
  const bool exact = m.steps == 1 && m.step[0].what == integers_cast;
  if (real != dtype::f32 && !(exact && real == dtype::f64)) return {false, "onednn quantises only float32"};
  if (!has_one_known_scale(m, m.source, real))
    return {false, "onednn needs an input of 8 bits with one known positive scale, and one known zero point"};
  if (!has_scales_of_filters(m, m.weights))
    return {false, "onednn needs weights of 8 bits with one scale, or with one for each filter"};
  const shape &x = m.type_of(m.inputs_of(m.conv)[0]).dims, &y = m.type_of(m.output_of(m.conv)).dims;
  if (x.rank < 3 || x.rank > 5) return {false, "onednn convolves over 1 to 3 dimensions"};
  if (x.elements() <= 0 || y.elements() <= 0) return {false, "onednn needs shapes that are known and not empty"};
  if (exact && (m.inputs_of(m.conv).size() == 3 || m.at(m.inputs_of(m.source)[1]).scalar != 1 ||
                !m.at(m.inputs_of(m.weights)[1]).has_scalar || m.at(m.inputs_of(m.weights)[1]).scalar != 1))
    return {false, "a convolution whose result is cast to integers has scales of 1 and no bias"};
  for (std::size_t i = 0; i < m.steps; ++i) {
    const quantised_step& s = m.step[i];
    const bool to_integers = s.what == quantise || s.what == round;
    if (to_integers && (!has_one_known_scale(m, s.node) || (s.what == round && !has_one_known_scale(m, s.back))))
      return {false, "onednn quantises to 8 bits with one known positive scale, and one known zero point"};
    if (s.what != add) continue;
    if (!has_one_known_scale(m, s.back) || m.type_of(m.integers_of(s.back)).dims != y)
      return {false, "onednn adds only a quantised tensor of the result's shape, with one known scale"};
  }
  return {};
}

constexpr verdict accepts(const quantised_conv_match& m) {
  if (const verdict v = has_kernels(m); !v) return v;
  return {!ends_before_tail(m), longer_match_is_better};
}

}  // namespace collage::inline v0::detail::onednn
