// How the families of kernels read the texts of configurations.
#pragma once

#include "instruction_set.hpp"

#include <collage/error.hpp>
#include <collage/run/configuration.hpp>
#include <collage/verdict.hpp>

#include <optional>
#include <string_view>

namespace collage::inline v0::detail::jit {

/// A configuration, or why a text is none.
template <class Configuration>
struct configuration_reading {
  std::optional<Configuration> how;
  const char* fault = "";  ///< if there is none: one sentence that says why
};

/// Reads a text by a function that throws where it is wrong. `fault` says what texts look like.
template <class Configuration>
configuration_reading<Configuration> read_configuration(Configuration (*parse)(std::string_view),
                                                        const collage::configuration& how, const char* fault) {
  try {
    return {parse(how.text()), ""};
  } catch (const error&) { return {{}, fault}; }
}

/// The configuration that a kernel is built with. Error (invalid_argument): there is none.
template <class Configuration>
const Configuration& needed(const configuration_reading<Configuration>& read, const collage::configuration& how) {
  if (!read.how) throw error(error_kind::invalid_argument, read.fault, "jit's configuration " + how.text());
  return *read.how;
}

/// Whether this processor runs kernels for an instruction set. Where it lacks AVX2, the replica runs.
inline verdict runs_here(instruction_set set) {
  return {set == instruction_set::avx2 || refusal_of(instruction_set::avx512).empty(),
          "it is for AVX-512, which this processor lacks"};
}

}  // namespace collage::inline v0::detail::jit
