// From a placement to kernels that run one by one.
#include "step_runner.hpp"

#include <collage/error.hpp>
#include <collage/run/node_group.hpp>
#include <collage/run/planned_kernel.hpp>
#include <collage/run/views.hpp>
#include <collage/run/waiting.hpp>

#include <algorithm>
#include <utility>

namespace collage::inline v0::detail {

step_runner::step_runner(const graph& network, const placement& groups, backend_table backends, int threads)
    : network_(network), backends_(backends), threads_(concurrent_threads(threads)) {
  check_contents(network);
  prepare_for_forks();
  lowered_plan plan = lower(network_, nullptr, groups, backends, threads_, packed_);
  used_ = plan.used;
  for (std::uint32_t n = 0; n < plan.storage.size(); ++n) {
    const form& stored = plan.storage.form_at(n);
    if (*stored.space != host_space || stored.element)
      throw error(error_kind::unsupported,
                  "is stored as " + to_text(stored) + ", but errors are measured in float32 on the host",
                  "plan, value " + network.value_name(plan.storage.value_at(n)), "give a plan of processors alone");
    forms_.push_back(stored);
    bytes_.push_back(plan.storage.bytes(n));
  }
  std::size_t workspace = 0;
  for (lowered_step& s : plan.steps) {
    workspace = std::max(workspace, s.run.workspace());
    add_step(std::move(s), plan.storage);
  }
  workspace_ = buffer(workspace);
  find_readers(plan.results);
}

void step_runner::add_step(lowered_step&& from, const value_storage& storage) {
  runner_step s;
  s.how = std::move(from.info.step);
  s.nodes = std::move(from.info.nodes);
  s.in = std::move(from.in);
  for (const std::uint32_t number : from.out) {
    const bool is_unwanted = number < network_.values().size() && !is_wanted(network_, number);
    s.out.push_back(is_unwanted ? no_region : number);
  }
  for (const std::uint32_t n : s.nodes)
    for (const std::uint32_t v : network_.view().inputs_of(n))
      if (network_.at(v).role == value_role::constant) s.constants.push_back(v);
  if (std::holds_alternative<view_step>(s.how)) add_pieces(s, storage);
  else s.run = std::move(from.run);
  steps_.push_back(std::move(s));
}

/// Values that share memory in an engine are copied here.
void step_runner::add_pieces(runner_step& s, const value_storage& storage) const {
  const std::uint32_t result = network_.view().output_of(s.nodes[0]);
  const form& stored = storage.form_at(result);
  for (const value_view& v : views_of(network_, s.nodes[0], stored)) {
    if (v.of == result) {
      const std::uint32_t operand = storage.find(v.value, stored).value();
      s.pieces.push_back({operand, result, 0, v.offset, storage.bytes(operand)});
    } else {
      s.pieces.push_back({storage.find(v.of, stored).value(), result, v.offset, 0, storage.bytes(result)});
    }
  }
}

void step_runner::find_readers(const std::vector<std::uint32_t>& results) {
  results_ = results;
  writer_.assign(size(), -1);
  last_reader_.assign(size(), -1);
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    for (const std::uint32_t number : steps_[i].in)
      if (number != no_region) last_reader_[number] = static_cast<std::int32_t>(i);
    for (const std::uint32_t number : steps_[i].out)
      if (number != no_region) writer_[number] = static_cast<std::int32_t>(i);
  }
  for (const std::uint32_t number : results_) last_reader_[number] = static_cast<std::int32_t>(steps_.size());
}

std::size_t step_runner::all_bytes() const {
  std::size_t all = 0;
  for (std::uint32_t n = 0; n < size(); ++n)
    if (writer_[n] >= 0) all += bytes_[n];
  return all;
}

std::size_t step_runner::most_alive() const {
  std::vector<std::size_t> begins(steps_.size() + 1), ends(steps_.size() + 1);
  for (std::uint32_t n = 0; n < size(); ++n) {
    const bool is_input = writer_[n] < 0 && n < network_.values().size() && network_.at(n).role == value_role::input;
    if (writer_[n] < 0 && !is_input) continue;
    const auto first = static_cast<std::size_t>(std::max(writer_[n], 0));
    begins[first] += bytes_[n];
    ends[std::max(first, static_cast<std::size_t>(std::max(last_reader_[n], 0)))] += bytes_[n];
  }
  std::size_t alive = 0, most = 0;
  for (std::size_t i = 0; i <= steps_.size(); ++i) {
    most = std::max(most, alive += begins[i]);
    alive -= ends[i];
  }
  return most;
}

bool step_runner::reads_constant(std::size_t step, std::uint32_t constant) const {
  return std::ranges::find(steps_[step].constants, constant) != steps_[step].constants.end();
}

std::size_t step_runner::first_reader_of(std::uint32_t constant) const {
  std::size_t step = 0;
  while (step < steps_.size() && !reads_constant(step, constant)) ++step;
  return step;
}

kernel step_runner::built_with(std::size_t step, std::uint32_t constant,
                               const std::shared_ptr<const std::byte>& contents) {
  const runner_step& s = steps_[step];
  if (!std::holds_alternative<kernel_step>(s.how) && !std::holds_alternative<group_step>(s.how)) return {};
  const std::shared_ptr<const std::byte> before = network_.constant(constant).bytes;
  network_.set_bytes(constant, contents);
  kernel made;
  try {
    plan_group g;
    g.step = s.how;
    g.nodes = s.nodes;
    if (const auto* const listed = std::get_if<group_step>(&s.how)) {
      const backend_entry& b = backend_named(backends_, listed->backend);
      build_context context(network_, threads_, *packed_, *b.space);
      const thread_scope scope(b, threads_);
      made = b.build_group(group_of(network_, s.nodes), context);
    } else if (const auto found = planned_kernel::find(network_, backends_, g)) {
      build_context context(network_, threads_, *packed_, *found->backend->space);
      context.set_configuration(found->how);
      const thread_scope scope(*found->backend, threads_);
      made = found->pattern->build(network_.view(), found->record, context);
    }
  } catch (...) {
    network_.set_bytes(constant, before);
    throw;
  }
  network_.set_bytes(constant, before);
  return made;
}

}  // namespace collage::inline v0::detail
