#include "lower_precision.hpp"

#include "backends.hpp"
#include "error_option.hpp"
#include "network.hpp"
#include "terminal.hpp"

#include <collage/error.hpp>
#include <collage/io/ranges_file.hpp>
#include <collage/run/buffers.hpp>
#include <collage/run/tensor.hpp>
#include <samples/sample_files.hpp>
#include <samples/sample_spread.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

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

/// Samples of files, spread over all of them.
class spread_samples {
 public:
  spread_samples(const c::graph& network, const std::string& path) : files_(network, path), spread_(files_.count()) {}
  const c::detail::sample_spread& spread() const { return spread_; }

  bool read(std::size_t which, std::span<const c::tensor_view> inputs) {
    if (which >= spread_.count()) return false;
    files_.read_at(spread_.place_of(which), inputs);
    return true;
  }

 private:
  c::detail::sample_files files_;
  c::detail::sample_spread spread_;
};

c::within_error_options measuring_for(const options& given, const c::graph& network,
                                      const std::function<void(const std::string&)>& progress) {
  c::within_error_options measuring;
  measuring.progress = progress;
  if (!given.known_ranges.empty())
    measuring.ranges = std::make_shared<const c::network_ranges>(c::load_ranges(given.known_ranges, network));
  else if (given.requantise) measuring.ranges = std::make_shared<const c::network_ranges>(ranges_in_file(given));
  return measuring;
}

/// The samples that the options name, or random ones. Sets how many are measured with and held back.
c::sample_source samples_for(const options& given, const c::graph& network, c::within_error_options& measuring) {
  if (given.data.empty()) return random_source(given.seed);
  const auto files = std::make_shared<spread_samples>(network, given.data);
  measuring.measuring.samples = files->spread().measured();
  measuring.held_back = files->spread().held_back();
  return [files](std::size_t which, std::span<const c::tensor_view> inputs) { return files->read(which, inputs); };
}

}  // namespace

c::precision_options precision_options_of(const options& given) {
  c::precision_options how;
  how.elements = c::precisions_named(given.precision).value_or(c::precisions::f32);
  if (how.elements == c::precisions::f32) {
    for (const auto& [is_given, name] :
         {std::pair(!given.error.empty(), "--error"), std::pair(!given.kept.empty(), "--keep"),
          std::pair(!given.data.empty(), "--data"), std::pair(!given.known_ranges.empty(), "--ranges"),
          std::pair(given.requantise, "--requantise")})
      if (is_given)
        throw c::error(c::error_kind::invalid_argument, "it only affects plans of lower precision", name,
                       "add --precision bf16, or leave it out");
    return how;
  }
  if (!given.known_ranges.empty() && !c::allows(how.elements, c::dtype::u8))
    throw c::error(c::error_kind::invalid_argument, "ranges are for integers of 8 bits", "--ranges",
                   "add --precision int8 or any, or leave it out");
  how.most_error = read_error(given.error).value_or(how.most_error);
  if (given.keep_non_finite)
    throw c::error(c::error_kind::invalid_argument, "kernels that round values need not keep NaN and infinity",
                   "--precision " + given.precision, "leave out --keep-non-finite, or --precision");
  if (given.costs != c::placing_costs::measured)
    throw c::error(c::error_kind::invalid_argument, "only measuring shows whether lower precision pays",
                   "--precision " + given.precision, "leave out --place, or --precision");
  return how;
}

std::vector<c::kept_part> kept_parts_of(const options& given) {
  std::vector<c::kept_part> parts;
  for (const std::string& what : given.kept) parts.push_back({what});
  return parts;
}

c::placed_within_error place_in_lower_precision(const options& given, const c::graph& network,
                                                const c::place_options& how,
                                                const std::function<void(const std::string&)>& progress) {
  (void)c::kept_nodes(network, how.kept);  // names are wrong before anything is measured
  c::within_error_options measuring = measuring_for(given, network, progress);
  if (given.data.empty() && !given.quiet)
    complain("note: the errors of lower precision are measured with random inputs; --data FOLDER names real ones");
  const c::sample_source samples = samples_for(given, network, measuring);
  return c::place_within_error(network, backends(), how, samples, measuring);
}

void set_errors(const options& given, const c::graph& network, c::place_options& how,
                const std::function<void(const std::string&)>& progress) {
  c::within_error_options measuring = measuring_for(given, network, progress);
  const c::sample_source samples = samples_for(given, network, measuring);
  how.precision.scales = c::scales_of_integers(network, backends(), how, samples, measuring);
  how.precision.errors = c::errors_of_rounding(network, backends(), how, samples, measuring);
}

}  // namespace program
