// Random graphs and random patterns with everything the language has, grown from a place of the graph so that many of
// them match there, and then disturbed.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "oracle.hpp"
#include "support/pattern_kinds.hpp"
#include "support/random_graph.hpp"

namespace collage_test {

struct strength_attributes {
  std::int64_t strength = 1;
  template <class Self, class Visitor>
  static constexpr void visit(Self& self, Visitor&& visitor) {
    visitor("strength", self.strength);
  }
};
/// Kinds of any types and shapes: one has attributes, one takes operands that commute (as `mingle` does).
inline constexpr struct soft : c::kind<soft> {
  static constexpr char name[] = "soft";
  using attributes = strength_attributes;
  static constexpr c::verdict infer(const attributes&, c::inference& io) { return io.out[0] = io.in[0], c::verdict(); }
} soft{};
inline constexpr struct hard : c::kind<hard> {
  static constexpr char name[] = "hard";
  static constexpr c::verdict infer(const attributes&, c::inference& io) { return io.out[0] = io.in[0], c::verdict(); }
} hard{};
inline constexpr struct meet : c::kind<meet> {
  static constexpr char name[] = "meet";
  static constexpr c::arity inputs{2, 2};
  static constexpr bool commutative = true;
  static constexpr c::verdict infer(const attributes&, c::inference& io) { return io.out[0] = io.in[0], c::verdict(); }
} meet{};
inline constexpr struct follow : c::kind<follow> {
  static constexpr char name[] = "follow";
  static constexpr c::arity inputs{2, 2};
  static constexpr c::verdict infer(const attributes&, c::inference& io) { return io.out[0] = io.in[0], c::verdict(); }
} follow{};

inline const c::kind_info* const random_kinds[] = {&c::kind_of<decltype(soft)>,   &c::kind_of<decltype(hard)>,
                                                   &c::kind_of<decltype(meet)>,   &c::kind_of<decltype(meet)>,
                                                   &c::kind_of<decltype(follow)>, &c::kind_of<decltype(sum)>,
                                                   &c::kind_of<decltype(split)>,  &c::kind_of<decltype(mingle)>};

inline c::graph make_random_graph(generator& random) {
  c::graph_builder g;
  std::vector<c::value> values = {g.input("x", {4}), g.input("y", {c::dtype::i64, {2, 2}}), g.constant("w", {4}),
                                  g.scalar("two", 2)};
  const std::size_t first = values.size(), count = 2 + pick(random, 10);
  const bool is_narrow = pick(random, 2) == 0;
  for (std::size_t n = 0; n < count; ++n) {
    const c::kind_info& kind = *random_kinds[pick(random, std::size(random_kinds))];
    std::size_t operands = kind.inputs.least;
    operands += pick(random, kind.inputs.most == c::any_number ? 4 : kind.inputs.most - operands + 1);
    std::vector<c::value> taken;
    for (std::size_t i = 0; i < operands; ++i) {
      const std::size_t near = is_narrow ? 2 : 4;
      const std::size_t window = std::min<std::size_t>(values.size(), pick(random, 3) == 0 ? values.size() : near);
      taken.push_back(values[values.size() - 1 - pick(random, window)]);
    }
    c::attribute_words words;
    if (kind.id == c::kind_id<struct soft>)
      words = c::to_words(strength_attributes{static_cast<std::int64_t>(1 + pick(random, 2))});
    const c::value made = g.add(kind, taken, words, c::label("n") + n);
    for (std::uint32_t i = 0; i < kind.outputs; ++i) values.push_back(made[i]);
  }
  g.output("last", values.back());
  if (pick(random, 3) == 0) g.output("other", values[first + pick(random, values.size() - first)]);
  return g.finish();
}

class tree_maker {
 public:
  tree_maker(const c::graph& g, generator& random)
      : graph_(g), view_(g.view()), random_(random), captures_(pick(random, 3)) {}

  tree make(std::uint32_t node) {
    const std::uint32_t output = static_cast<std::uint32_t>(pick(random_, graph_.node(node).outputs));
    tree root = grow(view_.output_of(node, output), 0);
    if (pick(random_, 4) == 0) root = with_further_outputs(root);
    disturb(root);
    if (root->role != c::pattern_role::outputs) close(root);
    else std::for_each(root->children.begin(), root->children.end(), close);
    return root;
  }
  bool has_previous_twice() const { return has_previous_twice_; }

 private:
  struct captured {
    std::uint64_t id;
    std::uint32_t value;
    std::vector<std::uint64_t> path;
  };

  bool chance(std::size_t of) { return pick(random_, of) == 0; }
  tree make_node(c::pattern_role role) {
    tree t = std::make_shared<pattern_tree>();
    t->role = role;
    return t;
  }
  void capture(const tree& t, std::uint32_t value) {
    if (captures_ == 0 || (captures_ == 1 && chance(2))) return;
    t->id = ++last_id_;
    captured_.push_back({t->id, value, path_});
  }
  void restrict(const tree& t, std::uint32_t value) {
    if (!chance(6)) return;
    const c::value_record& v = graph_.at(value);
    switch (pick(random_, 4)) {
      case 0: t->types = c::pattern_node::bit_of(v.type.type) | c::pattern_node::bit_of(c::dtype::u8); break;
      case 1: t->rank = static_cast<int>(v.type.dims.size()); break;
      case 2:
        t->conditions.push_back(
            c::detail::make_condition<decltype([](const c::value_record& r) { return r.uses < 2; })>(nullptr));
        break;
      default:
        if (t->kinds.size() == 1 && t->kinds[0]->id == c::kind_id<struct soft>)
          t->conditions.push_back(
              c::detail::make_condition<decltype([](const strength_attributes& a) { return a.strength == 1; })>(
                  "strength must be 1"));
        else
          t->conditions.push_back(c::detail::make_condition<decltype([](const c::tensor_type& type) {
            return c::verdict(type.dims.size() < 2, "its rank must be below 2");
          })>(nullptr));
    }
  }

  /// A pattern that fits a value, unless something of it is accidental.
  tree grow(std::uint32_t value, int depth) {
    const c::value_record& v = graph_.at(value);
    if (depth > 3 || (depth > 0 && chance(4))) return leaf(value);
    tree t;
    if (chance(7)) t = alternatives(value, depth);
    else if (v.producer < 0) t = leaf(value);
    else if (chance(4)) t = repetition(value, depth);
    else t = apply(value, depth, graph_.node(static_cast<std::uint32_t>(v.producer)).inputs);
    if (t->role == c::pattern_role::either || t->role == c::pattern_role::repeat) {
      if (t->id == 0) capture(t, value);
      restrict(t, value);
      if (chance(6)) t->may_escape = true;
    }
    return t;
  }

  /// Operand `skip` is left for `previous`.
  tree apply(std::uint32_t value, int depth, std::size_t skip) {
    const auto node = static_cast<std::uint32_t>(graph_.at(value).producer);
    const c::node_record& record = graph_.node(node);
    tree t = make_node(c::pattern_role::apply);
    t->kinds = {record.kind};
    t->output = value - record.first_output;
    t->says_output = t->output != 0;
    t->may_escape = chance(4);
    if (chance(5)) {
      const c::kind_info* other = random_kinds[pick(random_, std::size(random_kinds))];
      if (other->outputs > t->output) t->kinds.push_back(other);
    }
    std::vector<std::uint32_t> operands(view_.inputs_of(node).begin(), view_.inputs_of(node).end());
    const bool is_open = record.kind->inputs.most == c::any_number;
    if (record.kind->commutative && skip >= operands.size() && chance(2)) std::swap(operands[0], operands[1]);
    const std::size_t written =
        is_open && skip >= operands.size() ? 1 + pick(random_, operands.size()) : operands.size();
    for (std::size_t i = 0; i < written; ++i) {
      tree child;
      const bool is_last = i + 1 == written;
      if (i == skip) {
        child = make_node(c::pattern_role::previous);
      } else if (skip < operands.size() && operands[i] == operands[skip] && chance(2)) {
        child = make_node(c::pattern_role::previous);
        has_previous_twice_ = true;
      } else if (is_open && is_last && (written < operands.size() || chance(3))) {
        child = make_node(chance(2) ? c::pattern_role::any : c::pattern_role::variable);
        child->count = c::pattern_count::many;
      } else if (skip < operands.size() && depth < 4 && graph_.at(operands[i]).producer >= 0 && chance(4)) {
        child = apply(operands[i], depth + 1, 0);  // previous under a sibling, where another value may stand
        has_previous_twice_ = true;
      } else {
        child = skip < operands.size() && chance(2) ? make_node(c::pattern_role::any) : grow(operands[i], depth + 1);
        if ((is_open || i >= record.kind->inputs.least) && is_last && chance(3)) child->count = c::pattern_count::maybe;
      }
      t->children.push_back(child);
    }
    capture(t, value);
    restrict(t, value);
    return t;
  }

  tree leaf(std::uint32_t value) {
    const c::value_record& v = graph_.at(value);
    for (const captured& other : captured_) {
      if (other.path.size() > path_.size() || !std::equal(other.path.begin(), other.path.end(), path_.begin()))
        continue;
      const auto producer = [&](std::uint32_t of) { return graph_.at(of).producer; };
      const bool is_sibling = producer(value) >= 0 && producer(value) == producer(other.value);
      if ((other.value != value && !is_sibling) || chance(2)) continue;
      tree t = make_node(c::pattern_role::same);
      t->id = other.id;
      if (is_sibling && (other.value != value || chance(2))) {
        t->says_output = true;
        t->output = value - graph_.node(static_cast<std::uint32_t>(producer(value))).first_output;
      }
      return t;
    }
    tree t = make_node(c::pattern_role::any);
    switch (pick(random_, 4)) {
      case 0:
        t->role = v.role == c::value_role::constant ? c::pattern_role::constant : c::pattern_role::variable;
        break;
      case 1:
        if (v.role == c::value_role::input) t->role = c::pattern_role::input;
        break;
      case 2:
        if (v.has_scalar) t->role = c::pattern_role::scalar;
        t->scalar = v.scalar;
        break;
      default: break;
    }
    if (chance(2)) capture(t, value);
    restrict(t, value);
    return t;
  }

  tree alternatives(std::uint32_t value, int depth) {
    tree t = make_node(c::pattern_role::either);
    const std::size_t count = 1 + pick(random_, 3);
    for (std::size_t i = 0; i < count; ++i) t->children.push_back(grow(value, depth + 1));
    return t;
  }

  /// The operator that computes a value, again and again along one of its operands.
  tree repetition(std::uint32_t value, int depth) {
    tree t = make_node(c::pattern_role::repeat);
    t->most = chance(3) ? 1 : 2 + pick(random_, 2);
    t->least = pick(random_, t->most + 1);
    const auto node = static_cast<std::uint32_t>(graph_.at(value).producer);
    const std::size_t through = pick(random_, graph_.node(node).inputs);
    if (t->most > 1) path_.push_back(++last_id_);
    tree step = apply(value, depth + 1, through);
    if (chance(4)) {  // something optional in each iteration
      tree inner = make_node(c::pattern_role::repeat);
      inner->most = 1;
      tree extra = make_node(c::pattern_role::apply);
      extra->kinds = {random_kinds[pick(random_, 2)]};
      extra->children = {make_node(c::pattern_role::previous)};
      if (chance(2)) {
        inner->children = {extra, step->children[through]};
        step->children[through] = inner;
      } else {
        inner->children = {extra, step};
        step = inner;
      }
    }
    if (t->most > 1) path_.pop_back();
    std::uint32_t end = value;
    for (std::size_t k = 0; k < t->most; ++k) {
      const std::int32_t producer = graph_.at(end).producer;
      if (producer < 0 || (k >= t->least && chance(4))) break;
      const c::node_record& here = graph_.node(static_cast<std::uint32_t>(producer));
      if (here.kind->id != graph_.node(node).kind->id || through >= here.inputs) break;
      end = view_.inputs_of(static_cast<std::uint32_t>(producer))[through];
    }
    t->children = {step, grow(end, depth + 1)};
    return t;
  }

  /// Adds values that are computed from captured ones.
  tree with_further_outputs(const tree& first) {
    tree t = make_node(c::pattern_role::outputs);
    t->children = {first};
    for (std::size_t i = 0; i < 1 + pick(random_, 2); ++i) {
      std::vector<captured> shared;
      for (const captured& c : captured_)
        if (c.path.empty() && graph_.at(c.value).uses != 0) shared.push_back(c);
      if (shared.empty()) break;
      const captured from = shared[pick(random_, shared.size())];
      const auto uses = view_.uses_of(from.value);
      const c::use u = uses[pick(random_, uses.size())];
      tree other = apply(view_.output_of(u.node), 2, u.operand);
      for (tree& child : other->children)
        if (child->role == c::pattern_role::previous) {
          child = make_node(c::pattern_role::same);
          child->id = from.id;
          if (!chance(3)) continue;
          tree other_way = make_node(c::pattern_role::either);
          other_way->children = {make_node(c::pattern_role::any), child};
          if (chance(2)) std::swap(other_way->children[0], other_way->children[1]);
          child = other_way;
        }
      t->children.push_back(other);
    }
    return t->children.size() == 1 ? first : t;
  }

  /// What a pattern computes is read outside anyway, and to say so is an error.
  static void close(const tree& root) {
    root->may_escape = false;
    if (root->role == c::pattern_role::either)
      for (const tree& child : root->children) child->may_escape = false;
  }
  void disturb(const tree& t) {
    if (chance(25)) {
      if (t->role == c::pattern_role::apply) t->kinds[0] = random_kinds[pick(random_, std::size(random_kinds))];
      else if (t->role == c::pattern_role::any)
        t->role = chance(2) ? c::pattern_role::constant : c::pattern_role::variable;
      else if (t->role == c::pattern_role::repeat) t->least = pick(random_, t->most + 1);
    }
    for (const tree& child : t->children) disturb(child);
  }

  const c::graph& graph_;
  c::graph_view view_;
  generator& random_;
  std::size_t captures_;  ///< 0: nothing; 1: some; 2: everything
  std::uint64_t last_id_ = 0;
  std::vector<captured> captured_;
  std::vector<std::uint64_t> path_;  ///< the repetitions around what is being made
  bool has_previous_twice_ = false;
};

// Trees unrolled by the library's own functions ------------------------------------------------------------------------

using unrolled = c::expression<96>;

inline std::size_t unrolled_size(const tree& t) {
  if (t->role == c::pattern_role::repeat)
    return 1 + unrolled_size(t->children[1]) + t->most * unrolled_size(t->children[0]);
  std::size_t size = 1;
  for (const tree& child : t->children) size += unrolled_size(child);
  return size;
}

/// Requires unrolled_size(t) <= 96. The tree must outlive the expression.
inline unrolled unroll(const tree& t) {
  unrolled whole{};
  whole.count = 0;
  if (t->role == c::pattern_role::repeat) {
    c::detail::settle_repetition(whole, unroll(t->children[0]), unroll(t->children[1]), t->least, t->most);
  } else {
    c::pattern_node root;
    root.role = t->role;
    for (const tree& child : t->children) root.child[root.children++] = c::detail::append(whole, unroll(child));
    whole.node[whole.count++] = root;
    if (t->role == c::pattern_role::apply) c::detail::settle_operator(whole, t->kinds.data(), t->kinds.size());
    if (t->role == c::pattern_role::either) c::detail::settle_either(whole);
    if (t->role == c::pattern_role::outputs) c::detail::settle_outputs(whole);
  }
  c::pattern_node& root = whole.root();
  root.count = t->count;
  root.capture = t->id;
  root.capture_name = "x";
  if (t->role == c::pattern_role::apply || t->role == c::pattern_role::same)
    root.output = static_cast<std::uint8_t>(t->output);
  root.says_output = t->says_output;
  root.may_escape = t->may_escape;
  root.scalar = t->scalar;
  root.tolerance = 1e-6;
  root.types = t->types;
  root.rank = static_cast<std::int8_t>(t->rank);
  for (const c::pattern_condition& condition : t->conditions) root.condition[root.conditions++] = condition;
  root.is_restricted = root.types != 0 || root.rank >= 0 || root.conditions != 0;
  return whole;
}

}  // namespace collage_test
