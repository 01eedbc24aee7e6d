// Schemes: bilinear algorithms that an author declares by their coefficients.
//
//   struct strassen_products {
//     using problem = bilinear::matmul<2, 2, 2>;
//     static constexpr const char* name = "strassen";
//     static constexpr bilinear::product<problem> products[] = {
//         {{1, 0, 0, 1}, {1, 0, 0, 1}, {1, 0, 0, 1}},  // (a00 + a11) (b00 + b11) is added to c00 and c11
//         ...
//     };
//   };
//   using strassen = bilinear::scheme<strassen_products>;
//
// The type proves itself: if an equation fails, naming a member of it is a compile error that says which one.
#pragma once

#include <collage/bilinear/algorithm.hpp>
#include <collage/bilinear/detail/proof.hpp>
#include <collage/bilinear/factors.hpp>
#include <collage/bilinear/problem.hpp>
#include <collage/detail/sentence.hpp>
#include <cstddef>
#include <type_traits>

namespace collage::inline v0::bilinear {

namespace detail {

template <class Declaration>
concept declares_products = requires {
  typename Declaration::problem;
  static_cast<const char*>(Declaration::name);
  requires std::is_array_v<decltype(Declaration::products)>;
  static_cast<rational>(Declaration::products[0].u[0]);
  requires std::extent_v<std::remove_cvref_t<decltype(Declaration::products[0].u)>> == Declaration::problem::left_size;
  requires std::extent_v<std::remove_cvref_t<decltype(Declaration::products[0].v)>> == Declaration::problem::right_size;
  requires std::extent_v<std::remove_cvref_t<decltype(Declaration::products[0].w)>> ==
               Declaration::problem::output_size;
};

/// The matrices of a declaration.
template <class Declaration>
struct scheme_definition {
  using problem = typename Declaration::problem;
  static constexpr const char* name = Declaration::name;
  static constexpr std::size_t rank = std::extent_v<decltype(Declaration::products)>;
  static constexpr const char* remedy = "correct its coefficients u, v or w";

  static constexpr table<rank, problem::left_size> u() {
    table<rank, problem::left_size> matrix;
    for (std::size_t p = 0; p < rank; ++p)
      for (std::size_t i = 0; i < problem::left_size; ++i) matrix[p][i] = Declaration::products[p].u[i];
    return matrix;
  }
  static constexpr table<rank, problem::right_size> v() {
    table<rank, problem::right_size> matrix;
    for (std::size_t p = 0; p < rank; ++p)
      for (std::size_t j = 0; j < problem::right_size; ++j) matrix[p][j] = Declaration::products[p].v[j];
    return matrix;
  }
  static constexpr table<problem::output_size, rank> w() {
    table<problem::output_size, rank> matrix;
    for (std::size_t o = 0; o < problem::output_size; ++o)
      for (std::size_t p = 0; p < rank; ++p) matrix[o][p] = Declaration::products[p].w[o];
    return matrix;
  }
};

/// Empty if the matrices of a definition compute its problem.
template <class Definition>
struct factors_check {
  static constexpr sentence why() {
    const factors<typename Definition::problem, Definition::rank> all = {Definition::u(), Definition::v(),
                                                                         Definition::w()};
    const sentence products = fault_of_products(Definition::name, all);
    if (!products.empty()) return products;
    return fault_of_factors(Definition::name, all, Definition::remedy);
  }
};

}  // namespace detail

template <class Declaration>
struct scheme {
  static_assert(
      detail::declares_products<Declaration>,
      "a scheme is declared by: using problem = bilinear::matmul<M, K, N>; static constexpr const char* name; "
      "static constexpr bilinear::product<problem> products[]");
};
/// The algorithm of a declaration, which has a problem, a name and a list of products. It proves that they compute the problem.
template <detail::declares_products Declaration>
struct scheme<Declaration> : algorithm_of<detail::scheme_definition<Declaration>> {
  static_assert(collage::detail::holds<
                collage::detail::conclusion<detail::factors_check<detail::scheme_definition<Declaration>>>>);
};

/// Whether the matrices of any algorithm compute its problem: the proof that a scheme makes itself, for those made of others.
/// It takes as many steps as there are combinations of an output, a left and a right element.
template <algorithm S>
constexpr bool computes_its_problem() {
  const factors<typename S::problem, S::rank> all = {S::u, S::v, S::w};
  return detail::fault_of_factors(S::name, all, "").empty();
}

}  // namespace collage::inline v0::bilinear
