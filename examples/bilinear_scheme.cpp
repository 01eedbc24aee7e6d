// A bilinear algorithm of one's own: declared by its products, proved by the compiler, nested, and applied.
#include <cmath>
#include <collage/bilinear/all.hpp>
#include <cstddef>
#include <cstdio>

namespace bilinear = collage::bilinear;

// Each product has a factor of left elements, one of right elements, and the outputs that it is added to. Elements are in
// row-major order. This is the transpose of Strassen's scheme.
struct my_products {
  using problem = bilinear::matmul<2, 2, 2>;
  static constexpr const char* name = "mine";
  static constexpr bilinear::product<problem> products[] = {
      {{1, 0, 0, 1}, {1, 0, 0, 1}, {1, 0, 0, 1}},   // (a00 + a11) (b00 + b11) is added to c00 and c11
      {{1, 0, 0, 0}, {0, 1, 0, 1}, {0, 1, 0, -1}},  // a00 (b01 + b11) is added to c01, and subtracted from c11
      {{0, 0, 1, -1}, {1, 0, 0, 0}, {0, 0, 1, 1}},  // (a10 - a11) b00
      {{-1, 1, 0, 0}, {0, 0, 0, 1}, {1, 1, 0, 0}},  // (a01 - a00) b11
      {{0, 0, 0, 1}, {1, 0, 1, 0}, {-1, 0, 1, 0}},  // a11 (b00 + b10)
      {{1, 0, 1, 0}, {-1, 1, 0, 0}, {0, 0, 0, 1}},  // (a00 + a10) (b01 - b00)
      {{0, 1, 0, 1}, {0, 0, 1, -1}, {1, 0, 0, 0}},  // (a01 + a11) (b10 - b11)
  };
};
using mine = bilinear::scheme<my_products>;
static_assert(mine::rank == 7);  // a wrong coefficient is an error here

// A Toom-Cook algorithm is declared by its points: 3 outputs of a filter with 3 taps by 5 multiplications.
struct my_points {
  using problem = bilinear::correlation<3, 3>;
  static constexpr const char* name = "my F(3,3)";
  static constexpr bilinear::point points[] = {0, 1, -1, {1, 2}, bilinear::infinity};
};
using my_filter = bilinear::toom_cook<my_points>;

// Two levels: each product of the one is computed by the other. Nothing is proved again.
using two_levels = bilinear::nested<mine, bilinear::winograd>;

template <class S>
void print() {
  std::printf("%-16s %2zu multiplications, %3zu additions, %3zu scalings; growth %6.1f times the definition's\n",
              S::name, S::rank, S::counts.additions(), S::counts.scalings(), S::error.amplification);
}

// The largest difference between an algorithm in float and the definition in double.
template <class S>
double error_of() {
  using problem = typename S::problem;
  float left[problem::left_size], right[problem::right_size], output[problem::output_size] = {};
  double exact_left[problem::left_size], exact_right[problem::right_size], exact[problem::output_size] = {};
  for (std::size_t i = 0; i < problem::left_size; ++i) exact_left[i] = left[i] = std::sin(float(i));
  for (std::size_t i = 0; i < problem::right_size; ++i) exact_right[i] = right[i] = std::cos(float(i));
  bilinear::apply<S>(left, right, output);
  bilinear::apply<bilinear::direct<problem>>(exact_left, exact_right, exact);
  double largest = 0;
  for (std::size_t i = 0; i < problem::output_size; ++i) largest = std::fmax(largest, std::fabs(output[i] - exact[i]));
  return largest;
}

int main() {
  print<mine>();
  print<two_levels>();
  print<my_filter>();
  print<bilinear::in_two_dimensions<bilinear::f_4_3>>();

  constexpr double float_roundoff = 0x1p-24;
  const bool is_right = error_of<two_levels>() <= two_levels::error.bound(float_roundoff) &&
                        error_of<my_filter>() <= my_filter::error.bound(float_roundoff);
  std::printf("all errors are within their bounds: %s\n", is_right ? "yes" : "no");
  return is_right ? 0 : 1;
}
