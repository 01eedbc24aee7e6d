// What the tests show, as text: counts per operator, and the part of docs/operators.md that says what is not supported.
#pragma once

#include "one_test.hpp"

#include <cstddef>
#include <map>
#include <span>
#include <string>

namespace onnx_tests {

struct counts {
  std::size_t passed = 0;
  std::size_t live = 0;  ///< of those that passed: nodes ran on inputs
  std::size_t refused = 0;
  std::size_t disputed = 0;
  std::size_t failed = 0;
};
counts count(std::span<const test_result> results);
std::map<std::string, counts> count_by_operator(std::span<const test_result> results);

/// One line per operator.
std::string table(std::span<const test_result> results);

/// The generated section: which operators of the list in `operators_file` have no rule, and what the tests show.
std::string unsupported_section(const std::string& operators_file, std::span<const test_result> results);

/// The page with what stands between its markers replaced by the section; an error where it has none.
std::string with_section(const std::string& page, const std::string& section);

}  // namespace onnx_tests
