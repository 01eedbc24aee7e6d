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
//
// A declaration may write its linear maps as programs, too. Each is proved to compute its matrix. A map that is not written is
// made from the matrix.
//
//     static constexpr void left(const auto& a, auto& factor) {
//       const auto sum = a[2] + a[3];
//       factor[0] = a[0];
//       factor[1] = sum - a[0];
//       ...
//     }
#pragma once

#include <collage/bilinear/algorithm.hpp>
#include <collage/bilinear/detail/proof.hpp>
#include <collage/bilinear/detail/trace.hpp>
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

  // The programs that the declaration writes.

  static constexpr auto trace_left() {
    return trace<problem::left_size, rank>([](const traced* in, traced* out) { Declaration::left(in, out); });
  }
  static constexpr auto trace_right() {
    return trace<problem::right_size, rank>([](const traced* in, traced* out) { Declaration::right(in, out); });
  }
  static constexpr auto trace_output() {
    return trace<rank, problem::output_size>([](const traced* in, traced* out) { Declaration::output(in, out); });
  }
  static constexpr auto left()
    requires writes_left<Declaration>
  {
    constexpr auto traced = trace_left();
    return cut<traced.draft.size>(traced.draft);
  }
  static constexpr auto right()
    requires writes_right<Declaration>
  {
    constexpr auto traced = trace_right();
    return cut<traced.draft.size>(traced.draft);
  }
  static constexpr auto output()
    requires writes_output<Declaration>
  {
    constexpr auto traced = trace_output();
    return cut<traced.draft.size>(traced.draft);
  }
};

constexpr label product_name(std::size_t p) { return label("product ") + p; }

/// The fault of a program that an author wrote for a matrix; empty if it has none.
template <std::size_t Inputs, std::size_t Outputs>
constexpr sentence fault_of_program(const char* name, const char* function, const char* factor,
                                    const trace_result<Inputs, Outputs>& program, const table<Outputs, Inputs>& matrix,
                                    label (*input_name)(std::size_t), label (*output_name)(std::size_t)) {
  sentence why;
  if (program.is_too_long) {
    why << name << ": its function " << function << " takes more operations than its matrix " << factor
        << " has coefficients; leave it out, and a program is made from the matrix";
    return why;
  }
  if (program.unset != Outputs) {
    why << name << ": its function " << function << " does not set " << output_name(program.unset).c_str()
        << "; assign all " << Outputs;
    return why;
  }
  rational values[Inputs + program_draft<Inputs, Outputs>::room];
  const program_view view = {Inputs, {program.draft.code, program.draft.size}, {program.draft.output, Outputs}};
  for (std::size_t i = 0; i < Inputs; ++i) {
    rational unit[Inputs], column[Outputs];
    for (std::size_t k = 0; k < Inputs; ++k) unit[k] = k == i ? 1 : 0;
    bilinear::run(view, unit, column, values);
    for (std::size_t o = 0; o < Outputs; ++o) {
      if (column[o] == matrix[o][i]) continue;
      why << name << ": its function " << function << " has " << column[o].text().c_str() << " times "
          << input_name(i).c_str() << " in " << output_name(o).c_str() << ", where " << factor << " has "
          << matrix[o][i].text().c_str() << "; correct one of them";
      return why;
    }
  }
  return why;
}

/// Empty if the programs that a declaration writes compute its matrices.
template <class Declaration>
struct programs_check {
  static constexpr sentence why() {
    using definition = scheme_definition<Declaration>;
    using problem = typename definition::problem;
    sentence why = fault_of_forms();
    if (!why.empty()) return why;
    if constexpr (writes_left<Declaration>)
      why = fault_of_program(definition::name, "left", "u", definition::trace_left(), definition::u(),
                             problem::left_name, product_name);
    if constexpr (writes_right<Declaration>)
      if (why.empty())
        why = fault_of_program(definition::name, "right", "v", definition::trace_right(), definition::v(),
                               problem::right_name, product_name);
    if constexpr (writes_output<Declaration>)
      if (why.empty())
        why = fault_of_program(definition::name, "output", "w", definition::trace_output(), definition::w(),
                               product_name, problem::output_name);
    return why;
  }

 private:
  /// A function that cannot be called would be ignored without a word.
  static constexpr sentence fault_of_forms() {
    const char* wrong = nullptr;
    if constexpr (names_left<Declaration>() && !writes_left<Declaration>) wrong = "left";
    if constexpr (names_right<Declaration>() && !writes_right<Declaration>) wrong = "right";
    if constexpr (names_output<Declaration>() && !writes_output<Declaration>) wrong = "output";
    sentence why;
    if (wrong != nullptr)
      why << Declaration::name << ": its function " << wrong
          << " has another form; declare it as static constexpr void " << wrong << "(const auto& in, auto& out)";
    return why;
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
  static_assert(collage::detail::holds<collage::detail::conclusion<detail::programs_check<Declaration>>>);
};

/// Whether the matrices of any algorithm compute its problem: the proof that a scheme makes itself, for those made of others.
/// It takes as many steps as there are combinations of an output, a left and a right element.
template <algorithm S>
constexpr bool computes_its_problem() {
  const factors<typename S::problem, S::rank> all = {S::u, S::v, S::w};
  return detail::fault_of_factors(S::name, all, "").empty();
}

}  // namespace collage::inline v0::bilinear
