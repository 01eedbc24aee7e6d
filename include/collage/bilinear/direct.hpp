// The definitions themselves as algorithms, so that a kernel is written once for all of them.
#pragma once

#include <collage/bilinear/algorithm.hpp>
#include <collage/bilinear/factors.hpp>
#include <collage/bilinear/linear_program.hpp>
#include <collage/bilinear/problem.hpp>
#include <collage/detail/label.hpp>
#include <cstddef>
#include <cstdint>

namespace collage::inline v0::bilinear {

namespace detail {

/// One product for each coefficient of a problem that is not 0.
template <class Problem>
constexpr std::size_t count_terms() {
  std::size_t terms = 0;
  for (std::size_t o = 0; o < Problem::output_size; ++o)
    for (std::size_t i = 0; i < Problem::left_size; ++i)
      for (std::size_t j = 0; j < Problem::right_size; ++j) terms += Problem::coefficient(o, i, j) != 0 ? 1 : 0;
  return terms;
}

/// The output and operands of each product.
template <class Problem, std::size_t Rank>
struct direct_terms {
  std::uint16_t output[Rank], left[Rank], right[Rank];

  constexpr direct_terms() : output(), left(), right() {
    std::size_t p = 0;
    for (std::size_t o = 0; o < Problem::output_size; ++o)
      for (std::size_t i = 0; i < Problem::left_size; ++i)
        for (std::size_t j = 0; j < Problem::right_size; ++j) {
          if (Problem::coefficient(o, i, j) == 0) continue;
          output[p] = static_cast<std::uint16_t>(o);
          left[p] = static_cast<std::uint16_t>(i);
          right[p] = static_cast<std::uint16_t>(j);
          ++p;
        }
  }
};

template <class Problem>
struct direct_definition {
  using problem = Problem;
  static constexpr label name_text = label("direct ") + problem::text();
  static constexpr const char* name = name_text.c_str();
  static constexpr std::size_t rank = count_terms<Problem>();
  static constexpr direct_terms<Problem, rank> terms = {};

  static constexpr auto u() {
    table<rank, problem::left_size> made;
    for (std::size_t p = 0; p < rank; ++p) made[p][terms.left[p]] = 1;
    return made;
  }
  static constexpr auto v() {
    table<rank, problem::right_size> made;
    for (std::size_t p = 0; p < rank; ++p) made[p][terms.right[p]] = 1;
    return made;
  }
  static constexpr auto w() {
    table<problem::output_size, rank> made;
    for (std::size_t p = 0; p < rank; ++p) made[terms.output[p]][p] = 1;
    return made;
  }

  // There is nothing that two rows share.

  static constexpr auto left() { return selection<problem::left_size>(terms.left); }
  static constexpr auto right() { return selection<problem::right_size>(terms.right); }
  /// The products of an output follow each other.
  static constexpr auto output() {
    linear_program<rank, problem::output_size, rank - problem::output_size> made;
    std::size_t size = 0;
    for (std::size_t p = 0; p < rank; ++p) {
      const std::uint16_t o = terms.output[p];
      const auto product = static_cast<std::uint16_t>(p);
      if (p == 0 || terms.output[p - 1] != o) {
        made.output[o] = product;
        continue;
      }
      made.code[size] = {made.output[o], product, 1, 1};
      made.output[o] = static_cast<std::uint16_t>(rank + size++);
    }
    return made;
  }

 private:
  template <std::size_t Inputs>
  static constexpr auto selection(const std::uint16_t (&value)[rank]) {
    linear_program<Inputs, rank, 0> made;
    for (std::size_t p = 0; p < rank; ++p) made.output[p] = value[p];
    return made;
  }
};

}  // namespace detail

/// A problem's definition: a multiplication for each term.
template <class Problem>
struct direct : algorithm_of<detail::direct_definition<Problem>> {};

/// The definition of the matrix product, <M,K,N;MKN>.
template <std::size_t M, std::size_t K, std::size_t N>
using classical = direct<matmul<M, K, N>>;

}  // namespace collage::inline v0::bilinear
