#include "lower_precision.hpp"

#include "backends.hpp"
#include "error_option.hpp"
#include "terminal.hpp"

#include <collage/error.hpp>
#include <collage/run/buffers.hpp>
#include <collage/run/tensor.hpp>

#include <cstddef>
#include <cstring>
#include <random>
#include <span>

namespace program {

namespace c = collage;

namespace {

constexpr std::size_t random_samples = 16;

/// Random inputs, which are no data.
c::sample_source random_source(std::uint64_t seed) {
  return [seed](std::size_t which, std::span<const c::tensor_view> inputs) {
    if (which >= random_samples) return false;
    std::mt19937_64 random(seed + which);
    for (const c::tensor_view& input : inputs) {
      const c::tensor made(input.type);
      fill_random(made, random);
      if (made.bytes() != 0) std::memcpy(input.data, made.data(), made.bytes());
    }
    return true;
  };
}

}  // namespace

c::precision_options precision_options_of(const options& given) {
  c::precision_options how;
  how.elements = c::precisions_named(given.precision).value_or(c::precisions::f32);
  if (how.elements == c::precisions::f32) {
    for (const auto& [text, name] : {std::pair(given.error, "--error"), std::pair(given.data, "--data")})
      if (!text.empty())
        throw c::error(c::error_kind::invalid_argument, "it only affects plans of lower precision", name,
                       "add --precision bf16, or leave it out");
    return how;
  }
  how.most_error = read_error(given.error).value_or(how.most_error);
  if (given.keep_non_finite)
    throw c::error(c::error_kind::invalid_argument, "kernels that round values need not keep NaN and infinity",
                   "--precision " + given.precision, "leave out --keep-non-finite, or --precision");
  if (given.costs != c::placing_costs::measured)
    throw c::error(c::error_kind::invalid_argument, "only measuring shows whether lower precision pays",
                   "--precision " + given.precision, "leave out --place, or --precision");
  return how;
}

c::placed_within_error place_in_lower_precision(const options& given, const c::graph& network,
                                                const c::place_options& how,
                                                const std::function<void(const std::string&)>& progress) {
  c::within_error_options measuring;
  measuring.progress = progress;
  if (how.budget_s > 0) measuring.measuring.seconds = 0.2 * how.budget_s;
  if (!given.quiet)
    complain("note: the errors of lower precision are measured with random inputs; --data FOLDER names real ones");
  return c::place_within_error(network, backends(), how, random_source(given.seed), measuring);
}

}  // namespace program
