// Programs as text, and whether they are sound.
#include <collage/run/plan.hpp>
#include <collage/run/program.hpp>

#include <algorithm>
#include <array>
#include <cstdio>
#include <functional>
#include <iterator>
#include <map>
#include <queue>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

namespace collage::inline v0 {
namespace {

using home = program_region::home;

std::string number_text(std::uint32_t region) { return "%" + std::to_string(region); }

/// Finds the first thing in which a program is not sound.
class verifier {
 public:
  explicit verifier(const program& p) : p_(p), is_written_(p.regions.size(), false) {}

  std::string fault() {
    if (p_.arenas.empty()) return "it has no arena of the host";
    for (std::uint32_t i = 0; i < p_.regions.size(); ++i)
      if (std::string wrong = fault_of_region(i); !wrong.empty()) return "region " + number_text(i) + " " + wrong;
    for (std::uint32_t i = 0; i < p_.regions.size(); ++i)
      is_written_[i] = p_.regions[i].where == home::callers_input || p_.regions[i].where == home::weights;
    for (std::uint32_t at = 0; at < p_.instructions.size(); ++at)
      if (std::string wrong = fault_of_instruction(at); !wrong.empty())
        return "instruction " + std::to_string(at) + " (" + p_.instructions[at].label + ") " + wrong;
    if (std::string wrong = fault_of_lifetimes(); !wrong.empty()) return wrong;
    return fault_of_outputs();
  }

 private:
  std::string fault_of_region(std::uint32_t i) const {
    const program_region& r = p_.regions[i];
    const auto below = [&](std::size_t count, const char* what) {
      return r.index < count ? std::string() : std::string("names ") + what + " " + std::to_string(r.index);
    };
    switch (r.where) {
      case home::nowhere: return {};
      case home::callers_input: return below(p_.inputs.size(), "input");
      case home::callers_output: return below(p_.outputs.size(), "output");
      case home::weights: return below(p_.constants, "constant");
      case home::arena: {
        if (std::string wrong = below(p_.arenas.size(), "arena"); !wrong.empty()) return wrong;
        const program_arena& a = p_.arenas[r.index];
        if (r.offset % a.space->alignment != 0) return "is not aligned in its arena";
        if (*a.space != *r.stored.space) return "lies in an arena of another memory space";
        return r.offset + r.bytes <= a.bytes ? "" : "reaches beyond its arena";
      }
      case home::part: {
        if (std::string wrong = below(p_.regions.size(), "region"); !wrong.empty()) return wrong;
        const program_region& of = p_.regions[r.index];
        if (of.where == home::part || of.where == home::nowhere) return "is part of a region without memory of its own";
        return r.offset + r.bytes <= of.bytes ? "" : "reaches beyond the region that it is a part of";
      }
    }
    return "has an unknown location";
  }

  std::uint32_t whole(std::uint32_t region) const {
    return p_.regions[region].where == home::part ? p_.regions[region].index : region;
  }
  /// Whether an instruction lies within the lifetime of the arena's memory that a region is in.
  bool is_alive(std::uint32_t region, std::uint32_t at) const {
    const program_region& r = p_.regions[whole(region)];
    return r.where != home::arena || (r.first <= at && at <= r.last);
  }

  std::string fault_of_instruction(std::uint32_t at) {
    const program_instruction& it = p_.instructions[at];
    const auto is_known = [&](std::uint32_t region) {
      return region < p_.regions.size() && p_.regions[region].where != home::nowhere;
    };
    for (const program_operand& o : it.in) {
      if (o.region == program_region::none) continue;
      if (!is_known(o.region)) return "reads " + number_text(o.region) + ", which has no memory";
      // Views name memory before it is written: the parts of a concat's result are written by its operands' kernels.
      if (it.is_view()) continue;
      if (!is_written_[o.region]) return "reads " + number_text(o.region) + " before it is written";
      if (!is_alive(o.region, at)) return "reads " + number_text(o.region) + " outside its lifetime";
    }
    for (const program_operand& o : it.out) {
      if (o.region == program_region::none) continue;
      if (!is_known(o.region)) return "writes " + number_text(o.region) + ", which has no memory";
      if (!is_alive(o.region, at) && !it.is_view()) return "writes " + number_text(o.region) + " outside its lifetime";
      is_written_[o.region] = true;
      if (o.how == access::inout && !overwrites_argument(it, o))
        return "is marked as in place, but overwrites none of its arguments";
    }
    if (it.workspace != program_region::none && (!is_known(it.workspace) || !is_alive(it.workspace, at)))
      return "has a workspace without memory";
    return {};
  }
  bool overwrites_argument(const program_instruction& it, const program_operand& out) const {
    const program_region& to = p_.regions[whole(out.region)];
    return std::ranges::any_of(it.in, [&](const program_operand& o) {
      if (o.region == program_region::none) return false;
      const program_region& from = p_.regions[whole(o.region)];
      return from.where == home::arena && from.index == to.index && from.offset == to.offset;
    });
  }

  /// Two regions of one arena may share bytes where one ends before the other begins, or where one is written over the other.
  ///
  /// Walks the regions by their beginnings, and keeps those that are needed at the same time, by where they lie. Only neighbours
  /// there can share bytes. A region that ends where the next begins may be handed on, so it leaves at the step after its last.
  std::string fault_of_lifetimes() const {
    std::vector<std::uint32_t> list;
    for (std::uint32_t i = 0; i < p_.regions.size(); ++i)
      if (p_.regions[i].where == home::arena && p_.regions[i].bytes != 0) list.push_back(i);
    const auto place_of = [&](std::uint32_t i) { return std::tuple(p_.regions[i].index, p_.regions[i].offset, i); };
    std::ranges::sort(list, {}, [&](std::uint32_t i) { return std::pair(p_.regions[i].first, place_of(i)); });
    using by_end = std::pair<std::uint32_t, std::uint32_t>;  // last instruction, region
    std::priority_queue<by_end, std::vector<by_end>, std::greater<>> ends;
    std::set<decltype(place_of(0))> needed;
    for (const std::uint32_t i : list) {
      const program_region& x = p_.regions[i];
      for (; !ends.empty() && ends.top().first < x.first; ends.pop()) needed.erase(place_of(ends.top().second));
      auto at = needed.lower_bound(std::tuple(x.index, x.offset, 0U));
      if (at != needed.begin() && std::get<0>(*std::prev(at)) == x.index)
        at = needed.lower_bound(std::tuple(x.index, std::get<1>(*std::prev(at)), 0U));
      for (; at != needed.end() && std::get<0>(*at) == x.index && std::get<1>(*at) < x.offset + x.bytes; ++at) {
        const std::uint32_t other = std::get<2>(*at);
        const program_region& y = p_.regions[other];
        if (y.offset + y.bytes <= x.offset || is_handed_on(other, i) || is_handed_on(i, other)) continue;
        return "regions " + number_text(other) + " and " + number_text(i) + " share memory while both are needed";
      }
      needed.insert(place_of(i));
      ends.emplace(x.last, i);
    }
    return {};
  }
  /// Whether the instruction that begins `to` writes it over `from`, which ends there.
  bool is_handed_on(std::uint32_t from, std::uint32_t to) const {
    const program_region &x = p_.regions[from], &y = p_.regions[to];
    if (x.last != y.first || x.offset != y.offset || y.first >= p_.instructions.size()) return false;
    return std::ranges::any_of(p_.instructions[y.first].out,
                               [&](const program_operand& o) { return o.region == to && o.how == access::inout; });
  }

  std::string fault_of_outputs() const {
    std::vector<bool> is_made(p_.outputs.size(), false);
    for (const program_instruction& it : p_.instructions)
      for (const program_operand& o : it.out)
        if (o.region != program_region::none && p_.regions[whole(o.region)].where == home::callers_output)
          is_made[p_.regions[whole(o.region)].index] = true;
    for (std::size_t i = 0; i < is_made.size(); ++i)
      if (!is_made[i]) return "output " + p_.outputs[i].name + " is never written";
    return {};
  }

  const program& p_;
  std::vector<bool> is_written_;
};

std::string megabytes(std::size_t bytes) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.1f MB", static_cast<double>(bytes) / 1e6);
  return text.data();
}

/// "onednn conv_chain", "view", "convert plain to blocked-16 by onednn".
std::string words_of(const plan_step& step) {
  struct visitor {
    static std::string configured(const std::string& configuration) {
      return configuration == "0" ? std::string() : " [" + configuration + "]";
    }
    std::string operator()(const kernel_step& s) const {
      return s.backend + " " + s.pattern + configured(s.configuration);
    }
    std::string operator()(const group_step& s) const { return s.backend + " " + by_rule; }
    std::string operator()(const view_step& s) const { return "view in " + s.form; }
    std::string operator()(const control_step& s) const {
      return "control flow over " + std::to_string(s.bodies.size()) +
             (s.bodies.size() == 1 ? " subgraph" : " subgraphs");
    }
    std::string operator()(const conversion_step& s) const {
      return s.backend + " convert " + s.from + " to " + s.to + configured(s.configuration);
    }
    std::string operator()(const copy_step&) const { return "copy to the caller"; }
  };
  return std::visit(visitor(), step);
}

std::string place_text(const program& p, const program_region& r) {
  switch (r.where) {
    case home::nowhere: return "nowhere";
    case home::callers_input: return "input " + p.inputs[r.index].name;
    case home::callers_output: return "output " + p.outputs[r.index].name;
    case home::weights: return "constant " + std::to_string(r.index);
    case home::arena:
      return std::string("arena ") + p.arenas[r.index].space->name + " at " + std::to_string(r.offset) + ", from " +
             std::to_string(r.first) + " to " + std::to_string(r.last);
    case home::part: return "part of " + number_text(r.index) + " at " + std::to_string(r.offset);
  }
  return {};
}

std::string region_line(const program& p, const graph& network, std::uint32_t i) {
  const program_region& r = p.regions[i];
  std::string line = number_text(i) + "  " + std::to_string(r.bytes) + " bytes, " + place_text(p, r);
  if (r.value == program_region::none) return line + ": workspace";
  line += ": " + network.value_name(r.value) + " " + detail::to_string(network.type_of(r.value));
  return r.stored == form() ? line : line + " " + to_text(r.stored);
}

std::string operands_text(const std::vector<program_operand>& list) {
  std::string text;
  for (const program_operand& o : list) {
    text += text.empty() ? "" : ", ";
    text += o.region == program_region::none ? "-" : (o.how == access::inout ? "inout " : "") + number_text(o.region);
  }
  return text;
}

}  // namespace

std::string fault_of(const program& p) { return verifier(p).fault(); }

std::string to_text(const program& p, const graph& network) {
  std::string text = "program for " + std::to_string(p.threads) + (p.threads == 1 ? " thread\n" : " threads\n");
  for (const program_arena& a : p.arenas)
    text += std::string("arena ") + a.space->name + ": " + megabytes(a.bytes) + ", lower bound " + megabytes(a.bound) +
            "\n";
  text += "\nregions\n";
  for (std::uint32_t i = 0; i < p.regions.size(); ++i)
    if (p.regions[i].where != home::nowhere) text += "  " + region_line(p, network, i) + "\n";
  text += "\ninstructions\n";
  for (std::size_t i = 0; i < p.instructions.size(); ++i) {
    const program_instruction& it = p.instructions[i];
    text += "  " + std::to_string(i) + "  " + words_of(it.step) + " (" + it.kernel + ") " + it.label + ": " +
            operands_text(it.in) + " -> " + operands_text(it.out);
    if (it.workspace != program_region::none) text += ", workspace " + number_text(it.workspace);
    text += "\n";
  }
  return text;
}

}  // namespace collage::inline v0
