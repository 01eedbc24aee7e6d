// Verifies a plan: compares every output of a network, as the engine computes it, with the reference in double precision.
//
//   const verification found = verify<backends>(network, plan);
//   if (!found) std::puts(found.why().c_str());
#pragma once

#include <algorithm>
#include <chrono>
#include <collage/backends/reference.hpp>
#include <collage/run/agreement.hpp>
#include <collage/run/buffers.hpp>
#include <collage/run/engine.hpp>
#include <collage/run/layouts.hpp>
#include <collage/run/quantised_agreement.hpp>
#include <collage/run/rounding.hpp>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace collage::inline v0 {

/// One output of the network, as computed by one placement.
struct verified_output {
  std::string name;
  agreement found;
};

/// The first step of a placement with a value that differs from the reference.
struct faulty_step {
  std::size_t step = 0;  ///< its index in the engine's steps
  std::string node;      ///< the last node of its group
  std::string backend, pattern, kernel;
  std::string value;  ///< the name of the value that differs
  agreement found;
};

/// The comparison of one placement with the reference.
struct verified_placement {
  std::string name;  ///< "plan", or the backend that ran alone
  std::vector<verified_output> outputs;
  std::optional<faulty_step> fault;  ///< set if an output differs and a faulty step is found

  bool passed() const {
    return std::all_of(outputs.begin(), outputs.end(), [](const verified_output& o) { return o.found.agrees; });
  }
  /// The largest agreement::worst_relative of its outputs.
  double worst_relative() const {
    double worst = 0;
    for (const verified_output& o : outputs) worst = std::max(worst, o.found.worst_relative);
    return worst;
  }
  /// The difference in one sentence; empty if there is none.
  std::string why() const {
    if (fault)
      return fault->node + ", run by " + fault->backend + " (" + fault->kernel +
             "): " + (fault->found.why != nullptr ? fault->found.why : "");
    for (const verified_output& o : outputs)
      if (!o.found.agrees) return "output " + o.name + ": " + (o.found.why != nullptr ? o.found.why : "");
    return {};
  }
};

/// The outcome of `verify`.
struct verification {
  std::vector<verified_placement> placements;  ///< the plan's own first
  double reference_s = 0;                      ///< seconds that computing the reference took

  /// The first placement that differs; null if none does.
  const verified_placement* failed() const {
    for (const verified_placement& p : placements)
      if (!p.passed()) return &p;
    return nullptr;
  }
  explicit operator bool() const { return failed() == nullptr; }
  /// One sentence with the placement, the node, backend and kernel at fault, and the difference; empty if there is none.
  std::string why() const {
    const verified_placement* p = failed();
    return p == nullptr ? std::string() : p->name + ": " + p->why();
  }
};

struct verify_options {
  std::vector<const_tensor_view> inputs = {};  ///< of the network, in its order; empty: random inputs
  std::uint64_t seed = 1;                      ///< of the random inputs
  bool singles = true;                         ///< true: also verifies the baselines
  /// Limits the bytes of values that are kept at a time during the search for the first faulty step.
  std::size_t recorded_bytes = std::size_t{1} << 30;
  std::function<void(const std::string&)> progress = {};  ///< called with the current work, for a line of progress
};

namespace detail {

/// The values that some steps of a placement compute.
struct step_recording {
  const dynamic_engine* engine = nullptr;
  const graph* network = nullptr;
  std::size_t first = 0, end = 0;                                 ///< the steps to keep
  std::map<std::uint32_t, std::pair<std::size_t, tensor>> known;  ///< by value: the step that wrote it, the contents

  /// Visits the values that a step may write. The context has no address for its inner values.
  template <class Visit>
  static void values_of(const graph& network, const step_info& step, Visit visit) {
    for (const std::uint32_t n : step.nodes)
      for (std::uint32_t i = 0; i < network.node(n).outputs; ++i) visit(network.view().output_of(n, i));
  }
  static void keep(void* data, std::size_t step, const dynamic_context& context) {
    auto& self = *static_cast<step_recording*>(data);
    if (step < self.first || step >= self.end) return;
    values_of(*self.network, self.engine->steps()[step], [&](std::uint32_t v) {
      if (context.data_of(v) == nullptr) return;
      tensor copy(self.network->type_of(v));
      const form& stored = context.form_of(v);
      const buffer here(bytes_in(copy.type(), stored));
      copy_bytes(host_space, here.data(), *stored.space, context.data_of(v), here.size());
      std::optional<integer_scale> how;
      if (const value_scales* const scales = self.engine->scales(); scales != nullptr && stored.element)
        how = scales->of(v, *stored.element);
      if (copy.bytes() != 0) to_plain(copy.type(), stored, here.data(), copy.data(), how ? &*how : nullptr);
      self.known.insert_or_assign(v, std::pair(step, std::move(copy)));
    });
  }
};

/// Finds the first step with a value that differs from the reference. Steps are recorded in portions, to bound memory. The
/// reference is computed anew for each portion, up to the first difference.
inline std::optional<faulty_step> find_fault(const graph& network, const dynamic_engine& engine,
                                             std::span<const const_tensor_view> inputs,
                                             std::span<const tensor_view> outputs, std::size_t portion_bytes,
                                             double rounding) {
  struct stop {};
  std::optional<faulty_step> fault;
  dynamic_context context = engine.context();
  const std::size_t steps = engine.steps().size();
  for (std::size_t first = 0; first < steps && !fault;) {
    step_recording kept{&engine, &network, first, first, {}};
    for (std::size_t bytes = 0; kept.end < steps && (bytes == 0 || bytes < portion_bytes); ++kept.end)
      step_recording::values_of(network, engine.steps()[kept.end],
                                [&](std::uint32_t v) { bytes += network.type_of(v).bytes(); });
    context.run(inputs, outputs, {.data = &kept, .before = nullptr, .after = &step_recording::keep});
    // Nodes and steps have the same order, so the first difference that the reference meets is the first of all.
    const auto compare_one = [&](std::uint32_t value, const oracle_value& expected) {
      const auto recorded = kept.known.find(value);
      if (recorded == kept.known.end()) return;
      const agreement found = compare_within(network, value, recorded->second.second, expected, rounding);
      if (found) return;
      const step_info& step = engine.steps()[recorded->second.first];
      fault = faulty_step{recorded->second.first,    step.label, step.backend, step.pattern, step.kernel,
                          network.value_name(value), found};
      throw stop{};
    };
    try {
      evaluate(network, inputs, network.outputs(), compare_one);
    } catch (const stop&) {}
    first = kept.end;
  }
  return fault;
}

/// `memory` is for the outputs. `rounding` is the error that the placement may have because it rounds values.
inline verified_placement verify_placement(const graph& network, const placement& which, backend_table backends,
                                           int threads, std::span<const const_tensor_view> inputs,
                                           const run_buffers& memory, const std::vector<oracle_value>& expected,
                                           std::size_t portion_bytes, const std::shared_ptr<packed_weights>& packed,
                                           double rounding) {
  verified_placement result;
  result.name = which.name;
  const dynamic_engine engine(network, which, backends, threads, packed);
  // An element that the kernel does not write must not pass as a number. In floating-point types these bytes are NaN.
  for (const tensor& t : memory.out)
    if (t.bytes() != 0) std::memset(t.data(), 0xFF, t.bytes());
  engine.context().run(inputs, memory.outputs);
  for (std::size_t i = 0; i < expected.size(); ++i)
    result.outputs.push_back(
        {network.output_name(i), compare_within(network, network.outputs()[i], memory.out[i], expected[i], rounding)});
  if (!result.passed()) result.fault = find_fault(network, engine, inputs, memory.outputs, portion_bytes, rounding);
  return result;
}

}  // namespace detail

/// Runs a plan and its baselines, and compares each output with the reference by `compare`. Where a plan rounds values, an element may
/// differ by `most_rounding_ratio` times the plan's error bound, relative to the largest element. If one differs, it looks for the
/// first step at fault. A plan that keeps NaN and infinity (`plan::precision`) also runs with some of them among random inputs.
/// Errors: a plan of another network; a kind without a reference; inputs that do not fit; a missing backend.
inline verification verify(const graph& network, const plan& made, backend_table backends,
                           const verify_options& options = {}) {
  if (made.fingerprint != network.fingerprint())
    throw error(error_kind::invalid_argument, "the plan was made for another network (" + made.network + ")", "verify",
                "load that network, or place this one");
  const auto tell = [&](const std::string& what) {
    if (options.progress) options.progress(what);
  };
  run_buffers memory(network);
  if (options.inputs.empty()) memory.randomise(options.seed);
  const std::vector<const_tensor_view>& inputs = options.inputs.empty() ? memory.inputs : options.inputs;
  verification result;
  tell("computing the reference in double precision");
  const auto start = std::chrono::steady_clock::now();
  const std::vector<oracle_value> expected = evaluate(network, inputs);
  result.reference_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();

  std::vector<const placement*> all{&made.chosen};
  if (options.singles)
    for (const placement& s : made.singles) all.push_back(&s);
  const auto packed = std::make_shared<packed_weights>();
  const auto check = [&](const placement& which, const std::vector<oracle_value>& against) {
    return detail::verify_placement(network, which, backends, made.threads, inputs, memory, against,
                                    options.recorded_bytes, packed,
                                    made.error && !rounded_in(network, backends, which).empty() ? made.error->most : 0);
  };
  for (const placement* which : all) {
    tell("checking " + which->name);
    result.placements.push_back(check(*which, expected));
  }
  if (made.precision != fp32_non_finite || !options.inputs.empty()) return result;

  std::mt19937_64 random(options.seed);
  for (const non_finite kind : {non_finite::nan, non_finite::infinity}) {
    memory.randomise(options.seed);
    bool is_spoilt = false;
    for (const tensor& t : memory.in) is_spoilt = spoil(t, kind, random) || is_spoilt;
    if (!is_spoilt) break;
    const char* const what = kind == non_finite::nan ? "NaN" : "infinity";
    tell(std::string("computing the reference of ") + what);
    const std::vector<oracle_value> spoilt = evaluate(network, inputs);
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (!result.placements[i].passed()) continue;
      tell("checking " + all[i]->name + " with " + what);
      verified_placement found = check(*all[i], spoilt);
      if (!found.passed()) result.placements[i] = std::move(found);
    }
  }
  return result;
}

/// The same for a backend set: `auto found = verify<backends>(network, plan);`.
template <backend_set_type Set>
verification verify(const graph& network, const plan& made, const verify_options& options = {}) {
  return verify(network, made, table_of<Set>, options);
}

}  // namespace collage::inline v0
