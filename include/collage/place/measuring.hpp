// Measuring: builds the kernels that can run one structure, checks them against the reference and times them against each other.
#pragma once

#include <algorithm>
#include <collage/backends/reference.hpp>
#include <collage/error.hpp>
#include <collage/graph/graph.hpp>
#include <collage/measure/drift.hpp>
#include <collage/measure/time_source.hpp>
#include <collage/measure/timing.hpp>
#include <collage/place/accuracy.hpp>
#include <collage/place/building_order.hpp>
#include <collage/place/candidates.hpp>
#include <collage/place/costs.hpp>
#include <collage/place/fenced_call.hpp>
#include <collage/place/measuring_setup.hpp>
#include <collage/place/rival.hpp>
#include <collage/place/trial_data.hpp>
#include <collage/run/agreement.hpp>
#include <collage/run/algorithm.hpp>
#include <collage/run/backend_table.hpp>
#include <collage/run/buffers.hpp>
#include <collage/run/engine.hpp>
#include <collage/run/kernel.hpp>
#include <collage/run/layouts.hpp>
#include <collage/run/node_group.hpp>
#include <collage/run/tensor.hpp>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace collage::inline v0 {

namespace detail {

/// The rivals for one structure, with the values that they read and write.
class structure_rivals {
 public:
  structure_rivals(const graph& network, backend_table backends, const place_candidates& candidates,
                   std::span<const std::uint32_t> asked, const measuring_setup& setup)
      : network_(network), backends_(backends), candidates_(candidates), setup_(setup), scales_(network) {
    const std::vector<std::uint32_t>& nodes = candidates.groups[candidates.list[asked.front()].group].nodes;
    std::mt19937_64 random(setup.seed);
    std::map<std::uint32_t, tensor> contents;
    for (const std::uint32_t i : asked) {
      const node_group values = values_of(network, backends, candidates, candidates.list[i]);
      for (const std::uint32_t v : values.outputs)
        if (is_wanted(network, v)) results_.try_emplace(v, network.type_of(v));
      for (const std::uint32_t v : values.arguments) {
        if (network.at(v).role == value_role::constant || contents.count(v) != 0) continue;
        tensor t(network.type_of(v));
        fill_repeating(t, random);
        contents.emplace(v, std::move(t));
      }
    }
    for (const auto& [v, t] : results_) wanted_.push_back(v);
    // Kernels of lower precision round what they read. So that this is no error of theirs, all rivals read rounded values.
    for (const std::uint32_t i : asked) {
      const value_forms forms = forms_of(network, backends, candidates, candidates.list[i]);
      for (const auto& [v, stored] : forms.list())
        if (const auto t = contents.find(v); t != contents.end()) scales_.round_argument(v, stored, t->second);
    }
    const std::vector<rounded_value> inside = integers_inside(network, backends, candidates, asked);
    finite_.emplace(network, nodes, std::move(contents), with_values(wanted_, inside), setup.compared);
    scale_results(asked, inside);
    if (setup.algorithms == algorithms::accurate) scale(nodes, asked, random);
    if (setup.keep_non_finite) spoil_contents(nodes, random);
  }

  /// Builds a candidate's kernel and checks its results. Returns why it cannot be used; if it can, returns an empty text and adds
  /// it to the rivals. Notes get `turn.which`. `found` gets the kernel's name, and whether the refusal is passing.
  std::string add(const place_candidate& c, const building_turn& turn, measured_candidate& found) {
    const backend_entry& b = backends_[c.backend];
    try {
      const kernel_algorithm algorithm = algorithm_of(network_, backends_, c);
      // Direct kernels that follow may err more, so that it is accurate after all.
      if (std::string why = judge_.known(algorithm); !why.empty()) return found.passing = turn.direct_left, why;
      if (setup_.algorithms == algorithms::direct && !algorithm.is_direct())
        return std::string("it computes by the algorithm ") + algorithm.name + ", and direct kernels are wanted";
      // Whether a comparison shows it depends on where NaN lies.
      if (setup_.keep_non_finite && !algorithm.is_direct())
        return std::string("NaN and infinity do not pass as in the reference: they spread in the algorithm ") +
               algorithm.name;
      build_context context(network_, setup_.threads, *setup_.packed, *b.space);
      context.set_configuration(c.configuration);
      context.set_scales(&scales_.all());
      rival r;
      r.backend = &b;
      r.threads = setup_.threads;
      r.rounded = rounding_of(network_, backends_, candidates_, c);
      r.is_region = c.is_by_rule();
      note(turn.which, measuring_step::build);
      {
        const thread_scope scope(b, setup_.threads);
        r.run = build_candidate(network_, backends_, candidates_, c, context);
      }
      found.kernel = r.run.name();
      r.workspace = buffer(r.run.workspace(), *b.space);
      const node_group values = values_of(network_, backends_, candidates_, c);
      const value_forms forms = forms_of(network_, backends_, candidates_, c);
      for (std::size_t i = 0; i < values.arguments.size(); ++i) {
        const std::uint32_t v = values.arguments[i];
        const auto from =
            r.run.reads(i) ? finite_->bytes_of(v, forms.of(v), *b.space, scales_) : std::span<const std::byte>();
        r.in.push_back(from.data());
        r.arguments.push_back({network_.at(v).role == value_role::constant ? b.space : forms.of(v).space, from.size()});
      }
      for (const std::uint32_t v : values.outputs) {
        const auto result = results_.find(v);
        const bool is_plain = forms.of(v) == plain;
        const memory_space& space = *forms.of(v).space;
        if (result != results_.end() && !is_plain)
          r.results.emplace(v, buffer(bytes_in(network_.type_of(v), forms.of(v)), space));
        r.out.push_back(result == results_.end() ? nullptr : is_plain ? result->second.data() : r.results.at(v).data());
        r.outputs.push_back({&space, result == results_.end() ? 0 : bytes_in(network_.type_of(v), forms.of(v))});
      }
      overwrite_results(r, 0xFF);
      note(turn.which, measuring_step::first_call);
      if (!setup_.fence) r.enter_and_call();
      else if (const std::string why = call_between_fences(r); !why.empty()) return why;
      if (*b.space != host_space) b.space->finish();
      if (const std::string why = fault_of(r, forms, *finite_); !why.empty()) return "wrong result: " + why;
      const bool is_judged = scaled_ && !r.rounded;  // rounding is no fault of an algorithm
      if (is_judged) r.judged.errors.random = error_of_results(*finite_);
      if (const std::string why = fault_in_place(r, values, forms); !why.empty())
        return "wrong result when it runs in place, which it allows: " + why;
      if (const std::string why = fault_beyond_finite(r, values, forms); !why.empty())
        return "NaN and infinity do not pass as in the reference: " + why;
      r.judged.algorithm = algorithm;
      if (is_judged) {
        r.judged.errors.scaled = error_of_scaled(r, values, forms);
        if (std::string why = judge_.judge(r.judged); !why.empty()) return found.passing = turn.direct_left, why;
      }
      rivals_.push_back(std::move(r));
      return {};
    } catch (const error& e) {
      found.passing = e.kind() == error_kind::environment;
      return e.what();
    } catch (const std::exception& e) { return std::string("failed: ") + e.what(); }
  }

  /// Times the kernels that were added, in about `most_ms`.
  rival_times race(double most_ms) const {
    note(0, measuring_step::timing);
    std::vector<std::function<void()>> calls;
    for (const rival& r : rivals_) calls.emplace_back([&r] { r.enter_and_call(); });
    timing_options how = setup_.timing;
    how.budget_ms = std::min(how.budget_ms, most_ms / static_cast<double>(rivals_.size()));
    return time_rivals(calls, how, setup_.monitor, finishing_time(), setup_.stop);
  }
  bool empty() const { return rivals_.empty(); }

 private:
  /// Gives results, and values inside regions, the scales of the numbers that the reference computed.
  void scale_results(std::span<const std::uint32_t> asked, const std::vector<rounded_value>& inside) {
    for (const std::uint32_t i : asked) {
      const value_forms forms = forms_of(network_, backends_, candidates_, candidates_.list[i]);
      for (std::size_t w = 0; w < wanted_.size(); ++w)
        scales_.scale_result(wanted_[w], forms.of(wanted_[w]), finite_->extremes_of_result(w));
    }
    for (std::size_t i = 0; i < inside.size(); ++i)
      scales_.scale_inside(inside[i].value, inside[i].element, finite_->extremes_of_result(wanted_.size() + i));
    finite_->keep_results(wanted_.size());
  }
  /// Makes arguments with NaN, and with infinity.
  void spoil_contents(std::span<const std::uint32_t> nodes, std::mt19937_64& random) {
    for (const non_finite kind : {non_finite::nan, non_finite::infinity}) {
      bool is_spoilt = false;
      std::map<std::uint32_t, tensor> spoilt;
      for (const auto& [v, t] : finite_->contents()) {
        tensor& copy = spoilt.try_emplace(v, t.type()).first->second;
        if (t.bytes() != 0) std::memcpy(copy.data(), t.data(), t.bytes());
        is_spoilt = spoil(copy, kind, random) || is_spoilt;
      }
      if (!is_spoilt) continue;
      try {
        non_finite_.emplace_back(network_, nodes, std::move(spoilt), wanted_, setup_.compared);
      } catch (const error&) {
        // The reference needs finite operands here, so there is nothing to compare.
      }
    }
  }

  void note(std::size_t which, measuring_step step) const {
    if (setup_.note) setup_.note(which, step);
  }

  /// The clock. Before it is read, it waits until the rivals' devices have finished.
  time_source finishing_time() const {
    std::vector<const memory_space*> devices;
    for (const rival& r : rivals_)
      if (*r.backend->space != host_space && std::ranges::find(devices, r.backend->space) == devices.end())
        devices.push_back(r.backend->space);
    time_source time = setup_.time;
    if (!devices.empty())
      time.now_ms = [now = setup_.time.now_ms, devices] {
        for (const memory_space* d : devices) d->finish();
        return now();
      };
    return time;
  }

  /// Overwrites the results, so that a kernel that leaves elements unwritten does not pass with those of another kernel.
  void overwrite_results(const rival& r, int byte) const {
    for (const auto& [v, t] : results_)
      if (t.data() != nullptr) std::memset(t.data(), byte, t.bytes());
    for (const auto& [v, made] : r.results) {
      if (made.size() == 0) continue;
      if (made.space() == host_space) {
        std::memset(made.data(), byte, made.size());
      } else {
        const std::vector<std::byte> bytes(made.size(), static_cast<std::byte>(byte));
        copy_bytes(made.space(), made.data(), host_space, bytes.data(), bytes.size());
      }
    }
  }

  /// Lays the results of the last call out as the reference has them. Returns why one is wrong by its form alone, or an empty text.
  std::string take_results(const rival& r, const value_forms& forms) {
    for (const auto& [v, made] : r.results) {
      const host_copy here(made);
      const std::optional<integer_scale> how = scales_.of(v, forms.of(v));
      to_plain(network_.type_of(v), forms.of(v), here.data(), results_.at(v).data(), how ? &*how : nullptr);
      if (!is_filled_with_zeros(network_.type_of(v), forms.of(v), here.data()))
        return "the padding of form " + to_text(forms.of(v)) + " is not zero";
    }
    return {};
  }

  /// By how much a result may differ from the reference.
  tolerance allowed_for(std::uint32_t value, const rival& r) const {
    const dtype type = network_.type_of(value).type;
    if (!r.rounded || !is_floating(type)) return tolerance_of(type);
    return r.is_region ? tolerance_of_rounded_region(*r.rounded) : tolerance_of_rounding(*r.rounded);
  }

  /// How the results of the last call differ from the reference; empty if they agree.
  std::string fault_of(const rival& r, const value_forms& forms, const trial_data& data) {
    if (std::string why = take_results(r, forms); !why.empty()) return why;
    for (std::size_t i = 0; i < wanted_.size(); ++i)
      if (const agreement a = data.compare_result(i, results_.at(wanted_[i]), allowed_for(wanted_[i], r)); !a)
        return a.why;
    return {};
  }

  /// The same for calls in which an output lies in the memory of an argument, for each pair that the kernel allows. An engine may
  /// place them so.
  std::string fault_in_place(rival& r, const node_group& values, const value_forms& forms) {
    for (std::size_t o = 0; o < r.out.size(); ++o)
      for (std::size_t i = 0; i < r.in.size(); ++i) {
        const rival_value &from = r.arguments[i], &to = r.outputs[o];
        if (!r.run.writes_over(i, o) || r.in[i] == nullptr || r.out[o] == nullptr || from.bytes != to.bytes ||
            *from.space != *to.space || from.bytes == 0 ||
            network_.at(values.arguments[i]).role == value_role::constant)
          continue;
        copy_bytes(*to.space, r.out[o], *from.space, r.in[i], from.bytes);
        const void* const apart = std::exchange(r.in[i], r.out[o]);
        r.enter_and_call();
        r.in[i] = apart;
        if (std::string why = fault_of(r, forms, *finite_); !why.empty()) return why;
      }
    return {};
  }

  /// Makes the values for which errors are compared, if any candidate is not direct.
  void scale(std::span<const std::uint32_t> nodes, std::span<const std::uint32_t> asked, std::mt19937_64& random) {
    for (const std::uint32_t i : asked) {
      const kernel_algorithm a = algorithm_of(network_, backends_, candidates_.list[i]);
      const auto input = finite_->contents().find(a.input);
      if (a.is_direct() || input == finite_->contents().end()) continue;
      std::map<std::uint32_t, tensor> contents;
      for (const auto& [v, t] : finite_->contents()) {
        const tensor& copy = contents.try_emplace(v, t.type()).first->second;
        if (t.bytes() != 0) std::memcpy(copy.data(), t.data(), t.bytes());
      }
      scale_channels(contents.at(a.input), a.channels, random);
      scaled_.emplace(network_, nodes, std::move(contents), wanted_, setup_.compared);
      return;
    }
  }

  /// Calls a rival for the scaled values.
  double error_of_scaled(rival& r, const node_group& values, const value_forms& forms) {
    const std::vector<const void*> before = r.in;
    for (std::size_t i = 0; i < r.in.size(); ++i)
      if (const std::uint32_t v = values.arguments[i]; r.in[i] != nullptr)
        r.in[i] = scaled_->bytes_of(v, forms.of(v), *r.backend->space, scales_).data();
    r.enter_and_call();
    r.in = before;
    (void)take_results(r, forms);
    return error_of_results(*scaled_);
  }
  /// The largest error of the results that were last compared.
  double error_of_results(const trial_data& data) const {
    double largest = 0;
    for (std::size_t i = 0; i < wanted_.size(); ++i)
      largest = std::max(largest, data.error_of_result(i, results_.at(wanted_[i])));
    return largest;
  }

  /// The same for arguments with NaN, and for arguments with infinity. Empty if these are not checked.
  std::string fault_beyond_finite(rival& r, const node_group& values, const value_forms& forms) {
    const std::vector<const void*> finite = r.in;
    std::string why;
    for (trial_data& data : non_finite_) {
      if (!why.empty()) break;
      for (std::size_t i = 0; i < r.in.size(); ++i)
        if (const std::uint32_t v = values.arguments[i]; r.in[i] != nullptr)
          r.in[i] = data.bytes_of(v, forms.of(v), *r.backend->space, scales_).data();
      overwrite_results(r, 0);
      r.enter_and_call();
      why = fault_of(r, forms, data);
    }
    r.in = finite;
    return why;
  }

  const graph& network_;
  backend_table backends_;
  const place_candidates& candidates_;
  const measuring_setup& setup_;
  std::map<std::uint32_t, tensor> results_;  // by value: outputs of all kernels, whose roots may differ
  std::vector<std::uint32_t> wanted_;
  trial_scales scales_;
  std::optional<trial_data> finite_;
  std::optional<trial_data> scaled_;  ///< if some algorithm is not direct and must be accurate
  accuracy_judge judge_;              ///< for the same
  std::vector<trial_data> non_finite_;
  std::vector<rival> rivals_;
};

}  // namespace detail

/// The refusal of a fallback kernel whose nodes another kernel runs, without rounding.
inline constexpr const char* needless_fallback = "is a fallback kernel, and another kernel runs these nodes";

/// The refusal of a kernel for which a budget left no time, where another kernel runs the nodes. It is not kept.
inline constexpr const char* no_time_for_it = "there was no time to build it, and another kernel runs these nodes";

/// Measures candidates of one structure against each other. `asked` are positions in `candidates.list`, all at one group.
/// Returns a result for each, in the same order. Fallback kernels are tried only if no other kernel that rounds nothing can be used. Once
/// some kernel can
/// be used, none is built after `setup.stop` returned true or half of `setup.slot_ms` went by, unless `setup.needs_all`.
inline std::vector<measured_candidate> measure_candidates(const graph& network, backend_table backends,
                                                          const place_candidates& candidates,
                                                          std::span<const std::uint32_t> asked,
                                                          const measuring_setup& setup) {
  std::vector<measured_candidate> measured(asked.size());
  if (asked.empty()) return measured;
  const double start = setup.time.now_ms();
  const auto left_ms = [&](double part) {
    return setup.slot_ms > 0 ? std::max(start + part * setup.slot_ms - setup.time.now_ms(), 0.0) : 1e9;
  };
  detail::structure_rivals rivals(network, backends, candidates, asked, setup);
  std::vector<std::size_t> who;
  bool has_exact = false;
  for (const detail::building_turn& turn :
       detail::building_order(network, backends, candidates, asked, setup.slot_ms > 0)) {
    measured_candidate& found = measured[turn.which];
    const bool is_over = !rivals.empty() && !setup.needs_all && ((setup.stop && setup.stop()) || left_ms(0.5) == 0);
    if (turn.is_fallback && has_exact) {
      found.refusal = needless_fallback;
    } else if (is_over) {
      found.refusal = no_time_for_it;
      found.passing = true;
    } else {
      found.refusal = rivals.add(candidates.list[asked[turn.which]], turn, found);
    }
    if (!found.refusal.empty()) continue;
    who.push_back(turn.which);
    has_exact = has_exact || rounds_nothing(network, backends, candidates, candidates.list[asked[turn.which]]);
  }
  if (who.empty()) return measured;
  const rival_times found = rivals.race(left_ms(1));
  for (std::size_t k = 0; k < who.size(); ++k) {
    measured[who[k]].time = found.times[k];
    measured[who[k]].cost_ms = found.cost_ms[k];
  }
  return measured;
}

/// Measures candidates, in this process or in a worker.
using candidate_measurer = std::function<std::vector<measured_candidate>(std::span<const std::uint32_t> asked)>;

/// Measures the candidates of one structure that are not in the table yet, against each other, and adds them to it. Kernels that
/// cannot be built or do not agree with the reference are recorded as refused, with the reason.
///
/// If some candidates are in the table, the fastest of them joins the race. The new costs are scaled as if its cost had not
/// changed, so that costs measured at different times stay comparable.
inline void measure_structure(const place_candidates& candidates, std::uint32_t structure,
                              const candidate_measurer& measure, cost_table& costs) {
  const std::uint32_t example = candidates.structures[structure].example;
  std::vector<std::uint32_t> asked;
  const measured_cost* anchor = nullptr;
  std::uint32_t anchored = 0;
  for (std::uint32_t i = 0; i < candidates.list.size(); ++i) {
    if (candidates.list[i].group != example) continue;
    const auto known = costs.find(key_of(candidates, candidates.list[i]));
    if (known == costs.end()) asked.push_back(i);
    else if (known->second.refusal.empty() && (anchor == nullptr || known->second.alone_ms < anchor->alone_ms)) {
      anchor = &known->second;
      anchored = i;
    }
  }
  if (asked.empty()) return;
  if (anchor != nullptr) asked.insert(asked.begin(), anchored);  // first, because time may end early
  const std::vector<measured_candidate> measured = measure(asked);
  double scale = 1;
  if (anchor != nullptr && measured.front().cost_ms > 0) scale = anchor->alone_ms / measured.front().cost_ms;
  for (std::size_t i = anchor != nullptr ? 1 : 0; i < asked.size(); ++i) {
    measured_cost& cost = costs[key_of(candidates, candidates.list[asked[i]])];
    set_measured(cost, measured[i]);
    cost.alone_ms *= scale;
  }
}

}  // namespace collage::inline v0
