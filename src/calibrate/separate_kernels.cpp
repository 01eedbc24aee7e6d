// A placement whose kernels write each value of a list, without measuring anything.
#include <collage/calibrate/value_errors.hpp>
#include <collage/error.hpp>
#include <collage/run/kernel.hpp>
#include <collage/run/processor.hpp>
#include <collage/set/candidate.hpp>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "plain_kernel.hpp"

namespace collage::inline v0 {
namespace {

/// Goes from the last node to the first. A kernel with one exit that ends at a node takes only nodes before it, so no two of them
/// wait for each other.
class separate_placing {
 public:
  separate_placing(const graph& network, backend_table backends, std::span<const std::uint32_t> visible, int threads)
      : network_(network),
        threads_(threads),
        is_visible_(network.values().size()),
        is_covered_(network.nodes().size()) {
    for (const std::uint32_t v : visible) {
      if (v >= is_visible_.size())
        throw error(error_kind::invalid_argument,
                    "does not exist: the network has " + std::to_string(is_visible_.size()) + " values",
                    "value " + std::to_string(v));
      is_visible_[v] = true;
    }
    for (const backend_entry& b : backends)
      if (*b.space == host_space && !b.takes_regions && !b.patterns.empty() && b.probe().available)
        backends_.push_back(&b);
    all_ = backends;
  }

  placement run() {
    placement made;
    made.name = "separate kernels";
    for (auto n = static_cast<std::uint32_t>(network_.nodes().size()); n-- > 0;)
      if (!is_covered_[n]) made.groups.push_back(group_at(n));
    std::ranges::reverse(made.groups);
    return made;
  }

 private:
  struct choice {
    const backend_entry* backend = nullptr;
    const pattern_entry* pattern = nullptr;
    match_record record;
  };

  plan_group group_at(std::uint32_t node) {
    plan_group g;
    g.nodes = {node};
    is_covered_[node] = true;
    if (is_alias(network_.view(), node)) {
      g.step = view_step{};
      g.kernel = "view";
    } else if (is_control(network_.view(), node)) {
      control_step step;
      for (const std::shared_ptr<const graph>& body : network_.bodies_of(node))
        step.bodies.push_back(separate_placing(*body, all_, {}, threads_).run());
      g.step = std::move(step);
    } else {
      choose_kernel(node, g);
    }
    return g;
  }

  void choose_kernel(std::uint32_t node, plan_group& g) {
    std::string why;
    for (const choice& c : choices_at(node)) {
      const auto made = detail::build_plain(network_, *c.backend, *c.pattern, c.record, threads_, packed_, why);
      if (!made) continue;
      g.step = kernel_step{c.backend->name, c.pattern->name, made->how.text()};
      g.nodes.assign(c.record.node_list().begin(), c.record.node_list().end());
      std::ranges::sort(g.nodes);
      for (const std::uint32_t n : g.nodes) is_covered_[n] = true;
      return;
    }
    throw error(error_kind::unsupported,
                "cannot be run by a kernel of its own: " + (why.empty() ? "no backend's pattern takes it" : why),
                "node " + network_.node_name(node), "give more backends, such as portable");
  }

  /// The matches that end at a node and hide no visible value: fallbacks last, large ones first, then in the order of the table.
  std::vector<choice> choices_at(std::uint32_t node) const {
    std::vector<choice> found;
    for (const backend_entry* const b : backends_)
      for (const pattern_entry& p : b->patterns) {
        choice c{b, &p, {}};
        verdict why;
        if (candidate_at(network_.view(), p, node, c.record, why) == candidate_state::found && fits(c.record, node))
          found.push_back(c);
      }
    std::ranges::stable_sort(found, {}, [](const choice& c) {
      return std::tuple(c.pattern->last_resort, -static_cast<std::int64_t>(c.record.nodes));
    });
    return found;
  }
  bool fits(const match_record& record, std::uint32_t node) const {
    if (!has_one_exit(network_.view(), record)) return false;
    return std::ranges::all_of(record.node_list(), [&](std::uint32_t n) {
      if (n == node) return true;
      if (n > node || is_covered_[n]) return false;
      for (std::uint32_t i = 0; i < network_.node(n).outputs; ++i)
        if (is_visible_[network_.view().output_of(n, i)]) return false;
      return true;
    });
  }

  const graph& network_;
  int threads_;
  backend_table all_;
  std::vector<const backend_entry*> backends_;
  std::vector<bool> is_visible_, is_covered_;
  packed_weights packed_;
};

}  // namespace

placement separate_kernels(const graph& network, backend_table backends, std::span<const std::uint32_t> visible,
                           int threads) {
  check_contents(network);
  return separate_placing(network, backends, visible, threads > 0 ? threads : available_threads()).run();
}

}  // namespace collage::inline v0
