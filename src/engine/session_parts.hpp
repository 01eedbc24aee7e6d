// The parts of sessions: states, stages that were made, by what they were made for, and the constants that they share.
#pragma once

#include <atomic>
#include <collage/graph/graph.hpp>
#include <collage/run/engine.hpp>
#include <collage/run/network_source.hpp>
#include <collage/run/session.hpp>
#include <collage/run/tensor.hpp>
#include <collage/run/trace.hpp>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace collage::inline v0::detail {

/// Constants by their contents. Stages compute the same constants again and again, and packed forms are found by the address of
/// what was packed. So equal contents get one address. Contents that only the pool holds leave it when the last few networks did
/// not have them: those of one shape alone would pile up.
class constant_pool {
 public:
  /// Replaces contents that are known by those with the first address. Subgraphs are included.
  void share(graph& network);

 private:
  struct known {
    std::shared_ptr<const std::byte> bytes;
    std::size_t size = 0;
    std::uint64_t used = 0;  ///< the number of the last network that had them
  };
  using entries = std::unordered_multimap<std::uint64_t, known>;
  void share_within(graph& network);
  std::shared_ptr<const std::byte> shared(const std::shared_ptr<const std::byte>& bytes, std::size_t size);
  void forget_unused();

  std::mutex mutex_;
  std::uint64_t networks_ = 0;
  entries by_hash_;
  std::unordered_map<const std::byte*, known*> by_address_;
};

/// Throws an error about the caller's mistake.
[[noreturn]] void refuse(const std::string& what, const std::string& where);

/// Throws the error under way again, in words where it has none.
[[noreturn]] void refuse_again();

/// Throws if a type or a tensor does not fit the declaration of an input. `where` names the input, as "input x".
void check_type(const open_port& port, const tensor_type& given, const std::string& where);
void check_tensor(const open_port& port, const const_tensor_view& given, const std::string& where);

/// Throws if the inputs of a run do not fit what it takes.
void check_inputs(std::span<const open_port> taken, std::span<const const_tensor_view> given);

/// The extent that an input of a run has for the symbol of an open extent of `port`. Nothing if no input has it.
std::optional<std::int64_t> extent_of(const open_port& port, std::size_t dimension, std::span<const open_port> inputs,
                                      std::span<const const_tensor_view> given);

/// Which inputs of a source a run takes, and which are states.
struct session_inputs {
  std::vector<open_port> taken;
  std::vector<open_port> states;
  std::vector<std::size_t> outputs;  ///< by state: the output that becomes it
  struct origin {
    bool is_state = false;
    std::size_t index = 0;  ///< in `taken` or in `states`
  };
  std::vector<origin> origins;   ///< by input of the source
  std::vector<bool> is_carried;  ///< by output

  session_inputs() = default;
  /// Throws if something cannot be carried.
  session_inputs(const network_source& source, std::span<const carried_value> carried);
};

/// The states of one context. A state lies in memory of the run that computed it, or in memory of its own.
class context_states {
 public:
  context_states(const session_inputs& of, std::span<const open_port> outputs);

  void start(std::string_view name, const shape& dims);
  void set(std::string_view name, const const_tensor_view& contents);
  const_tensor_view at(std::string_view name) const;
  void reset();
  /// All inputs of a run's first stage. States without contents start now.
  void gather(std::span<const const_tensor_view> taken, std::vector<const_tensor_view>& all);
  /// Ends a run: these outputs become the states. `check` throws if they do not fit.
  void check(std::span<const session_output> outputs) const;
  void take(std::span<const session_output> outputs);

 private:
  struct one {
    std::optional<shape> start;
    std::optional<const_tensor_view> now;  ///< none: zeros of the start shape
    tensor own;
  };
  std::size_t find(std::string_view name) const;
  shape start_shape(std::size_t state, std::span<const const_tensor_view> taken) const;

  const session_inputs& of_;
  std::span<const open_port> outputs_;
  std::vector<one> states_;
};

/// Where a value of a stage is found in a run.
struct value_place {
  enum class where : std::uint8_t { given, network, late } from = where::given;
  std::size_t index = 0;   ///< of the given value, of the network's output, or of the late operator
  std::size_t result = 0;  ///< of the late operator
};

/// A stage that was made, with its engine. The members up to `cost_ms` never change once it is ready.
struct session_stage {
  // It was made for these types and contents.
  std::vector<tensor_type> given;
  struct contents {
    std::size_t given = 0;
    std::vector<std::byte> bytes;
  };
  std::vector<contents> decided;

  network_stage about;                             ///< without its network
  std::optional<dynamic_engine> engine;            ///< none if nothing is left to compute
  std::shared_ptr<const traced_engine> described;  ///< the engine, or a stage without one, for traces
  std::vector<std::size_t> engine_inputs;          ///< numbers of given values
  std::vector<std::vector<value_place>> late_operands;
  std::vector<value_place> passed_on;
  struct result {
    std::size_t output = 0;  ///< of the session
    value_place at;
  };
  std::vector<result> results;
  double cost_ms = 0;  ///< of a run, by the plan

  bool is_ready = false;
  std::vector<std::shared_ptr<session_stage>> next;
  std::atomic<std::uint64_t> last_used = 0;
  std::atomic<std::uint64_t> runs = 0;
  std::atomic<bool> is_given_back = false;
  bool is_improved = false;  ///< or was tried to be

  /// Whether it serves these values.
  bool serves(std::span<const const_tensor_view> values) const;
  bool has_types_of(std::span<const const_tensor_view> values) const;
};

using stage_list = std::vector<std::shared_ptr<session_stage>>;

/// All that the contexts of a session share.
struct session_core {
  std::shared_ptr<const network_source> source;
  backend_table backends;
  session_planner planner;
  session_options options;
  session_inputs inputs;
  std::shared_ptr<packed_weights> packed = std::make_shared<packed_weights>();
  constant_pool constants;

  std::mutex mutex;  ///< for all below, and for `next`, `is_ready` and `is_improved` of all stages
  std::condition_variable changed;
  stage_list first;
  session_state counts;
  std::atomic<std::uint64_t> clock = 0;
  std::atomic<std::uint64_t> given_back = 0;  ///< stages; contexts compare it with what they know

  /// The stage after `before` for these values; made now if there is none.
  std::shared_ptr<session_stage> stage_for(const std::shared_ptr<session_stage>& before,
                                           std::span<const const_tensor_view> values);
  /// The stage of a list that serves these values; null if there is none. Call it with the mutex.
  std::shared_ptr<session_stage> ready_stage(const stage_list& list, std::span<const const_tensor_view> values);
  /// As session::improve (session_improve.cpp).
  std::optional<improved_engine> improve(const session_planner& better);
  void touch(session_stage& stage) { stage.last_used.store(++clock, std::memory_order_relaxed); }

 private:
  std::vector<std::string> given_names(const session_stage* before) const;
  /// The network of a stage for these values. Notes in `made` what it was made for and where its values are found.
  graph network_of(session_stage& made, const session_stage* before, std::span<const const_tensor_view> values);
  /// Builds the engine. Without outputs, a network has none, and no plan.
  void build(session_stage& made, const graph& network, const plan* planned, const std::string& name);
  std::string name_of(const session_stage* before, std::span<const const_tensor_view> values) const;
  bool replace(const std::shared_ptr<session_stage>& old, const std::shared_ptr<session_stage>& made,
               stage_list& dropped);
  void connect(session_stage& made, const graph& network, std::span<const std::string> names) const;
  void keep_within_limits(const session_stage& in_use, std::size_t packed_bytes, stage_list& dropped);
};

}  // namespace collage::inline v0::detail
