// NASNet-A: a network found by search, of cells that join five sums.
#pragma once

#include <collage/zoo/parts.hpp>

namespace collage::inline v0::zoo {

namespace parts {

/// The cells of NASNet-A. Each reads the outputs of the two cells before it, squeezed to `channels`. Where two operands
/// of a sum are made in one expression they stand in braces: only there does C++ say which is made first.
template <class Builder>
struct nasnet_cell {
  Builder& g;
  label name;
  std::int64_t channels;

  constexpr value squeeze(const char* which, value x, std::int64_t in) {
    return g(ops::relu, conv(g, name + which, x, in, channels, {.bias = true, .gain = keep}));
  }
  /// A convolution within each channel, then one across channels.
  constexpr value separable(const char* which, value x, std::int64_t window, std::int64_t stride = 1) {
    x = conv(g, name + which + ".0", x, channels, channels,
             {.window = window, .stride = stride, .groups = channels, .gain = keep});
    return conv(g, name + which + ".1", x, channels, channels, {.gain = keep});
  }
  template <class Kind>
  constexpr value pool(const Kind& kind, value x, std::int64_t stride) {
    return g(kind, x, {.window = {3, 3}, .strides = {stride, stride}, .pads_begin = {1, 1}, .pads_end = {1, 1}});
  }

  constexpr value normal(value current, std::int64_t current_in, value previous, std::int64_t previous_in) {
    current = squeeze(".cur.0", current, current_in);
    previous = squeeze(".prev.0", previous, previous_in);
    const value a = g(ops::add, separable(".sep.0", current, 3), current);
    const value b = g(ops::add, {separable(".sep.1", previous, 3), separable(".sep.2", current, 3)});
    const value c = g(ops::add, pool(ops::average_pool, current, 1), previous);
    const value mean = pool(ops::average_pool, previous, 1);
    const value d = g(ops::add, mean, mean);
    const value e = g(ops::add, {separable(".sep.3", previous, 3), separable(".sep.4", previous, 3)});
    return g(ops::concat, {a, b, c, d, e}, {.axis = 1});
  }

  /// The same at half the extents.
  constexpr value reduction(value current, value previous, std::int64_t in) {
    current = squeeze(".cur.0", current, in);
    previous = squeeze(".prev.0", previous, in);
    const value a = g(ops::add, {separable(".c7a", previous, 7, 2), separable(".c5a", current, 5, 2)});
    const value largest = pool(ops::max_pool, current, 2);
    const value b = g(ops::add, largest, separable(".c7b", previous, 7, 2));
    const value mean = pool(ops::average_pool, current, 2);
    const value c = g(ops::add, mean, separable(".c5b", previous, 5, 2));
    const value d = g(ops::add, largest, separable(".c3", a, 3));
    const value e = g(ops::add, pool(ops::average_pool, a, 1), b);
    return g(ops::concat, {a, b, c, d, e}, {.axis = 1});
  }
};

}  // namespace parts

/// NASNet-A (Zoph and others, 2017) in the reduced form of the Collage paper: 3 stages of 5 cells, no stem, no norms.
template <class Builder>
constexpr void nasnet_a_paper(Builder& g) {
  value current = g.input("input", {dtype::f32, {1, 64, 56, 56}});
  value previous = current;
  std::int64_t current_in = 64, previous_in = 64;
  for (int stage = 0; stage < 3; ++stage) {
    const std::int64_t channels = std::int64_t{64} << stage;
    if (stage > 0) {
      parts::nasnet_cell<Builder> cell{g, label("reduce.") + (stage - 1), channels};
      current = previous = cell.reduction(current, previous, current_in);
      current_in = previous_in = 5 * channels;
    }
    for (int number = 0; number < 5; ++number) {
      parts::nasnet_cell<Builder> cell{g, label("stages.") + stage + "." + number, channels};
      const value next = cell.normal(current, current_in, previous, previous_in);
      previous = current;
      previous_in = current_in;
      current = next;
      current_in = 5 * channels;
    }
  }
  g.output("output", current);
}

}  // namespace collage::inline v0::zoo
