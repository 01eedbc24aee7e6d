// Making the stages of a session, finding them again, and giving engines back.
#include "../process/forks.hpp"
#include "session_parts.hpp"

#include <collage/pass/optimise.hpp>
#include <collage/pass/remove_duplicates.hpp>

#include <collage/detail/size_check.hpp>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <new>
#include <stdexcept>

namespace collage::inline v0::detail {

void constant_pool::share(graph& network) {
  const std::lock_guard lock(mutex_);
  ++networks_;
  share_within(network);
  forget_unused();
}

void constant_pool::share_within(graph& network) {
  const graph_view view = network.view();
  for (std::uint32_t v = 0; v < network.values().size(); ++v) {
    const constant_data& data = network.constant(v);
    if (network.at(v).role != value_role::constant || data.bytes == nullptr) continue;
    network.set_bytes(v, shared(data.bytes, network.type_of(v).bytes()));
  }
  for (std::uint32_t n = 0; n < view.nodes.size(); ++n) {
    const auto bodies = network.bodies_of(n);
    for (std::size_t i = 0; i < bodies.size(); ++i) {
      graph body = *bodies[i];
      share_within(body);
      network.set_body(n, i, std::make_shared<const graph>(std::move(body)));
    }
  }
}

std::shared_ptr<const std::byte> constant_pool::shared(const std::shared_ptr<const std::byte>& bytes,
                                                       std::size_t size) {
  if (size == 0) return bytes;
  if (const auto here = by_address_.find(bytes.get()); here != by_address_.end() && here->second->size == size) {
    here->second->used = networks_;
    return bytes;
  }
  const std::uint64_t hash = hash_contents({bytes.get(), size});
  const auto [from, to] = by_hash_.equal_range(hash);
  for (auto it = from; it != to; ++it)
    if (it->second.size == size && std::memcmp(it->second.bytes.get(), bytes.get(), size) == 0) {
      it->second.used = networks_;
      return it->second.bytes;
    }
  by_address_[bytes.get()] = &by_hash_.emplace(hash, known{bytes, size, networks_})->second;
  return bytes;
}

void constant_pool::forget_unused() {
  constexpr std::uint64_t recent = 8;
  for (auto it = by_hash_.begin(); it != by_hash_.end();) {
    const known& k = it->second;
    if (k.bytes.use_count() > 1 || k.used + recent >= networks_) {
      ++it;
      continue;
    }
    by_address_.erase(k.bytes.get());
    it = by_hash_.erase(it);
  }
}

bool session_stage::has_types_of(std::span<const const_tensor_view> values) const {
  return std::equal(given.begin(), given.end(), values.begin(), values.end(),
                    [](const tensor_type& own, const const_tensor_view& other) { return own == other.type; });
}

bool session_stage::serves(std::span<const const_tensor_view> values) const {
  if (!has_types_of(values)) return false;
  return std::all_of(decided.begin(), decided.end(), [&](const contents& c) {
    return c.bytes.empty() || std::memcmp(c.bytes.data(), values[c.given].data, c.bytes.size()) == 0;
  });
}

namespace {

/// Throws if a value is larger than it may be. Kernels that are built for it could already take all memory.
void limit_values(const graph& network, std::size_t most) {
  for (std::uint32_t v = 0; v < network.values().size(); ++v) {
    const tensor_type& type = network.type_of(v);
    constexpr std::size_t small = std::size_t{1} << 20;
    if (network.at(v).role == value_role::constant || type.bytes() <= (most != 0 ? std::min(most, small) : small))
      continue;
    const std::string where = "value " + network.value_name(v) + ", " + to_string(type);
    if (most != 0 && type.bytes() > most)
      throw error(error_kind::invalid_argument,
                  "has " + std::to_string(type.bytes()) + " bytes at these shapes, and a value may have " +
                      std::to_string(most),
                  where, "raise session_options::most_value_bytes");
    check_size(type.bytes(), where.c_str());
  }
  for (std::uint32_t n = 0; n < network.nodes().size(); ++n)
    for (const auto& body : network.bodies_of(n)) limit_values(*body, most);
}

}  // namespace

std::vector<std::string> session_core::given_names(const session_stage* before) const {
  if (before != nullptr) return before->about.passed_on;
  std::vector<std::string> names;
  for (const open_port& p : source->inputs()) names.push_back(p.name);
  return names;
}

/// The values that a stage is made for, as "x float32[2x3], y float32[4]"; of many, the first.
std::string session_core::name_of(const session_stage* before, std::span<const const_tensor_view> values) const {
  constexpr std::size_t most = 4;
  const std::vector<std::string> names = given_names(before);
  std::string name;
  for (std::size_t i = 0; i < std::min(most, values.size()); ++i)
    name += (i == 0 ? "" : ", ") + names[i] + " " + to_string(values[i].type);
  if (values.size() > most) name += " and " + std::to_string(values.size() - most) + " more";
  return name;
}

void refuse_again() {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    throw error(error_kind::environment, "out of memory for the network at these shapes", "a run");
  } catch (const std::length_error&) {
    throw error(error_kind::environment, "the network at these shapes needs a list longer than any memory", "a run");
  }
}

std::shared_ptr<session_stage> session_core::ready_stage(const stage_list& list,
                                                         std::span<const const_tensor_view> values) {
  for (const auto& stage : list)
    if (stage->is_ready && stage->serves(values)) {
      touch(*stage);
      return stage;
    }
  return nullptr;
}

std::shared_ptr<session_stage> session_core::stage_for(const std::shared_ptr<session_stage>& before,
                                                       std::span<const const_tensor_view> values) {
  stage_list& list = before != nullptr ? before->next : first;
  {
    const brief_no_fork_scope look;  // a fork that waits for others' engines does not stop those that have theirs
    const std::lock_guard lock(mutex);
    if (std::shared_ptr<session_stage> ready = ready_stage(list, values)) return ready;
  }
  const no_fork_scope whole;
  std::unique_lock lock(mutex);
  const auto is_being_made = [&](const auto& stage) { return !stage->is_ready && stage->has_types_of(values); };
  for (;;) {
    if (std::shared_ptr<session_stage> ready = ready_stage(list, values)) return ready;
    if (std::ranges::none_of(list, is_being_made)) break;
    changed.wait(lock);
  }
  const auto made = std::make_shared<session_stage>();
  for (const const_tensor_view& v : values) made->given.push_back(v.type);
  list.push_back(made);
  lock.unlock();
  const auto began = std::chrono::steady_clock::now();
  try {
    const graph network = network_of(*made, before.get(), values);
    std::optional<plan> planned;
    if (!network.outputs().empty()) planned = planner(network, packed);
    build(*made, network, planned ? &*planned : nullptr, name_of(before.get(), values));
  } catch (...) {
    lock.lock();
    std::erase(list, made);
    changed.notify_all();
    lock.unlock();
    refuse_again();
  }
  const std::size_t packed_bytes = options.most_bytes != 0 ? packed->bytes() : 0;
  stage_list dropped;  // destroyed after the lock is released
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - began;
  lock.lock();
  counts.made += made->engine ? 1 : 0;
  counts.making_ms = took.count();
  made->is_ready = true;
  touch(*made);
  if (before != nullptr && before->is_given_back) {
    // The stage before was given back meanwhile: this one is for this run alone.
    made->is_given_back = true;
    ++given_back;
  }
  keep_within_limits(*made, packed_bytes, dropped);
  changed.notify_all();
  lock.unlock();
  return made;
}

graph session_core::network_of(session_stage& made, const session_stage* before,
                               std::span<const const_tensor_view> values) {
  const std::vector<std::string> names = given_names(before);
  std::vector<given_value> given;
  for (std::size_t i = 0; i < values.size(); ++i) given.push_back({names[i], values[i]});
  made.about = source->make(before != nullptr ? &before->about : nullptr, given);
  graph network = options.optimise ? optimise(made.about.network) : made.about.network;
  made.about.network = {};
  for (const std::string& name : made.about.decided_by) {
    const auto at = static_cast<std::size_t>(std::find(names.begin(), names.end(), name) - names.begin());
    if (at == names.size()) throw error(error_kind::failure, "a stage depends on a value that it is not given", name);
    const auto* const from = static_cast<const std::byte*>(values[at].data);
    made.decided.push_back({at, {from, from + values[at].type.bytes()}});
  }
  limit_values(network, options.most_value_bytes);
  connect(made, network, names);
  if (!network.outputs().empty()) constants.share(network);
  return network;
}

void session_core::build(session_stage& made, const graph& network, const plan* planned, const std::string& name) {
  if (planned != nullptr) {
    made.engine.emplace(network, planned->chosen, backends, planned->threads, packed);
    made.cost_ms = planned->chosen.cost_ms;
    made.described = traced(*made.engine, network, name);
  } else {
    auto empty = std::make_shared<traced_engine>();
    empty->name = name;
    made.described = std::move(empty);
  }
}

/// Notes where the values of a stage are found in a run.
void session_core::connect(session_stage& made, const graph& network, std::span<const std::string> names) const {
  const auto find = [&](const std::string& name) -> value_place {
    for (std::size_t i = 0; i < network.outputs().size(); ++i)
      if (network.output_name(i) == name) return {value_place::where::network, i};
    for (std::size_t i = 0; i < names.size(); ++i)
      if (names[i] == name) return {value_place::where::given, i};
    for (std::size_t i = 0; i < made.about.late.size(); ++i)
      for (std::size_t k = 0; k < made.about.late[i].results.size(); ++k)
        if (made.about.late[i].results[k] == name) return {value_place::where::late, i, k};
    throw error(error_kind::failure, "a stage does not compute a value that is needed after it", name);
  };
  for (const std::uint32_t v : network.inputs()) {
    const auto at = std::find(names.begin(), names.end(), network.value_name(v));
    if (at == names.end())
      throw error(error_kind::failure, "a stage reads a value that it is not given", network.value_name(v));
    made.engine_inputs.push_back(static_cast<std::size_t>(at - names.begin()));
  }
  for (const late_operator& op : made.about.late) {
    std::vector<value_place> operands;
    for (const std::string& name : op.operands) operands.push_back(find(name));
    made.late_operands.push_back(std::move(operands));
  }
  for (const std::string& name : made.about.passed_on) made.passed_on.push_back(find(name));
  const std::span<const open_port> outputs = source->outputs();
  for (const std::string& name : made.about.results)
    for (std::size_t i = 0; i < outputs.size(); ++i)
      if (outputs[i].name == name) made.results.push_back({i, find(name)});
}

namespace {

/// The stage without a stage after it that was used longest ago, and the list that holds it. Those being made are left out.
struct oldest_stage {
  stage_list* list = nullptr;
  std::size_t at = 0;
  std::uint64_t used = 0;
  std::size_t engines = 0, count = 0;  ///< of all stages

  explicit oldest_stage(stage_list& stages, const session_stage& in_use) { look(stages, in_use); }

  void look(stage_list& stages, const session_stage& in_use) {
    for (std::size_t i = 0; i < stages.size(); ++i) {
      session_stage& s = *stages[i];
      if (!s.is_ready) continue;
      ++count;
      engines += s.engine ? 1 : 0;
      look(s.next, in_use);
      if (!s.next.empty() || &s == &in_use) continue;
      const std::uint64_t own = s.last_used.load(std::memory_order_relaxed);
      if (list == nullptr || own < used) {
        list = &stages;
        at = i;
        used = own;
      }
    }
  }
};

}  // namespace

void session_core::keep_within_limits(const session_stage& in_use, std::size_t packed_bytes, stage_list& dropped) {
  const std::size_t most = std::max<std::size_t>(options.most_engines, 1);
  // Packed weights go with the last context that has the engine. So of too many bytes, each new stage gives back one engine.
  bool has_too_many_bytes = options.most_bytes != 0 && packed_bytes > options.most_bytes;
  for (;;) {
    const oldest_stage oldest(first, in_use);
    counts.engines = oldest.engines;
    constexpr std::size_t stages_per_engine = 4;  // stages without an engine are small, and yet not for free
    const bool is_over = oldest.engines > most || oldest.count > stages_per_engine * most;
    if (!(is_over || has_too_many_bytes) || oldest.list == nullptr) return;
    has_too_many_bytes = false;
    std::shared_ptr<session_stage>& stage = (*oldest.list)[oldest.at];
    counts.given_back += stage->engine ? 1 : 0;
    stage->is_given_back = true;
    ++given_back;
    dropped.push_back(std::move(stage));
    oldest.list->erase(oldest.list->begin() + static_cast<std::ptrdiff_t>(oldest.at));
  }
}

}  // namespace collage::inline v0::detail
