// The backends that this program was built with.
#pragma once

#include <collage/run/backend_table.hpp>
#include <collage/set/coverage.hpp>

#include <string>
#include <vector>

namespace program {

/// The backends that a network can be placed on. Their order decides if nothing is measured.
collage::backend_table backends();

/// A pattern, described in words.
struct described_pattern {
  std::string name;
  std::string text;
};

/// A backend, described for `collage backends`.
struct described_backend {
  std::string name;
  bool available = false;
  bool placed = true;  ///< false for the reference
  std::string version;
  std::string details;
  std::string reason;  ///< why it is not available, and the remedy: a sentence
  std::vector<described_pattern> patterns;
  bool has_rule = false;
  bool takes_regions = false;
  std::string rounds_to;   ///< the element type to which its regions round values; empty: none
  std::string variant_of;  ///< the backend with which it is allowed; empty: none
};
/// The backends of this program and the reference. `all` adds the backends that this build lacks.
std::vector<described_backend> describe_backends(bool all);

/// Which operators the backends of this program declare.
struct described_coverage {
  struct row {
    std::string kind;
    std::vector<collage::coverage_cell> cells;  ///< by backend
  };
  std::vector<std::string> backends;  ///< with patterns: the columns
  std::vector<std::string> by_rule;   ///< backends with a fusion rule but no patterns, or that take regions
  std::vector<row> rows;
};
described_coverage describe_coverage();

/// Throws `collage::error` if a name is no backend of this program. Its sentence lists the backends.
void check_backend_names(const std::vector<std::string>& names);

}  // namespace program
