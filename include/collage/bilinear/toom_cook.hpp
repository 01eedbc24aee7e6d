// Toom-Cook algorithms F(M,R), made from a list of points.
//
//   struct three_taps {
//     using problem = bilinear::correlation<4, 3>;
//     static constexpr const char* name = "F(4,3)";
//     static constexpr bilinear::point points[] = {0, {2, 3}, {-2, 3}, {3, 2}, {-3, 2}, bilinear::infinity};
//   };
//   using f_4_3 = bilinear::toom_cook<three_taps>;
//
// A product of polynomials is known by its values at as many points as it has coefficients (Toom 1963, Cook 1966). A correlation
// is the transpose of such a product (Winograd, Arithmetic complexity of computations, SIAM 1980). Lavin and Gray use it for
// images (Fast algorithms for convolutional neural networks, CVPR 2016). With their names, u is B^T, v is G and w is A^T.
#pragma once

#include <collage/bilinear/algorithm.hpp>
#include <collage/bilinear/detail/proof.hpp>
#include <collage/bilinear/factors.hpp>
#include <collage/bilinear/problem.hpp>
#include <collage/bilinear/scheme.hpp>
#include <collage/detail/sentence.hpp>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace collage::inline v0::bilinear {

/// A rational number, or the point at infinity: there, the value of a polynomial is its highest coefficient.
struct point {
  rational value;
  bool is_infinite = false;

  constexpr point() = default;
  constexpr point(std::int64_t whole) : value(whole) {}
  constexpr point(std::int64_t numerator, std::int64_t denominator) : value(numerator, denominator) {}

  friend constexpr bool operator==(const point& a, const point& b) {
    return a.is_infinite || b.is_infinite ? a.is_infinite && b.is_infinite : a.value == b.value;
  }
};

namespace detail {

constexpr point make_infinity() {
  point made;
  made.is_infinite = true;
  return made;
}

}  // namespace detail

inline constexpr point infinity = detail::make_infinity();

namespace detail {

template <class Declaration>
concept declares_points = requires {
  typename Declaration::problem;
  static_cast<const char*>(Declaration::name);
  requires std::same_as<std::remove_cvref_t<decltype(Declaration::points[0])>, point>;
  requires std::same_as<typename Declaration::problem,
                        correlation<Declaration::problem::output_size, Declaration::problem::right_size>>;
};

/// The matrices of F(M,R). Row p of u has the coefficients of the monic polynomial that is 0 at all finite points but p. Row
/// p of v has the powers of p, divided by the value of that polynomial at p. Column p of w has the powers of p. So the
/// fractions are in v, which is mostly applied beforehand.
template <class Problem, std::size_t Points>
constexpr factors<Problem, Points> toom_cook_factors(const point (&points)[Points]) {
  constexpr std::size_t taps = Problem::right_size, outputs = Problem::output_size;
  factors<Problem, Points> made;
  for (std::size_t p = 0; p < Points; ++p) {
    rational* const polynomial = made.u[p];
    polynomial[0] = 1;
    std::size_t degree = 0;
    rational value = 1;
    for (std::size_t q = 0; q < Points; ++q) {
      if (q == p || points[q].is_infinite) continue;
      // Times (x - q).
      ++degree;
      for (std::size_t k = degree; k > 0; --k) polynomial[k] = polynomial[k] * -points[q].value + polynomial[k - 1];
      polynomial[0] *= -points[q].value;
      if (!points[p].is_infinite) value *= points[p].value - points[q].value;
    }
    if (points[p].is_infinite) {
      made.v[p][taps - 1] = 1;
      made.w[outputs - 1][p] = 1;
      continue;
    }
    // A negative value changes the sign of both rows, so that v begins with a positive coefficient.
    if (value.numerator() < 0) {
      value = -value;
      for (std::size_t k = 0; k <= degree; ++k) polynomial[k] = -polynomial[k];
    }
    rational power = 1;
    for (std::size_t k = 0; k < (taps > outputs ? taps : outputs); ++k, power *= points[p].value) {
      if (k < taps) made.v[p][k] = power / value;
      if (k < outputs) made.w[k][p] = power;
    }
  }
  return made;
}

template <class Declaration>
struct toom_cook_definition {
  using problem = typename Declaration::problem;
  static constexpr const char* name = Declaration::name;
  static constexpr std::size_t rank = std::extent_v<decltype(Declaration::points)>;
  static constexpr const char* remedy = "use points with smaller numerators and denominators";

  static constexpr auto u() { return made.u; }
  static constexpr auto v() { return made.v; }
  static constexpr auto w() { return made.w; }

 private:
  static constexpr factors<problem, rank> made = toom_cook_factors<problem>(Declaration::points);
};

template <class Declaration>
struct toom_cook_check {
  static constexpr sentence why() {
    using problem = typename Declaration::problem;
    constexpr std::size_t points = std::extent_v<decltype(Declaration::points)>;
    sentence out;
    if constexpr (points != problem::left_size) {
      out << Declaration::name << " has " << points << " points, and " << problem::text().c_str() << " takes "
          << problem::left_size << ", one for each multiplication; "
          << (points < problem::left_size ? "add some, such as infinity" : "remove some");
      return out;
    } else {
      for (const point& p : Declaration::points) {
        if (p.is_infinite || p.value.is_defined()) continue;
        out << Declaration::name
            << " has a point that is no fraction of 64-bit numbers; give it smaller ones, and write "
            << "bilinear::infinity for the point at infinity";
        return out;
      }
      for (std::size_t p = 0; p < points; ++p)
        for (std::size_t q = 0; q < p; ++q) {
          if (!(Declaration::points[p] == Declaration::points[q])) continue;
          out << Declaration::name << " has the point ";
          if (Declaration::points[p].is_infinite) out << "infinity";
          else out << Declaration::points[p].value.text().c_str();
          out << " twice; give it points that all differ";
          return out;
        }
      return factors_check<toom_cook_definition<Declaration>>::why();
    }
  }
};

}  // namespace detail

template <class Declaration>
struct toom_cook {
  static_assert(detail::declares_points<Declaration>,
                "a Toom-Cook algorithm is declared by: using problem = bilinear::correlation<M, R>; static constexpr "
                "const char* name; static constexpr bilinear::point points[]");
};
/// The algorithm F(M,R) of a declaration, which has a problem `correlation<M, R>`, a name and M + R - 1 points. It proves its
/// identity: the sum of w[o][p] u[p][i] v[p][j] over all p is 1 if i = o + j, else 0.
template <detail::declares_points Declaration>
struct toom_cook<Declaration> : algorithm_of<detail::toom_cook_definition<Declaration>> {
  static_assert(collage::detail::holds<collage::detail::conclusion<detail::toom_cook_check<Declaration>>>);
};

}  // namespace collage::inline v0::bilinear
