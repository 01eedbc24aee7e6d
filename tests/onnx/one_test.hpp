// One of ONNX's own tests: a model, its inputs and what its outputs must be.
#pragma once

#include <collage/run/backend_table.hpp>

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

namespace onnx_tests {

enum class outcome {
  passed,
  failed,
  refused,   ///< making a stage says that it is not supported
  disputed,  ///< failed, and known to expect what is wrong
};

struct test_result {
  std::string test;
  std::string operator_name;  ///< as onnx::supported_operators() names it
  outcome is = outcome::failed;
  bool live = false;  ///< something was computed from an input; otherwise all is constant
  std::string why;    ///< where it did not pass
};

/// A test on disk. The folder of the node tests holds folders with a model and data sets; that of the light models
/// holds NAME.onnx beside NAME_output_0.pb, and the input counts up from 0 to 1.
struct one_test {
  std::string name;
  std::filesystem::path model;
  std::vector<std::filesystem::path> data_sets;  ///< none for a light model
};

/// All tests of a folder, by name.
std::vector<one_test> tests_of(const std::filesystem::path& folder);

/// The operator that a test is about. Tests of an expanded function are about that of the test whose name they extend.
std::string operator_of(const one_test& test);

/// Runs one test with no input bound: by the reference and, where there are backends, by a session over them in their order. What
/// is refused as not supported before anything runs is no failure. Never throws.
test_result run(const one_test& test, collage::backend_table backends);

}  // namespace onnx_tests
