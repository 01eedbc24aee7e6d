#include "lower_precision.hpp"

#include "backends.hpp"
#include "error_option.hpp"
#include "sample_files.hpp"
#include "terminal.hpp"

#include <collage/error.hpp>
#include <collage/io/ranges_file.hpp>
#include <collage/run/buffers.hpp>
#include <collage/run/tensor.hpp>

#include <algorithm>
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

/// Samples for the errors of single values, and samples that are held back. With many files, more are held back.
constexpr std::size_t most_measured = 8, most_held_back = 32, random_samples = 16;

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

/// Samples of files, spread evenly over all of them. Those that are held back lie between the others, because files are often sorted.
class spread_samples {
 public:
  spread_samples(const c::graph& network, const std::string& path)
      : files_(network, path),
        count_(std::min<std::uint64_t>(files_.count(), most_measured + most_held_back)),
        measured_(std::min(most_measured, count_ / 2)) {}
  std::size_t measured() const { return measured_; }
  std::size_t held_back() const { return count_ - measured_; }

  bool read(std::size_t which, std::span<const c::tensor_view> inputs) {
    if (which >= count_) return false;
    files_.read_at(place_of(which), inputs);
    return true;
  }

 private:
  /// The place in the files. The measured ones are every few samples, and the others lie between.
  std::uint64_t place_of(std::size_t which) const {
    const std::uint64_t step = count_ / std::max<std::size_t>(measured_, 1);
    std::uint64_t at = which * step;
    if (which >= measured_ && step > 1) {
      const std::uint64_t other = which - measured_;  // among those that are not measured
      const std::uint64_t before = other / (step - 1);
      at = before < measured_ ? before * step + 1 + other % (step - 1) : other + measured_;
    }
    return at * files_.count() / count_;
  }

  sample_files files_;
  std::size_t count_, measured_;
};

}  // namespace

c::precision_options precision_options_of(const options& given) {
  c::precision_options how;
  how.elements = c::precisions_named(given.precision).value_or(c::precisions::f32);
  if (how.elements == c::precisions::f32) {
    for (const auto& [text, name] : {std::pair(given.error, "--error"), std::pair(given.data, "--data"),
                                     std::pair(given.known_ranges, "--ranges")})
      if (!text.empty())
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

c::placed_within_error place_in_lower_precision(const options& given, const c::graph& network,
                                                const c::place_options& how,
                                                const std::function<void(const std::string&)>& progress) {
  c::within_error_options measuring;
  measuring.progress = progress;
  if (!given.known_ranges.empty())
    measuring.ranges = std::make_shared<const c::network_ranges>(c::load_ranges(given.known_ranges, network));
  if (!given.data.empty()) {
    const auto files = std::make_shared<spread_samples>(network, given.data);
    measuring.measuring.samples = files->measured();
    measuring.held_back = files->held_back();
    const c::sample_source samples = [files](std::size_t which, std::span<const c::tensor_view> inputs) {
      return files->read(which, inputs);
    };
    return c::place_within_error(network, backends(), how, samples, measuring);
  }
  if (!given.quiet)
    complain("note: the errors of lower precision are measured with random inputs; --data FOLDER names real ones");
  return c::place_within_error(network, backends(), how, random_source(given.seed), measuring);
}

}  // namespace program
