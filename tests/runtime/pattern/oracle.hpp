// Patterns as trees, and all their matches by trying everything: written apart from the library's matcher, which works
// on unrolled arrays and stops at the first match.
#pragma once

#include <algorithm>
#include <collage/collage.hpp>
#include <collage/graph/graph.hpp>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace collage_test {

namespace c = collage;

/// A pattern as it is written: nothing is unrolled.
struct pattern_tree {
  c::pattern_role role = c::pattern_role::any;
  c::pattern_count count = c::pattern_count::once;
  std::vector<const c::kind_info*> kinds;
  std::vector<std::shared_ptr<pattern_tree>> children;  ///< of a repetition the step, then the start
  std::size_t least = 0, most = 0;
  std::uint64_t id = 0;    ///< what it captures under, 0 for nothing; of `same`, what it means
  std::size_t output = 0;  ///< of an operator or of `same`
  bool says_output = false;
  bool may_escape = false;
  double scalar = 0;
  std::uint32_t types = 0;
  int rank = -1;
  std::vector<c::pattern_condition> conditions;
};
using tree = std::shared_ptr<pattern_tree>;

/// What one way through a pattern binds.
struct way {
  using key = std::pair<std::uint64_t, std::uint64_t>;  // what a name means: id and iteration

  struct same_place {
    key means;
    const pattern_tree* tree = nullptr;
    std::uint32_t value = 0;
    std::size_t root = 0;
  };
  std::map<key, std::uint32_t> bound;
  std::map<key, std::size_t> root_of;    ///< under which of several outputs it was bound
  std::vector<std::uint32_t> operators;  ///< nodes
  std::vector<std::uint32_t> escaping;   ///< values whose operators may be read outside
  std::vector<same_place> same;
  std::vector<std::uint32_t> from_outside;  ///< values that must not be computed inside
  std::vector<std::uint32_t> before;        ///< values that stand where `previous` is
  std::vector<std::uint32_t> decisions;     ///< in the order in which the matcher makes them
  std::vector<std::uint32_t> roots;         ///< the values of the outputs
};

/// Where in repetitions a tree is looked at.
struct iteration_path {
  std::vector<std::size_t> numbers;               ///< innermost first, counted from 1; repetitions of one do not count
  std::vector<std::set<std::uint64_t>> captured;  ///< what each of them captures

  /// The iteration that a name belongs to here, as the library's arrays number it.
  std::uint64_t scope_of(std::uint64_t id) const {
    std::uint64_t scope = 0;
    for (std::size_t i = 0; i < numbers.size(); ++i)
      if (captured[i].contains(id)) scope = c::detail::combine(scope, numbers[i]);
    return scope;
  }
};

inline void list_captures(const tree& t, std::set<std::uint64_t>& ids) {
  if (t->id != 0 && t->role != c::pattern_role::same) ids.insert(t->id);
  for (const tree& child : t->children) list_captures(child, ids);
}

class pattern_oracle {
 public:
  /// More ways than this are not looked at: `ways_at` then answers nothing.
  static constexpr std::size_t most_ways = 3000;

  explicit pattern_oracle(const c::graph& graph) : graph_(graph.view()), count_(graph.nodes().size()) {
    // reaches_[a][b]: node b reads, directly or not, what node a computes.
    reaches_.assign(count_, std::vector<bool>(count_));
    for (std::uint32_t b = 0; b < count_; ++b)
      for (const std::uint32_t v : graph_.inputs_of(b))
        if (const std::int32_t a = graph_.values[v].producer; a >= 0)
          for (std::uint32_t from = 0; from < count_; ++from)
            if (from == static_cast<std::uint32_t>(a) || reaches_[from][static_cast<std::size_t>(a)])
              reaches_[from][b] = true;
  }

  /// All ways in which the pattern matches at a node; nothing where there are too many to try.
  std::optional<std::vector<way>> ways_at(const tree& t, std::uint32_t node) {
    overflow_ = false;
    std::vector<way> all;
    const bool several = t->role == c::pattern_role::outputs;
    const tree& first = several ? t->children[0] : t;
    for (std::uint32_t v = 0; v < graph_.nodes[node].outputs; ++v) {
      if (v != root_output(first)) continue;
      std::vector<way> found = ways(first, graph_.nodes[node].first_output + v, {});
      for (way& w : found) w.roots.push_back(graph_.nodes[node].first_output + v);
      all.insert(all.end(), found.begin(), found.end());
    }
    for (std::size_t r = 1; several && r < t->children.size(); ++r) {
      std::vector<way> more;
      for (std::uint32_t v = 0; v < graph_.values.size(); ++v)
        for (way w : ways(t->children[r], v, {})) {
          for (auto& s : w.same) s.root = r;
          for (const auto& [name, value] : w.bound) w.root_of[name] = r;
          w.roots.push_back(v);
          more.push_back(std::move(w));
        }
      all = cross(all, more);
    }
    if (overflow_) return std::nullopt;
    std::erase_if(all, [&](const way& w) { return !is_match(w); });
    return all;
  }

  /// The nodes of a match, ascending.
  static std::vector<std::uint32_t> nodes_of(const way& w) {
    std::vector<std::uint32_t> nodes = w.operators;
    std::sort(nodes.begin(), nodes.end());
    return nodes;
  }
  std::vector<std::uint32_t> arguments_of(const way& w) const {
    std::vector<std::uint32_t> arguments;
    for (const std::uint32_t n : nodes_of(w))
      for (const std::uint32_t v : graph_.inputs_of(n))
        if (!is_inside(w, v) && std::find(arguments.begin(), arguments.end(), v) == arguments.end())
          arguments.push_back(v);
    return arguments;
  }
  /// The first output of the root and what is needed outside.
  std::set<std::uint32_t> outputs_of(const way& w) const {
    std::set<std::uint32_t> outputs = {w.roots[0]};
    for (const std::uint32_t n : w.operators)
      for (std::uint32_t i = 0; i < graph_.nodes[n].outputs; ++i)
        if (is_needed(w, graph_.output_of(n, i))) outputs.insert(graph_.output_of(n, i));
    return outputs;
  }

 private:
  static std::size_t root_output(const tree& t) {
    if (t->role == c::pattern_role::either || t->role == c::pattern_role::repeat) return root_output(t->children[0]);
    return t->output;
  }

  std::vector<way> cross(const std::vector<way>& a, const std::vector<way>& b) {
    std::vector<way> all;
    if (a.size() * b.size() > most_ways) overflow_ = true;
    if (overflow_) return all;
    for (const way& x : a)
      for (const way& y : b) {
        way w = x;
        w.bound.insert(y.bound.begin(), y.bound.end());
        w.root_of.insert(y.root_of.begin(), y.root_of.end());
        const auto append = [](auto& to, const auto& from) { to.insert(to.end(), from.begin(), from.end()); };
        append(w.operators, y.operators);
        append(w.escaping, y.escaping);
        append(w.same, y.same);
        append(w.from_outside, y.from_outside);
        append(w.before, y.before);
        append(w.decisions, y.decisions);
        append(w.roots, y.roots);
        all.push_back(std::move(w));
      }
    return all;
  }

  bool fits(const pattern_tree& t, std::uint32_t value) const {
    const c::value_record& v = graph_.values[value];
    switch (t.role) {
      case c::pattern_role::constant:
        if (v.role != c::value_role::constant) return false;
        break;
      case c::pattern_role::variable:
        if (v.role == c::value_role::constant) return false;
        break;
      case c::pattern_role::input:
        if (v.role != c::value_role::input) return false;
        break;
      case c::pattern_role::scalar:
        if (!v.has_scalar || v.scalar != t.scalar) return false;
        break;
      default: break;
    }
    if (t.types != 0 && (t.types >> static_cast<unsigned>(v.type.type) & 1U) == 0) return false;
    if (t.rank >= 0 && static_cast<std::size_t>(t.rank) != v.type.dims.size()) return false;
    return true;
  }
  /// Conditions may read attributes, so that they are asked of what is known to be the right operator.
  bool passes(const pattern_tree& t, std::uint32_t value) const {
    return std::all_of(t.conditions.begin(), t.conditions.end(),
                       [&](const c::pattern_condition& condition) { return bool(condition.test(graph_, value)); });
  }

  /// All ways in which a tree fits a value, its surroundings left aside.
  std::vector<way> ways(const tree& t, std::uint32_t value, const iteration_path& path) {
    if (overflow_ || !fits(*t, value)) return {};
    std::vector<way> found;
    switch (t->role) {
      case c::pattern_role::apply: found = operator_ways(t, value, path); break;
      case c::pattern_role::either:
        for (std::size_t i = 0; i < t->children.size(); ++i)
          for (way& w : ways(t->children[i], value, path)) {
            w.decisions.insert(w.decisions.begin(), static_cast<std::uint32_t>(i));
            found.push_back(std::move(w));
          }
        break;
      case c::pattern_role::repeat:
        for (std::size_t k = t->least; k <= t->most; ++k)
          for (way& w : repeated_ways(t, k, value, path)) {
            w.decisions.insert(w.decisions.begin(), static_cast<std::uint32_t>(t->most - k));
            found.push_back(std::move(w));
          }
        break;
      case c::pattern_role::previous:
        found.emplace_back();
        found.back().before = {value};
        found.back().decisions = {before_mark};
        break;
      case c::pattern_role::same:
        found.emplace_back();
        found.back().same.push_back({{t->id, path.scope_of(t->id)}, t.get(), value});
        break;
      default:
        found.emplace_back();
        if (t->role == c::pattern_role::any || t->role == c::pattern_role::variable)
          found.back().from_outside.push_back(value);
    }
    if (!found.empty() && !passes(*t, value)) return {};
    for (way& w : found) {
      if (t->id != 0 && t->role != c::pattern_role::same) w.bound[{t->id, path.scope_of(t->id)}] = value;
      if (t->may_escape) w.escaping.push_back(value);
    }
    if (found.size() > most_ways) overflow_ = true;
    return found;
  }

  std::vector<way> operator_ways(const tree& t, std::uint32_t value, const iteration_path& path) {
    const std::int32_t producer = graph_.values[value].producer;
    if (producer < 0) return {};
    const auto node = static_cast<std::uint32_t>(producer);
    const c::node_record& record = graph_.nodes[node];
    if (std::none_of(t->kinds.begin(), t->kinds.end(), [&](const c::kind_info* k) { return k->id == record.kind->id; }))
      return {};
    if (record.first_output + t->output != value) return {};
    std::vector<way> found;
    const bool commutes = record.kind->commutative && record.inputs >= 2;
    for (std::uint32_t swapped = 0; swapped < (commutes ? 2U : 1U); ++swapped) {
      std::vector<std::uint32_t> operands(graph_.inputs_of(node).begin(), graph_.inputs_of(node).end());
      if (swapped != 0) std::swap(operands[0], operands[1]);
      std::vector<way> combined(1);
      combined[0].operators.push_back(node);
      if (commutes) combined[0].decisions = {swapped};
      for (std::size_t i = 0; i < std::max(operands.size(), t->children.size()); ++i) {
        if (t->children.empty()) return {};
        const tree& child = t->children[std::min(i, t->children.size() - 1)];
        if (i >= operands.size()) {
          if (child->count == c::pattern_count::once) combined.clear();
        } else if (i < t->children.size()) {
          combined = cross(combined, ways(child, operands[i], path));
        } else if (child->count != c::pattern_count::many || !fits(*child, operands[i]) ||
                   !passes(*child, operands[i])) {
          combined.clear();
        } else {
          for (way& w : combined) w.from_outside.push_back(operands[i]);
        }
      }
      found.insert(found.end(), combined.begin(), combined.end());
    }
    return found;
  }

  /// Exactly k iterations.
  std::vector<way> repeated_ways(const tree& t, std::size_t k, std::uint32_t value, const iteration_path& path) {
    if (k == 0) return ways(t->children[1], value, path);
    iteration_path inner = path;
    if (t->most > 1) {
      inner.numbers.insert(inner.numbers.begin(), k);
      inner.captured.emplace(inner.captured.begin());
      list_captures(t->children[0], inner.captured.front());
    }
    std::vector<way> found;
    for (way& step : ways(t->children[0], value, inner)) {
      const std::set<std::uint32_t> before(step.before.begin(), step.before.end());
      if (before.size() != 1) continue;  // it is one value wherever it stands
      step.before.clear();
      for (way& rest : repeated_ways(t, k - 1, *before.begin(), path)) {
        // The earlier iterations are looked at where `previous` stands first.
        std::vector<std::uint32_t> decisions;
        bool placed = false;
        for (const std::uint32_t d : step.decisions) {
          if (d != before_mark) decisions.push_back(d);
          else if (!placed) decisions.insert(decisions.end(), rest.decisions.begin(), rest.decisions.end());
          placed = placed || d == before_mark;
        }
        way part = rest;
        part.decisions.clear();
        way own = step;
        own.decisions = decisions;
        for (way& w : cross({own}, {part})) found.push_back(std::move(w));
      }
    }
    return found;
  }

  // The whole match -----------------------------------------------------------------------------------------------------

  static bool contains(const way& w, std::uint32_t node) {
    return std::find(w.operators.begin(), w.operators.end(), node) != w.operators.end();
  }
  bool is_inside(const way& w, std::uint32_t value) const {
    const std::int32_t producer = graph_.values[value].producer;
    return producer >= 0 && contains(w, static_cast<std::uint32_t>(producer));
  }
  bool is_needed(const way& w, std::uint32_t value) const {
    if (graph_.values[value].is_output) return true;
    for (const c::use& u : graph_.uses_of(value))
      if (!contains(w, u.node)) return true;
    return false;
  }

  bool is_match(const way& w) const {
    std::set<std::uint32_t> nodes;
    for (const std::uint32_t n : w.operators)
      if (!nodes.insert(n).second) return false;
    for (const std::uint32_t v : w.from_outside)
      if (is_inside(w, v)) return false;
    std::set<std::size_t> sharing;
    for (const auto& s : w.same) {
      const auto captured = w.bound.find(s.means);
      if (captured == w.bound.end()) return false;
      std::uint32_t wanted = captured->second;
      if (s.tree->says_output) {
        const std::int32_t producer = graph_.values[wanted].producer;
        if (producer < 0 || s.tree->output >= graph_.nodes[static_cast<std::size_t>(producer)].outputs) return false;
        wanted = graph_.output_of(static_cast<std::uint32_t>(producer), static_cast<std::uint32_t>(s.tree->output));
      }
      if (s.value != wanted) return false;
      const auto root = w.root_of.find(s.means);
      if ((root == w.root_of.end() ? 0 : root->second) < s.root) sharing.insert(s.root);
    }
    if (sharing.size() + 1 != w.roots.size()) return false;
    for (const std::uint32_t n : w.operators) {
      const auto computes = [&](std::uint32_t v) { return graph_.values[v].producer == static_cast<std::int32_t>(n); };
      if (std::any_of(w.escaping.begin(), w.escaping.end(), computes) ||
          std::any_of(w.roots.begin(), w.roots.end(), computes))
        continue;
      for (std::uint32_t i = 0; i < graph_.nodes[n].outputs; ++i)
        if (is_needed(w, graph_.output_of(n, i))) return false;
    }
    for (std::uint32_t outside = 0; outside < count_; ++outside) {
      if (nodes.contains(outside)) continue;
      const bool reads = std::any_of(nodes.begin(), nodes.end(), [&](std::uint32_t n) { return reaches_[n][outside]; });
      const bool is_read =
          std::any_of(nodes.begin(), nodes.end(), [&](std::uint32_t n) { return reaches_[outside][n]; });
      if (reads && is_read) return false;
    }
    return true;
  }

  static constexpr std::uint32_t before_mark = 0xFFFFFFFF;

  c::graph_view graph_;
  std::size_t count_;
  std::vector<std::vector<bool>> reaches_;
  bool overflow_ = false;
};

}  // namespace collage_test
