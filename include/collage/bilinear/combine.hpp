// Algorithms made of others: nested, turned, joined. Each is right because its parts are; nothing is proved again. The templates
// have no constraints, so that naming a combination does not prove its parts: the combination does when it is used.
#pragma once

#include <collage/bilinear/algorithm.hpp>
#include <collage/bilinear/detail/nest.hpp>
#include <collage/bilinear/factors.hpp>
#include <collage/bilinear/problem.hpp>
#include <collage/detail/label.hpp>
#include <concepts>
#include <cstddef>

namespace collage::inline v0::bilinear {

namespace detail {

/// Each product of the outer algorithm is computed by the inner one. The matrices are Kronecker products.
template <class Outer, class Inner>
struct nested_definition {
  static_assert(algorithm<Outer> && algorithm<Inner>, "nested takes two bilinear algorithms");
  using places = nesting<typename Outer::problem, typename Inner::problem>;
  using problem = typename places::problem;
  static constexpr label name_text = label(Outer::name) + " x " + Inner::name;
  static constexpr const char* name = name_text.c_str();
  static constexpr std::size_t rank = Outer::rank * Inner::rank;

  static constexpr std::size_t product_at(std::size_t outer, std::size_t inner) { return outer * Inner::rank + inner; }

  static constexpr auto u() {
    table<rank, problem::left_size> made;
    for (std::size_t p = 0; p < Outer::rank; ++p)
      for (std::size_t i = 0; i < Outer::problem::left_size; ++i)
        if (!Outer::u[p][i].is_zero())
          for (std::size_t q = 0; q < Inner::rank; ++q)
            for (std::size_t j = 0; j < Inner::problem::left_size; ++j)
              made[product_at(p, q)][places::left(i, j)] = Outer::u[p][i] * Inner::u[q][j];
    return made;
  }
  static constexpr auto v() {
    table<rank, problem::right_size> made;
    for (std::size_t p = 0; p < Outer::rank; ++p)
      for (std::size_t i = 0; i < Outer::problem::right_size; ++i)
        if (!Outer::v[p][i].is_zero())
          for (std::size_t q = 0; q < Inner::rank; ++q)
            for (std::size_t j = 0; j < Inner::problem::right_size; ++j)
              made[product_at(p, q)][places::right(i, j)] = Outer::v[p][i] * Inner::v[q][j];
    return made;
  }
  static constexpr auto w() {
    table<problem::output_size, rank> made;
    for (std::size_t o = 0; o < Outer::problem::output_size; ++o)
      for (std::size_t p = 0; p < Outer::rank; ++p)
        if (!Outer::w[o][p].is_zero())
          for (std::size_t i = 0; i < Inner::problem::output_size; ++i)
            for (std::size_t q = 0; q < Inner::rank; ++q)
              made[places::output(o, i)][product_at(p, q)] = Outer::w[o][p] * Inner::w[i][q];
    return made;
  }

  // Nested as well: rows first and then columns takes far fewer operations than the matrices, which are Kronecker products.

  static constexpr auto left() {
    return nest(left_program<typename Outer::definition>, left_program<typename Inner::definition>, places::left,
                product_at);
  }
  static constexpr auto right() {
    return nest(right_program<typename Outer::definition>, right_program<typename Inner::definition>, places::right,
                product_at);
  }
  static constexpr auto output() {
    return nest(output_program<typename Outer::definition>, output_program<typename Inner::definition>, product_at,
                places::output);
  }
};

/// Which symmetry of the tensor of matrix products.
template <class Problem>
struct turned_problem;
template <std::size_t M, std::size_t K, std::size_t N>
struct turned_problem<matmul<M, K, N>> {
  static constexpr std::size_t m = M, k = K, n = N;
  using rotated = matmul<K, N, M>;
  using transposed = matmul<N, K, M>;
};
template <class S> concept matmul_algorithm = algorithm<S> && requires { turned_problem<typename S::problem>::m; };

/// A row of the transposed matrix: `from` is rows x columns.
constexpr std::size_t transposed_index(std::size_t i, std::size_t rows, std::size_t columns) {
  return i % rows * columns + i / rows;
}

/// trace(A B D) = trace(B D A), where D is the transpose of C's place: A, B and C change their roles in a circle.
template <class S>
struct rotated_definition {
  static_assert(matmul_algorithm<S>, "rotated and transposed take an algorithm for matrix products");
  using from = turned_problem<typename S::problem>;
  using problem = typename from::rotated;
  static constexpr label name_text = label("rotated ") + S::name;
  static constexpr const char* name = name_text.c_str();
  static constexpr std::size_t rank = S::rank;

  static constexpr auto u() { return S::v; }
  static constexpr auto v() {
    table<rank, problem::right_size> made;
    for (std::size_t p = 0; p < rank; ++p)
      for (std::size_t j = 0; j < problem::right_size; ++j) made[p][j] = S::w[transposed_index(j, from::m, from::n)][p];
    return made;
  }
  static constexpr auto w() {
    table<problem::output_size, rank> made;
    for (std::size_t o = 0; o < problem::output_size; ++o)
      for (std::size_t p = 0; p < rank; ++p) made[o][p] = S::u[p][transposed_index(o, from::m, from::k)];
    return made;
  }
};

/// The transpose of A B is the product of the transposes of B and A.
template <class S>
struct transposed_definition {
  static_assert(matmul_algorithm<S>, "rotated and transposed take an algorithm for matrix products");
  using from = turned_problem<typename S::problem>;
  using problem = typename from::transposed;
  static constexpr label name_text = label("transposed ") + S::name;
  static constexpr const char* name = name_text.c_str();
  static constexpr std::size_t rank = S::rank;

  static constexpr auto u() {
    table<rank, problem::left_size> made;
    for (std::size_t p = 0; p < rank; ++p)
      for (std::size_t i = 0; i < problem::left_size; ++i) made[p][i] = S::v[p][transposed_index(i, from::k, from::n)];
    return made;
  }
  static constexpr auto v() {
    table<rank, problem::right_size> made;
    for (std::size_t p = 0; p < rank; ++p)
      for (std::size_t j = 0; j < problem::right_size; ++j) made[p][j] = S::u[p][transposed_index(j, from::m, from::k)];
    return made;
  }
  static constexpr auto w() {
    table<problem::output_size, rank> made;
    for (std::size_t o = 0; o < problem::output_size; ++o)
      for (std::size_t p = 0; p < rank; ++p) made[o][p] = S::w[transposed_index(o, from::m, from::n)][p];
    return made;
  }
};

/// The problem whose left operand is the output of this one, and the reverse.
template <class Problem>
struct dual_problem;
template <std::size_t M, std::size_t R>
struct dual_problem<correlation<M, R>> {
  using type = polynomial_product<M, R>;
};
template <std::size_t M, std::size_t R>
struct dual_problem<polynomial_product<M, R>> {
  using type = correlation<M, R>;
};
template <class P, class Q>
struct dual_problem<nested_problem<P, Q>> {
  using type = nested_problem<typename dual_problem<P>::type, typename dual_problem<Q>::type>;
};
template <class S>
concept algorithm_with_dual = algorithm<S> && requires { typename dual_problem<typename S::problem>::type; };

template <std::size_t Rows, std::size_t Columns>
constexpr table<Columns, Rows> transpose(const table<Rows, Columns>& matrix) {
  table<Columns, Rows> made;
  for (std::size_t i = 0; i < Rows; ++i)
    for (std::size_t j = 0; j < Columns; ++j) made[j][i] = matrix[i][j];
  return made;
}

template <class S>
struct dual_definition {
  static_assert(algorithm_with_dual<S>, "dual takes an algorithm for correlation or for the product of polynomials");
  using problem = typename dual_problem<typename S::problem>::type;
  static constexpr label name_text = label("dual ") + S::name;
  static constexpr const char* name = name_text.c_str();
  static constexpr std::size_t rank = S::rank;

  static constexpr auto u() { return transpose(S::w); }
  static constexpr auto v() { return S::v; }
  static constexpr auto w() { return transpose(S::u); }
};

/// Along which dimension two products lie side by side.
enum class joint { rows, inner, columns };

template <joint Along, class S, class T>
struct joined_definition {
  static_assert(matmul_algorithm<S> && matmul_algorithm<T>, "only algorithms for matrix products can be joined");
  using first = turned_problem<typename S::problem>;
  using second = turned_problem<typename T::problem>;
  static_assert(Along == joint::rows || first::m == second::m, "joined algorithms must have the same number of rows");
  static_assert(Along == joint::inner || first::k == second::k, "joined algorithms must have the same inner dimension");
  static_assert(Along == joint::columns || first::n == second::n,
                "joined algorithms must have the same number of columns");
  static constexpr std::size_t rows = Along == joint::rows ? first::m : 0;
  static constexpr std::size_t inner = Along == joint::inner ? first::k : 0;
  static constexpr std::size_t columns = Along == joint::columns ? first::n : 0;

  using problem = matmul<rows + second::m, inner + second::k, columns + second::n>;
  static constexpr label name_text = label(S::name) + " + " + T::name;
  static constexpr const char* name = name_text.c_str();
  static constexpr std::size_t rank = S::rank + T::rank;

  static constexpr auto u() {
    table<rank, problem::left_size> made;
    place(S::u, made, 0, first::k, 0, 0, inner + second::k);
    place(T::u, made, S::rank, second::k, rows, inner, inner + second::k);
    return made;
  }
  static constexpr auto v() {
    table<rank, problem::right_size> made;
    place(S::v, made, 0, first::n, 0, 0, columns + second::n);
    place(T::v, made, S::rank, second::n, inner, columns, columns + second::n);
    return made;
  }
  static constexpr auto w() {
    table<rank, problem::output_size> made;
    place(transpose(S::w), made, 0, first::n, 0, 0, columns + second::n);
    place(transpose(T::w), made, S::rank, second::n, rows, columns, columns + second::n);
    return transpose(made);
  }

 private:
  /// Copies the rows of a part, whose elements lie in a block of a larger matrix that begins at (row, column).
  template <std::size_t Rows, std::size_t Columns, std::size_t MadeRows, std::size_t MadeColumns>
  static constexpr void place(const table<Rows, Columns>& part, table<MadeRows, MadeColumns>& made,
                              std::size_t first_product, std::size_t part_width, std::size_t row, std::size_t column,
                              std::size_t width) {
    for (std::size_t p = 0; p < Rows; ++p)
      for (std::size_t i = 0; i < Columns; ++i)
        made[first_product + p][(row + i / part_width) * width + column + i % part_width] = part[p][i];
  }
};

}  // namespace detail

/// Each product of `Outer` is itself computed by `Inner`. Two levels of Strassen's scheme are `nested<strassen, strassen>`; F(4,3)
/// in two dimensions is `nested<f_4_3, f_4_3>`.
template <class Outer, class Inner>
struct nested : algorithm_of<detail::nested_definition<Outer, Inner>> {};

/// An algorithm <M,K,N;r> as <K,N,M;r>. Three rotations give the algorithm back.
template <class S>
struct rotated : algorithm_of<detail::rotated_definition<S>> {};

/// An algorithm <M,K,N;r> as <N,K,M;r>. Rotations and this give all six orders of the dimensions.
template <class S>
struct transposed : algorithm_of<detail::transposed_definition<S>> {};

/// An algorithm for correlation as one for the product of polynomials, and the reverse: left operand and output change their
/// roles (Tellegen's principle).
template <class S>
struct dual : algorithm_of<detail::dual_definition<S>> {};

/// Two products side by side: <M1,K,N;r1> above <M2,K,N;r2> is <M1 + M2,K,N;r1 + r2>.
template <class S, class T>
struct join_rows : algorithm_of<detail::joined_definition<detail::joint::rows, S, T>> {};
/// The same along the columns of the right operand and of the output.
template <class S, class T>
struct join_columns : algorithm_of<detail::joined_definition<detail::joint::columns, S, T>> {};
/// The same along the dimension that is summed over.
template <class S, class T>
struct join_inner : algorithm_of<detail::joined_definition<detail::joint::inner, S, T>> {};

}  // namespace collage::inline v0::bilinear
