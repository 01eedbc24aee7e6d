// How the engine runs control flow: kernels that own an engine for each sub-graph.
#include "parts.hpp"

#include <collage/op/control.hpp>
#include <collage/run/body_observer.hpp>

#include <cstring>
#include <mutex>

namespace collage::inline v0::detail {
namespace {

/// The engine of a sub-graph and its contexts. A kernel may run in several threads at once. Each thread takes a context for
/// one call, and makes a new context only where all are taken.
class body_engine {
 public:
  explicit body_engine(dynamic_engine made) : engine_(std::move(made)) { free_.push_back(make()); }

  const dynamic_engine& engine() const { return engine_; }
  const tensor_type& input(std::size_t i) const { return engine_.inputs()[i].type; }
  const tensor_type& output(std::size_t i) const { return engine_.outputs()[i].type; }

  /// A context with lists of tensors of the right types, whose memory the borrower fills in.
  struct runner {
    dynamic_context context;
    std::vector<const_tensor_view> in;
    std::vector<tensor_view> out;
    /// Runs the engine of subgraph `which` of node `node`.
    void run(std::uint32_t node, std::size_t which) {
      if (const body_observer* const observer = observed_bodies::here(); observer != nullptr)
        run_observed(*observer, node, which);
      else if (run_watch::is_any_here()) context.run(in, out, run_limits{});
      else context.run(in, out);
    }
    void run_observed(const body_observer& observer, std::uint32_t node, std::size_t which) {
      struct leaver {
        const body_observer& from;
        ~leaver() { from.leave(from.data); }
      };
      const step_observer steps = observer.enter(observer.data, node, which);
      const leaver at_end{observer};
      context.run(in, out, steps);
    }
  };
  class borrowed {
   public:
    explicit borrowed(body_engine& from) : from_(from), runner_(from.take()) {}
    borrowed(const borrowed&) = delete;
    borrowed& operator=(const borrowed&) = delete;
    ~borrowed() { from_.give(std::move(runner_)); }
    runner* operator->() const { return runner_.get(); }

   private:
    body_engine& from_;
    std::unique_ptr<runner> runner_;
  };

 private:
  std::unique_ptr<runner> make() const {
    auto r = std::make_unique<runner>(runner{engine_.context(), {}, {}});
    for (const port& p : engine_.inputs()) r->in.emplace_back(nullptr, p.type);
    for (const port& p : engine_.outputs()) r->out.push_back({nullptr, p.type});
    return r;
  }
  std::unique_ptr<runner> take() {
    const std::lock_guard lock(mutex_);
    if (free_.empty()) return make();
    std::unique_ptr<runner> r = std::move(free_.back());
    free_.pop_back();
    return r;
  }
  void give(std::unique_ptr<runner> r) {
    const std::lock_guard lock(mutex_);
    free_.push_back(std::move(r));
  }

  dynamic_engine engine_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<runner>> free_;
};

/// Divides a kernel's workspace into pieces: sizes first, pointers when it runs.
class workspace_layout {
 public:
  std::size_t add(std::size_t bytes) {
    const std::size_t at = bytes_;
    bytes_ += (bytes + 63) / 64 * 64;
    return at;
  }
  std::size_t bytes() const { return bytes_; }

 private:
  std::size_t bytes_ = 0;
};

/// Unread outputs have no memory, but the engine of a sub-graph writes all of its outputs: a place for each such output.
std::vector<std::size_t> spare_outputs(const body_engine& body, workspace_layout& layout, std::size_t first) {
  std::vector<std::size_t> at;
  for (std::size_t i = first; i < body.engine().outputs().size(); ++i) at.push_back(layout.add(body.output(i).bytes()));
  return at;
}

struct branch_kernel {
  std::uint32_t node = 0;
  std::shared_ptr<body_engine> bodies[2];
  std::vector<std::size_t> spare[2];

  void operator()(const kernel_call& call) const {
    const std::size_t which = *static_cast<const std::uint8_t*>(call.in[0]) != 0 ? 0 : 1;
    const body_engine::borrowed r(*bodies[which]);
    for (std::size_t i = 0; i < r->in.size(); ++i) r->in[i].data = call.in[i + 1];
    for (std::size_t i = 0; i < r->out.size(); ++i)
      r->out[i].data = call.out[i] != nullptr ? call.out[i] : static_cast<std::byte*>(call.workspace) + spare[which][i];
    r->run(node, which);
  }
};

struct loop_kernel {
  std::uint32_t node = 0;
  std::shared_ptr<body_engine> body;
  std::size_t carried = 0;
  bool stops = true;
  std::size_t round_at = 0;
  std::vector<std::size_t> here,
      there;                       ///< the condition and the carried values: read in one round, written in another
  std::vector<std::size_t> spare;  ///< one round of each stacked value

  void operator()(const kernel_call& call) const {
    auto* const memory = static_cast<std::byte*>(call.workspace);
    const body_engine::borrowed r(*body);
    const auto bytes = [&](std::size_t i) { return body->input(i + 1).bytes(); };
    auto* const round = reinterpret_cast<std::int64_t*>(memory + round_at);
    r->in[0].data = round;
    for (std::size_t i = 0; i <= carried; ++i) {
      if (bytes(i) != 0) std::memcpy(memory + here[i], call.in[i + 1], bytes(i));
      r->in[i + 1].data = memory + here[i];
      r->out[i].data = memory + there[i];
    }
    for (std::size_t i = 2 + carried; i < r->in.size(); ++i) r->in[i].data = call.in[i];
    const std::int64_t most = *static_cast<const std::int64_t*>(call.in[0]);
    const auto goes_on = [&] { return *static_cast<const std::uint8_t*>(r->in[1].data) != 0; };
    for (*round = 0; *round < most && goes_on(); ++*round) {
      for (std::size_t i = carried + 1; i < r->out.size(); ++i) {
        auto* const stack = static_cast<std::byte*>(call.out[i - 1]);
        r->out[i].data = stack != nullptr ? stack + static_cast<std::size_t>(*round) * body->output(i).bytes()
                                          : memory + spare[i - carried - 1];
      }
      r->run(node, 0);
      if (!stops) *static_cast<std::uint8_t*>(r->out[0].data) = 1;
      for (std::size_t i = 0; i <= carried; ++i) {
        void* const written = r->out[i].data;
        r->out[i].data = const_cast<void*>(r->in[i + 1].data);  // the workspace's own memory
        r->in[i + 1].data = written;
      }
    }
    for (std::size_t i = 0; i < carried; ++i)
      if (call.out[i] != nullptr && bytes(i + 1) != 0) std::memcpy(call.out[i], r->in[i + 2].data, bytes(i + 1));
  }
};

}  // namespace

kernel build_control(const graph& network, std::uint32_t node, const control_step& step, backend_table backends,
                     int threads, const std::shared_ptr<packed_weights>& packed) {
  const auto bodies = network.bodies_of(node);
  if (step.bodies.size() != bodies.size())
    throw plan_error("has placements for " + std::to_string(step.bodies.size()) + " of " +
                         std::to_string(bodies.size()) + " subgraphs",
                     "plan, node " + network.node_name(node));
  std::vector<std::shared_ptr<body_engine>> engines;
  for (std::size_t i = 0; i < bodies.size(); ++i)
    engines.push_back(
        std::make_shared<body_engine>(dynamic_engine(*bodies[i], step.bodies[i], backends, threads, packed)));
  workspace_layout layout;
  if (network.node(node).kind->id == kind_id<struct ops::branch>) {
    branch_kernel k{node, {engines[0], engines[1]}, {}};
    for (std::size_t i = 0; i < 2; ++i) k.spare[i] = spare_outputs(*engines[i], layout, 0);
    return {"branch", std::move(k), layout.bytes()};
  }
  const auto a = from_words<ops::loop_attributes>(network.view().words_of(node));
  loop_kernel k{node, engines[0], static_cast<std::size_t>(a.carried), a.stops, layout.add(sizeof(std::int64_t)), {},
                {},   {}};
  for (std::size_t i = 0; i <= k.carried; ++i) {
    k.here.push_back(layout.add(engines[0]->input(i + 1).bytes()));
    k.there.push_back(layout.add(engines[0]->input(i + 1).bytes()));
  }
  k.spare = spare_outputs(*engines[0], layout, k.carried + 1);
  return {"loop", std::move(k), layout.bytes()};
}

}  // namespace collage::inline v0::detail
