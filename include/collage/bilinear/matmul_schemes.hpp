// Schemes for matrix products.
#pragma once

#include <collage/bilinear/combine.hpp>
#include <collage/bilinear/direct.hpp>
#include <collage/bilinear/factors.hpp>
#include <collage/bilinear/problem.hpp>
#include <collage/bilinear/scheme.hpp>

namespace collage::inline v0::bilinear {

namespace detail {

struct strassen_products {
  using problem = matmul<2, 2, 2>;
  static constexpr const char* name = "strassen";
  static constexpr product<problem> products[] = {
      {{1, 0, 0, 1}, {1, 0, 0, 1}, {1, 0, 0, 1}},  {{0, 0, 1, 1}, {1, 0, 0, 0}, {0, 0, 1, -1}},
      {{1, 0, 0, 0}, {0, 1, 0, -1}, {0, 1, 0, 1}}, {{0, 0, 0, 1}, {-1, 0, 1, 0}, {1, 0, 1, 0}},
      {{1, 1, 0, 0}, {0, 0, 0, 1}, {-1, 1, 0, 0}}, {{-1, 0, 1, 0}, {1, 1, 0, 0}, {0, 0, 0, 1}},
      {{0, 1, 0, -1}, {0, 0, 1, 1}, {1, 0, 0, 0}},
  };
};

struct winograd_products {
  using problem = matmul<2, 2, 2>;
  static constexpr const char* name = "winograd";
  static constexpr product<problem> products[] = {
      {{1, 0, 0, 0}, {1, 0, 0, 0}, {1, 1, 1, 1}},   {{0, 1, 0, 0}, {0, 0, 1, 0}, {1, 0, 0, 0}},
      {{1, 1, -1, -1}, {0, 0, 0, 1}, {0, 1, 0, 0}}, {{0, 0, 0, 1}, {1, -1, -1, 1}, {0, 0, -1, 0}},
      {{0, 0, 1, 1}, {-1, 1, 0, 0}, {0, 1, 0, 1}},  {{-1, 0, 1, 1}, {1, -1, 0, 1}, {0, 1, 1, 1}},
      {{1, 0, -1, 0}, {0, -1, 0, 1}, {0, 0, 1, 1}},
  };
};

struct laderman_products {
  using problem = matmul<3, 3, 3>;
  static constexpr const char* name = "laderman";
  static constexpr product<problem> products[] = {
      {{1, 1, 1, -1, -1, 0, 0, -1, -1}, {0, 0, 0, 0, 1, 0, 0, 0, 0}, {0, 1, 0, 0, 0, 0, 0, 0, 0}},
      {{1, 0, 0, -1, 0, 0, 0, 0, 0}, {0, -1, 0, 0, 1, 0, 0, 0, 0}, {0, 0, 0, 1, 1, 0, 0, 0, 0}},
      {{0, 0, 0, 0, 1, 0, 0, 0, 0}, {-1, 1, 0, 1, -1, -1, -1, 0, 1}, {0, 0, 0, 1, 0, 0, 0, 0, 0}},
      {{-1, 0, 0, 1, 1, 0, 0, 0, 0}, {1, -1, 0, 0, 1, 0, 0, 0, 0}, {0, 1, 0, 1, 1, 0, 0, 0, 0}},
      {{0, 0, 0, 1, 1, 0, 0, 0, 0}, {-1, 1, 0, 0, 0, 0, 0, 0, 0}, {0, 1, 0, 0, 1, 0, 0, 0, 0}},
      {{1, 0, 0, 0, 0, 0, 0, 0, 0}, {1, 0, 0, 0, 0, 0, 0, 0, 0}, {1, 1, 1, 1, 1, 0, 1, 0, 1}},
      {{-1, 0, 0, 0, 0, 0, 1, 1, 0}, {1, 0, -1, 0, 0, 1, 0, 0, 0}, {0, 0, 1, 0, 0, 0, 1, 0, 1}},
      {{-1, 0, 0, 0, 0, 0, 1, 0, 0}, {0, 0, 1, 0, 0, -1, 0, 0, 0}, {0, 0, 0, 0, 0, 0, 1, 0, 1}},
      {{0, 0, 0, 0, 0, 0, 1, 1, 0}, {-1, 0, 1, 0, 0, 0, 0, 0, 0}, {0, 0, 1, 0, 0, 0, 0, 0, 1}},
      {{1, 1, 1, 0, -1, -1, -1, -1, 0}, {0, 0, 0, 0, 0, 1, 0, 0, 0}, {0, 0, 1, 0, 0, 0, 0, 0, 0}},
      {{0, 0, 0, 0, 0, 0, 0, 1, 0}, {-1, 0, 1, 1, -1, -1, -1, 1, 0}, {0, 0, 0, 0, 0, 0, 1, 0, 0}},
      {{0, 0, -1, 0, 0, 0, 0, 1, 1}, {0, 0, 0, 0, 1, 0, 1, -1, 0}, {0, 1, 0, 0, 0, 0, 1, 1, 0}},
      {{0, 0, 1, 0, 0, 0, 0, 0, -1}, {0, 0, 0, 0, 1, 0, 0, -1, 0}, {0, 0, 0, 0, 0, 0, 1, 1, 0}},
      {{0, 0, 1, 0, 0, 0, 0, 0, 0}, {0, 0, 0, 0, 0, 0, 1, 0, 0}, {1, 1, 1, 1, 0, 1, 1, 1, 0}},
      {{0, 0, 0, 0, 0, 0, 0, 1, 1}, {0, 0, 0, 0, 0, 0, -1, 1, 0}, {0, 1, 0, 0, 0, 0, 0, 1, 0}},
      {{0, 0, -1, 0, 1, 1, 0, 0, 0}, {0, 0, 0, 0, 0, 1, 1, 0, -1}, {0, 0, 1, 1, 0, 1, 0, 0, 0}},
      {{0, 0, 1, 0, 0, -1, 0, 0, 0}, {0, 0, 0, 0, 0, 1, 0, 0, -1}, {0, 0, 0, 1, 0, 1, 0, 0, 0}},
      {{0, 0, 0, 0, 1, 1, 0, 0, 0}, {0, 0, 0, 0, 0, 0, -1, 0, 1}, {0, 0, 1, 0, 0, 1, 0, 0, 0}},
      {{0, 1, 0, 0, 0, 0, 0, 0, 0}, {0, 0, 0, 1, 0, 0, 0, 0, 0}, {1, 0, 0, 0, 0, 0, 0, 0, 0}},
      {{0, 0, 0, 0, 0, 1, 0, 0, 0}, {0, 0, 0, 0, 0, 0, 0, 1, 0}, {0, 0, 0, 0, 1, 0, 0, 0, 0}},
      {{0, 0, 0, 1, 0, 0, 0, 0, 0}, {0, 0, 1, 0, 0, 0, 0, 0, 0}, {0, 0, 0, 0, 0, 1, 0, 0, 0}},
      {{0, 0, 0, 0, 0, 0, 1, 0, 0}, {0, 1, 0, 0, 0, 0, 0, 0, 0}, {0, 0, 0, 0, 0, 0, 0, 1, 0}},
      {{0, 0, 0, 0, 0, 0, 0, 0, 1}, {0, 0, 0, 0, 0, 0, 0, 0, 1}, {0, 0, 0, 0, 0, 0, 0, 0, 1}},
  };
};

struct hopcroft_kerr_products {
  using problem = matmul<3, 2, 3>;
  static constexpr const char* name = "hopcroft-kerr";
  static constexpr product<problem> products[] = {
      {{1, -1, 0, 0, -1, 1}, {0, 0, 0, 1, 0, -1}, {0, 0, 0, 0, 0, 0, 1, 0, 0}},
      {{1, -1, 0, 0, -1, 0}, {1, 0, 0, 1, 0, -1}, {0, 0, 1, 0, 0, 0, -1, 0, 0}},
      {{1, -1, 0, 0, 0, 0}, {1, 0, 0, 0, 0, 0}, {1, -1, 0, 0, 0, 0, 1, 0, 0}},
      {{1, 0, 1, 0, 0, 0}, {1, 1, 0, 0, 0, 0}, {0, 1, 0, 0, 0, 0, 0, 0, 0}},
      {{1, 0, 0, 0, -1, 0}, {1, 0, -1, 1, 0, -1}, {0, 0, -1, 0, 0, 0, 0, 0, 0}},
      {{0, 1, 1, 0, 0, 0}, {1, 0, 0, 0, -1, 0}, {0, -1, 0, 1, 0, 0, 0, 0, 0}},
      {{0, 1, 0, 1, 0, 0}, {0, 0, 0, 1, 1, 0}, {0, 0, 0, 1, 0, 0, 0, 0, 0}},
      {{0, 1, 0, 0, 0, 0}, {1, 0, 0, 1, 0, 0}, {1, 0, 1, -1, 0, 0, 0, 0, 0}},
      {{0, 0, 1, -1, -1, 1}, {0, 1, -1, 0, 0, 0}, {0, 0, 0, 0, 0, 0, 0, -1, 0}},
      {{0, 0, 1, -1, 0, 1}, {0, 1, -1, 0, 1, 0}, {0, 0, 0, 0, 0, -1, 0, 1, 0}},
      {{0, 0, 1, -1, 0, 0}, {0, 0, 0, 0, 1, 0}, {0, 0, 0, 1, -1, 0, 0, -1, 0}},
      {{0, 0, 1, 0, 0, 0}, {0, 1, 0, 0, 1, 0}, {0, -1, 0, 0, 1, 1, 0, 0, 0}},
      {{0, 0, 0, 1, 0, -1}, {0, 1, -1, 0, 1, -1}, {0, 0, 0, 0, 0, -1, 0, 0, 0}},
      {{0, 0, 0, 0, 1, 0}, {0, 0, 1, 0, 0, 0}, {0, 0, 1, 0, 0, 0, 0, 1, 1}},
      {{0, 0, 0, 0, 0, 1}, {0, 0, 0, 0, 0, 1}, {0, 0, 0, 0, 0, 1, 1, 0, 1}},
  };
};

}  // namespace detail

/// <2,2,2;7> with 18 additions (Strassen, Gaussian elimination is not optimal, Numerische Mathematik 13, 1969).
using strassen = scheme<detail::strassen_products>;

/// <2,2,2;7> with 15 additions (Winograd, On multiplication of 2 x 2 matrices, Linear Algebra and its Applications
/// 4, 1971). Its errors grow more than those of Strassen's scheme.
using winograd = scheme<detail::winograd_products>;

/// <3,3,3;23> (Laderman, A noncommutative algorithm for multiplying 3 x 3 matrices using 23 multiplications, Bulletin of the AMS
/// 82, 1976).
using laderman = scheme<detail::laderman_products>;

/// <3,2,3;15> (Hopcroft and Kerr, On minimizing the number of multiplications necessary for matrix multiplication, SIAM J.
/// Applied Mathematics 20, 1971). `rotated` and `transposed` make <2,3,3;15> and <3,3,2;15> of it.
using hopcroft_kerr = scheme<detail::hopcroft_kerr_products>;

/// <2,2,3;11>: a product of 2 x 2 matrices and one column more (Hopcroft and Kerr 1971).
using strassen_2_2_3 = join_columns<strassen, classical<2, 2, 1>>;

/// <4,2,2;14>: two products of 2 x 2 matrices that share their right operand.
using strassen_4_2_2 = nested<classical<2, 1, 1>, strassen>;

/// <4,4,4;49>: two levels of Strassen's scheme.
using two_strassen = nested<strassen, strassen>;

}  // namespace collage::inline v0::bilinear
