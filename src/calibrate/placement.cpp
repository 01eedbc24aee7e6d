#include "parts.hpp"
#include "plain_kernel.hpp"

#include <collage/error.hpp>
#include <collage/set/candidate.hpp>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

namespace collage::inline v0::detail {
namespace {

class unfused_placer {
 public:
  unfused_placer(const graph& network, backend_table backends, int threads,
                 const std::shared_ptr<packed_weights>& packed)
      : network_(network), backends_(backends), threads_(threads), packed_(packed) {
    for (const backend_entry& b : backends)
      usable_.push_back(*b.space == host_space && !b.takes_regions && b.probe().available);
  }

  unfused_placement run() && {
    done_.made.name = "plan";
    for (std::uint32_t n = 0; n < network_.nodes().size(); ++n) {
      plan_group g;
      g.nodes = {n};
      if (is_alias(network_.view(), n)) g.step = view_step{};
      else if (is_control(network_.view(), n)) g.step = control(n);
      else g.step = find_kernel(n);
      done_.made.groups.push_back(std::move(g));
    }
    return std::move(done_);
  }

 private:
  control_step control(std::uint32_t node) {
    control_step step;
    for (const std::shared_ptr<const graph>& body : network_.bodies_of(node)) {
      unfused_placement inside = place_unfused(*body, backends_, threads_, packed_);
      step.bodies.push_back(std::move(inside.made));
      std::ranges::move(inside.kernels, std::back_inserter(done_.kernels));
    }
    return step;
  }

  kernel_step find_kernel(std::uint32_t node) {
    for (std::size_t i = 0; i < backends_.size(); ++i) {
      if (!usable_[i]) continue;
      for (const pattern_entry& p : backends_[i].patterns)
        if (const std::optional<configuration> how = try_pattern(backends_[i], p, node))
          return {backends_[i].name, p.name, how->text()};
    }
    throw error(error_kind::unsupported,
                std::string("no backend runs the operator ") + network_.node(node).kind->name + " alone",
                "node " + network_.node_name(node), "take a set of backends that has portable");
  }

  /// A configuration of the pattern in which its kernel for this node alone was built.
  std::optional<configuration> try_pattern(const backend_entry& b, const pattern_entry& p, std::uint32_t node) {
    match_record record;
    verdict why;
    if (candidate_at(network_.view(), p, node, record, why) != candidate_state::found || record.node_list().size() != 1)
      return {};
    std::string refusal;
    std::optional<plain_kernel> made = build_plain(network_, b, p, record, threads_, *packed_, refusal);
    if (!made) return {};
    done_.kernels.push_back(std::move(made->run));
    return std::move(made->how);
  }

  const graph& network_;
  backend_table backends_;
  int threads_;
  std::shared_ptr<packed_weights> packed_;
  std::vector<bool> usable_;  // by backend
  unfused_placement done_;
};

}  // namespace

unfused_placement place_unfused(const graph& network, backend_table backends, int threads,
                                const std::shared_ptr<packed_weights>& packed) {
  return unfused_placer(network, backends, threads, packed).run();
}

}  // namespace collage::inline v0::detail
