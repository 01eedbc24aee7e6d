// Comparing plans region by region.
#include "difference.hpp"

#include <collage/backend.hpp>
#include <collage/error.hpp>
#include <collage/io/plan_file.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <variant>

namespace collage::inline v0::report {
namespace {

/// The groups of a placement and of its subgraphs.
struct listed_groups {
  std::vector<compared_group> groups;
  std::vector<const plan_group*> of;

  explicit listed_groups(const placement& from) { add(from, ""); }
  std::vector<const compared_group*> pointers() const {
    std::vector<const compared_group*> list;
    for (const compared_group& g : groups) list.push_back(&g);
    return list;
  }

 private:
  void add(const placement& from, const std::string& prefix) {
    for (const plan_group& g : from.groups) {
      compared_group made;
      for (const std::uint32_t n : g.nodes) made.nodes.push_back(prefix + std::to_string(n));
      made.backend = g.backend();
      made.pattern = g.pattern();
      if (const auto* const kernel = std::get_if<kernel_step>(&g.step)) made.configuration = kernel->configuration;
      made.kernel = g.kernel;
      made.layout = g.layout;
      made.cost_ms = g.cost_ms;
      made.low_ms = g.low_ms;
      made.high_ms = g.high_ms;
      const std::string owner = made.nodes.front();
      groups.push_back(std::move(made));
      of.push_back(&g);
      for (std::size_t b = 0; b < g.bodies().size(); ++b) add(g.bodies()[b], owner + "." + std::to_string(b) + ".");
    }
  }
};

void add_headers(const plan& a, const plan& b, difference& to) {
  const auto add = [&](const std::string& what, const std::string& x, const std::string& y) {
    if (x != y) to.made_with.push_back({what, {x, y}});
  };
  add("threads", std::to_string(a.threads), std::to_string(b.threads));
  add("precision", a.precision, b.precision);
  add("algorithms", name_of(a.algorithms), name_of(b.algorithms));
  add("processor", a.processor, b.processor);
  add("waiting of threads", a.waiting, b.waiting);
  add("origin", a.origin, b.origin);
  for (const plan* p : {&a, &b})
    for (const plan_backend& one : p->backends) {
      const auto in = [&](const plan& q) {
        const auto at = std::ranges::find(q.backends, one.name, &plan_backend::name);
        return at == q.backends.end() ? std::string("absent") : at->version;
      };
      if (p == &a || std::ranges::find(a.backends, one.name, &plan_backend::name) == a.backends.end())
        add(one.name, in(a), in(b));
    }
}

}  // namespace

bool is_same_kernel(const compared_group& a, const compared_group& b) {
  return a.backend == b.backend && a.pattern == b.pattern && a.configuration == b.configuration &&
         a.kernel == b.kernel && a.layout == b.layout;
}

namespace {

using group_numbers = std::map<std::string, std::uint32_t>;  // by node

/// The group of each node in both plans. Throws if a node has two in one plan, or none in the other.
std::array<group_numbers, 2> groups_of(const std::array<const std::vector<const compared_group*>*, 2>& plans,
                                       const std::array<std::string, 2>& names) {
  std::array<group_numbers, 2> found;
  const auto refuse = [&](std::size_t which, const std::string& what) {
    throw error(error_kind::invalid_argument, what, names[which], detail::new_plan);
  };
  for (std::size_t which = 0; which < 2; ++which)
    for (std::uint32_t g = 0; g < plans[which]->size(); ++g)
      for (const std::string& n : (*plans[which])[g]->nodes)
        if (!found[which].emplace(n, g).second) refuse(which, "runs node " + n + " twice");
  for (std::size_t which = 0; which < 2; ++which)
    for (const auto& [node, g] : found[which])
      if (!found[1 - which].contains(node))
        refuse(1 - which, "does not run node " + node + ", which the other plan runs");
  return found;
}

}  // namespace

compared_regions compare(const std::vector<const compared_group*>& first,
                         const std::vector<const compared_group*>& second, const std::array<std::string, 2>& names) {
  const std::array<const std::vector<const compared_group*>*, 2> plans{&first, &second};
  const std::array<group_numbers, 2> group_of = groups_of(plans, names);
  std::array<std::vector<bool>, 2> seen{std::vector<bool>(first.size()), std::vector<bool>(second.size())};
  compared_regions found;
  for (std::uint32_t start = 0; start < first.size(); ++start) {
    if (seen[0][start]) continue;
    seen[0][start] = true;
    compared_region r;
    r.first.push_back(start);
    const std::array<std::vector<std::uint32_t>*, 2> sides{&r.first, &r.second};
    // Adds every group of the other plan that shares a node with a group in the region, until none is left.
    for (std::array<std::size_t, 2> done{}; done[0] < r.first.size() || done[1] < r.second.size();) {
      const std::size_t which = done[0] < r.first.size() ? 0 : 1;
      for (const std::string& n : (*plans[which])[(*sides[which])[done[which]]]->nodes) {
        const std::uint32_t other = group_of[1 - which].at(n);
        if (seen[1 - which][other]) continue;
        seen[1 - which][other] = true;
        sides[1 - which]->push_back(other);
      }
      ++done[which];
    }
    for (const std::uint32_t g : r.first) r.first_ms += first[g]->cost_ms;
    for (const std::uint32_t g : r.second) r.second_ms += second[g]->cost_ms;
    const compared_group &a = *first[r.first[0]], &b = *second[r.second[0]];
    if (r.first.size() != 1 || r.second.size() != 1 || !is_same_kernel(a, b)) {
      found.other_kernels.push_back(std::move(r));
      continue;
    }
    if (a.backend == view_runner) continue;  // no kernel runs in either plan
    ++found.same;
    if (a.high_ms < b.low_ms || b.high_ms < a.low_ms) found.other_costs.push_back(std::move(r));
  }
  return found;
}

difference compare(const plan& first, const plan& second, const std::array<std::string, 2>& names) {
  const listed_groups a(first.chosen), b(second.chosen);
  difference found{compare(a.pointers(), b.pointers(), names), a.of, b.of, {}};
  add_headers(first, second, found);
  for (std::vector<compared_region>* list : {&found.other_kernels, &found.other_costs})
    std::ranges::stable_sort(*list, std::ranges::greater{},
                             [](const compared_region& r) { return std::abs(r.second_ms - r.first_ms); });
  return found;
}

}  // namespace collage::inline v0::report
