// Costs: each distinct candidate is built, checked against the reference and timed, once.
#pragma once

#include <collage/backends/reference.hpp>
#include <collage/measure/timing.hpp>
#include <collage/place/candidates.hpp>
#include <collage/run/agreement.hpp>
#include <collage/run/buffers.hpp>
#include <collage/run/engine.hpp>
#include <collage/run/kernel.hpp>
#include <collage/run/tensor.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <tuple>
#include <vector>

namespace collage::inline v0 {

/// What is known of one kernel for one structure.
struct measured_cost {
  timing time;
  std::string kernel;
  std::string refusal;  ///< why it cannot be used; empty when it can
};

/// (structure, backend, pattern, choice): the key under which a cost is known.
using cost_key = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t>;

inline cost_key key_of(const place_candidates& candidates, const place_candidate& c) {
  return {candidates.groups[c.group].structure, c.backend, c.pattern, c.choice};
}

using cost_table = std::map<cost_key, measured_cost>;

namespace detail {

/// A kernel with its memory, ready to be called.
struct rival {
  kernel run;
  std::vector<const void*> in;
  std::vector<void*> out;
  buffer workspace;
  const backend_entry* backend = nullptr;
  int threads = 1;

  void call() const { run({in.data(), out.data(), workspace.data()}); }
  /// As the engine does: the library's thread count is set around its kernels.
  void enter_and_call() const {
    const thread_scope scope(*backend, threads);
    call();
  }
};

}  // namespace detail

/// Measures all rivals for one structure against each other and adds them to the table. Kernels that cannot be built or
/// whose output does not agree with the reference are recorded as refused, with the reason.
inline void measure_structure(const graph& network, backend_table backends, const place_candidates& candidates,
                              std::uint32_t structure, int threads, std::uint64_t seed, packed_weights& packed,
                              const timing_options& how, cost_table& costs) {
  const place_structure& s = candidates.structures[structure];
  const place_group& group = candidates.groups[s.example];
  std::mt19937_64 random(seed + structure);

  // Contents for what the group reads, and what the reference makes of them.
  std::map<std::uint32_t, tensor> contents;
  std::map<std::uint32_t, tensor> results;  // what the kernels write, whichever operator is the root of each
  for (const place_candidate& c : candidates.list) {
    if (c.group != s.example) continue;
    const node_group values = values_of(network, backends, candidates, c);
    for (const std::uint32_t v : values.outputs)
      if (detail::is_wanted(network, v)) results.try_emplace(v, network.type_of(v));
    for (const std::uint32_t v : values.arguments) {
      if (network.at(v).role == value_role::constant || contents.count(v) != 0) continue;
      tensor t(network.type_of(v));
      fill_random(t, random);
      contents.emplace(v, std::move(t));
    }
  }
  std::vector<known_value> known;
  for (const auto& [v, t] : contents) known.push_back({v, t});
  std::vector<std::uint32_t> wanted;
  for (const auto& [v, t] : results) wanted.push_back(v);
  const std::vector<oracle_value> expected = evaluate_group(network, group.nodes, known, wanted);

  std::vector<detail::rival> rivals;
  std::vector<cost_key> keys;
  const auto measure = [&](const place_candidate& c) {
    const backend_entry& b = backends[c.backend];
    measured_cost& cost = costs[key_of(candidates, c)];
    try {
      build_context context(network, threads, packed);
      context.set_choice(c.choice);
      detail::rival r;
      r.backend = &b;
      r.threads = threads;
      {
        const thread_scope scope(b, threads);
        r.run = build_candidate(network, backends, candidates, c, context);
      }
      cost.kernel = r.run.name();
      r.workspace = buffer(r.run.workspace());
      const node_group values = values_of(network, backends, candidates, c);
      for (std::size_t i = 0; i < values.arguments.size(); ++i) {
        const std::uint32_t v = values.arguments[i];
        const void* data = network.at(v).role == value_role::constant
                               ? static_cast<const void*>(network.bytes_of(v).data())
                               : contents.at(v).data();
        r.in.push_back(r.run.reads(i) ? data : nullptr);
      }
      for (const std::uint32_t v : values.outputs) {
        const auto result = results.find(v);
        r.out.push_back(result != results.end() ? result->second.data() : nullptr);
      }
      // A kernel that leaves elements unwritten must not pass on what another wrote there: NaN, or a bit pattern.
      for (const auto& [v, t] : results)
        if (t.data() != nullptr) std::memset(t.data(), 0xFF, t.bytes());
      r.enter_and_call();
      for (std::size_t i = 0; i < wanted.size() && cost.refusal.empty(); ++i)
        if (const agreement a = compare(results.at(wanted[i]), expected[i]); !a)
          cost.refusal = std::string("wrong result: ") + a.why;
      if (!cost.refusal.empty()) return;
      rivals.push_back(std::move(r));
      keys.push_back(key_of(candidates, c));
    } catch (const error& e) { cost.refusal = e.what(); }
  };
  for (const bool last_resorts : {false, true})
    for (const place_candidate& c : candidates.list) {
      if (c.group != s.example || is_last_resort(backends, c) != last_resorts) continue;
      if (last_resorts && !rivals.empty())
        costs[key_of(candidates, c)].refusal = "is the last resort, and there is another way";
      else measure(c);
    }
  std::vector<std::function<void()>> calls;
  for (const detail::rival& r : rivals) calls.emplace_back([&r] { r.enter_and_call(); });
  std::vector<std::vector<double>> samples = time_rivals(calls, how);
  for (std::size_t i = 0; i < rivals.size(); ++i) costs[keys[i]].time = summarise(std::move(samples[i]));
}

}  // namespace collage::inline v0
