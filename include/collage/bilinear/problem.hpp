// Bilinear maps that algorithms compute: products of matrices, correlations, also of enlarged signals, and those nested.
#pragma once

#include <collage/detail/label.hpp>
#include <cstddef>

namespace collage::inline v0::bilinear {

// A problem is a type with three sizes, the coefficients of its tensor, and names for sentences. Output o is the sum of
// coefficient(o, i, j) * left[i] * right[j].

/// C = A B for an M x K and a K x N matrix, all row-major. Its algorithms are written <M,K,N;products>.
template <std::size_t M, std::size_t K, std::size_t N>
struct matmul {
  static constexpr std::size_t left_size = M * K, right_size = K * N, output_size = M * N;
  /// The most products that the definition sums in one output.
  static constexpr std::size_t terms = K;

  static constexpr int coefficient(std::size_t output, std::size_t left, std::size_t right) {
    return output / N == left / K && left % K == right / N && right % N == output % N ? 1 : 0;
  }
  static constexpr label text() { return label("<") + M + "," + K + "," + N + ">"; }
  static constexpr label left_name(std::size_t i) { return element("a[", i, K); }
  static constexpr label right_name(std::size_t i) { return element("b[", i, N); }
  static constexpr label output_name(std::size_t i) { return element("c[", i, N); }

 private:
  static constexpr label element(const char* name, std::size_t i, std::size_t columns) {
    return label(name) + i / columns + "," + i % columns + "]";
  }
};

/// y[o] = sum of d[o + j] g[j]: M outputs of a filter with R taps. Its algorithms are written F(M,R). This is the convolution
/// of neural networks; the filter is the right operand.
template <std::size_t M, std::size_t R>
struct correlation {
  static constexpr std::size_t left_size = M + R - 1, right_size = R, output_size = M;
  static constexpr std::size_t terms = R;

  static constexpr int coefficient(std::size_t output, std::size_t left, std::size_t right) {
    return left == output + right ? 1 : 0;
  }
  static constexpr label text() { return label("F(") + M + "," + R + ")"; }
  static constexpr label left_name(std::size_t i) { return label("d[") + i + "]"; }
  static constexpr label right_name(std::size_t i) { return label("g[") + i + "]"; }
  static constexpr label output_name(std::size_t i) { return label("y[") + i + "]"; }
};

/// The same for a signal of which each element is repeated once: y[o] = sum of d[(o + j) / 2] g[j], for 2M outputs. In two
/// dimensions, this is a convolution of an image that was enlarged to twice its height and width.
template <std::size_t M, std::size_t R>
struct enlarged_correlation {
  static constexpr std::size_t left_size = M + R / 2, right_size = R, output_size = 2 * M;
  static constexpr std::size_t terms = R;

  static constexpr int coefficient(std::size_t output, std::size_t left, std::size_t right) {
    return left == (output + right) / 2 ? 1 : 0;
  }
  static constexpr label text() { return label("enlarged F(") + 2 * M + "," + R + ")"; }
  static constexpr label left_name(std::size_t i) { return label("d[") + i + "]"; }
  static constexpr label right_name(std::size_t i) { return label("g[") + i + "]"; }
  static constexpr label output_name(std::size_t i) { return label("y[") + i + "]"; }
};

/// The coefficients of the product of two polynomials with M and R coefficients. It is the dual of `correlation<M, R>`, and
/// what a transposed convolution computes in one dimension.
template <std::size_t M, std::size_t R>
struct polynomial_product {
  static constexpr std::size_t left_size = M, right_size = R, output_size = M + R - 1;
  static constexpr std::size_t terms = M < R ? M : R;

  static constexpr int coefficient(std::size_t output, std::size_t left, std::size_t right) {
    return output == left + right ? 1 : 0;
  }
  static constexpr label text() { return label("P(") + M + "," + R + ")"; }
  static constexpr label left_name(std::size_t i) { return label("p[") + i + "]"; }
  static constexpr label right_name(std::size_t i) { return label("q[") + i + "]"; }
  static constexpr label output_name(std::size_t i) { return label("r[") + i + "]"; }
};

/// Problem Q whose elements are those of problem P: element i of P has all elements of Q, one after the other. Two
/// correlations make the correlation in two dimensions, with rows first.
template <class P, class Q>
struct nested_problem {
  static constexpr std::size_t left_size = P::left_size * Q::left_size;
  static constexpr std::size_t right_size = P::right_size * Q::right_size;
  static constexpr std::size_t output_size = P::output_size * Q::output_size;
  static constexpr std::size_t terms = P::terms * Q::terms;

  static constexpr int coefficient(std::size_t output, std::size_t left, std::size_t right) {
    return P::coefficient(output / Q::output_size, left / Q::left_size, right / Q::right_size) *
           Q::coefficient(output % Q::output_size, left % Q::left_size, right % Q::right_size);
  }
  static constexpr label text() { return P::text() + " x " + Q::text(); }
  static constexpr label left_name(std::size_t i) {
    return P::left_name(i / Q::left_size) + Q::left_name(i % Q::left_size);
  }
  static constexpr label right_name(std::size_t i) {
    return P::right_name(i / Q::right_size) + Q::right_name(i % Q::right_size);
  }
  static constexpr label output_name(std::size_t i) {
    return P::output_name(i / Q::output_size) + Q::output_name(i % Q::output_size);
  }
};

/// The problem of two nested ones, and where it has the element that is `inner` within `outer`.
template <class P, class Q>
struct nesting {
  using problem = nested_problem<P, Q>;
  static constexpr std::size_t left(std::size_t outer, std::size_t inner) { return outer * Q::left_size + inner; }
  static constexpr std::size_t right(std::size_t outer, std::size_t inner) { return outer * Q::right_size + inner; }
  static constexpr std::size_t output(std::size_t outer, std::size_t inner) { return outer * Q::output_size + inner; }
};

/// Matrices of blocks are matrices, row-major as a whole.
template <std::size_t M, std::size_t K, std::size_t N, std::size_t M2, std::size_t K2, std::size_t N2>
struct nesting<matmul<M, K, N>, matmul<M2, K2, N2>> {
  using problem = matmul<M * M2, K * K2, N * N2>;
  static constexpr std::size_t left(std::size_t outer, std::size_t inner) { return at<K, M2, K2>(outer, inner); }
  static constexpr std::size_t right(std::size_t outer, std::size_t inner) { return at<N, K2, N2>(outer, inner); }
  static constexpr std::size_t output(std::size_t outer, std::size_t inner) { return at<N, M2, N2>(outer, inner); }

 private:
  template <std::size_t OuterColumns, std::size_t InnerRows, std::size_t InnerColumns>
  static constexpr std::size_t at(std::size_t outer, std::size_t inner) {
    const std::size_t row = outer / OuterColumns * InnerRows + inner / InnerColumns;
    const std::size_t column = outer % OuterColumns * InnerColumns + inner % InnerColumns;
    return row * (OuterColumns * InnerColumns) + column;
  }
};

}  // namespace collage::inline v0::bilinear
