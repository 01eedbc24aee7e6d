// The linear program of two nested ones: the matrix is the Kronecker product of theirs.
#pragma once

#include <collage/bilinear/linear_program.hpp>
#include <cstddef>
#include <cstdint>

namespace collage::inline v0::bilinear::detail {

/// Copies instructions, with new numbers for the values that they read.
struct renumbering {
  instruction* code;
  std::size_t inputs;
  std::size_t size = 0;

  template <std::size_t Inputs, std::size_t Outputs, std::size_t Size>
  constexpr void copy(const linear_program<Inputs, Outputs, Size>& from, const std::uint16_t* in, std::uint16_t* out) {
    const std::size_t first = inputs + size;
    const auto number = [&](std::uint16_t value) {
      return value < Inputs ? in[value] : static_cast<std::uint16_t>(first + value - Inputs);
    };
    for (std::size_t k = 0; k < Size; ++k) {
      instruction step = from.code[k];
      step.a = number(step.a);
      step.b = number(step.b);
      code[size++] = step;
    }
    for (std::size_t o = 0; o < Outputs; ++o) out[o] = number(from.output[o]);
  }
};

/// `input` and `output` say where the nested program has the element `inner` within `outer`. There are two orders: first
/// the outer program on each inner input, or first the inner one on each outer input. The one with fewer instructions is taken.
template <std::size_t Inputs, std::size_t Outputs, std::size_t Size, std::size_t Inputs2, std::size_t Outputs2,
          std::size_t Size2>
constexpr auto nest(const linear_program<Inputs, Outputs, Size>& outer,
                    const linear_program<Inputs2, Outputs2, Size2>& inner,
                    std::size_t (*input)(std::size_t, std::size_t), std::size_t (*output)(std::size_t, std::size_t)) {
  constexpr std::size_t outer_first = Inputs2 * Size + Outputs * Size2;
  constexpr std::size_t inner_first = Inputs * Size2 + Outputs2 * Size;
  constexpr std::size_t size = outer_first <= inner_first ? outer_first : inner_first;
  linear_program<Inputs * Inputs2, Outputs * Outputs2, size> nested;
  renumbering into{nested.code, Inputs * Inputs2};
  if constexpr (outer_first <= inner_first) {
    std::uint16_t between[Outputs][Inputs2] = {};
    for (std::size_t i = 0; i < Inputs2; ++i) {
      std::uint16_t in[Inputs] = {}, out[Outputs] = {};
      for (std::size_t o = 0; o < Inputs; ++o) in[o] = static_cast<std::uint16_t>(input(o, i));
      into.copy(outer, in, out);
      for (std::size_t o = 0; o < Outputs; ++o) between[o][i] = out[o];
    }
    for (std::size_t o = 0; o < Outputs; ++o) {
      std::uint16_t out[Outputs2] = {};
      into.copy(inner, between[o], out);
      for (std::size_t i = 0; i < Outputs2; ++i) nested.output[output(o, i)] = out[i];
    }
  } else {
    std::uint16_t between[Outputs2][Inputs] = {};
    for (std::size_t o = 0; o < Inputs; ++o) {
      std::uint16_t in[Inputs2] = {}, out[Outputs2] = {};
      for (std::size_t i = 0; i < Inputs2; ++i) in[i] = static_cast<std::uint16_t>(input(o, i));
      into.copy(inner, in, out);
      for (std::size_t i = 0; i < Outputs2; ++i) between[i][o] = out[i];
    }
    for (std::size_t i = 0; i < Outputs2; ++i) {
      std::uint16_t out[Outputs] = {};
      into.copy(outer, between[i], out);
      for (std::size_t o = 0; o < Outputs; ++o) nested.output[output(o, i)] = out[o];
    }
  }
  return nested;
}

}  // namespace collage::inline v0::bilinear::detail
