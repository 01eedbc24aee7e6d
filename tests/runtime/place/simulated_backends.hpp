// A simulated machine: backends whose kernels compute what they should and take as long as a clock of the test's own says.
//
// What a kernel takes is a whole number of ticks of 1/1024 ms, which doubles add and divide exactly, so that placing is the
// same every time, to the last byte of the plan. It is a hash of what the kernel computes and who computes it. Noise, slow
// minutes and neighbours that disturb each other are added where a test asks for them.
#pragma once

#include <algorithm>
#include <cmath>
#include <collage/collage.hpp>
#include <collage/detail/hash.hpp>
#include <collage/fuse/combine.hpp>
#include <collage/fuse/generate.hpp>
#include <collage/fuse/rule.hpp>
#include <collage/graph/graph.hpp>
#include <collage/measure/drift.hpp>
#include <collage/measure/time_source.hpp>
#include <collage/place.hpp>
#include <collage/place/candidates.hpp>
#include <collage/run/backend_table.hpp>
#include <collage/run/kernel.hpp>
#include <collage/run/node_group.hpp>
#include <collage/run/plan.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "support/placing.hpp"

namespace collage_test {

namespace c = collage;
namespace op = collage::ops;

struct simulation {
  std::uint64_t seed = 1;  ///< of what kernels cost
  /// Costs are of a scale with steps of 5 %: rivals are as good as each other or clearly not. Otherwise any number of ticks.
  bool stepped = true;
  /// No group takes less than docs/measuring.md says of what is not measured. Otherwise some do, by far.
  bool bounded = true;
  std::uint64_t noise_seed = 1;
  double spread = 0;           ///< of the noise, as a part of a kernel's time
  double neighbour = 0;        ///< a kernel behind one of another backend takes longer by this part
  std::int64_t switching = 0;  ///< and by so many ticks
  /// A kernel behind another one finds less of its data in the caches and takes longer, by up to this part. Which part
  /// that is is a hash of the kernel, and called again and again it does not show. `always_cold`: it does.
  double cold = 0;
  bool always_cold = false;
  /// For so long after a kernel of beta those of others take a fifth longer.
  double aftermath_ms = 0;
  /// Of so many ms the last `slow_ms` take `slowness` times as long. Reading the clock takes a tick then, or as many: that
  /// is what the drift monitor sees.
  double period_ms = 0, slow_ms = 0, slowness = 4;
  double slow_start_ms = 0;  ///< the same before this time
  /// Of so many ms in the last `apart_ms` kernels take longer by up to this part, which is a hash of the kernel, because their
  /// threads' processors are apart then. Whoever rests brings them together until the next such time.
  double apart_period_ms = 0, apart_ms = 0, apart = 0;
  double apart_always = 0;  ///< so much of it at any time
};

struct simulated_kernel;

/// Time, and who uses it. One at a time is the current one, which the backends' kernels run on.
class simulated_machine {
 public:
  static constexpr double ticks_per_ms = 1024;

  explicit simulated_machine(simulation how = {}) : how_(how), random_(how.noise_seed), before_(current_) {
    current_ = this;
    for (std::int64_t step = 64; step < 1'000'000; step = std::max(step + 1, (step * 21 + 19) / 20))
      scale_.push_back(step);
  }
  simulated_machine(const simulated_machine&) = delete;
  simulated_machine& operator=(const simulated_machine&) = delete;
  ~simulated_machine() { current_ = before_; }
  static simulated_machine& current() { return *current_; }

  c::time_source clock() {
    return {[this] {
              if (how_.period_ms > 0 || how_.slow_start_ms > 0) now_ += slowness();
              return now_ / ticks_per_ms;
            },
            [this](double ms) {
              rested_ms_ = now_ms();
              now_ += std::ceil(ms * ticks_per_ms);
            },
            [] { return std::uint64_t{0}; }};
  }
  /// Placing on this machine.
  c::place_options options() {
    c::place_options o;
    o.threads = 1;
    o.measuring.workers = false;
    o.measuring.clock = clock();
    o.measuring.drift_works = collage_test::no_drift_works();
    o.comparing.seconds = 0.1;
    if (how_.spread == 0 && how_.period_ms == 0 && how_.slow_start_ms == 0)
      o.measuring.timing.rounds = 3;  // more would show the same
    return o;
  }

  /// Whether processors are apart now.
  bool is_apart() const {
    if (how_.apart_period_ms <= 0) return false;
    const double in_period = std::fmod(now_ms(), how_.apart_period_ms);
    const double since_ms = now_ms() - in_period + how_.apart_period_ms - how_.apart_ms;
    return now_ms() >= since_ms && rested_ms_ < since_ms;
  }
  /// What tells it, as a drift monitor's work.
  c::drift_work exchange() {
    return [this](const c::time_source&) { return is_apart() ? 0.03 : 0.01; };
  }

  /// What a kernel of this backend takes for these nodes, undisturbed.
  std::int64_t ticks_of(const c::graph& network, std::span<const std::uint32_t> nodes, std::string_view backend,
                        std::string_view pattern) const {
    double sum = 0, least = 0;
    for (const std::uint32_t n : nodes) {
      const std::uint32_t one[] = {n};
      double fastest = 1e300;
      for (const char* other : {"alpha", "beta", "gamma"})
        if (takes(network, n, other)) fastest = std::min(fastest, alone(network, one, other));
      const bool is_anchor = network.node(n).kind->fusion == c::fusion_kind::anchor;
      sum += nodes.size() == 1 ? alone(network, one, backend) : fastest;
      // Halfway between what is promised and what the kernel takes alone, so that rounding breaks no promise.
      least = std::max(least, fastest * (is_anchor ? 0.85 : 0.3));
    }
    if (nodes.size() == 1) return rounded(sum);
    const std::uint64_t chance =
        c::detail::combine(key_of(network, nodes, backend), c::detail::hash(pattern.data(), pattern.size()));
    if (!how_.bounded && chance % 16 == 0) return rounded(sum * 0.05);
    return rounded(std::max(least, sum * between(chance / 16, 0.1, 1.3)));
  }

  /// What it takes in addition behind another kernel.
  std::int64_t cold_ticks_of(const c::graph& network, std::span<const std::uint32_t> nodes, std::string_view backend,
                             std::string_view pattern) const {
    const std::uint64_t name = name_of(c::detail::structure_key(network, nodes), backend, pattern);
    const double part = between(c::detail::combine(how_.seed, name), 0, how_.cold);
    return std::llround(part * static_cast<double>(ticks_of(network, nodes, backend, pattern)));
  }

  /// And while processors are apart.
  std::int64_t apart_ticks_of(const c::graph& network, std::span<const std::uint32_t> nodes, std::string_view backend,
                              std::string_view pattern) const {
    const std::uint64_t name = name_of(c::detail::structure_key(network, nodes), backend, pattern);
    const double part = between(c::detail::combine(how_.seed + 1, name), 0, how_.apart);
    return std::llround(part * static_cast<double>(ticks_of(network, nodes, backend, pattern)));
  }

  /// A kernel runs.
  void run(const simulated_kernel& kernel);
  double now_ms() const { return now_ / ticks_per_ms; }

  /// What the library's thread count is set around: an engine calls all of its kernels in there, a race one, and so this
  /// tells whose race it is.
  std::function<void(const simulated_kernel& kernel)> on_race;
  /// Before each kernel is built.
  std::function<void()> on_build;
  void enter() {
    if (depth_++ == 0) called_.clear();
  }
  void leave() {
    if (--depth_ == 0 && called_.size() == 1 && on_race) on_race(*called_.front());
  }
  void note(const simulated_kernel& kernel) {
    if (on_race) called_.push_back(&kernel);
  }

  /// Names a kernel: what it computes, who computes it and how.
  static std::uint64_t name_of(std::span<const std::uint64_t> computes, std::string_view backend,
                               std::string_view pattern) {
    std::uint64_t key = c::detail::combine(c::detail::hash(backend.data(), backend.size()),
                                           c::detail::hash(pattern.data(), pattern.size()));
    for (const std::uint64_t word : computes) key = c::detail::combine(key, word);
    return key;
  }

 private:
  /// Whether a backend takes the node alone.
  static bool takes(const c::graph& network, std::uint32_t node, std::string_view backend) {
    const std::uint64_t kind = network.node(node).kind->id;
    if (backend == "gamma") return kind != c::kind_id<struct op::matmul>;
    return backend == "alpha" || (kind != c::kind_id<struct op::sigmoid> && kind != c::kind_id<struct op::neg>);
  }
  static double between(std::uint64_t chance, double low, double high) {
    return low + (high - low) * static_cast<double>(chance % 4096) / 4096;
  }
  /// What a backend takes for one node, before rounding. How the node's result is read makes no difference.
  double alone(const c::graph& network, std::span<const std::uint32_t> node, std::string_view backend) const {
    const c::node_record& record = network.node(node[0]);
    const std::uint64_t kind = c::detail::combine(how_.seed, record.kind->id);
    const double scale = record.kind->fusion == c::fusion_kind::anchor ? 3 : 1;
    const std::uint64_t who = c::detail::combine(kind, c::detail::hash(backend.data(), backend.size()));
    return scale * between(c::detail::combine(kind, 1), 250, 800) * between(c::detail::combine(who, 2), 0.8, 1.6);
  }
  std::uint64_t key_of(const c::graph& network, std::span<const std::uint32_t> nodes, std::string_view backend) const {
    return c::detail::combine(how_.seed, name_of(c::detail::structure_key(network, nodes), backend, ""));
  }
  std::int64_t rounded(double ticks) const {
    const auto whole = static_cast<std::int64_t>(std::ceil(ticks));
    return how_.stepped ? *std::ranges::lower_bound(scale_, whole) : whole;
  }
  double slowness() const {
    if (now_ms() < how_.slow_start_ms) return how_.slowness;
    if (how_.period_ms <= 0) return 1;
    return std::fmod(now_ms(), how_.period_ms) >= how_.period_ms - how_.slow_ms ? how_.slowness : 1;
  }

  simulation how_;
  std::vector<std::int64_t> scale_;
  double now_ = 0;         // in ticks
  double rested_ms_ = -1;  // when somebody did last
  std::mt19937_64 random_;
  std::uint64_t last_backend_ = 0, last_kernel_ = 0;
  double disturbed_until_ms_ = 0;
  int depth_ = 0;
  std::vector<const simulated_kernel*> called_;
  simulated_machine* before_;
  static inline simulated_machine* current_ = nullptr;
};

/// The operators of a group over square matrices, computed one after the other in its workspace.
struct simulated_kernel {
  struct step {
    std::uint64_t kind;
    std::size_t a, b;  // positions: arguments, then results
  };
  std::size_t size = 0;  // rows and columns
  std::size_t arguments = 0;
  std::vector<step> steps;
  std::vector<std::size_t> written;
  std::int64_t ticks = 0, cold_ticks = 0, apart_ticks = 0;
  std::uint64_t backend = 0;
  std::uint64_t name = 0, computes = 0;  // of the kernel, and of what it computes whoever does

  simulated_kernel(const c::graph& network, const c::node_group& group, std::string_view by, std::string_view pattern) {
    std::vector<std::uint32_t> values = group.arguments;
    const auto at = [&](std::uint32_t v) {
      return static_cast<std::size_t>(std::ranges::find(values, v) - values.begin());
    };
    std::vector<std::uint32_t> nodes = group.nodes;
    std::ranges::sort(nodes);
    for (const std::uint32_t n : nodes) {
      const auto in = network.view().inputs_of(n);
      steps.push_back({network.node(n).kind->id, at(in[0]), at(in[in.size() - 1])});
      values.push_back(network.view().output_of(n));
    }
    for (const std::uint32_t v : group.outputs) written.push_back(at(v));
    size = static_cast<std::size_t>(network.type_of(values.back()).dims[0]);
    arguments = group.arguments.size();
    const simulated_machine& machine = simulated_machine::current();
    if (machine.on_build) machine.on_build();
    ticks = machine.ticks_of(network, nodes, by, pattern);
    cold_ticks = machine.cold_ticks_of(network, nodes, by, pattern);
    apart_ticks = machine.apart_ticks_of(network, nodes, by, pattern);
    backend = c::detail::hash(by.data(), by.size());
    const std::vector<std::uint64_t> key = c::detail::structure_key(network, nodes);
    name = simulated_machine::name_of(key, by, pattern);
    computes = simulated_machine::name_of(key, "", "");
  }
  std::size_t workspace() const { return steps.size() * size * size * sizeof(float); }

  void operator()(const c::kernel_call& call) const {
    const std::size_t elements = size * size;
    float* const results = static_cast<float*>(call.workspace);
    const auto value = [&](std::size_t at) {
      return at < arguments ? static_cast<const float*>(call.in[at]) : results + (at - arguments) * elements;
    };
    for (std::size_t s = 0; s < steps.size(); ++s)
      compute(steps[s].kind, value(steps[s].a), value(steps[s].b), results + s * elements);
    for (std::size_t k = 0; k < written.size(); ++k)
      std::copy_n(value(written[k]), elements, static_cast<float*>(call.out[k]));
    simulated_machine& machine = simulated_machine::current();
    machine.note(*this);
    machine.run(*this);
  }
  void compute(std::uint64_t kind, const float* a, const float* b, float* out) const {
    const auto each = [&](auto f) {
      for (std::size_t i = 0; i < size * size; ++i) out[i] = f(a[i], b[i]);
    };
    if (kind == c::kind_id<struct op::relu>) each([](float x, float) { return x > 0 ? x : 0.0F; });
    else if (kind == c::kind_id<struct op::neg>) each([](float x, float) { return -x; });
    else if (kind == c::kind_id<struct op::sigmoid>) each([](float x, float) { return 1 / (1 + std::exp(-x)); });
    else if (kind == c::kind_id<struct op::add>) each([](float x, float y) { return x + y; });
    else if (kind == c::kind_id<struct op::mul>) each([](float x, float y) { return x * y; });
    else
      for (std::size_t i = 0; i < size; ++i)
        for (std::size_t j = 0; j < size; ++j) {
          float sum = 0;
          for (std::size_t k = 0; k < size; ++k) sum += a[i * size + k] * b[k * size + j];
          out[i * size + j] = sum;
        }
  }
};

inline void simulated_machine::run(const simulated_kernel& kernel) {
  double took = static_cast<double>(kernel.ticks);
  if (how_.always_cold || kernel.name != last_kernel_) took += static_cast<double>(kernel.cold_ticks);
  took += (is_apart() ? 1 : how_.apart_always) * static_cast<double>(kernel.apart_ticks);
  if (kernel.backend != last_backend_) took = took * (1 + how_.neighbour) + static_cast<double>(how_.switching);
  if (how_.spread > 0) took *= std::max(0.5, std::normal_distribution<double>(1, how_.spread)(random_));
  const bool disturbs = how_.aftermath_ms > 0 && kernel.backend == c::detail::hash("beta", 4);
  if (!disturbs && now_ms() < disturbed_until_ms_) took *= 1.2;
  last_backend_ = kernel.backend;
  last_kernel_ = kernel.name;
  now_ += std::round(took * slowness());
  if (disturbs) disturbed_until_ms_ = now_ms() + how_.aftermath_ms;
}

inline c::kernel simulated(const c::graph& network, const c::node_group& group, const char* backend,
                           const char* pattern) {
  simulated_kernel made(network, group, backend, pattern);
  const std::size_t workspace = made.workspace();
  return {std::string(backend) + " " + pattern, std::move(made), workspace};
}

/// What all simulated backends share; `Self` has a name and patterns or a rule.
template <class Self, c::fixed_string Name>
struct simulated_backend : c::backend<Name> {
  static int enter(int) {
    simulated_machine::current().enter();
    return 0;
  }
  static void leave(int) { simulated_machine::current().leave(); }

  template <class P>
  static c::kernel build(const c::match<P>& m, c::build_context& context) {
    const auto nodes = m.nodes();
    const auto arguments = m.record().argument_list();
    c::node_group group{{nodes.begin(), nodes.end()}, {arguments.begin(), arguments.end()}, {}};
    group.outputs = c::written_values(m.graph(), m.record());
    return simulated(context.network(), group, Name.text, P::name);
  }
};

struct relu_of_sum : c::pattern<"relu_of_sum"> {
  static constexpr auto expr = op::relu(op::add(c::any, c::any));
};
struct relu_of_product : c::pattern<"relu_of_product"> {
  static constexpr auto expr = op::relu(op::matmul(c::any, c::any));
};
struct biased_product : c::pattern<"biased_product"> {
  static constexpr auto expr = op::add(op::matmul(c::any, c::any), c::any);
};
struct product_and_sum : c::pattern<"product_and_sum"> {
  static constexpr auto expr = op::add(op::mul(c::any, c::any), c::any);
};
struct gate : c::pattern<"gate"> {
  static constexpr auto expr = op::mul(op::sigmoid(c::any), c::any);
};

struct alpha : simulated_backend<alpha, "alpha"> {
  using patterns = c::patterns<c::single<op::relu>, c::single<op::neg>, c::single<op::sigmoid>, c::single<op::add>,
                               c::single<op::mul>, c::single<op::matmul>, relu_of_sum, relu_of_product>;
};
struct beta : simulated_backend<beta, "beta"> {
  using patterns = c::patterns<c::single<op::relu>, c::single<op::add>, c::single<op::mul>, c::single<op::matmul>,
                               relu_of_product, biased_product, product_and_sum, gate>;
};

/// Up to six elementwise operators from a node to one that all paths from it meet in.
struct gamma : c::backend<"gamma"> {
  static int enter(int threads) { return alpha::enter(threads); }
  static void leave(int token) { alpha::leave(token); }
  static constexpr auto rule = c::fuse::grown{c::fuse::row_rule{}, c::fuse::generate_limits{.nodes = 6}};
  static bool takes(const c::graph& network, std::uint32_t node) {
    return network.node(node).kind->id != c::kind_id<struct op::matmul>;
  }
  static c::kernel build(const c::node_group& group, c::build_context& context) {
    return simulated(context.network(), group, "gamma", c::by_rule);
  }
};

using simulated_set = c::backend_set<alpha, beta, gamma>;

/// A network of so many operators over matrices of 4 by 4; with views of some of their results.
inline c::graph simulated_network(std::uint64_t seed, std::size_t nodes, bool views = false) {
  std::mt19937_64 random(seed);
  const auto pick = [&random](std::size_t count) { return static_cast<std::size_t>(random() % count); };
  const c::tensor_type type{c::dtype::f32, {4, 4}};
  c::graph_builder g;
  std::vector<c::value> readable{g.input("x", type), g.constant("w", type, c::uniform{-1, 1})};
  std::vector<bool> is_read;
  c::value last = readable[0];
  const auto any_value = [&] {
    const std::size_t window = pick(3) != 0 ? std::min<std::size_t>(2, readable.size()) : readable.size();
    return readable[readable.size() - 1 - pick(window)];
  };
  for (std::size_t n = 0; n < nodes; ++n) {
    switch (pick(7)) {
      case 0: last = g(op::relu, last); break;
      case 1: last = g(op::sigmoid, last); break;
      case 2: last = g(op::neg, last); break;
      case 3: last = g(op::mul, g(op::sigmoid, last), any_value()); break;  // what is squared again and again overflows
      case 4: last = g(op::matmul, last, readable[1]); break;
      default: last = g(op::add, last, any_value()); break;
    }
    if (views && pick(3) == 0) last = g(op::reshape, last, {.dims = {4, 4}});
    readable.push_back(last);
  }
  g.output("y", last);
  c::graph network = g.finish();
  c::fill_constants(network);
  return network;
}

}  // namespace collage_test
