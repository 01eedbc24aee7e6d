// Bilinear algorithms as types: exact fractions, proofs, counts, and algorithms made of others.
#include <collage/bilinear/all.hpp>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

namespace {

namespace b = collage::bilinear;
using b::rational;

// Fractions -----------------------------------------------------------------------------------------------------------

static_assert(rational(2, 4) == rational(1, 2) && rational(1, -2) == rational(-1, 2) && rational(0, 7) == rational(0));
static_assert(rational(1, 2) + rational(1, 3) == rational(5, 6) && rational(1, 6) + rational(1, 3) == rational(1, 2));
static_assert(rational(2, 3) * rational(3, 4) == rational(1, 2) && rational(2, 3) / rational(-4, 3) == rational(-1, 2));
static_assert(rational(1, 2) - rational(1, 2) == rational(0) && -rational(1, 2) == rational(-1, 2));
static_assert(rational(-3, 2).magnitude() == rational(3, 2) && rational(3, 2).as<double>() == 1.5);
static_assert(std::string_view(rational(-2, 3).text().c_str()) == "-2/3");
static_assert(rational(1, 3) != rational(1, 2));

// An overflow is undefined, and so is everything that is computed from it.
constexpr rational large = INT64_MAX;
static_assert(large.is_defined() && !(large + 1).is_defined() && !(large * 2).is_defined());
static_assert(!(large + 1 - 1).is_defined() && !((large + 1) * 0).is_defined());
static_assert((large + 1) != (large + 1));
static_assert(!rational(INT64_MIN).is_defined() && !rational(1, INT64_MIN).is_defined() && !(-large - 1).is_defined());
static_assert(!rational(1, 0).is_defined() && !(rational(1) / 0).is_defined());
static_assert(!(rational(1, 4000000000) * rational(1, 3000000001)).is_defined() &&
              !(rational(1, INT64_MAX) + rational(1, 2)).is_defined());
static_assert(rational(3000000000, 7) * rational(7, 3000000000) == rational(1));

// Schemes -------------------------------------------------------------------------------------------------------------

static_assert(b::algorithm<b::strassen> && !b::algorithm<int>);
static_assert(std::is_same_v<b::strassen::problem, b::matmul<2, 2, 2>> && b::strassen::rank == 7);
static_assert(b::strassen::u[1][2] == rational(1) && b::strassen::v[2][3] == rational(-1) && b::strassen::is_whole);
static_assert(b::laderman::rank == 23 && std::is_same_v<b::laderman::problem, b::matmul<3, 3, 3>>);
static_assert(b::hopcroft_kerr::rank == 15 && std::is_same_v<b::hopcroft_kerr::problem, b::matmul<3, 2, 3>>);
static_assert(b::strassen_2_2_3::rank == 11 && std::is_same_v<b::strassen_2_2_3::problem, b::matmul<2, 2, 3>>);
static_assert(b::strassen_4_2_2::rank == 14 && std::is_same_v<b::strassen_4_2_2::problem, b::matmul<4, 2, 2>>);
static_assert(b::two_strassen::rank == 49 && std::is_same_v<b::two_strassen::problem, b::matmul<4, 4, 4>>);

// The additions that the papers count. Sharing finds nothing in Strassen's scheme.
static_assert(b::strassen::counts.additions() == 18 && b::strassen::plain_counts.additions() == 18);
static_assert(b::winograd::counts.left.additions == 4 && b::winograd::counts.right.additions == 4 &&
              b::winograd::counts.output.additions == 7 && b::winograd::plain_counts.additions() == 24);
// What the programs save is real: they compute the matrices.
static_assert(b::programs_compute_matrices<b::winograd>() && b::programs_compute_matrices<b::hopcroft_kerr>());
static_assert(b::programs_compute_matrices<b::two_strassen>() && b::programs_compute_matrices<b::f_4_3>());
static_assert(b::laderman::plain_counts.additions() == 98 && b::laderman::counts.additions() < 98);
static_assert(b::two_strassen::counts.additions() == 18 * (4 + 7) && b::strassen::counts.scalings() == 0,
              "the outer level adds blocks of four, the inner one is run seven times");

// The constants of Bini and Lotti.
static_assert(b::strassen::error.growth == 12 && b::winograd::error.growth == 18);
static_assert(b::two_strassen::error.growth == 144 && b::two_strassen::error.amplification == 36);
static_assert(b::classical<2, 5, 3>::error.growth == 5 && b::classical<2, 5, 3>::error.depth == 5);
static_assert(b::classical<1, 1, 1>::error.bound(0.125) == 0.125 / (1 - 0.125));
static_assert(b::strassen::error.bound(1e-7, 64) > b::strassen::error.bound(1e-7, 32) &&
              b::strassen::error.bound(0.5) == __builtin_huge_val());

// Programs that a declaration writes, here as in Winograd's paper.
struct factored_products {
  using problem = b::matmul<2, 2, 2>;
  static constexpr const char* name = "factored";
  static constexpr b::product<problem> products[] = {
      {{1, 0, 0, 0}, {1, 0, 0, 0}, {1, 1, 1, 1}},   {{0, 1, 0, 0}, {0, 0, 1, 0}, {1, 0, 0, 0}},
      {{1, 1, -1, -1}, {0, 0, 0, 1}, {0, 1, 0, 0}}, {{0, 0, 0, 1}, {1, -1, -1, 1}, {0, 0, -1, 0}},
      {{0, 0, 1, 1}, {-1, 1, 0, 0}, {0, 1, 0, 1}},  {{-1, 0, 1, 1}, {1, -1, 0, 1}, {0, 1, 1, 1}},
      {{1, 0, -1, 0}, {0, -1, 0, 1}, {0, 0, 1, 1}},
  };
  static constexpr void left(const auto& a, auto& s) {
    s[4] = a[2] + a[3];
    s[5] = s[4] - a[0];
    s[6] = a[0] - a[2];
    s[2] = a[1] - s[5];
    s[0] = a[0], s[1] = a[1], s[3] = a[3];
  }
  static constexpr void output(const auto& p, auto& c) {
    const auto u = p[0] + p[5], v = u + p[6];
    c[0] = p[0] + p[1];
    c[1] = u + p[4] + p[2];
    c[2] = v - p[3];
    c[3] = v + p[4];
  }
};
using factored = b::scheme<factored_products>;
static_assert(factored::counts.left.additions == 4 && factored::counts.right.additions == 4 &&
              factored::counts.output.additions == 7);
static_assert(b::programs_compute_matrices<factored>() && factored::error.growth == 18);
static_assert(factored::left.code[0].a == 2 && factored::left.code[0].b == 3 && factored::left.output[4] == 4,
              "it is the program that was written");

// The bound follows the program, and terms that cancel within it count.
struct cancelling_products {
  using problem = b::matmul<1, 1, 1>;
  static constexpr const char* name = "cancelling";
  static constexpr b::product<problem> products[] = {{{1}, {1}, {1}}};
  static constexpr void right(const auto& y, auto& factor) { factor[0] = 3 * y[0] - y[0] * 2; }
};
static_assert(b::scheme<cancelling_products>::error.growth == 5);
static_assert(b::scheme<cancelling_products>::counts.scalings() == 2);

// Toom-Cook -----------------------------------------------------------------------------------------------------------

// F(2,3) is written as in Lavin and Gray, the last row of B^T with the other sign.
static_assert(b::coefficients<int>(b::f_2_3::u)[0][0] == 1 && b::coefficients<int>(b::f_2_3::u)[0][2] == -1);
static_assert(b::f_2_3::v[1][0] == rational(1, 2) && b::f_2_3::v[2][1] == rational(-1, 2));
static_assert(b::f_2_3::w[1][2] == rational(-1) && b::f_2_3::w[1][3] == rational(1) && !b::f_2_3::is_whole);
static_assert(b::f_2_3::counts.left.additions == 4 && b::f_2_3::counts.output.additions == 4);
static_assert(b::f_2_2::rank == 3 && b::f_3_2::rank == 4 && b::f_4_2::rank == 5 && b::f_2_3::rank == 4);
static_assert(b::f_4_3::rank == 6 && b::f_6_3::rank == 8 && b::f_2_5::rank == 6 && b::f_4_5::rank == 8);
static_assert(b::f_4_3_accurate::error.growth < b::f_4_3::error.growth);

// The counts of Lavin and Gray for images: 32 additions for data, 28 operations and 24 for outputs.
using f_2_3_images = b::in_two_dimensions<b::f_2_3>;
static_assert(f_2_3_images::rank == 16 && f_2_3_images::counts.left.total() == 32 &&
              f_2_3_images::counts.output.total() == 24);
static_assert(b::in_two_dimensions<b::f_4_3>::rank == 36);
static_assert(f_2_3_images::error.growth == b::f_2_3::error.growth * b::f_2_3::error.growth);

// Enlarged signals: 2M outputs take 2M + R - 2 products, one fewer than F(2M,R).
static_assert(std::is_same_v<b::up2_f_4_2::problem, b::enlarged_correlation<4, 3>>);
static_assert(std::is_same_v<b::up2_f_4_3::problem, b::enlarged_correlation<4, 5>>);
static_assert(b::up2_f_2_2::rank == 5 && b::up2_f_3_2::rank == 7 && b::up2_f_4_2::rank == 9);
static_assert(b::up2_f_2_3::rank == 7 && b::up2_f_4_3::rank == 11 && b::up2_f_4_3_accurate::rank == 11);
static_assert(b::computes_its_problem<b::up2_f_2_2>() && b::computes_its_problem<b::up2_f_3_2>() &&
              b::computes_its_problem<b::up2_f_4_2>() && b::computes_its_problem<b::up2_f_2_3>() &&
              b::computes_its_problem<b::up2_f_4_3>() && b::computes_its_problem<b::up2_f_4_3_accurate>());
static_assert(b::computes_its_problem<b::enlarged<b::direct<b::correlation<3, 4>>, b::direct<b::correlation<3, 3>>>>());
static_assert(b::up2_f_2_2::is_whole && b::up2_f_2_2::error.growth < b::f_4_3_accurate::error.growth);
static_assert(std::string_view(b::up2_f_4_2::name) == "up2 F(4,2)");

// Others made of these ------------------------------------------------------------------------------------------------

static_assert(b::computes_its_problem<b::strassen_2_2_3>() && b::computes_its_problem<b::strassen_4_2_2>());
static_assert(b::computes_its_problem<b::classical<2, 3, 4>>() && b::classical<2, 3, 4>::rank == 24);
static_assert(b::computes_its_problem<b::direct<b::correlation<4, 3>>>() &&
              b::direct<b::correlation<4, 3>>::rank == 12);
static_assert(b::computes_its_problem<b::nested<b::f_2_2, b::f_3_2>>());

// All six orders of the dimensions.
using turned = b::rotated<b::hopcroft_kerr>;
static_assert(std::is_same_v<turned::problem, b::matmul<2, 3, 3>> && b::computes_its_problem<turned>());
using turned_twice = b::rotated<b::rotated<b::strassen_2_2_3>>;
static_assert(std::is_same_v<turned_twice::problem, b::matmul<3, 2, 2>> && b::computes_its_problem<turned_twice>());
using mirrored = b::transposed<b::strassen_2_2_3>;
static_assert(std::is_same_v<mirrored::problem, b::matmul<3, 2, 2>> && b::computes_its_problem<mirrored>());
using both = b::transposed<b::rotated<b::strassen_2_2_3>>;
static_assert(std::is_same_v<both::problem, b::matmul<2, 3, 2>> && b::computes_its_problem<both>());

template <std::size_t Rows, std::size_t Columns>
constexpr bool equal(const b::table<Rows, Columns>& x, const b::table<Rows, Columns>& y) {
  for (std::size_t i = 0; i < Rows; ++i)
    for (std::size_t j = 0; j < Columns; ++j)
      if (x[i][j] != y[i][j]) return false;
  return true;
}
using full_circle = b::rotated<b::rotated<b::rotated<b::hopcroft_kerr>>>;
static_assert(equal(full_circle::u, b::hopcroft_kerr::u) && equal(full_circle::v, b::hopcroft_kerr::v) &&
              equal(full_circle::w, b::hopcroft_kerr::w));
using there_and_back = b::transposed<b::transposed<b::hopcroft_kerr>>;
static_assert(equal(there_and_back::u, b::hopcroft_kerr::u) && equal(there_and_back::w, b::hopcroft_kerr::w));

using polynomials = b::dual<b::f_2_3>;
static_assert(std::is_same_v<polynomials::problem, b::polynomial_product<2, 3>>);
static_assert(b::computes_its_problem<polynomials>() && polynomials::rank == 4);
static_assert(std::is_same_v<b::dual<polynomials>::problem, b::correlation<2, 3>>);
static_assert(equal(b::dual<polynomials>::u, b::f_2_3::u));

using three_columns = b::join_columns<b::strassen, b::classical<2, 2, 1>>;
using three_rows = b::join_rows<b::classical<1, 2, 2>, b::winograd>;
using three_inner = b::join_inner<b::strassen, b::classical<2, 1, 2>>;
static_assert(b::computes_its_problem<three_columns>() && b::computes_its_problem<three_rows>());
static_assert(b::computes_its_problem<three_inner>() && std::is_same_v<three_inner::problem, b::matmul<2, 3, 2>>);

// Constant evaluation of an algorithm ---------------------------------------------------------------------------------

constexpr bool multiplies() {
  const int left[] = {1, 2, 3, 4}, right[] = {5, 6, 7, 8};
  int output[4] = {};
  b::apply<b::winograd>(left, right, output);
  return output[0] == 19 && output[1] == 22 && output[2] == 43 && output[3] == 50;
}
static_assert(multiplies());

// A declaration of a user, with fractions: four times the product, divided by 4 at the end. A class may be final.
struct scaled_products final {
  using problem = b::matmul<1, 2, 1>;
  static constexpr const char* name = "scaled";
  static constexpr b::product<problem, rational> products[] = {{{2, 0}, {2, 0}, {{1, 4}}}, {{0, 1}, {0, 1}, {1}}};
};
using scaled = b::scheme<scaled_products>;
static_assert(scaled::rank == 2 && !scaled::is_whole && scaled::counts.scalings() == 3);
static_assert(std::string_view(scaled::name) == "scaled");
static_assert(std::string_view(b::two_strassen::name) == "strassen x strassen");

}  // namespace
