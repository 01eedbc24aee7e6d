#include "algorithms.hpp"

#include <collage/bilinear/all.hpp>
#include <cstddef>

namespace collage_test {
namespace {

namespace b = collage::bilinear;

template <std::size_t Rows, std::size_t Columns>
std::vector<std::vector<double>> numbers_of(const b::table<Rows, Columns>& exact) {
  std::vector<std::vector<double>> numbers(Rows);
  for (std::size_t i = 0; i < Rows; ++i)
    for (std::size_t j = 0; j < Columns; ++j) numbers[i].push_back(exact[i][j].template as<double>());
  return numbers;
}

template <class S, class T>
void apply_to(const std::vector<T>& left, const std::vector<T>& right, std::vector<T>& output) {
  b::apply<S>(left, right, output);
}

template <class S>
tried_algorithm describe(const char* name, bool is_listed) {
  using problem = typename S::problem;
  return {.name = name,
          .is_listed = is_listed,
          .problem = problem::text().c_str(),
          .left_size = problem::left_size,
          .right_size = problem::right_size,
          .output_size = problem::output_size,
          .terms = problem::terms,
          .rank = S::rank,
          .direct_rank = b::direct<problem>::rank,
          .coefficient = problem::coefficient,
          .left = S::left,
          .right = S::right,
          .output = S::output,
          .counts = S::counts,
          .plain_counts = S::plain_counts,
          .error = S::error,
          .u = numbers_of(S::u),
          .v = numbers_of(S::v),
          .w = numbers_of(S::w),
          .programs_compute_matrices = b::programs_compute_matrices<S>,
          .computes_its_problem = b::computes_its_problem<S>,
          .over_fractions = apply_to<S, b::rational>,
          .over_whole_numbers = S::is_whole ? apply_to<S, std::int64_t> : nullptr,
          .over_floats = apply_to<S, float>,
          .over_doubles = apply_to<S, double>};
}

using images_by_definition = b::direct<b::nesting<b::correlation<2, 3>, b::correlation<3, 2>>::problem>;

}  // namespace

const std::vector<tried_algorithm>& tried_algorithms() {
  static const std::vector<tried_algorithm> all = {
      describe<b::strassen>("strassen", true),
      describe<b::winograd>("winograd", true),
      describe<b::strassen_2_2_3>("strassen_2_2_3", true),
      describe<b::strassen_4_2_2>("strassen_4_2_2", true),
      describe<b::hopcroft_kerr>("hopcroft_kerr", true),
      describe<b::laderman>("laderman", true),
      describe<b::two_strassen>("two_strassen", true),
      describe<b::f_2_2>("f_2_2", true),
      describe<b::f_3_2>("f_3_2", true),
      describe<b::f_4_2>("f_4_2", true),
      describe<b::f_2_3>("f_2_3", true),
      describe<b::f_4_3>("f_4_3", true),
      describe<b::f_4_3_accurate>("f_4_3_accurate", true),
      describe<b::f_6_3>("f_6_3", true),
      describe<b::f_2_5>("f_2_5", true),
      describe<b::f_4_5>("f_4_5", true),
      describe<b::up2_f_2_2>("up2_f_2_2", true),
      describe<b::up2_f_3_2>("up2_f_3_2", true),
      describe<b::up2_f_4_2>("up2_f_4_2", true),
      describe<b::up2_f_2_3>("up2_f_2_3", true),
      describe<b::up2_f_4_3>("up2_f_4_3", true),
      describe<b::up2_f_4_3_accurate>("up2_f_4_3_accurate", true),
      describe<b::in_two_dimensions<b::f_2_3>>("in_two_dimensions<f_2_3>", true),
      describe<b::in_two_dimensions<b::f_4_3>>("in_two_dimensions<f_4_3>", true),
      describe<b::in_two_dimensions<b::f_4_3_accurate>>("in_two_dimensions<f_4_3_accurate>", true),
      describe<b::classical<2, 3, 4>>("classical<2, 3, 4>", false),
      describe<b::direct<b::correlation<4, 3>>>("direct<correlation<4, 3>>", false),
      describe<images_by_definition>("images by definition", false),
      describe<b::rotated<b::hopcroft_kerr>>("rotated<hopcroft_kerr>", false),
      describe<b::transposed<b::rotated<b::strassen_2_2_3>>>("transposed<rotated<strassen_2_2_3>>", false),
      describe<b::nested<b::winograd, b::classical<2, 1, 3>>>("nested<winograd, classical<2, 1, 3>>", false),
      describe<b::nested<b::hopcroft_kerr, b::classical<1, 3, 2>>>("nested<hopcroft_kerr, classical<1, 3, 2>>", false),
      describe<b::rotated<b::nested<b::hopcroft_kerr, b::strassen>>>("rotated<nested<hopcroft_kerr, strassen>>", false),
      describe<b::nested<b::f_2_3, b::f_4_2>>("nested<f_2_3, f_4_2>", false),
      describe<b::in_two_dimensions<b::up2_f_2_2>>("in_two_dimensions<up2_f_2_2>", false),
      describe<b::nested<b::up2_f_3_2, b::up2_f_2_3>>("nested<up2_f_3_2, up2_f_2_3>", false),
      describe<b::nested<b::f_2_3, b::strassen>>("nested<f_2_3, strassen>", false),
      describe<b::dual<b::f_4_3>>("dual<f_4_3>", false),
      describe<b::dual<b::nested<b::f_2_3, b::f_2_2>>>("dual<nested<f_2_3, f_2_2>>", false),
      describe<b::join_inner<b::laderman, b::classical<3, 1, 3>>>("join_inner<laderman, classical<3, 1, 3>>", false),
  };
  return all;
}

}  // namespace collage_test
