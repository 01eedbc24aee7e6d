// Definitions of run/engine.hpp.
#pragma once

#include <algorithm>
#include <collage/detail/host_memory.hpp>
#include <collage/op/convert_layout.hpp>
#include <collage/pattern/match.hpp>
#include <collage/run/layouts.hpp>
#include <collage/run/memory_plan.hpp>
#include <collage/run/node_group.hpp>
#include <collage/run/views.hpp>
#include <optional>

namespace collage::inline v0 {

namespace detail {

inline error plan_error(const std::string& what, const std::string& where) {
  return {error_kind::invalid_argument, what, where, "place the network again to get a plan that fits"};
}

/// The match a plan's group stands for; an error if the plan does not fit the network.
inline match_record match_group(const graph& network, const plan_group& g, const backend_entry& b,
                                const pattern_entry& p) {
  match_record record;
  verdict why;
  // The root was listed last whatever the order of the others, which was the pattern's before it was ascending.
  const std::uint32_t root = g.nodes.back();
  const std::string where = "plan, group of node " + network.node_name(root);
  if (!match_at(network.view(), p.nodes, root, record, &why))
    throw plan_error("pattern " + g.pattern + " of " + b.name + " does not match there (" + why.rule + ")", where);
  if (!std::is_permutation(g.nodes.begin(), g.nodes.end(), record.node_list().begin(), record.node_list().end()))
    throw plan_error("pattern " + g.pattern + " of " + b.name + " matches other nodes than the plan lists", where);
  if (const verdict v = p.accepts(network.view(), record); !v)
    throw plan_error(std::string(b.name) + " refuses it: " + v.rule, where);
  if (g.choice >= p.choices(network.view(), record))
    throw plan_error(std::string(b.name) + " has no choice " + std::to_string(g.choice) + " for pattern " + g.pattern,
                     where);
  return record;
}

/// The group that a backend's rule found; an error if the plan does not fit the backend.
inline node_group rule_group(const graph& network, const plan_group& g, const backend_entry& b) {
  if (b.build_group == nullptr) throw plan_error("backend " + g.backend + " has no rule", "plan");
  std::vector<std::uint32_t> nodes = g.nodes;
  std::sort(nodes.begin(), nodes.end());
  if (g.choice != 0) throw plan_error(std::string(b.name) + " has no choices for what its rule lists", "plan");
  for (const std::uint32_t n : nodes)
    if (!takes_node(b, network, n))
      throw plan_error("backend " + g.backend + " does not take node " + network.node_name(n), "plan");
  return group_of(network, nodes);
}

/// The backend of that name; an error if the set lacks it.
inline const backend_entry& backend_named(backend_table backends, const std::string& name) {
  for (const backend_entry& b : backends)
    if (name == b.name) return b;
  throw error(error_kind::invalid_argument, "backend " + name + " is not in this program's set", "plan",
              "build the program with it or place the network again");
}

/// A network of one conversion: layouts are what its kernel makes of it.
inline graph conversion_network(const tensor_type& type) {
  graph_builder g;
  g.output("made", g(ops::convert_layout, g.input("from", type)));
  return g.finish();
}

/// The kernel of a conversion; an error if the plan does not fit the backend. `value` is for messages.
inline kernel build_conversion(const graph& network, const plan_conversion& c, const backend_entry& b, int threads,
                               packed_weights& packed) {
  const std::string where = "plan, conversion of " + network.value_name(c.value);
  const pattern_entry* const p = b.find(decltype(ops::convert_layout)::name);
  const graph one = conversion_network(network.type_of(c.value));
  const graph_view view = one.view();
  match_record record;
  if (p == nullptr || !match_at(view, p->nodes, 0, record) || !p->accepts(view, record) ||
      c.choice >= p->choices(view, record))
    throw plan_error(std::string(b.name) + " does not convert it", where);
  const value_layouts found = layouts_of(*p, view, record, c.choice);
  if (found.of(view.inputs_of(0)[0]) != c.from || found.of(view.output_of(0)) != c.to)
    throw plan_error(std::string(b.name) + " converts other layouts by choice " + std::to_string(c.choice), where);
  build_context context(one, threads, packed, *b.space);
  context.set_choice(c.choice);
  const thread_scope scope(b, threads);
  return p->build(view, record, context);
}

/// Where values lie, by number: those below the count of values are the values as they are written, those behind it are
/// copies in other layouts.
class value_memory {
 public:
  /// Memory of its own, and how many bytes behind where that begins.
  struct part {
    std::uint32_t of = 0;
    std::size_t offset = 0;
  };

  explicit value_memory(const graph& network) : network_(&network), written_(network.values().size()) {
    for (std::uint32_t v = 0; v < written_.size(); ++v) part_.push_back({v, 0});
  }

  /// Says in which layout a value is written.
  void write(std::uint32_t value, const layout& order) { written_[value] = order; }
  /// Says that the memory of a number, which has its own, is a part of another's.
  void put(std::uint32_t number, std::uint32_t into, std::size_t offset) { part_[number] = {into, offset}; }
  /// The layout of what has a number.
  const layout& layout_of(std::uint32_t number) const {
    return number < written_.size() ? written_[number] : copies_[number - written_.size()].order;
  }
  const std::vector<layout>& layouts() const { return written_; }
  /// The number of a value in a layout; nothing where it was not made yet.
  std::optional<std::uint32_t> find(std::uint32_t value, const layout& order) const {
    if (written_[value] == order) return value;
    for (std::size_t i = 0; i < copies_.size(); ++i)
      if (copies_[i].value == value && copies_[i].order == order) return number_of(i);
    return {};
  }
  std::uint32_t add_copy(std::uint32_t value, const layout& order) {
    copies_.push_back({value, order});
    part_.push_back({number_of(copies_.size() - 1), 0});
    return part_.back().of;
  }
  /// The memory that a number's is a part of.
  part whole(std::uint32_t number) const {
    part p{number, 0};
    while (part_[p.of].of != p.of) p = {part_[p.of].of, p.offset + part_[p.of].offset};
    return p;
  }
  std::size_t size() const { return part_.size(); }
  std::size_t bytes(std::uint32_t number) const {
    const std::uint32_t value = number < written_.size() ? number : copies_[number - written_.size()].value;
    return bytes_in(network_->type_of(value), layout_of(number));
  }

 private:
  struct copy {
    std::uint32_t value;
    layout order;
  };
  std::uint32_t number_of(std::size_t which) const { return static_cast<std::uint32_t>(written_.size() + which); }

  const graph* network_;
  std::vector<layout> written_;
  std::vector<part> part_;  // by number: of itself, or of another
  std::vector<copy> copies_;
};

/// Gives up a network's constants while its kernels are built.
class constant_release {
 public:
  constant_release(const graph& network, graph* from)
      : network_(&network), from_(from), left_(network.values().size()), kept_(network.values().size()) {
    const graph_view view = network.view();
    for (std::uint32_t n = 0; n < network.nodes().size(); ++n)
      for (const std::uint32_t v : view.inputs_of(n)) ++left_[v];
    for (const std::uint32_t v : network.outputs()) kept_[v] = true;
  }

  /// Something else reads the value of this number.
  void keep(std::uint32_t value) {
    if (value < kept_.size()) kept_[value] = true;
  }
  /// The kernel of a group was built. What lies behind a view is never given up, because the view is a name for it.
  void after(const plan_group& g, std::span<const std::uint32_t> arguments, const kernel& run) {
    for (std::size_t i = 0; i < arguments.size(); ++i)
      if (run.reads(i)) keep(arguments[i]);
    for (const std::uint32_t n : g.nodes)
      for (const std::uint32_t v : network_->view().inputs_of(n))
        if (--left_[v] == 0 && !kept_[v] && network_->at(v).role == value_role::constant) from_->set_bytes(v, nullptr);
  }

 private:
  const graph* network_;
  graph* from_;
  std::vector<std::uint32_t> left_;  // by value: readers that are not built yet
  std::vector<bool> kept_;
};

/// No kernel runs for an alias: any other node under that name would be a view of memory of another size.
inline void check_alias(const graph& network, const plan_group& g) {
  if (g.choice >= shared_layouts.size())
    throw plan_error("takes node " + network.node_name(g.nodes.back()) + " for a view in layout " +
                         std::to_string(g.choice) + ", and the last is " + std::to_string(shared_layouts.size() - 1),
                     "plan");
  const layout& order = shared_layouts[g.choice];
  if (g.nodes.size() == 1 && !views_of(network, g.nodes[0], order).empty()) return;
  const std::string where = order != plain ? std::string(" in ") + order.name : "";
  throw plan_error("takes node " + network.node_name(g.nodes.back()) + " for a view" + where + ", which it is not",
                   "plan");
}

/// In which layout a group that is a view has its values: the arrangement by its number, in the space that its name says.
inline layout layout_of_view(const graph& network, const plan_group& g, std::span<const memory_space* const> spaces) {
  const layout& order = shared_layouts[g.choice];
  const std::size_t at = g.layout.find('@');
  if (at == std::string::npos) return order;
  for (const memory_space* space : spaces)
    if (g.layout.compare(at + 1, std::string::npos, space->name) == 0) return in_space(order, *space);
  throw plan_error("takes node " + network.node_name(g.nodes.back()) + " for a view in layout " + g.layout +
                       ", and no backend of this program's set has such memory",
                   "plan");
}

/// Every node must be in exactly one group, and every group after those it reads from.
inline void check_cover(const graph& network, const placement& groups) {
  std::vector<std::uint32_t> covered(network.nodes().size(), 0);
  std::vector<bool> ready(network.values().size(), false);
  for (std::uint32_t v = 0; v < ready.size(); ++v) ready[v] = network.at(v).producer < 0;
  const graph_view view = network.view();
  for (const plan_group& g : groups.groups) {
    if (g.nodes.empty()) throw plan_error("has a group without nodes", "plan");
    for (const std::uint32_t n : g.nodes) {
      if (n >= covered.size())
        throw plan_error("names node " + std::to_string(n) + ", but the network has " + std::to_string(covered.size()),
                         "plan");
      if (covered[n]++ != 0) throw plan_error("runs node " + network.node_name(n) + " twice", "plan");
    }
    if (g.backend == alias_backend) check_alias(network, g);
    for (const std::uint32_t n : g.nodes)
      for (const std::uint32_t operand : view.inputs_of(n)) {
        const std::int32_t producer = network.at(operand).producer;
        const bool inside = producer >= 0 && std::find(g.nodes.begin(), g.nodes.end(),
                                                       static_cast<std::uint32_t>(producer)) != g.nodes.end();
        if (!inside && !ready[operand])
          throw plan_error("reads " + network.value_name(operand) + " before it is computed",
                           "plan, node " + network.node_name(n));
      }
    if (g.backend == control_backend && (g.nodes.size() != 1 || network.node(g.nodes[0]).bodies == 0))
      throw plan_error("takes node " + network.node_name(g.nodes.back()) + " for control flow, which it is not",
                       "plan");
    // Which of them its kernel writes is the match's to say; it writes all that are read outside.
    for (const std::uint32_t n : g.nodes)
      for (std::uint32_t i = 0; i < network.node(n).outputs; ++i) ready[view.output_of(n, i)] = true;
  }
  for (std::uint32_t n = 0; n < covered.size(); ++n)
    if (covered[n] == 0) throw plan_error("does not run node " + network.node_name(n), "plan");
}

inline kernel build_control(const graph& network, const plan_group& g, backend_table backends, int threads,
                            const std::shared_ptr<packed_weights>& packed);

/// Libraries keep their thread count per calling thread: it is set for one run and put back afterwards, also where a
/// kernel throws because its data are wrong.
class run_scope {
 public:
  run_scope(std::span<const backend_entry* const> used, int threads) : used_(used.first(std::min(used.size(), most))) {
    try {
      for (; entered_ < used_.size(); ++entered_)
        if (used_[entered_]->enter != nullptr) token_[entered_] = used_[entered_]->enter(threads);
    } catch (...) {
      leave();
      throw;
    }
  }
  run_scope(const run_scope&) = delete;
  run_scope& operator=(const run_scope&) = delete;
  ~run_scope() { leave(); }

 private:
  void leave() {
    for (; entered_ > 0; --entered_)
      if (used_[entered_ - 1]->leave != nullptr) used_[entered_ - 1]->leave(token_[entered_ - 1]);
  }

  static constexpr std::size_t most = 32;
  std::span<const backend_entry* const> used_;
  int token_[most];
  std::size_t entered_ = 0;
};

/// Whether a kernel has to write an output. The only one of a node is written whoever reads it.
inline bool is_wanted(const graph& network, std::uint32_t output) {
  const value_record& v = network.at(output);
  return v.uses != 0 || v.is_output || network.node(static_cast<std::uint32_t>(v.producer)).outputs == 1;
}

}  // namespace detail

inline std::shared_ptr<const dynamic_engine::core> dynamic_engine::build(const graph& network, graph* released,
                                                                         const placement& groups,
                                                                         backend_table backends, int threads,
                                                                         std::shared_ptr<packed_weights> packed) {
  detail::check_cover(network, groups);
  check_contents(network);
  auto made = std::make_shared<core>();
  core& c = *made;
  c.threads = threads;
  c.packed = std::move(packed);
  const graph_view view = network.view();
  for (const std::uint32_t v : network.inputs()) c.inputs.push_back({network.value_name(v), network.type_of(v)});
  for (std::size_t i = 0; i < network.outputs().size(); ++i)
    c.outputs.push_back({network.output_name(i), network.type_of(network.outputs()[i])});

  // 1. Kernels, with the conversions that they need.
  struct built {
    std::vector<std::uint32_t> arguments, outputs;  // numbers of value memory
    kernel run;
    const memory_space* space = &host_space;  // of its workspace
    bool is_conversion = false;
  };
  std::vector<built> kernels;
  const std::vector<const memory_space*> spaces = spaces_of(backends);
  detail::value_memory memory_of(network);
  detail::constant_release release(network, released);
  const auto use = [&](const std::string& name) -> const backend_entry& {
    const backend_entry& b = detail::backend_named(backends, name);
    if (std::find(c.used.begin(), c.used.end(), &b) != c.used.end()) return b;
    if (const probe_result found = b.probe(); !found.available)
      throw error(error_kind::environment, found.reason, std::string("backend ") + b.name);
    c.used.push_back(&b);
    return b;
  };
  // A value in a layout: as it was written, or converted now where nobody has needed that before.
  const auto in_layout = [&](std::uint32_t v, const layout& order) {
    if (const auto known = memory_of.find(v, order)) return *known;
    const plan_conversion* const how = find_conversion(groups, v, order);
    if (how == nullptr || how->from != memory_of.layout_of(v))
      throw detail::plan_error(std::string("is needed as ") + order.name + ", but written as " +
                                   memory_of.layout_of(v).name + " and not converted",
                               "plan, value " + network.value_name(v));
    if (how->backend.empty())
      throw detail::plan_error(std::string("is needed as ") + order.name + ", but written as " +
                                   memory_of.layout_of(v).name + ", and no backend converts that",
                               "plan, value " + network.value_name(v));
    const backend_entry& by = use(how->backend);
    kernel run = detail::build_conversion(network, *how, by, threads, *c.packed);
    release.keep(memory_of.whole(v).of);
    const std::uint32_t number = memory_of.add_copy(v, order);
    c.infos.push_back({how->backend,
                       decltype(ops::convert_layout)::name,
                       run.name(),
                       {},
                       network.value_name(v),
                       v,
                       run.workspace(),
                       order});
    kernels.push_back({{v}, {number}, std::move(run), by.space, true});
    return number;
  };
  const auto add = [&](const plan_group& g, std::span<const std::uint32_t> arguments,
                       std::vector<std::uint32_t> outputs, kernel run, const memory_space& space = host_space,
                       const value_layouts& borders = {}) {
    const std::uint32_t last = g.nodes.back();
    built k;
    k.space = &space;
    for (const std::uint32_t v : arguments) k.arguments.push_back(in_layout(v, borders.of(v)));
    for (const std::uint32_t v : outputs) memory_of.write(v, borders.of(v));
    k.outputs = std::move(outputs);
    c.infos.push_back({g.backend, g.pattern, run.name(), g.nodes, network.node_name(last), view.output_of(last),
                       run.workspace(), borders.of(view.output_of(last))});
    k.run = std::move(run);
    if (released != nullptr) release.after(g, k.arguments, k.run);
    kernels.push_back(std::move(k));
  };
  for (const plan_group& g : groups.groups) {
    if (g.backend == alias_backend) {
      const layout order = detail::layout_of_view(network, g, spaces);
      for (const value_view& v : views_of(network, g.nodes[0], order)) {
        // What is computed before the node is a part of its result, or the result a part of that.
        const bool is_operand = v.of == view.output_of(g.nodes[0]);
        const std::uint32_t number = is_operand ? in_layout(v.value, order) : v.value;
        memory_of.put(number, is_operand ? v.of : in_layout(v.of, order), v.offset);
      }
      memory_of.write(view.output_of(g.nodes[0]), order);
      continue;
    }
    if (g.backend == control_backend) {
      std::vector<std::uint32_t> outputs;
      for (std::uint32_t i = 0; i < network.node(g.nodes[0]).outputs; ++i)
        outputs.push_back(view.output_of(g.nodes[0], i));
      add(g, view.inputs_of(g.nodes[0]), std::move(outputs),
          detail::build_control(network, g, backends, threads, c.packed));
      continue;
    }
    const backend_entry& b = use(g.backend);
    build_context context(network, threads, *c.packed, *b.space);
    context.set_choice(g.choice);
    if (g.pattern == by_rule) {
      const node_group group = detail::rule_group(network, g, b);
      const thread_scope scope(b, threads);
      add(g, group.arguments, group.outputs, b.build_group(group, context), *b.space, layouts_of(b, network, group));
      continue;
    }
    const pattern_entry* p = b.find(g.pattern);
    if (p == nullptr) throw detail::plan_error("backend " + g.backend + " has no pattern " + g.pattern, "plan");
    const match_record record = detail::match_group(network, g, b, *p);
    const thread_scope scope(b, threads);
    add(g, record.argument_list(), written_values(view, record), p->build(view, record, context), *b.space,
        layouts_of(*p, view, record, g.choice));
  }
  std::vector<std::uint32_t> results;
  for (const std::uint32_t v : network.outputs()) results.push_back(in_layout(v, plain));

  // 2. Who owns the memory of which value. Of values that are parts of another's memory, that one's place decides.
  const auto whole_of = [&](std::uint32_t number) { return memory_of.whole(number).of; };
  c.value_place.assign(memory_of.size(), {});
  for (std::size_t i = 0; i < network.inputs().size(); ++i)
    c.value_place[network.inputs()[i]] = {place::where::users_input, i, 0, nullptr};
  // A constant that a kernel reads in another space is there once for all.
  const auto is_constant_elsewhere = [&](const built& k, std::uint32_t number) {
    return !k.is_conversion && *k.space != host_space && number < network.values().size() &&
           network.at(number).role == value_role::constant;
  };
  std::vector<bool> needed(memory_of.size(), false);
  for (const built& k : kernels)
    for (std::size_t i = 0; i < k.arguments.size(); ++i)
      if (k.run.reads(i) && !is_constant_elsewhere(k, k.arguments[i])) needed[whole_of(k.arguments[i])] = true;
  for (const std::uint32_t v : results) needed[whole_of(v)] = true;
  for (std::uint32_t v = 0; v < network.values().size(); ++v) {
    if (!needed[v] || network.at(v).role != value_role::constant) continue;
    c.value_place[v] = {place::where::weight, 0, 0, network.bytes_of(v).data()};
    c.constants.push_back(network.constant(v).bytes);
  }
  // An output whose memory a kernel writes first is written in place; others, second names and parts are copied at the end.
  const auto is_computed = [&](std::uint32_t v) { return v >= network.values().size() || network.at(v).producer >= 0; };
  std::vector<std::pair<std::uint32_t, std::size_t>> copied;
  for (std::size_t i = 0; i < results.size(); ++i) {
    const auto [of, offset] = memory_of.whole(results[i]);
    const bool is_all = offset == 0 && memory_of.bytes(of) == memory_of.bytes(results[i]);
    if (is_all && is_computed(of) && c.value_place[of].kind == place::where::nowhere)
      c.value_place[of] = {place::where::users_output, i, 0, nullptr};
    else copied.emplace_back(results[i], i);
  }

  // 3. The arenas: lifetimes in steps, from the first step that writes the memory to the last that reads it.
  constexpr std::size_t nothing = static_cast<std::size_t>(-1);
  const auto last_step = static_cast<std::uint32_t>(std::max<std::size_t>(kernels.size(), 1) - 1);
  std::vector<std::uint32_t> last_read(memory_of.size(), 0);
  for (std::uint32_t s = 0; s < kernels.size(); ++s)
    for (std::size_t i = 0; i < kernels[s].arguments.size(); ++i)
      if (kernels[s].run.reads(i)) last_read[whole_of(kernels[s].arguments[i])] = s;
  for (const auto& [number, output] : copied) last_read[whole_of(number)] = last_step + 1;
  std::vector<memory_request> requests;
  std::vector<std::uint32_t> arena_of;  // by request
  std::vector<std::size_t> request_of(memory_of.size(), nothing);
  const auto arena_of_number = [&](std::uint32_t number) { return c.arena_in(space_of(memory_of.layout_of(number))); };
  // The request of an argument that an output of a step may be written over, as its kernel lets it: one in the arena that
  // no other step reads any more, nor this one under another name.
  const auto written_over = [&](std::uint32_t s, std::size_t output) {
    const built& k = kernels[s];
    const std::size_t bytes = memory_of.bytes(k.outputs[output]);
    if (whole_of(k.outputs[output]) != k.outputs[output]) return nothing;  // it has its place
    for (std::size_t i = 0; i < k.arguments.size(); ++i) {
      const std::size_t which = request_of[whole_of(k.arguments[i])];
      if (!k.run.writes_over(i, output) || !k.run.reads(i) || which == nothing) continue;
      const auto is_same = [&](std::uint32_t other) { return request_of[whole_of(other)] == which; };
      if (requests[which].last_step == s && requests[which].bytes == bytes &&
          arena_of[which] == arena_of_number(k.outputs[output]) && memory_of.bytes(k.arguments[i]) == bytes &&
          std::ranges::count_if(k.arguments, is_same) == 1)
        return which;
    }
    return nothing;
  };
  for (std::uint32_t s = 0; s < kernels.size(); ++s) {
    bool is_in_place = false;  // of several outputs one: what a kernel lets each do it need not let all
    for (std::size_t o = 0; o < kernels[s].outputs.size(); ++o) {
      const std::uint32_t out = kernels[s].outputs[o], of = whole_of(out);
      if (c.value_place[of].kind != place::where::nowhere) continue;
      if (out < network.values().size() && !detail::is_wanted(network, out)) continue;
      if (request_of[of] == nothing && !is_in_place) {
        request_of[of] = written_over(s, o);
        is_in_place = request_of[of] != nothing;
      }
      if (request_of[of] == nothing) {
        request_of[of] = requests.size();
        requests.push_back({memory_of.bytes(of), s, s});
        arena_of.push_back(arena_of_number(of));
      }
      memory_request& r = requests[request_of[of]];
      r.last_step = std::max({r.last_step, s, last_read[of]});
    }
  }
  // A workspace is needed during its step alone.
  std::vector<std::size_t> workspace(kernels.size());  // which request it is
  for (std::uint32_t s = 0; s < kernels.size(); ++s) {
    workspace[s] = requests.size();
    if (kernels[s].run.workspace() == 0) continue;
    requests.push_back({kernels[s].run.workspace(), s, s});
    arena_of.push_back(c.arena_in(*kernels[s].space));
  }
  std::vector<std::size_t> offset_of(requests.size());
  for (std::uint32_t a = 0; a < c.arenas.size(); ++a) {
    std::vector<memory_request> here;
    for (std::size_t r = 0; r < requests.size(); ++r)
      if (arena_of[r] == a) here.push_back(requests[r]);
    const memory_plan memory = plan_memory(here, c.arenas[a].space->alignment);
    for (std::size_t r = 0, at = 0; r < requests.size(); ++r)
      if (arena_of[r] == a) offset_of[r] = memory.offset[at++];
    c.arenas[a].bytes = memory.bytes;
    c.arenas[a].bound = memory.lower_bound;
  }
  for (std::uint32_t v = 0; v < request_of.size(); ++v)
    if (const std::size_t r = request_of[v]; r != nothing)
      c.value_place[v] = {place::where::arena, offset_of[r], 0, nullptr, arena_of[r]};
  for (std::uint32_t v = 0; v < c.value_place.size(); ++v) {
    const auto [of, offset] = memory_of.whole(v);
    if (of == v) continue;
    c.value_place[v] = c.value_place[of];
    c.value_place[v].within = offset;
  }
  for (const auto& [number, output] : copied)
    c.copies.push_back({c.value_place[number], output, memory_of.bytes(number)});
  c.layouts = memory_of.layouts();

  // 4. Steps.
  for (std::size_t at = 0; at < kernels.size(); ++at) {
    built& k = kernels[at];
    step s;
    if (k.run.workspace() != 0) {
      s.workspace = offset_of[workspace[at]];
      s.arena = arena_of[workspace[at]];
    }
    s.first_slot = static_cast<std::uint32_t>(c.slots.size());
    s.arguments = static_cast<std::uint32_t>(k.arguments.size());
    for (std::size_t i = 0; i < k.arguments.size(); ++i) {
      const std::uint32_t v = k.arguments[i];
      if (!k.run.reads(i)) {
        c.slots.emplace_back();
      } else if (is_constant_elsewhere(k, v)) {
        c.constants.push_back(c.packed->get(network.constant(v).bytes, network.type_of(v).bytes(), *k.space));
        c.slots.push_back({place::where::weight, 0, 0, c.constants.back().get()});
      } else {
        c.slots.push_back(c.value_place[v]);
      }
    }
    for (const std::uint32_t out : k.outputs) c.slots.push_back(c.value_place[out]);
    s.run = std::move(k.run);
    c.steps.push_back(std::move(s));
  }
  if (released != nullptr) {
    for (const built& k : kernels)
      for (const std::uint32_t v : k.arguments)
        if (is_constant_elsewhere(k, v) && !needed[v]) released->set_bytes(v, nullptr);
    detail::return_free_memory();
  }
  return made;
}

inline dynamic_context dynamic_engine::context() const { return {core_, nullptr}; }

inline dynamic_context dynamic_engine::context(std::span<std::byte> arena) const {
  if (arena.size() < arena_bytes())
    throw error(
        error_kind::invalid_argument,
        "the arena has " + std::to_string(arena.size()) + " bytes but " + std::to_string(arena_bytes()) + " are needed",
        "context", "ask the engine for arena_bytes()");
  if (reinterpret_cast<std::uintptr_t>(arena.data()) % 64 != 0)
    throw error(error_kind::invalid_argument, "the arena must be aligned to 64 bytes", "context");
  return {core_, arena.data()};
}

inline dynamic_context::dynamic_context(std::shared_ptr<const dynamic_engine::core> core, std::byte* arena)
    : core_(std::move(core)) {
  using where = place::where;
  for (const dynamic_engine::arena_size& a : core_->arenas) {
    const bool is_given = arenas_.empty() && arena != nullptr;
    own_.emplace_back(is_given ? 0 : a.bytes, *a.space);
    arenas_.push_back(is_given ? arena : own_.back().data());
  }
  pointers_.resize(core_->slots.size(), nullptr);
  for (std::uint32_t i = 0; i < core_->slots.size(); ++i) {
    const place& p = core_->slots[i];
    if (p.kind == where::arena) pointers_[i] = arenas_[p.arena] + p.offset + p.within;
    // Kernels take arguments as const; one list for both keeps a step's pointers together.
    if (p.kind == where::weight) pointers_[i] = const_cast<std::byte*>(p.memory) + p.within;
    if (p.kind == where::users_input || p.kind == where::users_output)
      patches_.push_back({i, p.kind == where::users_output, p.offset, p.within});
  }
  for (const dynamic_engine::step& s : core_->steps) {
    bound_step b;
    b.invoke = s.run.entry();
    b.state = s.run.state();
    b.call = {pointers_.data() + s.first_slot, pointers_.data() + s.first_slot + s.arguments,
              s.run.workspace() != 0 ? arenas_[s.arena] + s.workspace : nullptr};
    steps_.push_back(b);
  }
}

inline void dynamic_context::check(std::span<const const_tensor_view> inputs,
                                   std::span<const tensor_view> outputs) const {
  const auto check_one = [](const port& p, const tensor_type& type, const void* data, const layout& order,
                            const memory_space& space, const char* what) {
    if (type != p.type)
      throw error(error_kind::invalid_argument,
                  "is " + detail::to_string(type) + ", but the network wants " + detail::to_string(p.type),
                  std::string(what) + " " + p.name);
    if (data == nullptr && type.dims.elements() != 0)
      throw error(error_kind::invalid_argument, "has no memory", std::string(what) + " " + p.name);
    if (order != plain)
      throw error(error_kind::invalid_argument, std::string("has layout ") + order.name + ", but plain is wanted",
                  std::string(what) + " " + p.name);
    if (space != host_space)
      throw error(error_kind::invalid_argument,
                  std::string("lies in memory space ") + space.name + ", but the host's memory is wanted",
                  std::string(what) + " " + p.name);
  };
  if (inputs.size() != core_->inputs.size() || outputs.size() != core_->outputs.size())
    throw error(error_kind::invalid_argument,
                "takes " + std::to_string(core_->inputs.size()) + " inputs and " +
                    std::to_string(core_->outputs.size()) + " outputs, not " + std::to_string(inputs.size()) + " and " +
                    std::to_string(outputs.size()),
                "run");
  for (std::size_t i = 0; i < inputs.size(); ++i)
    check_one(core_->inputs[i], inputs[i].type, inputs[i].data, inputs[i].order, *inputs[i].space, "input");
  for (std::size_t i = 0; i < outputs.size(); ++i)
    check_one(core_->outputs[i], outputs[i].type, outputs[i].data, outputs[i].order, *outputs[i].space, "output");
}

inline void dynamic_context::run(std::span<const const_tensor_view> inputs, std::span<const tensor_view> outputs,
                                 const step_observer& observer) {
  check(inputs, outputs);
  inputs_ = inputs;
  outputs_ = outputs;
  for (const patch& p : patches_)
    pointers_[p.slot] =
        static_cast<std::byte*>(p.is_output ? outputs[p.which].data : const_cast<void*>(inputs[p.which].data)) +
        p.within;

  const detail::run_scope scope(core_->used, core_->threads);
  try {
    if (observer.before == nullptr && observer.after == nullptr) {
      for (const bound_step& s : steps_) s.invoke(s.state, s.call);
    } else {
      for (std::size_t i = 0; i < steps_.size(); ++i) {
        if (observer.before != nullptr) observer.before(observer.data, i);
        steps_[i].invoke(steps_[i].state, steps_[i].call);
        core_->finish();
        if (observer.after != nullptr) observer.after(observer.data, i, *this);
      }
    }
  } catch (...) {
    core_->settle();  // whoever has the context next finds no work of this run under way
    throw;
  }
  for (const dynamic_engine::copy& c : core_->copies)
    if (c.bytes != 0) std::memcpy(outputs[c.output].data, address(c.from), c.bytes);
  core_->finish();  // the next run may be another thread's
}

inline const void* dynamic_context::address(const place& p) const {
  const void* from = nullptr;
  switch (p.kind) {
    case place::where::arena: from = arenas_[p.arena] + p.offset; break;
    case place::where::weight: from = p.memory; break;
    case place::where::users_input: from = inputs_[p.offset].data; break;
    case place::where::users_output: from = outputs_[p.offset].data; break;
    case place::where::nowhere: return nullptr;
  }
  return static_cast<const std::byte*>(from) + p.within;
}

inline const void* dynamic_context::data_of(std::uint32_t value) const { return address(core_->value_place[value]); }

inline const layout& dynamic_context::layout_of(std::uint32_t value) const { return core_->layouts[value]; }

inline std::vector<double> planned_ms(const dynamic_engine& engine, const placement& groups) {
  std::vector<double> list;
  auto group = groups.groups.begin();
  for (const step_info& s : engine.steps()) {
    if (s.nodes.empty()) {
      list.push_back(find_conversion(groups, s.output, s.written)->cost_ms);
      continue;
    }
    while (group->backend == alias_backend) ++group;
    list.push_back((group++)->cost_ms);
  }
  return list;
}

namespace detail {
inline void check_fingerprint(const graph& network, const plan& made) {
  if (made.fingerprint != network.fingerprint())
    throw error(error_kind::invalid_argument, "the plan was made for another network (" + made.network + ")", "plan",
                "place this network to get a plan of its own");
}
}  // namespace detail

template <class Set>
dynamic_engine engine(const graph& network, const plan& made, const placement& which,
                      std::shared_ptr<packed_weights> packed) {
  detail::check_fingerprint(network, made);
  return {network, which, table_of<Set>, made.threads, std::move(packed)};
}

template <class Set>
dynamic_engine engine(const graph& network, const plan& made) {
  return engine<Set>(network, made, made.chosen);
}

template <class Set>
dynamic_engine engine(graph&& network, const plan& made) {
  detail::check_fingerprint(network, made);
  return {std::move(network), made.chosen, table_of<Set>, made.threads};
}

}  // namespace collage::inline v0

#include <collage/run/detail/control.inl.hpp>
