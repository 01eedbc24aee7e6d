// Sessions: networks whose shapes are known late.
//
// A session holds a network once, with its weights and their packed forms. It makes a static engine for each combination of shapes
// that it meets. A run at known shapes is a run of that engine. Outputs that are carried to inputs of the next run are state of a
// context.
#pragma once

#include <collage/graph/graph.hpp>
#include <collage/run/backend_table.hpp>
#include <collage/run/engine.hpp>
#include <collage/run/network_source.hpp>
#include <collage/run/plan.hpp>
#include <collage/run/tensor.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace collage::inline v0 {

class run_trace;
class session_context;

namespace detail {
struct session_core;
class session_runner;
}  // namespace detail

/// Makes the plan of one stage, whose shapes are all known and whose constants have contents. Kernels that it builds may use the
/// session's packed weights, if `packed` is not null. Several threads may call it.
using session_planner = std::function<plan(const graph& network, const std::shared_ptr<packed_weights>& packed)>;

/// An output of each run that is an input of the next: a state, which has the name of the input.
struct carried_value {
  std::string output;
  std::string input;
};

struct session_options {
  /// How many engines are kept. Beyond it, those that ran longest ago are given back.
  std::size_t most_engines = 64;
  /// How many bytes of packed weights are kept, with all engines together. Beyond it, every new engine makes one be given back. A
  /// context that has such an engine keeps it until its next run. 0: any number.
  std::size_t most_bytes = 0;
  /// How many bytes one value of the network may have, unless it is a constant. Shapes of inputs, and contents that decide shapes,
  /// could ask for any number. 0: as many as there is memory in all.
  std::size_t most_value_bytes = 0;
  /// false: the stages run as the source makes them, without `optimise` (pass/optimise.hpp).
  bool optimise = true;
  /// The states of a context, such as those of a recurrent network, or the keys and values of attention.
  std::vector<carried_value> carried = {};
};

/// Counts of a session.
struct session_state {
  std::size_t engines = 0;       ///< alive now
  std::size_t made = 0;          ///< engines made since the beginning
  std::size_t given_back = 0;    ///< engines given back to stay within the limits
  std::size_t packed_bytes = 0;  ///< of packed weights alive now
  double making_ms = 0;          ///< the time of making the engine that was made last
  std::size_t improved = 0;      ///< engines that `session::improve` has replaced
};

/// An engine that was planned anew.
struct improved_engine {
  std::string made_for;     ///< the values that it serves, as "x float32[1x3x48x320]"
  std::uint64_t runs = 0;   ///< of the engine before it
  double seconds = 0;       ///< what planning and making took
  bool is_replaced = true;  ///< false: the session gave the engine back meanwhile
};

/// An output of a run, in memory of the context.
struct session_output {
  std::string name;
  const_tensor_view contents;
};

/// A network of open shapes, ready to run. Any number of threads may use a session, each with contexts of its own. Making an engine
/// for one combination of shapes blocks only threads that need it too. Copies share everything.
class session {
 public:
  /// Errors: a carried output or input that the source lacks; an input that is carried twice; an output that does not fit its input.
  session(std::shared_ptr<const network_source> source, backend_table backends, session_planner planner,
          const session_options& options = {});

  /// The inputs that a run takes: those of the source without those that are carried.
  std::span<const open_port> inputs() const;
  /// All outputs of the source, which a run returns.
  std::span<const open_port> outputs() const;
  /// The inputs that are carried, in the order of `session_options::carried`.
  std::span<const open_port> states() const;
  session_context context() const;
  session_state state() const;

  /// Plans one engine anew by `better`, which may take its time, and puts the new engine in the place of the old one. It is the engine that
  /// took most time so far, by its runs and the costs of its plan. Each is taken once, also if planning fails, unless it is cancelled.
  /// Nothing is returned if none is left. Contexts go on with the old engine during this, and have the new one from their next run on. `better` gets no
  /// packed weights. Errors: those of `better` and of building the engine, whose session stays as it was.
  ///
  /// collage/place/background_tuning.hpp calls this in a thread of its own.
  std::optional<improved_engine> improve(const session_planner& better) const;

 private:
  std::shared_ptr<detail::session_core> core_;
};

/// One thread's runs of a session, the memory for them, and the states. The memory is as large as the two largest runs so far.
///
/// At first and after `reset`, a state is zeros of its start shape. Without `start`, an open extent of it is the one that another input
/// of the run has for the same symbol. Otherwise it is 0, if the output that is carried has another symbol there, as lengths that grow
/// from run to run have. A run that fails or is cancelled leaves all states as they were.
class session_context {
 public:
  session_context(session_context&&) noexcept;
  session_context& operator=(session_context&&) noexcept;
  ~session_context();

  /// Runs the network. `inputs` follow the session's list, in dense host memory. Returned are all outputs, in the session's order.
  /// They are valid until the run after the next, so that they may be inputs of the next run. The first run at new shapes makes an
  /// engine, which `limits` do not end. Errors: inputs that do not fit the declarations or each other. A state without a start
  /// shape. Shapes at which the network cannot run, or its values are too large. Planning and building an engine have errors of their own.
  std::span<const session_output> run(std::span<const const_tensor_view> inputs, const run_limits& limits = {});
  std::span<const session_output> run(std::initializer_list<const_tensor_view> inputs, const run_limits& limits = {}) {
    return run(std::span(inputs.begin(), inputs.size()), limits);
  }
  /// The same into the caller's memory, one for each output. An output that is carried may have a null pointer: then it is only kept
  /// as state. Otherwise it is copied. Errors besides those above: an output of another type or shape.
  void run(std::span<const const_tensor_view> inputs, std::span<const tensor_view> outputs,
           const run_limits& limits = {});

  /// From now on runs are added to a trace (run/trace.hpp), which outlives them; null: they are not, as at first.
  void trace_into(run_trace* to);

  /// Makes a state zeros of this shape, now and at each `reset`. Errors of this and the next two: no such state; a type or shape that
  /// does not fit the declaration.
  void start(std::string_view state, const shape& dims);
  /// Copies `contents`, dense and in the host's memory, to a state. They may be another state or an output.
  void set_state(std::string_view state, const const_tensor_view& contents);
  /// The contents of a state, valid until the next call that runs or changes states. Error besides: it has no shape before a run.
  const_tensor_view state(std::string_view state) const;
  /// Brings all states back to their start.
  void reset();

 private:
  friend class session;
  explicit session_context(std::shared_ptr<detail::session_core> core);
  std::unique_ptr<detail::session_runner> runner_;
};

/// A source with one stage: a function from the shapes of inputs to a network. The network's inputs have the names of `inputs`, and its
/// outputs those of `outputs`. For programs that build their networks themselves.
std::shared_ptr<const network_source> source_of(std::vector<open_port> inputs, std::vector<open_port> outputs,
                                                std::function<graph(std::span<const shape> dims)> make);

}  // namespace collage::inline v0
