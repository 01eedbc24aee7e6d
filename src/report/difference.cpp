// Comparing plans region by region.
#include "difference.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <variant>

namespace collage::inline v0::report {
namespace {

std::string configuration_of(const plan_group& g) {
  const auto* const kernel = std::get_if<kernel_step>(&g.step);
  return kernel == nullptr ? "" : kernel->configuration;
}

bool is_same_kernel(const plan_group& a, const plan_group& b) {
  return a.backend() == b.backend() && a.pattern() == b.pattern() && configuration_of(a) == configuration_of(b) &&
         a.kernel == b.kernel && a.layout == b.layout;
}

/// Sets of nodes, joined step by step.
class joined_sets {
 public:
  explicit joined_sets(std::size_t count) : parent_(count) { std::iota(parent_.begin(), parent_.end(), 0U); }
  std::uint32_t find(std::uint32_t i) {
    while (parent_[i] != i) i = parent_[i] = parent_[parent_[i]];
    return i;
  }
  void join(std::uint32_t a, std::uint32_t b) { parent_[std::max(find(a), find(b))] = std::min(find(a), find(b)); }

 private:
  std::vector<std::uint32_t> parent_;
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

difference compare(const graph& network, const plan& first, const plan& second) {
  difference found;
  add_headers(first, second, found);
  joined_sets sets(network.nodes().size());
  for (const plan* p : {&first, &second})
    for (const plan_group& g : p->chosen.groups)
      for (const std::uint32_t n : g.nodes) sets.join(g.nodes[0], n);
  std::vector<compared_region> regions(network.nodes().size());
  for (std::uint32_t g = 0; g < first.chosen.groups.size(); ++g) {
    compared_region& r = regions[sets.find(first.chosen.groups[g].nodes[0])];
    r.first.push_back(g);
    r.first_ms += first.chosen.groups[g].cost_ms;
  }
  for (std::uint32_t g = 0; g < second.chosen.groups.size(); ++g) {
    compared_region& r = regions[sets.find(second.chosen.groups[g].nodes[0])];
    r.second.push_back(g);
    r.second_ms += second.chosen.groups[g].cost_ms;
  }
  for (compared_region& r : regions) {
    if (r.first.empty()) continue;
    const plan_group &a = first.chosen.groups[r.first[0]], &b = second.chosen.groups[r.second[0]];
    if (r.first.size() != 1 || r.second.size() != 1 || !is_same_kernel(a, b)) {
      found.other_kernels.push_back(std::move(r));
      continue;
    }
    if (a.is_view()) continue;  // no kernel runs in either plan
    ++found.same;
    if (a.high_ms < b.low_ms || b.high_ms < a.low_ms) found.other_costs.push_back(std::move(r));
  }
  for (std::vector<compared_region>* list : {&found.other_kernels, &found.other_costs})
    std::ranges::stable_sort(*list, std::ranges::greater{},
                             [](const compared_region& r) { return std::abs(r.second_ms - r.first_ms); });
  return found;
}

}  // namespace collage::inline v0::report
