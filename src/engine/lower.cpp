// From a placement to kernels over storage.
#include "parts.hpp"

#include <collage/op/convert_layout.hpp>
#include <collage/pattern/match.hpp>
#include <collage/run/configuration.hpp>
#include <collage/run/layouts.hpp>
#include <collage/run/node_group.hpp>
#include <collage/run/views.hpp>

#include <algorithm>
#include <span>
#include <unordered_map>
#include <vector>

namespace collage::inline v0::detail {

value_storage::value_storage(const graph& network) : network_(&network), forms_(network.values().size()) {
  for (std::uint32_t v = 0; v < forms_.size(); ++v) {
    values_.push_back(v);
    parts_.push_back({v, 0});
  }
}

std::uint32_t value_storage::add(std::uint32_t value, const form& stored) {
  const auto number = static_cast<std::uint32_t>(forms_.size());
  forms_.push_back(stored);
  values_.push_back(value);
  parts_.push_back({number, 0});
  others_[value].push_back(number);
  return number;
}

std::optional<std::uint32_t> value_storage::find(std::uint32_t value, const form& stored) const {
  if (forms_[value] == stored) return value;
  if (const auto others = others_.find(value); others != others_.end())
    for (const std::uint32_t i : others->second)
      if (forms_[i] == stored) return i;
  return {};
}

value_storage::part value_storage::whole(std::uint32_t number) const {
  part p{number, 0};
  while (parts_[p.of].of != p.of) p = {parts_[p.of].of, p.offset + parts_[p.of].offset};
  return p;
}

std::size_t value_storage::bytes(std::uint32_t number) const {
  return bytes_in(network_->type_of(values_[number]), forms_[number]);
}

namespace {

std::string place_of(const graph& network, const plan_group& g) {
  return "plan, group of node " + network.node_name(g.nodes.back());
}

/// The match that a group stands for. Errors: the plan does not fit the network.
match_record match_group(const graph& network, const plan_group& g, const kernel_step& step, const backend_entry& b,
                         const pattern_entry& p) {
  match_record record;
  verdict why;
  // The root was listed last whatever the order of the others, which was the pattern's before it was ascending.
  const std::uint32_t root = g.nodes.back();
  const std::string where = place_of(network, g);
  if (!match_at(network.view(), p.nodes, root, record, &why))
    throw plan_error("pattern " + step.pattern + " of " + b.name + " does not match there (" + why.rule + ")", where);
  if (!std::is_permutation(g.nodes.begin(), g.nodes.end(), record.node_list().begin(), record.node_list().end()))
    throw plan_error("pattern " + step.pattern + " of " + b.name + " matches other nodes than the plan lists", where);
  if (const verdict v = p.accepts(network.view(), record); !v)
    throw plan_error(std::string(b.name) + " refuses it: " + v.rule, where);
  return record;
}

/// The group that a backend's rule found. Errors: the plan does not fit the backend.
node_group rule_group(const graph& network, const plan_group& g, const backend_entry& b) {
  if (b.build_group == nullptr) throw plan_error(std::string("backend ") + b.name + " has no fusion rule", "plan");
  for (const std::uint32_t n : g.nodes)
    if (!takes_node(b, network, n))
      throw plan_error(std::string("backend ") + b.name + " does not run node " + network.node_name(n), "plan");
  return group_of(network, g.nodes);
}

/// The configuration that a plan names for a match. Errors: the backend does not have it. `who` is the backend in the sentence.
configuration configuration_of(const std::string& text, const std::string& who, const pattern_entry& p,
                               const graph_view& view, const match_record& record, const std::string& where) {
  const std::optional<configuration> how = configuration::of(text);
  const verdict has = how ? judge_configuration(p, view, record, *how) : configuration::judge(text);
  if (has) return *how;
  throw plan_error(who + " has no configuration " + on_one_line(text) + " for pattern " + p.name + ": " + has.rule,
                   where);
}

/// Builds the kernel of a match in a configuration that the backend has. Errors: those of the backend. If it proposes
/// configurations, they name the configuration, because another one may be possible.
kernel build_kernel(const graph& network, const backend_entry& b, const pattern_entry& p, const match_record& record,
                    const configuration& how, int threads, packed_weights& packed, const value_scales* scales,
                    const std::string& where) {
  build_context context(network, threads, packed, *b.space);
  context.set_configuration(how);
  context.set_scales(scales);
  const thread_scope scope(b, threads);
  if (p.configurations == nullptr) return p.build(network.view(), record, context);
  try {
    return p.build(network.view(), record, context);
  } catch (const error& e) {
    if (e.kind() != error_kind::unsupported && e.kind() != error_kind::invalid_argument) throw;
    throw plan_error(
        std::string(b.name) + " refuses configuration " + how.text() + " for pattern " + p.name + " (" + e.what() + ")",
        where);
  }
}

/// A network of one conversion.
graph conversion_network(const tensor_type& type) {
  graph_builder g;
  g.output("made", g(ops::convert_layout, g.input("from", type)));
  return g.finish();
}

/// The scales of a value, for the network of its conversion.
value_scales scales_of(const graph_view& conversion, const value_scales* known, std::uint32_t value) {
  value_scales both;
  for (const dtype element : {dtype::u8, dtype::i8}) {
    const std::optional<integer_scale> how = known != nullptr ? known->of(value, element) : std::nullopt;
    if (how)
      for (const std::uint32_t end : {conversion.inputs_of(0)[0], conversion.output_of(0)})
        both.set(end, element, *how);
  }
  return both;
}

/// The kernel of a conversion. Errors: the plan does not fit the backend.
kernel build_conversion(const graph& network, const plan_conversion& c, const backend_entry& b, int threads,
                        packed_weights& packed, const value_scales* scales) {
  const std::string where = "plan, conversion of " + network.value_name(c.value);
  const pattern_entry* const p = b.find(decltype(ops::convert_layout)::name);
  const graph one = conversion_network(network.type_of(c.value));
  const graph_view view = one.view();
  match_record record;
  if (p == nullptr || !match_at(view, p->nodes, 0, record) || !p->accepts(view, record))
    throw plan_error(std::string(b.name) + " cannot make this conversion", where);
  const configuration how = configuration_of(
      c.step.configuration, b.name + std::string(" cannot make this conversion: it"), *p, view, record, where);
  const value_forms found = forms_of(*p, view, record, how);
  if (to_text(found.of(view.inputs_of(0)[0])) != c.step.from || to_text(found.of(view.output_of(0))) != c.step.to)
    throw plan_error("configuration " + c.step.configuration + " of " + b.name + " converts other forms", where);
  const value_scales its = scales_of(view, scales, c.value);
  return build_kernel(one, b, *p, record, how, threads, packed, &its, where);
}

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

  /// Some kernel reads the value itself.
  void keep(std::uint32_t value) { kept_[value] = true; }
  /// The kernel of a group was built. A constant with a view is never given up, because the view is a name for it.
  void after(const plan_group& g) {
    if (from_ == nullptr) return;
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

class lowering {
 public:
  lowering(const graph& network, graph* released, const placement& groups, backend_table backends, int threads,
           std::shared_ptr<packed_weights> packed)
      : network_(network),
        groups_(groups),
        backends_(backends),
        spaces_(spaces_of(backends)),
        threads_(threads),
        packed_(std::move(packed)),
        release_(network, released),
        plan_(network) {
    for (const plan_conversion& c : groups.conversions) conversions_[c.value].push_back(&c);
  }

  lowered_plan run() && {
    for (const plan_group& g : groups_.groups) std::visit([&](const auto& step) { add(g, step); }, g.step);
    for (const std::uint32_t v : network_.outputs()) plan_.results.push_back(in_form(v, form()));
    return std::move(plan_);
  }

 private:
  const backend_entry& use(const std::string& name) {
    const backend_entry& b = backend_named(backends_, name);
    if (std::ranges::find(plan_.used, &b) != plan_.used.end()) return b;
    if (const probe_result found = b.probe(); !found.available)
      throw error(error_kind::environment, found.reason, std::string("backend ") + b.name);
    plan_.used.push_back(&b);
    return b;
  }

  form parse(const std::string& text, const std::string& where) const {
    if (const std::optional<form> found = form_of(text, shared_layouts, spaces_)) return *found;
    throw plan_error("names form " + text + ", but no backend of this program has that memory space", where);
  }

  /// The conversion of a value into a form; null where the placement has none.
  const plan_conversion* conversion_of(std::uint32_t v, const std::string& to) const {
    const auto known = conversions_.find(v);
    if (known == conversions_.end()) return nullptr;
    const auto at = std::ranges::find(known->second, to, [](const plan_conversion* c) { return c->step.to; });
    return at != known->second.end() ? *at : nullptr;
  }

  /// A value in a form: as it was written, or converted now where nothing has needed that before. `steps` bounds a path of
  /// conversions, each of which begins where another ends.
  std::uint32_t in_form(std::uint32_t v, const form& wanted, std::size_t steps = 0) {
    if (const auto known = plan_.storage.find(v, wanted)) return *known;
    const auto fail = [&](const char* why) {
      return plan_error(
          "is needed as " + to_text(wanted) + ", but written as " + to_text(plan_.storage.form_at(v)) + why,
          "plan, value " + network_.value_name(v));
    };
    const plan_conversion* const how = conversion_of(v, to_text(wanted));
    if (how == nullptr || steps > groups_.conversions.size()) throw fail(" and not converted");
    const bool is_direct = how->step.from == to_text(plan_.storage.form_at(v));
    if (!is_direct && conversion_of(v, how->step.from) == nullptr) throw fail(" and not converted");
    if (how->step.backend.empty()) throw fail(", and no backend makes that conversion");
    const std::uint32_t from = in_form(v, parse(how->step.from, "plan, value " + network_.value_name(v)), steps + 1);
    const backend_entry& by = use(how->step.backend);
    lowered_step s;
    s.run = build_conversion(network_, *how, by, threads_, *packed_, groups_.scales.get());
    keep(from);
    s.space = by.space;
    s.in = {from};
    s.out = {plan_.storage.add(v, wanted)};
    s.info.step = how->step;
    s.info.kernel = s.run.name();
    s.info.label = network_.value_name(v);
    plan_.steps.push_back(std::move(s));
    return plan_.steps.back().out[0];
  }

  /// Something reads this number itself: its constant stays.
  void keep(std::uint32_t number) { release_.keep(plan_.storage.value_at(plan_.storage.whole(number).of)); }

  /// An argument of a kernel that was built.
  std::uint32_t read(std::uint32_t v, bool is_read, const form& wanted, const memory_space& space) {
    const bool is_constant = network_.at(v).role == value_role::constant;
    if (is_constant && space != host_space) return is_read ? on_device(v, space) : no_region;
    const std::uint32_t number = in_form(v, wanted);
    if (!is_read) return no_region;
    keep(number);
    return number;
  }
  /// A constant in a device's memory, where it is once for all kernels that read it as it is.
  std::uint32_t on_device(std::uint32_t v, const memory_space& space) {
    const form there(plain, space);
    if (const auto known = plan_.storage.find(v, there)) return *known;
    const std::uint32_t number = plan_.storage.add(v, there);
    plan_.on_devices.emplace_back(number, packed_->get(network_.constant(v).bytes, network_.type_of(v).bytes(), space));
    return number;
  }

  void add_kernel(const plan_group& g, std::span<const std::uint32_t> arguments, std::vector<std::uint32_t> outputs,
                  kernel run, const memory_space& space = host_space, const value_forms& borders = {}) {
    lowered_step s;
    s.space = &space;
    for (std::size_t i = 0; i < arguments.size(); ++i)
      s.in.push_back(read(arguments[i], run.reads(i), borders.of(arguments[i]), space));
    for (const std::uint32_t v : outputs) plan_.storage.write(v, borders.of(v));
    s.out = std::move(outputs);
    s.info = {g.step, run.name(), g.nodes, network_.node_name(g.nodes.back()), {}, {}, no_region};
    s.run = std::move(run);
    release_.after(g);
    plan_.steps.push_back(std::move(s));
  }

  void add(const plan_group& g, const kernel_step& step) {
    const backend_entry& b = use(step.backend);
    const pattern_entry* const p = b.find(step.pattern);
    if (p == nullptr) throw plan_error("backend " + step.backend + " has no pattern " + step.pattern, "plan");
    const graph_view view = network_.view();
    const match_record record = match_group(network_, g, step, b, *p);
    const std::string where = place_of(network_, g);
    const configuration how = configuration_of(step.configuration, b.name, *p, view, record, where);
    kernel built = build_kernel(network_, b, *p, record, how, threads_, *packed_, groups_.scales.get(), where);
    add_kernel(g, record.argument_list(), written_values(view, record), std::move(built), *b.space,
               forms_of(*p, view, record, how));
  }

  void add(const plan_group& g, const group_step& step) {
    const backend_entry& b = use(step.backend);
    const node_group group = rule_group(network_, g, b);
    build_context context(network_, threads_, *packed_, *b.space);
    context.set_scales(groups_.scales.get());
    const thread_scope scope(b, threads_);
    add_kernel(g, group.arguments, group.outputs, b.build_group(group, context), *b.space,
               forms_of(b, network_, group));
  }

  void add(const plan_group& g, const view_step& step) {
    const std::uint32_t node = g.nodes[0], result = network_.view().output_of(node);
    const form stored = parse(step.form, place_of(network_, g));
    lowered_step s;
    for (const value_view& v : views_of(network_, node, stored)) {
      // The operands of a concat are parts of the result; all other results are parts of their operands.
      const bool is_operand = v.of == result;
      const std::uint32_t number = is_operand ? in_form(v.value, stored) : v.value;
      const std::uint32_t into = is_operand ? v.of : in_form(v.of, stored);
      if (!has_one_scale(groups_.scales.get(), stored, v.value, v.of))
        throw plan_error("is a view of integers of another scale", place_of(network_, g));
      plan_.storage.put(number, into, v.offset);
      s.in.push_back(is_operand ? number : into);
    }
    plan_.storage.write(result, stored);
    s.out = {result};
    s.info = {g.step, "view", g.nodes, network_.node_name(node), {}, {}, no_region};
    plan_.steps.push_back(std::move(s));
  }

  void add(const plan_group& g, const control_step& step) {
    const std::uint32_t node = g.nodes[0];
    std::vector<std::uint32_t> outputs;
    for (std::uint32_t i = 0; i < network_.node(node).outputs; ++i)
      outputs.push_back(network_.view().output_of(node, i));
    add_kernel(g, network_.view().inputs_of(node), std::move(outputs),
               build_control(network_, node, step, backends_, threads_, packed_));
  }

  // check_cover refuses these in a plan's groups.
  void add(const plan_group&, const conversion_step&) {}
  void add(const plan_group&, const copy_step&) {}

  const graph& network_;
  const placement& groups_;
  backend_table backends_;
  std::vector<const memory_space*> spaces_;
  int threads_;
  std::shared_ptr<packed_weights> packed_;
  constant_release release_;
  std::unordered_map<std::uint32_t, std::vector<const plan_conversion*>> conversions_;  // by value
  lowered_plan plan_;
};

}  // namespace

lowered_plan lower(const graph& network, graph* released, const placement& groups, backend_table backends, int threads,
                   const std::shared_ptr<packed_weights>& packed) {
  check_cover(network, groups);
  return lowering(network, released, groups, backends, threads, packed).run();
}

}  // namespace collage::inline v0::detail
