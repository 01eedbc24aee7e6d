// Errors of values: which are measured on which samples, and what is said of the rest.
#include <collage/calibrate/value_errors.hpp>
#include <collage/detail/hash.hpp>
#include <collage/error.hpp>
#include <collage/run/processor.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "suffix_runs.hpp"

namespace collage::inline v0 {
namespace {

using std::chrono::steady_clock;
constexpr double infinity = std::numeric_limits<double>::infinity();

std::uint64_t hash_of(std::uint64_t seed, const std::byte* bytes, std::size_t count) {
  std::uint64_t hash = detail::combine(seed, count);
  for (; count >= 8; bytes += 8, count -= 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes, 8);
    hash = detail::combine(hash, word);
  }
  std::uint64_t rest = 0;
  if (count != 0) std::memcpy(&rest, bytes, count);
  return detail::combine(hash, rest);
}

std::uint64_t hash_of_contents(std::uint64_t seed, const graph& network) {
  for (std::uint32_t v = 0; v < network.values().size(); ++v)
    if (network.at(v).role == value_role::constant && network.constant(v).bytes != nullptr)
      seed = hash_of(seed, network.constant(v).bytes.get(), network.type_of(v).bytes());
  for (std::uint32_t n = 0; n < network.nodes().size(); ++n)
    for (const std::shared_ptr<const graph>& body : network.bodies_of(n)) seed = hash_of_contents(seed, *body);
  return seed;
}

/// Sums over samples of one request.
struct tally {
  std::vector<double> sums;  // by compared output
  double worst = 0, own = 0;
  std::size_t samples = 0, own_samples = 0;
  std::optional<value_error> known;
};

class measurement {
 public:
  measurement(const graph& network, const placement& groups, backend_table backends,
              std::span<const value_rounding> requests, const sample_source& samples,
              const value_error_options& options)
      : network_(network),
        requests_(requests),
        samples_(samples),
        options_(options),
        begun_(steady_clock::now()),
        runner_(network, groups, backends, options.threads > 0 ? options.threads : available_threads()),
        runs_(runner_, options.memory),
        tallies_(requests.size()) {
    ends_ = options.seconds < 1e9
                ? begun_ +
                      std::chrono::duration_cast<steady_clock::duration>(std::chrono::duration<double>(options.seconds))
                : steady_clock::time_point::max();
    for (const value_rounding& r : requests) check(r);
  }

  value_errors run() {
    if (options_.recall || options_.keep) make_keys();
    order_requests();
    const detail::step_runner::entered_libraries threads(runner_);
    while (!order_.empty() && found_.samples < options_.samples && (found_.samples == 0 || !is_over())) {
      if (!samples_(found_.samples, runs_.inputs())) break;
      run_sample();
      ++found_.samples;
    }
    if (!order_.empty() && found_.samples == 0)
      throw error(error_kind::invalid_argument, "has no samples", "errors of values", "give at least one");
    for (std::size_t i = 0; i < requests_.size(); ++i) found_.list.push_back(result_of(i));
    estimate_missing();
    if (options_.keep)
      for (std::size_t i = 0; i < requests_.size(); ++i)
        if (const value_error& e = found_.list[i]; !e.is_estimate && !e.is_recalled && e.samples == all_samples_)
          options_.keep(key_of(i), e);
    found_.steps = runs_.steps_run();
    found_.peak_bytes = runs_.peak_bytes();
    found_.keeps_all = runs_.keeps_all();
    found_.seconds = std::chrono::duration<double>(steady_clock::now() - begun_).count();
    return std::move(found_);
  }

 private:
  bool is_over() const { return steady_clock::now() >= ends_; }

  void check(const value_rounding& r) const {
    detail::check_request(network_, r.value);
    detail::check_written(runner_, r.value);
  }

  /// Whether nothing of the network can notice the value.
  bool is_idle(std::uint32_t value) const {
    if (network_.at(value).role == value_role::constant)
      return runner_.first_reader_of(value) == runner_.steps().size();
    return runner_.last_reader_of(value) < 0;
  }

  void make_keys() {
    found_.contents = contents_of_constants(network_);
    found_.inputs = 1;
    for (all_samples_ = 0; all_samples_ < options_.samples && samples_(all_samples_, runs_.inputs()); ++all_samples_)
      for (const tensor_view& t : runs_.inputs())
        found_.inputs = hash_of(found_.inputs, static_cast<const std::byte*>(t.data), t.type.bytes());
    if (!options_.recall) return;
    for (std::size_t i = 0; i < requests_.size(); ++i) {
      tallies_[i].known = options_.recall(key_of(i));
      if (!tallies_[i].known) continue;
      tallies_[i].known->value = requests_[i].value;
      tallies_[i].known->rounding = requests_[i].how.name;
      tallies_[i].known->is_recalled = true;
    }
  }
  value_error_key key_of(std::size_t request) const {
    return {network_.fingerprint(), found_.contents, found_.inputs, requests_[request].value,
            requests_[request].how.name};
  }

  /// Late values first, where all values are kept: their suffixes are the shortest, so a time that ends early leaves the fewest
  /// without a measurement. Otherwise early ones first, which shares the undisturbed run. Roundings of one value stand together.
  void order_requests() {
    for (std::size_t i = 0; i < requests_.size(); ++i)
      if (!tallies_[i].known) order_.emplace_back(runs_.root_of(requests_[i].value), i);
    std::ranges::stable_sort(order_, [&](const auto& a, const auto& b) {
      const bool is_first = std::pair(a.first.position, a.first.value) < std::pair(b.first.position, b.first.value);
      const bool is_last = std::pair(b.first.position, b.first.value) < std::pair(a.first.position, a.first.value);
      return runs_.keeps_all() ? is_last : is_first;
    });
  }

  void run_sample() {
    runs_.begin_sample(found_.samples);
    for (const auto& [root, request] : order_) {
      tally& t = tallies_[request];
      if (t.sums.empty()) t.sums.resize(runs_.compared().size());
      if (is_idle(root.value)) {
        ++t.samples;
        ++t.own_samples;
        continue;
      }
      if (is_over() && found_.samples != 0) break;
      runs_.go_to(root.position);
      const double own = runs_.round(root, requests_[request].how);
      t.own += own;
      ++t.own_samples;
      if (own == 0) {
        runs_.forget_copy();
        ++t.samples;
      } else if (is_over()) {
        runs_.forget_copy();
      } else {
        run_request(root, t);
      }
      if (options_.progress) options_.progress(++done_, order_.size() * options_.samples);
    }
  }
  void run_request(const detail::suffix_runs::root& root, tally& t) {
    errors_.resize(runs_.compared().size());
    if (!runs_.run_suffix(root, ends_, errors_)) return;
    ++t.samples;
    for (std::size_t o = 0; o < errors_.size(); ++o) {
      t.sums[o] += errors_[o];
      t.worst = std::max(t.worst, errors_[o]);
    }
  }

  value_error result_of(std::size_t i) {
    const tally& t = tallies_[i];
    if (t.known) return *t.known;
    value_error e{.value = requests_[i].value, .rounding = requests_[i].how.name};
    e.samples = t.samples;
    e.is_estimate = t.samples == 0;
    e.worst = t.worst;
    e.own = t.own_samples == 0 ? 0 : t.own / static_cast<double>(t.own_samples);
    for (const double sum : t.sums)
      if (t.samples != 0) e.nmse = std::max(e.nmse, sum / static_cast<double>(t.samples));
    found_.is_complete = found_.is_complete && t.samples == found_.samples && !e.is_estimate;
    return e;
  }

  void estimate_missing() {
    double amplification = -1;
    for (const value_error& e : found_.list)
      if (!e.is_estimate && e.own > 0 && std::isfinite(e.nmse)) amplification = std::max(amplification, e.nmse / e.own);
    for (value_error& e : found_.list) {
      if (!e.is_estimate) continue;
      e.nmse = amplification < 0 ? infinity : e.own * amplification * estimate_margin;
      e.worst = e.nmse;
    }
  }

  const graph& network_;
  std::span<const value_rounding> requests_;
  const sample_source& samples_;
  const value_error_options& options_;
  steady_clock::time_point begun_, ends_;
  detail::step_runner runner_;
  detail::suffix_runs runs_;
  std::vector<tally> tallies_;
  std::vector<std::pair<detail::suffix_runs::root, std::size_t>> order_;  // roots and requests
  std::vector<double> errors_;
  std::size_t done_ = 0, all_samples_ = 0;
  value_errors found_;
};

}  // namespace

std::vector<value_rounding> roundings_of(const graph_ranges& ranges) {
  std::vector<value_rounding> list;
  for (const value_range& r : ranges.values)
    if (r.has_numbers()) list.push_back({r.value, rounding_to(r.how)});
  return list;
}

std::uint64_t contents_of_constants(const graph& network) { return hash_of_contents(1, network); }

value_errors measure_value_errors(const graph& network, const placement& groups, backend_table backends,
                                  std::span<const value_rounding> requests, const sample_source& samples,
                                  const value_error_options& options) {
  return measurement(network, groups, backends, requests, samples, options).run();
}

value_errors measure_value_errors(const graph& network, backend_table backends,
                                  std::span<const value_rounding> requests, const sample_source& samples,
                                  const value_error_options& options) {
  std::vector<std::uint32_t> visible;
  for (const value_rounding& r : requests)
    if (r.value < network.values().size()) visible.push_back(r.value);
  return measure_value_errors(network, separate_kernels(network, backends, visible, options.threads), backends,
                              requests, samples, options);
}

}  // namespace collage::inline v0
