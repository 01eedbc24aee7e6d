// Samples of a caller: checked, counted, and spread over all that there are.
#include "samples.hpp"

#include "networks.hpp"

#include <collage/error.hpp>
#include <collage/run/buffers.hpp>
#include <collage/run/elements.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <utility>
#include <vector>

namespace c_interface {

namespace c = collage;

namespace {

constexpr std::size_t oldest_precision_options = offsetof(collage_precision_options, files) + sizeof(const char*);

std::string known_precisions() {
  std::string names;
  for (const c::precisions_name& known : c::precisions_names)
    names += (names.empty() ? "" : ", ") + std::string(known.name);
  return names;
}

/// The allowed error. Throws if there can be no plan within it.
double checked_error(const call& here, double error) {
  if (error > 0 && error <= 1) return error;
  char number[32];
  std::snprintf(number, sizeof number, "%g", error);
  here.misuse("error is " + std::string(number), "give a number above 0 and at most 1, such as 0.01 for 1 %");
}

[[noreturn]] void refuse_sample(std::uint64_t which, const std::string& what, const std::string& remedy) {
  throw c::error(c::error_kind::invalid_argument, what, "sample " + std::to_string(which), remedy);
}

void check_finite(const c::graph& network, std::uint64_t which, std::span<const c::tensor_view> inputs) {
  std::vector<double> numbers;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const c::tensor_type& type = inputs[i].type;
    if (!c::is_floating(type.type)) continue;
    numbers.resize(static_cast<std::size_t>(type.dims.elements()));
    c::load_elements(type.type, inputs[i].data, std::span<double>(numbers));
    const auto bad = std::ranges::find_if(numbers, [](double x) { return !std::isfinite(x); });
    if (bad != numbers.end())
      refuse_sample(which,
                    std::string(std::isnan(*bad) ? "has NaN" : "is infinite") + " at element " +
                        std::to_string(bad - numbers.begin()) + " of input " + network.value_name(network.inputs()[i]),
                    "give samples whose numbers are finite");
  }
}

}  // namespace

c::precision_options precision_of(const call& here, const collage_place_options& given, sample_request& samples,
                                  std::vector<c::kept_part>& kept) {
  c::precision_options how;
  if (given.precision == nullptr) return how;
  const auto wanted = here.options(given.precision, "collage_precision_options", oldest_precision_options);
  const std::string name = here.text(wanted.precision, "precision");
  const auto elements = c::precisions_named(name);
  if (!elements) here.misuse("precision is '" + name + "', which is unknown", "give one of " + known_precisions());
  if (wanted.error != 0) how.most_error = checked_error(here, wanted.error);
  how.elements = *elements;
  if (how.elements == c::precisions::f32) return {};
  const auto exclude = [&](bool is_given, const char* why, const char* remedy) {
    if (is_given) here.misuse("precision is " + name + ", " + why, remedy);
  };
  exclude(given.how != COLLAGE_PLACE_MEASURE, "and only measuring shows whether it pays",
          "place by measuring, or in fp32");
  exclude(given.keep_non_finite != 0, "and kernels that round values need not keep NaN and infinity",
          "set keep_non_finite to 0, or place in fp32");
  exclude(wanted.sample == nullptr && wanted.files == nullptr, "and there are no samples", "give at least three");
  exclude(wanted.sample != nullptr && wanted.files != nullptr, "and sample and files are both given",
          "set one of them to NULL");
  here.check_list(wanted.keep, wanted.keep_count, "keep");
  for (std::size_t i = 0; i < wanted.keep_count; ++i) kept.push_back({here.text(wanted.keep[i], "a name in keep")});
  samples.function = wanted.sample;
  samples.data = wanted.sample_data;
  samples.count = wanted.sample_count;
  if (wanted.files != nullptr) samples.files = here.text(wanted.files, "files");
  return how;
}

caller_samples::caller_samples(const sample_request& from, const c::graph& network, std::function<void()> pause)
    : from_(from), pause_(std::move(pause)), spread_(0), network_(network) {
  if (from_.function == nullptr) in_our_words([&] { files_.emplace(network, from_.files); });
  const c::run_buffers memory(network);
  const std::vector<c::tensor_view> inputs(memory.in.begin(), memory.in.end());
  const std::uint64_t all = files_ ? files_->count() : from_.count;
  spread_ = c::detail::sample_spread(all != 0 ? all : count_function(inputs));
  // Faults show now, and not after minutes of measuring, or never because a sample turned out not to be needed.
  for (std::size_t i = 0; all != 0 && i < spread_.count(); ++i) (void)read(i, inputs);
}

std::uint64_t caller_samples::count_function(std::span<const c::tensor_view> inputs) const {
  constexpr std::uint64_t most = c::detail::sample_spread::most_measured + c::detail::sample_spread::most_held_back;
  std::uint64_t count = 0;
  for (pause_(); count < most && call_function(count, inputs); pause_()) ++count;
  return count;
}

bool caller_samples::call_function(std::uint64_t which, std::span<const c::tensor_view> inputs) const try {
  std::vector<void*> memory;
  for (const c::tensor_view& input : inputs) memory.push_back(input.data);
  const int result = from_.function(from_.data, static_cast<std::size_t>(which), memory.data(), memory.size());
  if (result == COLLAGE_SAMPLE_END) return false;
  if (result != COLLAGE_SAMPLE_WRITTEN)
    throw c::error(c::error_kind::cancelled, "the caller's function ended placing, so there is no plan",
                   "sample " + std::to_string(which));
  check_finite(network_, which, inputs);
  return true;
} catch (const c::error&) { throw sample_fault{std::current_exception()}; }

bool caller_samples::read(std::size_t which, std::span<const c::tensor_view> inputs) {
  if (which >= spread_.count()) return false;
  pause_();
  const std::uint64_t place = spread_.place_of(which);
  if (!files_ && call_function(place, inputs)) return true;
  try {
    if (!files_)
      refuse_sample(place, "does not exist, although an earlier call or sample_count said so",
                    "write the same sample at each call, and set sample_count to their number or 0");
    files_->read_at(place, inputs);
  } catch (const c::error&) { throw sample_fault{std::current_exception()}; }
  return true;
}

}  // namespace c_interface
