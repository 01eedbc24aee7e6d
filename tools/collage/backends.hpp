// The composition root: which backends this program was built with.
#pragma once

#include <collage/run/backend_table.hpp>
#include <collage/set/coverage.hpp>

#include <string>
#include <vector>

namespace program {

/// The backends that can be placed, in the order of preference where nothing was measured.
collage::backend_table backends();

/// A pattern in words.
struct described_pattern {
  std::string name;
  std::string text;
};

/// A backend for people.
struct described_backend {
  std::string name;
  bool available = false;
  bool placed = true;  ///< false for the oracle
  std::string version;
  std::string details;
  std::string reason;  ///< why it is not available: a sentence with the remedy
  std::vector<described_pattern> patterns;
  bool has_rule = false;
  bool takes_regions = false;
};
/// Those of this program and the reference; with `all` also those that were left out when it was built.
std::vector<described_backend> describe_backends(bool all);

/// Which operators the backends of this program declare.
struct described_coverage {
  struct row {
    std::string kind;
    std::vector<collage::coverage_cell> cells;  ///< by backend
  };
  std::vector<std::string> backends;  ///< those that have patterns
  std::vector<std::string> by_rule;   ///< those that have a rule alone, or take regions
  std::vector<row> rows;
};
described_coverage describe_coverage();

/// Throws where a name is no backend of this program, with a sentence that says what there is.
void check_backend_names(const std::vector<std::string>& names);

}  // namespace program
