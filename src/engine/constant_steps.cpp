// Steps whose results are the same in every run: they run once, when the engine is built.
#include "parts.hpp"

#include <collage/detail/hash.hpp>
#include <collage/op/quantise.hpp>
#include <collage/pass/fold_constants.hpp>
#include <collage/run/buffers.hpp>

#include <algorithm>

namespace collage::inline v0::detail {
namespace {

/// Whether a step dequantises a constant, into memory that is all its own and not the caller's.
///
/// Kernels on integers read such constants themselves, so `fold_constants` leaves them. Where a plan has a step for it, its kernels
/// read the numbers. Results that are too large to be folded stay steps.
bool is_constant(const graph& network, const lowered_plan& plan, const lowered_step& s) {
  if (!s.run || s.info.nodes.size() != 1 || s.out.size() != 1 || *s.space != host_space) return false;
  const node_record& node = network.node(s.info.nodes[0]);
  if (node.kind->id != kind_id<struct ops::dequantize_linear>) return false;
  const std::uint32_t out = s.out[0];
  if (out == no_region || plan.storage.whole(out).of != out || network.at(out).is_output) return false;
  if (plan.storage.bytes(out) > fold_options().largest) return false;
  const auto is_known = [&](std::uint32_t v) {
    return network.at(v).role == value_role::constant && network.constant(v).bytes != nullptr;
  };
  return std::ranges::all_of(network.view().inputs_of(s.info.nodes[0]), is_known);
}

/// All that the result depends on besides the first operand.
std::string packing_of(const graph& network, const lowered_step& s, const form& stored) {
  std::uint64_t key = hash(s.run.name().data(), s.run.name().size());
  for (const std::uint64_t word : network.view().words_of(s.info.nodes[0])) key = combine(key, word);
  for (const std::uint32_t v : network.view().inputs_of(s.info.nodes[0]).subspan(1)) {
    const std::span<const std::byte> bytes = network.bytes_of(v);
    key = combine(key, hash(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  }
  return "dequantised to " + to_text(stored) + " by " + std::to_string(key);
}

}  // namespace

void run_constant_steps(const graph& network, lowered_plan& plan, backend_table backends, int threads,
                        packed_weights& packed) {
  for (lowered_step& s : plan.steps) {
    if (!is_constant(network, plan, s)) continue;
    const std::uint32_t out = s.out[0];
    const auto run = [&](std::byte* made) {
      std::vector<const void*> in;
      for (const std::uint32_t v : s.in) in.push_back(v != no_region ? network.bytes_of(v).data() : nullptr);
      const buffer workspace(s.run.workspace());
      void* const to[] = {made};
      const thread_scope scope(backend_named(backends, runner_of(s.info.step)), threads);
      s.run({in.data(), to, workspace.data()});
    };
    const std::uint32_t integers = network.view().inputs_of(s.info.nodes[0])[0];
    plan.computed.emplace_back(
        out, packed.get(network.constant(integers).bytes, packing_of(network, s, plan.storage.form_at(out)),
                        plan.storage.bytes(out), run));
    // The step stays in the list, because a caller that times steps counts one for each group of the plan.
    s.info.kernel += " (once)";
    s.run = kernel(s.info.kernel, [](const kernel_call&) {});
    s.in.clear();
    s.out.clear();
  }
}

}  // namespace collage::inline v0::detail
