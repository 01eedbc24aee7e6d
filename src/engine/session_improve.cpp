// Planning engines of a session anew, while it runs.
#include "../process/forks.hpp"
#include "session_parts.hpp"

#include <collage/error.hpp>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <optional>
#include <utility>

namespace collage::inline v0::detail {
namespace {

/// The stage whose runs took most time, by the costs of its plan, among those that were not improved.
struct busiest_stage {
  std::shared_ptr<session_stage> stage, before;
  double time = -1;

  void look(const stage_list& list, const std::shared_ptr<session_stage>& parent) {
    for (const auto& s : list) {
      if (!s->is_ready) continue;
      look(s->next, s);
      if (!s->engine || s->is_improved) continue;
      constexpr double least_cost = 1e-6;  // plans without costs are compared by runs
      const double own =
          (1 + static_cast<double>(s->runs.load(std::memory_order_relaxed))) * std::max(s->cost_ms, least_cost);
      if (own <= time) continue;
      stage = s;
      before = parent;
      time = own;
    }
  }
};

/// Values that a stage serves: those that decided something, and zeros.
std::vector<tensor> values_of(const session_stage& stage) {
  std::vector<tensor> values;
  for (const tensor_type& type : stage.given) values.emplace_back(type);
  for (const session_stage::contents& c : stage.decided)
    if (!c.bytes.empty()) std::memcpy(values[c.given].data(), c.bytes.data(), c.bytes.size());
  return values;
}

/// The list that has a stage, below a list; null if none has it.
stage_list* list_with(stage_list& list, const std::shared_ptr<session_stage>& stage) {
  if (std::ranges::find(list, stage) != list.end()) return &list;
  for (const auto& s : list)
    if (stage_list* const found = list_with(s->next, stage); found != nullptr) return found;
  return nullptr;
}

}  // namespace

/// False: the old stage is not there any more.
bool session_core::replace(const std::shared_ptr<session_stage>& old, const std::shared_ptr<session_stage>& made,
                           stage_list& dropped) {
  const no_fork_scope whole;
  std::unique_lock lock(mutex);
  // A thread that makes a stage after the old one adds it there.
  changed.wait(lock, [&] { return std::ranges::all_of(old->next, &session_stage::is_ready); });
  stage_list* const list = list_with(first, old);
  if (list == nullptr) return false;
  made->next = old->next;  // runs under way may still look for them there
  made->last_used.store(old->last_used.load());
  made->runs.store(old->runs.load());
  made->is_ready = made->is_improved = true;
  old->is_given_back = true;
  ++given_back;
  ++counts.made;
  ++counts.improved;
  dropped.push_back(std::exchange(*std::ranges::find(*list, old), made));
  keep_within_limits(*made, 0, dropped);  // packed weights of the old one are counted until its contexts let it go
  return true;
}

std::optional<improved_engine> session_core::improve(const session_planner& better) {
  busiest_stage found;
  {
    const brief_no_fork_scope look;
    const std::lock_guard lock(mutex);
    found.look(first, nullptr);
    if (found.stage == nullptr) return std::nullopt;
    found.stage->is_improved = true;
  }
  const auto began = std::chrono::steady_clock::now();
  const auto made = std::make_shared<session_stage>();
  made->given = found.stage->given;
  improved_engine done;
  done.runs = found.stage->runs.load(std::memory_order_relaxed);
  stage_list dropped;  // destroyed after all locks are released
  try {
    const graph network = [&] {
      const no_fork_scope whole;
      const std::vector<tensor> values = values_of(*found.stage);
      const std::vector<const_tensor_view> views(values.begin(), values.end());
      done.made_for = name_of(found.before.get(), views);
      return network_of(*made, found.before.get(), views);
    }();
    const plan planned = better(network, nullptr);  // for minutes, in which the session serves others, and forks
    {
      const no_fork_scope whole;
      build(*made, network, &planned, done.made_for);
    }
    done.is_replaced = replace(found.stage, made, dropped);
  } catch (const error& e) {
    if (e.kind() == error_kind::cancelled) {  // another call may try again
      const brief_no_fork_scope look;
      const std::lock_guard lock(mutex);
      found.stage->is_improved = false;
    }
    throw;
  } catch (...) { refuse_again(); }
  done.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  return done;
}

}  // namespace collage::inline v0::detail

namespace collage::inline v0 {

std::optional<improved_engine> session::improve(const session_planner& better) const {
  if (better == nullptr) throw error(error_kind::invalid_argument, "needs a planner", "session::improve");
  return core_->improve(better);
}

}  // namespace collage::inline v0
