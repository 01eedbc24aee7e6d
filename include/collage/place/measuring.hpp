// Measuring: the kernels that might run one structure are built, checked against the reference and timed against each
// other.
#pragma once

#include <algorithm>
#include <collage/backends/reference.hpp>
#include <collage/error.hpp>
#include <collage/graph/graph.hpp>
#include <collage/measure/drift.hpp>
#include <collage/measure/fenced_memory.hpp>
#include <collage/measure/time_source.hpp>
#include <collage/measure/timing.hpp>
#include <collage/place/candidates.hpp>
#include <collage/place/costs.hpp>
#include <collage/run/agreement.hpp>
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

/// What a candidate's kernel showed.
struct measured_candidate {
  std::string kernel;
  std::string refusal;  ///< why it cannot be used; empty where it can
  timing time;
  double cost_ms = 0;  ///< decided among those that were asked about together
};

/// What is done with a candidate just now. One that brings its process down is refused with this.
enum class measuring_step : std::uint8_t { build, first_call, timing };

/// What measuring needs besides what it measures.
struct measuring_setup {
  int threads = 1;
  std::uint64_t seed = 1;  ///< of what the kernels read
  packed_weights* packed = nullptr;
  timing_options timing = {};
  drift_monitor* monitor = nullptr;  ///< null: nobody looks whether the machine is calm
  std::function<bool()> stop = {};
  time_source time = {};
  /// Told before each step; `which` is a position in the list that was asked about, and with `timing` means all of them.
  std::function<void(std::size_t which, measuring_step step)> note = {};
  /// The first call of each kernel finds its memory between fences, so that one that writes elsewhere is caught or ends
  /// the process. For workers.
  bool fence = false;
  /// Kernels through which NaN or infinity do not pass as in the reference are refused.
  bool keep_non_finite = false;
};

namespace detail {

/// A kernel with its memory, ready to be called. An argument that is not read, or an output that nobody wants, is null and
/// has no bytes.
struct rival {
  kernel run;
  std::vector<const void*> in;
  std::vector<void*> out;
  std::vector<std::size_t> in_bytes, out_bytes;
  std::map<std::uint32_t, buffer> results;  ///< by value: what it does not write in the plain layout
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

/// What the rivals for one structure read, and what the reference makes of it.
class trial_data {
 public:
  /// `contents`: of what they read, but for constants. `wanted`: the values that they are to write.
  trial_data(const graph& network, std::span<const std::uint32_t> nodes, std::map<std::uint32_t, tensor> contents,
             std::span<const std::uint32_t> wanted)
      : network_(network), contents_(std::move(contents)) {
    std::vector<known_value> known;
    for (const auto& [v, t] : contents_) known.push_back({v, t});
    expected_ = evaluate_group(network, nodes, known, wanted);
  }

  const std::map<std::uint32_t, tensor>& contents() const { return contents_; }
  /// Of the wanted values, in their order.
  const std::vector<oracle_value>& expected() const { return expected_; }

  /// What a kernel reads as an argument.
  std::span<const std::byte> bytes_of(std::uint32_t v, const layout& order) {
    if (network_.at(v).role == value_role::constant) return network_.bytes_of(v);
    const tensor& t = contents_.at(v);
    if (order == plain) return {t.data(), t.bytes()};
    buffer& made = laid_out_[{v, order.id}];
    if (made.size() == 0) {
      made = buffer(bytes_in(t.type(), order));
      from_plain(t.type(), order, t.data(), made.data());
    }
    return {made.data(), made.size()};
  }

 private:
  const graph& network_;
  std::map<std::uint32_t, tensor> contents_;
  std::map<std::pair<std::uint32_t, std::uint64_t>, buffer> laid_out_;  // the same in other layouts
  std::vector<oracle_value> expected_;
};

/// The rivals for one structure, with what they read and write.
class structure_rivals {
 public:
  structure_rivals(const graph& network, backend_table backends, const place_candidates& candidates,
                   std::span<const std::uint32_t> asked, const measuring_setup& setup)
      : network_(network), backends_(backends), candidates_(candidates), setup_(setup) {
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
        fill_random(t, random);
        contents.emplace(v, std::move(t));
      }
    }
    for (const auto& [v, t] : results_) wanted_.push_back(v);
    finite_.emplace(network, nodes, std::move(contents), wanted_);
    if (!setup.keep_non_finite) return;
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
        non_finite_.emplace_back(network, nodes, std::move(spoilt), wanted_);
      } catch (const error&) {
        // What has no meaning but for numbers has nothing to pass.
      }
    }
  }

  /// Builds a candidate's kernel and checks what it computes. Answers why it cannot be used; nothing where it can, and is a
  /// rival from now on. `which` is what notes are told.
  std::string add(const place_candidate& c, std::size_t which, std::string& kernel_name) {
    const backend_entry& b = backends_[c.backend];
    try {
      build_context context(network_, setup_.threads, *setup_.packed);
      context.set_choice(c.choice);
      rival r;
      r.backend = &b;
      r.threads = setup_.threads;
      note(which, measuring_step::build);
      {
        const thread_scope scope(b, setup_.threads);
        r.run = build_candidate(network_, backends_, candidates_, c, context);
      }
      kernel_name = r.run.name();
      r.workspace = buffer(r.run.workspace());
      const node_group values = values_of(network_, backends_, candidates_, c);
      const value_layouts layouts = layouts_of(network_, backends_, c);
      for (std::size_t i = 0; i < values.arguments.size(); ++i) {
        const std::uint32_t v = values.arguments[i];
        const auto from = r.run.reads(i) ? finite_->bytes_of(v, layouts.of(v)) : std::span<const std::byte>();
        r.in.push_back(from.data());
        r.in_bytes.push_back(from.size());
      }
      for (const std::uint32_t v : values.outputs) {
        const auto result = results_.find(v);
        const bool is_plain = layouts.of(v) == plain;
        if (result != results_.end() && !is_plain)
          r.results.emplace(v, buffer(bytes_in(network_.type_of(v), layouts.of(v))));
        r.out.push_back(result == results_.end() ? nullptr : is_plain ? result->second.data() : r.results.at(v).data());
        r.out_bytes.push_back(result == results_.end() ? 0 : bytes_in(network_.type_of(v), layouts.of(v)));
      }
      overwrite_results(r, 0xFF);
      note(which, measuring_step::first_call);
      if (!setup_.fence) r.enter_and_call();
      else if (const std::string why = call_between_fences(r); !why.empty()) return why;
      if (const std::string why = fault_of(r, layouts, *finite_); !why.empty()) return "wrong result: " + why;
      if (const std::string why = fault_in_place(r, values, layouts); !why.empty())
        return "wrong result where it writes over an argument, as it says it may: " + why;
      if (const std::string why = fault_beyond_finite(r, values, layouts); !why.empty())
        return "NaN and infinity do not pass as in the reference: " + why;
      rivals_.push_back(std::move(r));
      return {};
    } catch (const error& e) { return e.what(); } catch (const std::exception& e) {
      return std::string("failed: ") + e.what();
    }
  }

  rival_times race() const {
    note(0, measuring_step::timing);
    std::vector<std::function<void()>> calls;
    for (const rival& r : rivals_) calls.emplace_back([&r] { r.enter_and_call(); });
    return time_rivals(calls, setup_.timing, setup_.monitor, setup_.time, setup_.stop);
  }
  bool empty() const { return rivals_.empty(); }

 private:
  void note(std::size_t which, measuring_step step) const {
    if (setup_.note) setup_.note(which, step);
  }

  /// A kernel that leaves elements unwritten must not pass on what another wrote there.
  void overwrite_results(const rival& r, int byte) const {
    for (const auto& [v, t] : results_)
      if (t.data() != nullptr) std::memset(t.data(), byte, t.bytes());
    for (const auto& [v, made] : r.results)
      if (made.size() != 0) std::memset(made.data(), byte, made.size());
  }

  /// In what the results of the last call differ from the reference; empty where they do not.
  std::string fault_of(const rival& r, const value_layouts& layouts, const trial_data& data) {
    for (const auto& [v, made] : r.results) {
      to_plain(network_.type_of(v), layouts.of(v), made.data(), results_.at(v).data());
      if (!is_filled_with_zeros(network_.type_of(v), layouts.of(v), made.data()))
        return std::string("what fills up the blocks of ") + layouts.of(v).name + " is not zero";
    }
    for (std::size_t i = 0; i < wanted_.size(); ++i)
      if (const agreement a = compare(results_.at(wanted_[i]), data.expected()[i]); !a) return a.why;
    return {};
  }

  /// The same where the kernel writes over its arguments, one after the other, which an engine may have it do.
  std::string fault_in_place(rival& r, const node_group& values, const value_layouts& layouts) {
    for (std::size_t o = 0; o < r.out.size(); ++o)
      for (std::size_t i = 0; i < r.in.size(); ++i) {
        if (!r.run.writes_over(i, o) || r.in[i] == nullptr || r.out[o] == nullptr || r.in_bytes[i] != r.out_bytes[o] ||
            r.in_bytes[i] == 0 || network_.at(values.arguments[i]).role == value_role::constant)
          continue;
        std::memcpy(r.out[o], r.in[i], r.in_bytes[i]);
        const void* const apart = std::exchange(r.in[i], r.out[o]);
        r.enter_and_call();
        r.in[i] = apart;
        if (std::string why = fault_of(r, layouts, *finite_); !why.empty()) return why;
      }
    return {};
  }

  /// The same where some of what it reads is NaN, and where some is infinite. Nothing where that does not matter.
  std::string fault_beyond_finite(rival& r, const node_group& values, const value_layouts& layouts) {
    const std::vector<const void*> finite = r.in;
    std::string why;
    for (trial_data& data : non_finite_) {
      if (!why.empty()) break;
      for (std::size_t i = 0; i < r.in.size(); ++i)
        if (r.in[i] != nullptr) r.in[i] = data.bytes_of(values.arguments[i], layouts.of(values.arguments[i])).data();
      overwrite_results(r, 0);
      r.enter_and_call();
      why = fault_of(r, layouts, data);
    }
    r.in = finite;
    return why;
  }

  /// Calls a rival in memory of its own between fences, and copies what it wrote to the results.
  static std::string call_between_fences(const rival& r) {
    std::vector<fenced_memory> in, out;
    fenced_memory workspace(r.workspace.size());
    rival fenced;
    fenced.run = r.run;
    fenced.backend = r.backend;
    fenced.threads = r.threads;
    for (std::size_t i = 0; i < r.in.size(); ++i) {
      fenced_memory& memory = in.emplace_back(r.in_bytes[i]);
      if (r.in_bytes[i] != 0) std::memcpy(memory.data(), r.in[i], r.in_bytes[i]);
      memory.make_read_only();
      fenced.in.push_back(r.in[i] != nullptr ? memory.data() : nullptr);
    }
    for (std::size_t i = 0; i < r.out.size(); ++i) {
      fenced_memory& memory = out.emplace_back(r.out_bytes[i]);
      std::memset(memory.data(), 0xFF, r.out_bytes[i]);
      fenced.out.push_back(r.out[i] != nullptr ? memory.data() : nullptr);
    }
    {
      const thread_scope scope(*fenced.backend, fenced.threads);
      fenced.run({fenced.in.data(), fenced.out.data(), r.workspace.size() == 0 ? nullptr : workspace.data()});
    }
    for (std::size_t i = 0; i < r.out.size(); ++i)
      if (r.out[i] != nullptr && out[i].size() != 0) std::memcpy(r.out[i], out[i].data(), out[i].size());
    if (!std::all_of(out.begin(), out.end(), [](const fenced_memory& m) { return m.is_whole(); }))
      return "it writes around its outputs";
    return workspace.is_whole() ? "" : "it writes around its workspace";
  }

  const graph& network_;
  backend_table backends_;
  const place_candidates& candidates_;
  const measuring_setup& setup_;
  std::map<std::uint32_t, tensor> results_;  // what the kernels write, whichever operator is the root of each
  std::vector<std::uint32_t> wanted_;
  std::optional<trial_data> finite_;
  std::vector<trial_data> non_finite_;
  std::vector<rival> rivals_;
};

}  // namespace detail

/// Measures candidates of one structure against each other: `asked` are positions in `candidates.list`, at one group.
/// Answers what each showed, in the same order. Last resorts are tried where nothing else is left.
inline std::vector<measured_candidate> measure_candidates(const graph& network, backend_table backends,
                                                          const place_candidates& candidates,
                                                          std::span<const std::uint32_t> asked,
                                                          const measuring_setup& setup) {
  std::vector<measured_candidate> measured(asked.size());
  if (asked.empty()) return measured;
  detail::structure_rivals rivals(network, backends, candidates, asked, setup);
  std::vector<std::size_t> who;
  for (const bool last_resorts : {false, true})
    for (std::size_t i = 0; i < asked.size(); ++i) {
      const place_candidate& c = candidates.list[asked[i]];
      if (is_last_resort(backends, c) != last_resorts) continue;
      if (last_resorts && !rivals.empty()) measured[i].refusal = "is the last resort, and there is another way";
      else measured[i].refusal = rivals.add(c, i, measured[i].kernel);
      if (measured[i].refusal.empty()) who.push_back(i);
    }
  if (who.empty()) return measured;
  const rival_times found = rivals.race();
  for (std::size_t k = 0; k < who.size(); ++k) {
    measured[who[k]].time = found.times[k];
    measured[who[k]].cost_ms = found.cost_ms[k];
  }
  return measured;
}

/// Who measures: this process, or a worker.
using candidate_measurer = std::function<std::vector<measured_candidate>(std::span<const std::uint32_t> asked)>;

/// Measures the candidates of one structure that the table does not know yet, against each other, and adds them to it.
/// Kernels that cannot be built or whose output does not agree with the reference are recorded as refused, with the reason.
///
/// Where some are known, the fastest of those runs along, and the others' costs are scaled so that its cost is what it
/// was: what was measured at another time stays comparable.
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
  if (anchor != nullptr) asked.push_back(anchored);
  const std::vector<measured_candidate> measured = measure(asked);
  double scale = 1;
  if (anchor != nullptr) {
    if (measured.back().cost_ms > 0) scale = anchor->alone_ms / measured.back().cost_ms;
    asked.pop_back();
  }
  for (std::size_t i = 0; i < asked.size(); ++i) {
    measured_cost& cost = costs[key_of(candidates, candidates.list[asked[i]])];
    cost.time = measured[i].time;
    cost.alone_ms = measured[i].cost_ms * scale;
    cost.kernel = measured[i].kernel;
    cost.refusal = measured[i].refusal;
  }
}

}  // namespace collage::inline v0
