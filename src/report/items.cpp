// Boxes of a drawing, from a placement.
#include "items.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

namespace collage::inline v0::report {
namespace {

/// The form in which a group reads values, by its layout: "A" or "A to B".
std::string form_read_by(const plan_group& g) { return g.layout.substr(0, g.layout.find(" to ")); }
std::string form_written_by(const plan_group& g) {
  const std::size_t to = g.layout.find(" to ");
  return to == std::string::npos ? g.layout : g.layout.substr(to + 4);
}

class item_finder {
 public:
  item_finder(const graph& network, const placement& placed, const program* code) : network_(network), placed_(placed) {
    group_of_.resize(network.nodes().size());
    for (std::uint32_t g = 0; g < placed.groups.size(); ++g)
      for (const std::uint32_t n : placed.groups[g].nodes) group_of_[n] = g;
    if (code != nullptr)
      for (const program_instruction& it : code->instructions)
        if (!it.nodes.empty())
          for (const program_operand& o : it.in)
            if (o.region != program_region::none && code->regions[o.region].value != program_region::none)
              reads_[{group_of_[it.nodes.back()], code->regions[o.region].value}] =
                  to_text(code->regions[o.region].stored);
  }

  item_graph find() {
    for (std::uint32_t i = 0; i < network_.inputs().size(); ++i) {
      const std::uint32_t value = network_.inputs()[i];
      const std::uint32_t made = add(item::kind::input, i);
      write(value, "plain", made);
      add_conversions(value);
    }
    for (std::uint32_t g = 0; g < placed_.groups.size(); ++g) add_group(g);
    for (std::uint32_t i = 0; i < network_.outputs().size(); ++i) {
      const std::uint32_t made = add(item::kind::output, i);
      read(network_.outputs()[i], "plain", made);
    }
    for (item_net& net : made_.nets) {
      std::ranges::sort(net.to);
      net.to.erase(std::unique(net.to.begin(), net.to.end()), net.to.end());
    }
    std::erase_if(made_.nets, [](const item_net& net) { return net.to.empty(); });
    return std::move(made_);
  }

 private:
  std::uint32_t add(item::kind what, std::uint32_t number) {
    made_.items.push_back({what, number});
    return static_cast<std::uint32_t>(made_.items.size() - 1);
  }
  void write(std::uint32_t value, const std::string& form, std::uint32_t by) {
    if (nets_[value].empty()) first_net_[value] = made_.nets.size();
    nets_[value].emplace(form, made_.nets.size());
    made_.nets.push_back({by, {}, value, form});
  }
  /// Reads a value in a form, or in the form that it is written in if nothing converts it.
  void read(std::uint32_t value, const std::string& form, std::uint32_t by) {
    const auto forms = nets_.find(value);
    if (forms == nets_.end()) return;  // a constant
    const auto net = forms->second.find(form);
    made_.nets[net == forms->second.end() ? first_net_[value] : net->second].to.push_back(by);
  }

  void add_group(std::uint32_t number) {
    const plan_group& g = placed_.groups[number];
    const std::uint32_t made = add(item::kind::group, number);
    const std::set<std::uint32_t> inside(g.nodes.begin(), g.nodes.end());
    for (const std::uint32_t n : g.nodes)
      for (const std::uint32_t v : network_.view().inputs_of(n)) {
        const std::int32_t producer = network_.at(v).producer;
        if (producer >= 0 && inside.count(static_cast<std::uint32_t>(producer)) != 0) continue;
        const auto known = reads_.find({number, v});
        read(v, known == reads_.end() ? form_read_by(g) : known->second, made);
      }
    std::vector<std::uint32_t> written;
    for (const std::uint32_t n : g.nodes)
      for (std::uint32_t o = 0; o < network_.node(n).outputs; ++o) written.push_back(network_.view().output_of(n, o));
    for (const std::uint32_t v : written) write(v, form_written_by(g), made);
    for (const std::uint32_t v : written) add_conversions(v);
  }
  void add_conversions(std::uint32_t value) {
    for (std::uint32_t c = 0; c < placed_.conversions.size(); ++c) {
      const plan_conversion& x = placed_.conversions[c];
      if (x.value != value) continue;
      const std::uint32_t made = add(item::kind::conversion, c);
      read(value, x.step.from, made);
      write(value, x.step.to, made);
    }
  }

  const graph& network_;
  const placement& placed_;
  std::vector<std::uint32_t> group_of_;                                   // of each node
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::string> reads_;  // form, by group and value
  std::map<std::uint32_t, std::map<std::string, std::size_t>> nets_;      // by value and form
  std::map<std::uint32_t, std::size_t> first_net_;                        // the form that a value is written in
  item_graph made_;
};

}  // namespace

item_graph items_of(const graph& network, const placement& placed, const program* code) {
  return item_finder(network, placed, code).find();
}

item_graph collapsed(const item_graph& items, const std::vector<repeated_block>& blocks) {
  constexpr std::uint32_t none = 0xFFFFFFFF;
  std::vector<std::uint32_t> block_of(items.items.size(), none);
  for (std::uint32_t b = 0; b < blocks.size(); ++b)
    for (const std::uint32_t i : blocks[b].items) block_of[i] = b;
  // A block takes the place at which everything that it reads has been written: boxes are counted down by what they wait for.
  const auto unit_of = [&](std::uint32_t i) {
    return block_of[i] == none ? i : static_cast<std::uint32_t>(items.items.size()) + block_of[i];
  };
  const std::size_t units = items.items.size() + blocks.size();
  std::vector<std::set<std::uint32_t>> after(units);
  std::vector<std::uint32_t> waits(units, 0);
  for (const item_net& net : items.nets)
    for (const std::uint32_t reader : net.to)
      if (unit_of(net.from) != unit_of(reader) && after[unit_of(net.from)].insert(unit_of(reader)).second)
        ++waits[unit_of(reader)];
  std::vector<std::uint32_t> first(units, none);  // an item's number: ready units go by it
  for (std::uint32_t i = 0; i < items.items.size(); ++i) first[unit_of(i)] = std::min(first[unit_of(i)], i);
  std::set<std::pair<std::uint32_t, std::uint32_t>> ready;
  for (std::uint32_t u = 0; u < units; ++u)
    if (first[u] != none && waits[u] == 0) ready.emplace(first[u], u);
  std::vector<std::uint32_t> place(units, none);
  item_graph made;
  while (!ready.empty()) {
    const std::uint32_t u = ready.begin()->second;
    ready.erase(ready.begin());
    place[u] = static_cast<std::uint32_t>(made.items.size());
    if (u < items.items.size()) made.items.push_back(items.items[u]);
    else made.items.push_back({item::kind::block, static_cast<std::uint32_t>(u - items.items.size())});
    for (const std::uint32_t next : after[u])
      if (--waits[next] == 0) ready.emplace(first[next], next);
  }
  for (const item_net& net : items.nets) {
    item_net outer{place[unit_of(net.from)], {}, net.value, net.form};
    for (const std::uint32_t reader : net.to)
      if (unit_of(reader) != unit_of(net.from)) outer.to.push_back(place[unit_of(reader)]);
    std::ranges::sort(outer.to);
    outer.to.erase(std::unique(outer.to.begin(), outer.to.end()), outer.to.end());
    if (!outer.to.empty()) made.nets.push_back(std::move(outer));
  }
  return made;
}

}  // namespace collage::inline v0::report
