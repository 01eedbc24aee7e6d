// The bilinear algorithms that tests try, without their types. Compiling each once is what takes time.
#pragma once

#include <collage/bilinear/algorithm.hpp>
#include <collage/bilinear/rational.hpp>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace collage_test {

template <class T>
using apply_function = void (*)(const std::vector<T>& left, const std::vector<T>& right, std::vector<T>& output);

struct tried_algorithm {
  std::string name;     ///< as docs/bilinear.md spells it
  bool is_listed;       ///< there
  std::string problem;  ///< "<2,2,2>"
  std::size_t left_size, right_size, output_size, terms, rank, direct_rank;
  int (*coefficient)(std::size_t output, std::size_t left, std::size_t right);

  collage::bilinear::program_view left, right, output;
  collage::bilinear::program_counts counts, plain_counts;
  collage::bilinear::error_growth error;
  std::vector<std::vector<double>> u, v, w;
  bool (*programs_compute_matrices)();
  bool (*computes_its_problem)();

  apply_function<collage::bilinear::rational> over_fractions;
  apply_function<std::int64_t> over_whole_numbers;  ///< null where there are fractions
  apply_function<float> over_floats;
  apply_function<double> over_doubles;
};

/// All that are shipped, and others made of them.
const std::vector<tried_algorithm>& tried_algorithms();

/// The outputs of a problem by its definition.
template <class T>
std::vector<T> define_outputs(const tried_algorithm& a, const std::vector<T>& left, const std::vector<T>& right) {
  std::vector<T> output(a.output_size);
  for (std::size_t o = 0; o < a.output_size; ++o)
    for (std::size_t i = 0; i < a.left_size; ++i)
      for (std::size_t j = 0; j < a.right_size; ++j)
        if (a.coefficient(o, i, j) != 0) output[o] = static_cast<T>(output[o] + left[i] * right[j]);
  return output;
}

}  // namespace collage_test
