// The costs of a store in memory, by kernel, family and size.
#include <algorithm>
#include <cmath>
#include <collage/measure/store.hpp>
#include <collage/op/built_in.hpp>
#include <collage/place/cost_index.hpp>
#include <collage/place/kept_errors.hpp>
#include <collage/place/measuring.hpp>
#include <collage/place/roofline.hpp>
#include <collage/run/processor.hpp>
#include <filesystem>
#include <functional>
#include <limits>
#include <map>
#include <string_view>
#include <system_error>
#include <unordered_map>
#include <utility>
#include "attribute_fit.hpp"
#include "policy.hpp"
#include "size_curve.hpp"
#include "text.hpp"
#include "workload_words.hpp"

namespace collage::inline v0 {

namespace detail {
namespace {

/// The pattern of entries that say whether a kernel agrees with the reference, without its time.
constexpr std::string_view check_prefix = "check of ";

const kind_info* kind_with(std::uint64_t id) {
  static const std::unordered_map<std::uint64_t, const kind_info*> kinds = [] {
    std::unordered_map<std::uint64_t, const kind_info*> all;
    for (const kind_info* kind : built_in_kinds) all.emplace(kind->id, kind);
    return all;
  }();
  const auto found = kinds.find(id);
  return found == kinds.end() ? nullptr : found->second;
}

double elements_of(const tensor_type& type) {
  double count = 1;
  for (const std::int64_t extent : type.dims) count *= static_cast<double>(std::max<std::int64_t>(extent, 0));
  return count;
}
double bytes_of(const tensor_type& type) { return elements_of(type) * static_cast<double>(size_of(type.type)); }

/// The arithmetic of an operator. A user's own kind counts none, because the index cannot know it. Words that are no operator of
/// the kind count none either.
double flops_of(const workload_words& w, const workload_words::operation& node) {
  const kind_info* const kind = kind_with(node.kind);
  if (kind == nullptr || kind->count == nullptr || kind->bodies != 0 || node.attributes.size() > max_attribute_words)
    return 0;
  attribute_words words;
  for (const std::uint64_t word : node.attributes) words.word[words.size++] = word;
  const std::size_t inputs = node.inputs.size(), outputs = node.outputs.size();
  // Words may be damaged. Beyond these sizes, shapes could overflow.
  constexpr std::int64_t most_integer = std::int64_t{1} << 30;
  constexpr double most_elements = 0x1p40;
  if (inputs < kind->inputs.least || inputs > kind->inputs.most || !fits(*kind, words, most_integer) ||
      outputs != kind->output_count(words.list()))
    return 0;
  std::vector<tensor_type> in, out(outputs);
  for (const std::uint32_t v : node.inputs) in.push_back(w.values[v].type);
  const auto is_usual = [](const tensor_type& t) {
    return t.dims.is_concrete() && elements_of(t) < most_elements &&
           std::ranges::all_of(t.dims, [](std::int64_t extent) { return extent < most_integer; });
  };
  if (!std::ranges::all_of(in, is_usual)) return 0;
  inference io{in, out};
  if (!kind->infer(words.list(), io)) return 0;
  const double flops = kind->count(words.list(), io).flops;
  return std::isfinite(flops) && flops > 0 ? flops : 0;
}

/// Costs that are alike, by their time by the model: factors from the model's time to the measured one.
struct factor_list {
  std::vector<std::pair<double, double>> list;  ///< logarithms: the model's time, the factor; sorted

  /// The usual factor near a time by the model, as its logarithm, and how far factors there are apart.
  std::pair<double, double> near(double log_model) const {
    constexpr std::size_t most = 7;
    auto begin = std::ranges::lower_bound(list, std::pair(log_model, -std::numeric_limits<double>::max()));
    auto end = begin;
    while (static_cast<std::size_t>(end - begin) < std::min(most, list.size())) {
      const bool can_begin = begin != list.begin();
      const bool is_lower =
          end == list.end() || (can_begin && log_model - std::prev(begin)->first < end->first - log_model);
      if (is_lower) --begin;
      else ++end;
    }
    std::vector<double> factors;
    for (auto at = begin; at != end; ++at) factors.push_back(at->second);
    std::ranges::sort(factors);
    const double usual = factors[factors.size() / 2];
    double apart = 0;
    for (const double f : factors) apart += std::abs(f - usual);
    return {usual, apart / static_cast<double>(factors.size())};
  }
};

/// All that is known of a kernel, or of several kernels of one pattern, in one family.
struct family_costs {
  std::vector<measured_size> sizes;
  std::vector<std::string> labels;  ///< of the sizes
  std::string refused;              ///< why it was refused at some size, with the size; empty if it never was
  std::optional<double> error;      ///< leave_one_out_error
  std::unordered_map<wide_hash, std::size_t, wide_hash::hasher>
      at;  ///< by workload: of several kernels, the fastest counts
};

struct exact_cost {
  timing time;
  std::string kernel, refusal;
};

using exact_table = std::unordered_map<wide_hash, exact_cost, wide_hash::hasher>;

/// The part of a key that all costs of a backend share.
wide_hash hash_of_backend(const stored_key& key) {
  wide_hash h;
  for (const std::string* text : {&key.machine, &key.waiting, &key.precision, &key.backend, &key.library})
    h.add(hash(text->data(), text->size()));
  h.add(static_cast<std::uint64_t>(key.threads));
  return h;
}
wide_hash with(wide_hash h, std::string_view text) {
  h.add(hash(text.data(), text.size()));
  return h;
}
wide_hash with(wide_hash h, const configuration& choice) {
  h.add(choice.number() ? 1 : 2);
  h.add(choice.hash());
  return h;
}
wide_hash with(wide_hash h, const wide_hash& other) {
  h.add(other.first);
  h.add(other.second);
  return h;
}
wide_hash with(wide_hash h, std::uint64_t word) {
  h.add(word);
  return h;
}

}  // namespace
}  // namespace detail

class cost_index::workload {
 public:
  explicit workload(std::span<const std::uint64_t> computes) {
    using namespace detail;
    words_.add(computes);
    const workload_words w = workload_reader(computes).read();
    is_understood_ = w.is_understood();
    size_.model_ms = thresholds.budget.launch_ms;
    if (!is_understood_) return;
    add_family(w, family_extents::constants, family_);
    add_family(w, family_extents::none, wide_family_);
    add_kinds(w, kinds_);
    double most = -1;
    for (const workload_words::operation& node : w.nodes) {
      const double flops = flops_of(w, node);
      double bytes = 0;
      for (const auto* const list : {&node.inputs, &node.outputs})
        for (const std::uint32_t v : *list) bytes += bytes_of(w.values[v].type);
      flops_ += flops;
      bytes_ += bytes;
      if (const double ms = model_ms(flops, bytes, 1); ms > most) {
        most = ms;
        heaviest_ = node.kind;
      }
    }
    double moved = 0;
    for (const workload_words::value_type& v : w.values) {
      if (!v.is_constant) moved += bytes_of(v.type);
      for (const std::int64_t extent : v.type.dims)
        size_.log_extents.push_back(extent > 0 ? std::log(static_cast<double>(extent)) : 0);
    }
    size_.work = flops_ > 0 ? flops_ : std::max(moved, 1.0);
  }

  /// The size, with the model's time for so many threads.
  detail::workload_size size(int threads) const {
    detail::workload_size at = size_;
    at.model_ms = model_ms(flops_, bytes_, threads);
    return at;
  }
  double model_ms(int threads) const { return model_ms(flops_, bytes_, threads); }
  bool is_understood() const { return is_understood_; }
  const detail::wide_hash& words() const { return words_; }
  const detail::wide_hash& family() const { return family_; }
  const detail::wide_hash& wide_family() const { return wide_family_; }
  const detail::wide_hash& kinds() const { return kinds_; }
  std::uint64_t heaviest() const { return heaviest_; }

 private:
  static double model_ms(double flops, double bytes, int threads) {
    const detail::budget_policy& rates = detail::thresholds.budget;
    return roofline::cost_ms({"", rates.flops_per_s * threads, rates.bytes_per_s, rates.launch_ms}, flops, bytes);
  }

  detail::wide_hash words_, family_, wide_family_, kinds_;
  detail::workload_size size_;
  double flops_ = 0, bytes_ = 0;
  std::uint64_t heaviest_ = 0;
  bool is_understood_ = false;
};

struct cost_index::state {
  using hasher = detail::wide_hash::hasher;

  detail::exact_table exact, checked;
  /// By kernel, by pattern, and by pattern with families that say nothing of constants.
  std::unordered_map<detail::wide_hash, detail::family_costs, hasher> of_kernel, of_pattern, of_similar;
  std::unordered_map<detail::wide_hash, detail::factor_list, hasher> factors;
  std::unordered_map<detail::wide_hash, double, hasher> least_ms;  ///< by backend: the shortest time
  /// By backend: the median error of the families of three and more sizes.
  std::unordered_map<detail::wide_hash, std::vector<double>, hasher> errors;

  std::unordered_map<detail::wide_hash, std::vector<tuned_plan>, hasher> tuned;

  static detail::wide_hash tuned_key(const stored_run_key& k) {
    using detail::with;
    detail::wide_hash h;
    h.add(k.network);
    for (const std::string* text : {&k.machine, &k.waiting, &k.libraries}) h = with(h, *text);
    return with(h, static_cast<std::uint64_t>(k.threads));
  }

  state(std::span<const stored_entry> entries, std::span<const stored_run_entry> runs) {
    for (const stored_run_entry& r : runs)
      tuned[tuned_key(r.key)].push_back({r.run.plan, r.key.placement != detail::unfinished_run, r.run.when_s});
    for (auto& [key, list] : tuned)
      std::ranges::stable_sort(list, std::ranges::greater(),
                               [](const tuned_plan& p) { return std::pair(p.is_finished, p.when_s); });
    for (const stored_entry& e : entries) add(e);
    for (auto& [key, list] : factors) std::ranges::sort(list.list);
    for (auto* const table : {&of_kernel, &of_pattern, &of_similar})
      for (auto& [key, family] : *table) {
        family.at = {};
        family.error = detail::leave_one_out_error(family.sizes, detail::thresholds.budget.launch_ms);
      }
    for (const auto& [key, backend] : backend_of_)
      if (const std::optional<double>& error = of_kernel.at(key).error) errors[backend].push_back(*error);
    // A few families are far off, so the mean would say little.
    for (auto& [key, list] : errors) {
      const auto middle = list.begin() + static_cast<std::ptrdiff_t>(list.size() / 2);
      std::ranges::nth_element(list, middle);
      list = {*middle};
    }
    backend_of_.clear();
  }

  /// The keys under which factors are kept, the most telling first.
  static std::vector<detail::wide_hash> factor_keys(const stored_key& key, const workload& its) {
    using detail::with;
    const detail::wide_hash backend = detail::hash_of_backend(key);
    return {with(with(with(backend, key.pattern), its.kinds()), 1), with(with(backend, its.heaviest()), 2),
            with(backend, 3), with(with(detail::wide_hash(), key.machine), static_cast<std::uint64_t>(key.threads))};
  }

 private:
  void add(const stored_entry& e) {
    using detail::with;
    if (e.key.pattern.starts_with(fastest_prefix))
      return;  // the costs of these configurations are entries of their own
    if (e.key.backend == "machine" || holds_error(e.key) || e.cost.refusal == needless_fallback) return;
    const detail::wide_hash backend = detail::hash_of_backend(e.key);
    const workload its(e.key.computes);
    const bool is_check = e.key.pattern.starts_with(detail::check_prefix);
    const std::string_view pattern_name =
        std::string_view(e.key.pattern).substr(is_check ? detail::check_prefix.size() : 0);
    const detail::wide_hash pattern = with(backend, pattern_name), kernel = with(pattern, e.key.choice);
    (is_check ? checked : exact)[with(kernel, its.words())] = {
        {e.cost.median_ms, e.cost.low_ms, e.cost.high_ms, e.cost.sure_low_ms, e.cost.sure_high_ms,
         static_cast<std::size_t>(e.cost.samples)},
        e.cost.kernel,
        e.cost.refusal};
    if (!its.is_understood()) return;
    const detail::wide_hash in_family = with(kernel, its.family());
    if (!e.cost.refusal.empty()) {
      detail::family_costs& family = of_kernel[in_family];
      if (family.refused.empty()) family.refused = e.cost.label + ": " + e.cost.refusal;
      backend_of_.emplace(in_family, backend);
      return;
    }
    if (is_check || !(e.cost.median_ms > 0)) return;
    const detail::measured_size measured{its.size(e.key.threads), e.cost.median_ms};
    backend_of_.emplace(in_family, backend);
    put(of_kernel[in_family], measured, e, its);
    put(of_pattern[with(pattern, its.family())], measured, e, its);
    put(of_similar[with(pattern, its.wide_family())], measured, e, its);
    for (const detail::wide_hash& key : factor_keys(e.key, its))
      factors[key].list.emplace_back(std::log(measured.size.model_ms), std::log(measured.ms / measured.size.model_ms));
    const auto [least, is_new] = least_ms.try_emplace(backend, measured.ms);
    if (!is_new) least->second = std::min(least->second, measured.ms);
  }
  static void put(detail::family_costs& family, const detail::measured_size& measured, const stored_entry& e,
                  const workload& its) {
    const auto [at, is_new] = family.at.try_emplace(its.words(), family.sizes.size());
    if (is_new) {
      family.sizes.push_back(measured);
      family.labels.push_back(e.cost.label);
    } else {
      family.sizes[at->second].ms = std::min(family.sizes[at->second].ms, measured.ms);
    }
  }

  std::unordered_map<detail::wide_hash, detail::wide_hash, hasher> backend_of_;  // by kernel and family
};

cost_index::cost_index() : cost_index(std::span<const stored_entry>()) {}
cost_index::cost_index(std::span<const stored_entry> entries, std::span<const stored_run_entry> runs)
    : state_(std::make_unique<const state>(entries, runs)) {}
cost_index::cost_index(const std::string& store) {
  std::error_code ignored;
  std::vector<stored_entry> entries;
  std::vector<stored_run_entry> runs;
  if (std::filesystem::exists(store, ignored)) {
    const cost_store from(store, store_mode::read_only);
    entries = from.list({.machine = processor_name()});
    runs = from.list_runs({.machine = processor_name()});
  }
  state_ = std::make_unique<const state>(entries, runs);
}
cost_index::cost_index(cost_index&&) noexcept = default;
cost_index& cost_index::operator=(cost_index&&) noexcept = default;
cost_index::~cost_index() = default;

std::size_t cost_index::size() const noexcept { return state_->exact.size(); }

std::span<const cost_index::tuned_plan> cost_index::tuned_plans(const stored_run_key& of) const {
  const auto at = state_->tuned.find(state::tuned_key(of));
  if (at == state_->tuned.end()) return {};
  return at->second;
}

std::shared_ptr<const cost_index::workload> cost_index::prepared(std::span<const std::uint64_t> computes) const {
  return std::make_shared<const workload>(computes);
}
cost_estimate cost_index::estimate(const stored_key& key) const { return estimate(key, workload(key.computes)); }

cost_estimate cost_index::estimate(const stored_key& key, const workload& its) const {
  using detail::with;
  const detail::wide_hash backend = detail::hash_of_backend(key);
  const detail::wide_hash pattern = with(backend, key.pattern), kernel = with(pattern, key.choice);
  cost_estimate found;
  const auto take = [&](const detail::exact_table& table) {
    const auto at = table.find(with(kernel, its.words()));
    if (at == table.end()) return false;
    found.refusal = at->second.refusal;
    found.kernel = at->second.kernel;
    found.time = at->second.time;
    found.ms = found.time.median_ms;
    return found.is_checked = true;
  };
  if (take(state_->exact)) {
    found.basis = cost_basis::measured;
    return found;
  }
  if (take(state_->checked) && !found.refusal.empty()) return found;
  // Where no small kernel was measured, the shortest time says nothing about a launch.
  double launch_ms = detail::thresholds.budget.launch_ms;
  if (const auto least = state_->least_ms.find(backend); least != state_->least_ms.end())
    launch_ms = std::min(launch_ms, least->second);
  const detail::workload_size size = its.size(key.threads);
  const auto by = [&](const auto& table, const detail::wide_hash& of) {
    const auto at = table.find(of);
    if (!its.is_understood() || at == table.end()) return false;
    const detail::family_costs& family = at->second;
    if (&table == &state_->of_kernel) {
      found.was_refused = !family.refused.empty() && !found.is_checked;
      if (family.sizes.empty() && found.was_refused)
        found.refusal = "it was refused at another size, " + family.refused;
    }
    const std::optional<detail::curve_value> value = detail::size_curve(family.sizes, launch_ms).at(size);
    if (!value) return false;
    found.basis = value->is_between ? cost_basis::interpolated : cost_basis::extrapolated;
    found.ms = value->ms;
    found.error = family.error;
    if (const auto usual = state_->errors.find(backend); !found.error && usual != state_->errors.end())
      found.error = usual->second.front();
    found.low = family.labels[value->low];
    found.high = family.labels[value->high];
    return true;
  };
  if (by(state_->of_kernel, with(kernel, its.family())) || !found.refusal.empty()) return found;
  if (by(state_->of_pattern, with(pattern, its.family())) || by(state_->of_similar, with(pattern, its.wide_family()))) {
    found.is_of_others = true;
    found.ms *= detail::thresholds.estimate.of_others;
    return found;
  }
  found.ms = its.model_ms(key.threads);
  const double log_model = std::log(found.ms);
  for (const detail::wide_hash& like : state::factor_keys(key, its)) {
    const auto at = state_->factors.find(like);
    if (at == state_->factors.end()) continue;
    const auto [factor, apart] = at->second.near(log_model);
    found.ms *= std::exp(factor) * detail::thresholds.estimate.modelled;
    found.error = std::expm1(apart);
    found.like_it = at->second.list.size();
    break;
  }
  return found;
}

std::string cost_estimate::text() const {
  const auto with_error = [&](std::string words) {
    return error ? std::move(words) + detail::format_number(", usual error %.0f %%", 100 * *error) : std::move(words);
  };
  const std::string others = is_of_others ? " (of kernels like it)" : "";
  switch (basis) {
    case cost_basis::measured: return {};
    case cost_basis::interpolated: return with_error("interpolated between " + low + " and " + high + others);
    case cost_basis::extrapolated:
      return with_error("extrapolated from " + low + (low == high ? "" : " and " + high) + others);
    case cost_basis::modelled: break;
  }
  if (like_it == 0) return "modelled: nothing like it was measured";
  return with_error("modelled, scaled by " + std::to_string(like_it) +
                    (like_it == 1 ? " measured kernel" : " measured kernels"));
}

}  // namespace collage::inline v0
