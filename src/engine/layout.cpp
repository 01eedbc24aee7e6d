// From kernels over storage to a program: the caller's memory, constants, and arenas planned by lifetimes.
#include "parts.hpp"

#include <collage/run/memory_plan.hpp>
#include <collage/run/node_group.hpp>

#include <algorithm>

namespace collage::inline v0::detail {
namespace {

using home = program_region::home;

class layout_pass {
 public:
  layout_pass(const graph& network, lowered_plan plan, int threads) : network_(network), plan_(std::move(plan)) {
    code().threads = threads;
    code().arenas.resize(1);
  }

  linked_program run() && {
    name_ports();
    make_regions();
    place_inputs_and_constants();
    place_outputs();
    plan_arenas();
    place_parts();
    write_instructions();
    made_.code.constants = made_.constants.size();
    return std::move(made_);
  }

 private:
  static constexpr std::size_t nothing = static_cast<std::size_t>(-1);

  program& code() { return made_.code; }
  std::vector<program_region>& regions() { return made_.code.regions; }
  std::uint32_t whole(std::uint32_t number) const { return plan_.storage.whole(number).of; }
  bool is_value(std::uint32_t number) const { return number < network_.values().size(); }
  std::uint32_t step_count() const { return static_cast<std::uint32_t>(plan_.steps.size()); }

  void name_ports() {
    for (const std::uint32_t v : network_.inputs())
      code().inputs.push_back({network_.value_name(v), network_.type_of(v)});
    for (std::size_t i = 0; i < network_.outputs().size(); ++i)
      code().outputs.push_back({network_.output_name(i), network_.type_of(network_.outputs()[i])});
  }

  void make_regions() {
    for (std::uint32_t i = 0; i < plan_.storage.size(); ++i)
      regions().push_back(
          {.value = plan_.storage.value_at(i), .stored = plan_.storage.form_at(i), .bytes = plan_.storage.bytes(i)});
  }

  void add_constant(std::uint32_t number, std::shared_ptr<const std::byte> contents) {
    regions()[number].where = home::weights;
    regions()[number].index = static_cast<std::uint32_t>(made_.constants.size());
    made_.constants.push_back(std::move(contents));
  }
  void place_inputs_and_constants() {
    for (std::uint32_t i = 0; i < network_.inputs().size(); ++i) {
      regions()[network_.inputs()[i]].where = home::callers_input;
      regions()[network_.inputs()[i]].index = i;
    }
    std::vector<bool> needed(regions().size(), false);
    for (const lowered_step& s : plan_.steps)
      for (const std::uint32_t number : s.in)
        if (number != no_region && !is_view(s)) needed[whole(number)] = true;
    for (const std::uint32_t number : plan_.results) needed[whole(number)] = true;
    for (std::uint32_t v = 0; v < network_.values().size(); ++v)
      if (needed[v] && network_.at(v).role == value_role::constant) add_constant(v, network_.constant(v).bytes);
    for (auto* const list : {&plan_.on_devices, &plan_.computed})
      for (auto& [number, contents] : *list) add_constant(number, std::move(contents));
  }
  static bool is_view(const lowered_step& s) { return s.info.is_view(); }

  /// An output whose memory a kernel writes first is written in the caller's memory; others, second names and parts are copied
  /// at the end.
  void place_outputs() {
    for (std::uint32_t i = 0; i < plan_.results.size(); ++i) {
      const std::uint32_t number = plan_.results[i];
      const auto [of, offset] = plan_.storage.whole(number);
      const bool is_all = offset == 0 && regions()[of].bytes == regions()[number].bytes;
      const bool is_computed = !is_value(of) || network_.at(of).producer >= 0;
      if (is_all && is_computed && regions()[of].where == home::nowhere) {
        regions()[of].where = home::callers_output;
        regions()[of].index = i;
      } else {
        copied_.emplace_back(number, i);
      }
    }
  }

  std::uint32_t arena_of(const memory_space& space) {
    for (std::uint32_t a = 0; a < code().arenas.size(); ++a)
      if (*code().arenas[a].space == space) return a;
    code().arenas.push_back({&space, 0, 0});
    return static_cast<std::uint32_t>(code().arenas.size() - 1);
  }

  /// One block of an arena: what lies there, and for how long.
  struct block {
    memory_request request;
    std::uint32_t arena = 0;
  };

  /// Lifetimes count steps, from the first step that writes the memory to the last that reads it.
  void plan_arenas() {
    find_last_reads();
    block_of_.assign(regions().size(), nothing);
    for (std::uint32_t s = 0; s < step_count(); ++s)
      if (!is_view(plan_.steps[s])) request_outputs(s);
    workspace_.assign(step_count(), no_region);
    for (std::uint32_t s = 0; s < step_count(); ++s) request_workspace(s);
    const std::vector<std::size_t> offset = offsets();
    for (std::uint32_t i = 0; i < block_of_.size(); ++i) {
      if (block_of_[i] == nothing) continue;
      const block& b = blocks_[block_of_[i]];
      program_region& r = regions()[i];
      r.where = home::arena;
      r.index = b.arena;
      r.offset = offset[block_of_[i]];
    }
  }
  void find_last_reads() {
    last_read_.assign(regions().size(), 0);
    for (std::uint32_t s = 0; s < step_count(); ++s)
      for (const std::uint32_t number : plan_.steps[s].in)
        if (number != no_region && !is_view(plan_.steps[s])) last_read_[whole(number)] = s;
    for (const auto& [number, output] : copied_) last_read_[whole(number)] = std::max(step_count(), 1U);
  }
  void request_outputs(std::uint32_t s) {
    bool is_in_place = false;  // of several outputs one: what a kernel lets each do it need not let all
    for (std::size_t o = 0; o < plan_.steps[s].out.size(); ++o) {
      const std::uint32_t out = plan_.steps[s].out[o], of = whole(out);
      if (regions()[of].where != home::nowhere) continue;
      if (is_value(out) && !is_wanted(network_, out)) continue;
      const bool is_new = block_of_[of] == nothing;
      if (is_new) regions()[of].first = s;
      if (is_new && !is_in_place) {
        block_of_[of] = written_over(s, o);
        is_in_place = block_of_[of] != nothing;
        if (is_in_place) in_place_.emplace_back(s, o);
      }
      if (block_of_[of] == nothing) {
        block_of_[of] = blocks_.size();
        blocks_.push_back({{regions()[of].bytes, s, s}, arena_of(*regions()[of].stored.space)});
      }
      regions()[of].last = std::max({regions()[of].last, s, last_read_[of]});
      memory_request& r = blocks_[block_of_[of]].request;
      r.last_step = std::max(r.last_step, regions()[of].last);
    }
  }
  /// The block of an argument that an output of a step may be written over. Its kernel must allow that, no later step may read
  /// the argument, and this step may read it only once.
  std::size_t written_over(std::uint32_t s, std::size_t output) {
    const lowered_step& step = plan_.steps[s];
    const std::uint32_t out = step.out[output];
    const std::size_t bytes = regions()[out].bytes;
    if (whole(out) != out) return nothing;  // it has its place
    for (std::size_t i = 0; i < step.in.size(); ++i) {
      if (step.in[i] == no_region || !step.run.writes_over(i, output)) continue;
      const std::size_t which = block_of_[whole(step.in[i])];
      if (which == nothing) continue;
      const auto is_same = [&](std::uint32_t other) { return other != no_region && block_of_[whole(other)] == which; };
      const memory_request& r = blocks_[which].request;
      if (r.last_step == s && r.bytes == bytes && blocks_[which].arena == arena_of(*regions()[out].stored.space) &&
          regions()[step.in[i]].bytes == bytes && std::ranges::count_if(step.in, is_same) == 1)
        return which;
    }
    return nothing;
  }
  /// A workspace is needed only during its step.
  void request_workspace(std::uint32_t s) {
    const lowered_step& step = plan_.steps[s];
    if (is_view(step) || step.run.workspace() == 0) return;
    workspace_[s] = static_cast<std::uint32_t>(regions().size());
    program_region r;
    r.stored.space = step.space;
    r.bytes = step.run.workspace();
    r.first = r.last = s;
    regions().push_back(r);
    block_of_.push_back(blocks_.size());
    blocks_.push_back({{r.bytes, s, s}, arena_of(*step.space)});
  }
  /// Where each block lies in its arena.
  std::vector<std::size_t> offsets() {
    std::vector<std::size_t> offset(blocks_.size());
    for (std::uint32_t a = 0; a < code().arenas.size(); ++a) {
      std::vector<memory_request> here;
      for (const block& b : blocks_)
        if (b.arena == a) here.push_back(b.request);
      const memory_plan memory = plan_memory(here, code().arenas[a].space->alignment);
      for (std::size_t b = 0, at = 0; b < blocks_.size(); ++b)
        if (blocks_[b].arena == a) offset[b] = memory.offset[at++];
      code().arenas[a].bytes = memory.bytes;
      code().arenas[a].bound = memory.lower_bound;
    }
    return offset;
  }

  void place_parts() {
    for (std::uint32_t i = 0; i < plan_.storage.size(); ++i) {
      const auto [of, offset] = plan_.storage.whole(i);
      if (of == i || regions()[of].where == home::nowhere) continue;
      regions()[i].where = home::part;
      regions()[i].index = of;
      regions()[i].offset = offset;
    }
  }

  std::uint32_t present(std::uint32_t number) {
    return number != no_region && regions()[number].where != home::nowhere ? number : no_region;
  }
  void write_instructions() {
    for (std::uint32_t s = 0; s < step_count(); ++s) {
      lowered_step& from = plan_.steps[s];
      program_instruction made = std::move(from.info);
      for (const std::uint32_t number : from.in) made.in.push_back({present(number), access::in});
      for (std::size_t o = 0; o < from.out.size(); ++o) {
        const bool is_over = std::ranges::binary_search(in_place_, std::pair(s, o));
        made.out.push_back({present(from.out[o]), is_over ? access::inout : access::out});
      }
      made.workspace = workspace_[s];
      made_.kernels.push_back(std::move(from.run));
      code().instructions.push_back(std::move(made));
    }
    const auto last = static_cast<std::uint32_t>(step_count() + copied_.size() - 1);
    for (const auto& [number, output] : copied_) {
      regions()[whole(number)].last = last;
      program_region to;
      to.value = plan_.storage.value_at(number);
      to.bytes = regions()[number].bytes;
      to.where = home::callers_output;
      to.index = static_cast<std::uint32_t>(output);
      program_instruction copy;
      copy.step = copy_step();
      copy.kernel = "copy";
      copy.label = code().outputs[output].name;
      copy.in = {{number, access::in}};
      copy.out = {{static_cast<std::uint32_t>(regions().size()), access::out}};
      regions().push_back(to);
      made_.kernels.emplace_back();
      code().instructions.push_back(std::move(copy));
    }
  }

  const graph& network_;
  lowered_plan plan_;
  linked_program made_;
  std::vector<std::pair<std::uint32_t, std::size_t>> copied_;  // number of storage, output
  std::vector<block> blocks_;
  std::vector<std::size_t> block_of_;                            // by region
  std::vector<std::uint32_t> last_read_;                         // by number of storage: the step
  std::vector<std::uint32_t> workspace_;                         // by step: the region
  std::vector<std::pair<std::uint32_t, std::size_t>> in_place_;  // step, output: written over an argument; ascending
};

}  // namespace

linked_program lay_out(const graph& network, lowered_plan plan, int threads) {
  return layout_pass(network, std::move(plan), threads).run();
}

}  // namespace collage::inline v0::detail
