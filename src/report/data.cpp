// The facts about groups as JSON.
#include "data.hpp"

#include "drawing.hpp"
#include "markup.hpp"

#include <collage/graph/print.hpp>
#include <collage/io/json.hpp>
#include <collage/run/node_group.hpp>
#include <place/text.hpp>

#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <utility>
#include <variant>

namespace collage::inline v0::report {
namespace {

/// Longer texts are cut: a name in a model may have a megabyte.
constexpr std::size_t longest_text = 2000;
constexpr std::size_t most_values = 64, most_nodes = 400;

class writer {
 public:
  explicit writer(const facts& all) : all_(all) {}

  json write() {
    json groups = json::array(), conversions = json::array(), blocks = json::array(), runners = json::array();
    for (std::uint32_t i = 0; i < all_.groups.size(); ++i) groups.push_back(group(i));
    for (const auto& [in, x] : all_.conversions)
      conversions.push_back({text(in->value_name(x->value)), text(detail::to_string(in->type_of(x->value))),
                             text(x->step.from), text(x->step.to), text(x->step.backend), text(x->kernel),
                             rounded(x->cost_ms)});
    for (const repeated_block& b : all_.blocks) {
      json members = json::array();
      for (const std::uint32_t i : b.items)
        if (all_.scenes[0].items.items[i].what == item::kind::group)
          members.push_back(all_.scenes[0].items.items[i].number);
      blocks.push_back(
          {{"kind", b.kind}, {"which", b.which}, {"count", b.count}, {"groups", members}, {"items", b.items}});
    }
    for (std::size_t r = 0; r < all_.runners.size(); ++r)
      runners.push_back({text(all_.runners[r]), class_of(all_, r).str(), r % runner_styles});
    json made = {{"groups", groups},
                 {"conversions", conversions},
                 {"blocks", blocks},
                 {"runners", runners},
                 {"total", rounded(all_.made.chosen.cost_ms)},
                 {"texts", texts_}};
    if (all_.from.against.made != nullptr) made["other_total"] = rounded(all_.from.against.made->chosen.cost_ms);
    return made;
  }

 private:
  std::size_t text(const std::string& any) {
    std::string clean = shown(any.size() <= longest_text ? any : any.substr(0, longest_text) + "\u2026");
    const auto [at, is_new] = number_of_.emplace(std::move(clean), texts_.size());
    if (is_new) texts_.push_back(at->first);
    return at->second;
  }

  json values(const graph& network, const std::vector<std::uint32_t>& list) {
    json made = json::array();
    for (const std::uint32_t v : std::span(list).first(std::min(list.size(), most_values)))
      made.push_back({text(network.value_name(v)), text(detail::to_string(network.type_of(v))),
                      network.at(v).role == value_role::constant ? 1 : 0});
    return made;
  }

  json nodes(const graph& network, const plan_group& g) {
    json made = json::array();
    for (const std::uint32_t n : std::span(g.nodes).first(std::min(g.nodes.size(), most_nodes))) {
      std::string attributes;
      for (const std::string& one : detail::attribute_texts(network, n, false))
        attributes += (attributes.empty() ? "" : ", ") + one;
      made.push_back({text(network.node_name(n)), text(network.node(n).kind->name), text(attributes)});
    }
    return made;
  }

  json group(std::uint32_t index) {
    const group_facts& f = all_.groups[index];
    const plan_group& g = *f.group;
    const node_group border = group_of(*f.network, g.nodes);
    json made = {{"n", f.number},
                 {"l", text(f.label)},
                 {"r", f.runner},
                 {"k", text(g.kernel)},
                 {"y", text(g.layout)},
                 {"nodes", nodes(*f.network, g)},
                 {"count", g.nodes.size()},
                 {"in", values(*f.network, border.arguments)},
                 {"out", values(*f.network, border.outputs)}};
    if (f.is_part) made["part"] = 1;
    if (g.is_view() || f.is_part) return made;
    made["ms"] = {rounded(g.cost_ms), rounded(g.low_ms), rounded(g.high_ms), rounded(g.alone_ms), rounded(g.switch_ms)};
    made["work"] = {rounded(f.flops), rounded(f.bytes)};
    made["p"] = text(g.pattern());
    if (const auto* const kernel = std::get_if<kernel_step>(&g.step)) made["c"] = text(kernel->configuration);
    if (f.is_inner) made["inner"] = 1;
    if (!g.why.empty()) made["why"] = text(g.why);
    if (g.regret_ms >= 0) made["regret"] = {rounded(g.regret_ms), text(g.instead)};
    if (!g.estimate.empty()) made["estimate"] = text(g.estimate);
    if (!g.algorithm.empty()) made["algorithm"] = {text(g.algorithm), rounded(g.error_bound)};
    json others = json::array(), refusals = json::array();
    for (const plan_alternative& a : g.runners_up)
      others.push_back({text(a.backend), text(a.pattern), text(a.kernel), rounded(a.cost_ms)});
    std::set<std::tuple<std::string, std::string, std::string>> known;
    for (const std::uint32_t r : f.refusals) {
      const place_refusal& one = all_.refusals[r];
      if (known.emplace(one.backend, one.pattern, one.reason).second)
        refusals.push_back({text(one.backend), text(one.pattern), text(one.where), text(one.reason)});
    }
    if (!others.empty()) made["others"] = others;
    if (!refusals.empty()) made["refused"] = refusals;
    if (all_.from.against.made != nullptr) add_other(made, index);
    return made;
  }

  /// The kernels that run the group's nodes in the other plan, if they are other ones.
  void add_other(json& to, std::uint32_t index) {
    for (const compared_region& r : all_.other.other_kernels) {
      if (std::ranges::find(r.first, index) == r.first.end()) continue;
      json list = json::array();
      for (const std::uint32_t i : r.second) {
        const plan_group& g = *all_.other.second[i];
        list.push_back({text(g.backend()), text(g.kernel), rounded(g.cost_ms)});
      }
      to["other"] = {{"ms", rounded(r.first_ms)}, {"its", rounded(r.second_ms)}, {"kernels", list}};
    }
  }

  const facts& all_;
  std::map<std::string, std::size_t> number_of_;
  std::vector<std::string> texts_;
};

}  // namespace

std::string data_of(const facts& all) {
  return json_for_script(writer(all).write().dump(-1, ' ', true, json::error_handler_t::replace));
}

}  // namespace collage::inline v0::report
