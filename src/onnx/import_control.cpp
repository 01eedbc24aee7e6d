// Control flow: a branch with a known condition is inlined, and a loop with few rounds is unrolled. Branches and loops that only
// running can decide become nodes that own subgraphs.
#include "importer.hpp"

#include <collage/op/control.hpp>
#include <collage/op/movement.hpp>
#include <collage/op/slice.hpp>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>

namespace collage::inline v0::onnx {

namespace {

/// A loop is unrolled if it becomes at most this many nodes, counted over all rounds.
constexpr std::int64_t most_unrolled = 1000;

/// A subgraph under construction.
struct own_graph {
  building into;
  scope names;
};

std::size_t count_nodes(const model_graph& g) {
  std::size_t count = g.nodes.size();
  for (const model_node& n : g.nodes)
    for (const model_attribute& a : n.attributes)
      for (const auto& body : a.graphs) count += count_nodes(*body);
  return count;
}

/// One element along an axis, without that axis.
value pick(lowering& n, value x, std::size_t axis, std::int64_t at) {
  const shape& dims = n.dims_of(x);
  shape starts = shape::filled(dims.size(), 0), steps = shape::filled(dims.size(), 1), extents = dims, rest;
  starts[axis] = at;
  extents[axis] = 1;
  for (std::size_t d = 0; d < dims.size(); ++d)
    if (d != axis) rest.push_back(dims[d]);
  return n.reshape(n(ops::slice, x, {.starts = starts, .steps = steps, .extents = extents}), rest);
}

}  // namespace

/// The attributes, axes and iterations of a scan, checked. In operator set 8, the lengths of sequences are operand 0, and the first
/// dimension of all others is the batch.
struct scan_form {
  const model_graph* body;
  bool is_batched;
  std::size_t states = 0, inputs = 0, outputs = 0;
  std::vector<std::int64_t> in_directions, out_directions;
  std::vector<std::int64_t> in_axes, out_axes;
  std::int64_t batches = 1, length = -1;

  explicit scan_form(lowering& n);
  /// The number of leading operands that are not states, and of leading dimensions that the body does not see.
  std::size_t skip() const { return is_batched ? 1 : 0; }

 private:
  void measure(lowering& n);
};

/// Marks the outputs of a node as refused, because a node in its subgraphs is. That refusal is reported already.
void importer::leave_without_values(const model_node& node) {
  for (const std::string& output : node.outputs)
    if (!output.empty()) scope_->names[output] = std::nullopt;
}

/// The names of the outer values that subgraphs take as inputs: all that they read from outside, except constants.
std::vector<std::string> importer::captures_of(std::span<const model_graph* const> bodies) {
  std::vector<std::string> captured;
  for (const model_graph* g : bodies)
    for (const std::string& name : outer_names(*g)) {
      const std::optional<value> v = find(name);
      if (v && builder().at(*v).role != value_role::constant &&
          std::find(captured.begin(), captured.end(), name) == captured.end())
        captured.push_back(name);
    }
  return captured;
}

/// Walks a graph into the graph under construction, with `given` as its inputs. Returns its outputs.
std::vector<std::optional<value>> importer::inline_graph(const model_graph& g,
                                                         std::span<const std::optional<value>> given) {
  scope inner{scope_->into, scope_, {}, {}, scope_->opsets};
  for (std::size_t i = 0; i < given.size(); ++i) inner.names[g.inputs[i].name] = given[i];
  const depth_guard guard(depth_, where_);
  const restore<scope*> entered(scope_, &inner);
  // Each inlined copy has its own constants, which share their contents.
  for (const model_tensor& t : g.initializers)
    if (!t.name.empty() && inner.names.count(t.name) == 0)
      inner.names[t.name] = constant(t, current().name_like(t.name));
  walk(g);
  std::vector<std::optional<value>> results;
  for (const model_port& p : g.outputs) results.push_back(find(p.name));
  return results;
}

void importer::lower_if(lowering& n) {
  const model_graph* sides[] = {n.graph_attribute("then_branch"), n.graph_attribute("else_branch")};
  for (const model_graph* g : sides) {
    if (g == nullptr) n.invalid("it lacks a branch");
    if (!g->inputs.empty()) n.invalid("its branches must not have inputs");
    if (g->outputs.size() != n.outputs()) n.invalid("its branches must have as many outputs as it has");
  }
  const value condition = n.operand(0);
  if (n.element_type_of(condition) != dtype::boolean || n.dims_of(condition).elements() != 1)
    n.invalid("its condition must be one boolean");
  if (n.is_known(condition)) {
    const std::vector<std::optional<value>> results =
        inline_graph(*sides[n.integer_of(0, "its condition") != 0 ? 0 : 1], {});
    for (std::size_t i = 0; i < results.size(); ++i)
      if (n.wants(i)) scope_->names[n.node().outputs[i]] = results[i];
    return;
  }
  const std::vector<std::string> captured = captures_of(sides);
  std::vector<value> operands{condition};
  for (const std::string& name : captured) operands.push_back(*find(name));
  std::vector<std::shared_ptr<const graph>> bodies;
  const std::size_t before = problems_.size();
  for (const model_graph* g : sides) {
    body_graph body = build_body(*g, {}, captured);
    if (body.made == nullptr && staging_ != nullptr) {
      // A branch may be for other shapes than these. It need not be possible where it is not taken.
      problems_.resize(before);
      throw late_contents{0};
    }
    if (body.made == nullptr) return leave_without_values(n.node());
    bodies.push_back(std::move(body.made));
  }
  for (std::size_t i = 0; i < n.outputs(); ++i) {
    const tensor_type& first = bodies[0]->type_of(bodies[0]->outputs()[i]);
    const tensor_type& second = bodies[1]->type_of(bodies[1]->outputs()[i]);
    if (first != second)
      needs_contents("its branches return different types (" + collage::detail::to_string(first) + " and " +
                         collage::detail::to_string(second) + ") and its condition is not known before the run",
                     0);
  }
  const value made = add(kind_of<decltype(ops::branch)>, operands, {}, "", bodies);
  for (std::size_t i = 0; i < n.outputs(); ++i) n.result(i, {made.index + static_cast<std::uint32_t>(i)});
}

importer::body_graph importer::build_body(const model_graph& g, std::span<const tensor_type> given,
                                          std::span<const std::string> captured) {
  const restore<bool> apart(unrolling_, false);
  const restore<std::int64_t> left(unroll_left_, 0);
  own_graph own;
  own.names = {&own.into, scope_, {}, {}, scope_->opsets};
  std::vector<tensor_type> types(given.begin(), given.end());
  for (const std::string& name : captured) types.push_back(builder().type_of(*find(name)));
  body_graph made;
  const depth_guard guard(depth_, where_);
  const restore<scope*> entered(scope_, &own.names);
  declare(own.names, g);
  for (std::size_t i = 0; i < types.size(); ++i) {
    const std::string& name = i < given.size() ? g.inputs[i].name : captured[i - given.size()];
    const value v = builder().input(current().name_like(name), types[i]);
    if (!own.names.names.emplace(name, v).second)
      throw error(error_kind::invalid_argument, "declares " + name + " twice", where_);
  }
  walk(g);
  bool whole = true;
  std::unordered_set<std::string> names;
  for (const model_port& p : g.outputs) {
    made.outputs.push_back(find(p.name));
    whole = whole && made.outputs.back();
    std::string name = p.name;
    for (std::size_t number = 1; !names.insert(name).second; ++number) name = p.name + "_" + std::to_string(number);
    if (made.outputs.back()) builder().output(name, *made.outputs.back());
  }
  if (!g.outputs.empty() && whole) {
    const value_record& first = builder().at(*made.outputs[0]);
    if (first.role == value_role::constant && first.type.type == dtype::boolean && first.type.dims.elements() == 1) {
      const constant_data& data = builder().contents_of(*made.outputs[0]);
      if (data.bytes != nullptr) made.condition = *data.bytes != std::byte{0};
    }
    made.passes_condition = g.inputs.size() > 1 && own.names.names.count(g.inputs[1].name) != 0 &&
                            made.outputs[0] == own.names.names[g.inputs[1].name];
  }
  if (whole) made.made = std::make_shared<const graph>(own.into.builder.finish());
  return made;
}

bool importer::unroll(lowering& n, const model_graph& body, std::int64_t rounds) {
  const std::size_t carried = n.operands() > 2 ? n.operands() - 2 : 0;
  const std::size_t before = problems_.size();
  bool goes_on = !n.has(1) || n.integer_of(1, "its condition") != 0;
  std::vector<std::optional<value>> values(carried);
  for (std::size_t i = 0; i < carried; ++i) values[i] = n.operand(i + 2);
  std::vector<std::vector<value>> stacked(body.outputs.size() - 1 - carried);
  // Nested loops share the limit of the outermost loop.
  if (!unrolling_) unroll_left_ = most_unrolled;
  const restore<bool> within(unrolling_, true);
  for (std::int64_t round = 0; round < rounds && goes_on; ++round) {
    if (unroll_left_ <= 0) return false;
    std::vector<std::optional<value>> given{n.reshape(n.integers_constant({&round, 1}), {}),
                                            n.scalar(1, dtype::boolean)};
    given.insert(given.end(), values.begin(), values.end());
    const std::vector<std::optional<value>> results = inline_graph(body, given);
    if (problems_.size() != before) {
      leave_without_values(n.node());
      return true;
    }
    if (!n.is_known(*results[0])) return false;
    if (n.type_of(*results[0]) != tensor_type{dtype::boolean, n.dims_of(*results[0])} ||
        n.dims_of(*results[0]).elements() != 1)
      n.invalid("its condition must be one boolean");
    goes_on = *builder().contents_of(*results[0]).bytes != std::byte{0};
    std::copy_n(results.begin() + 1, carried, values.begin());
    for (std::size_t i = 0; i < stacked.size(); ++i) stacked[i].push_back(*results[1 + carried + i]);
  }
  for (std::size_t i = 0; i < carried; ++i) n.result(i, *values[i]);
  for (std::size_t i = 0; i < stacked.size(); ++i) {
    if (!n.wants(carried + i)) continue;
    n.result(carried + i, stacked[i].empty() ? nothing_stacked(n, body, carried + i) : stack(n, stacked[i], 0));
  }
  return true;
}

/// The stacked output of a loop without rounds: extent 0, followed by the extents that a round would return.
value importer::nothing_stacked(lowering& n, const model_graph& body, std::size_t output) {
  std::vector<tensor_type> types{{dtype::i64, {}}, {dtype::boolean, {}}};
  for (std::size_t i = 2; i < n.operands(); ++i) types.push_back(n.type_of(n.operand(i)));
  const std::size_t before = problems_.size();
  const body_graph made = build_body(body, types, captures_of(std::array{&body}));
  problems_.resize(before);  // this body is not run
  if (made.made == nullptr) n.unsupported("a loop of 0 iterations (the shape of its stacked outputs is unknown)");
  tensor_type type = made.made->type_of(made.made->outputs()[1 + output]);
  if (type.rank() == shape::max_rank) n.unsupported("a stacked output of more than 8 dimensions");
  shape dims{0};
  for (const std::int64_t extent : type.dims) dims.push_back(extent);
  type.dims = dims;
  return n.filled(type, 0);
}

/// Stacks values of one type along a new dimension.
value importer::stack(lowering& n, std::span<const value> list, std::size_t axis) {
  std::vector<value> parts;
  for (const value v : list) {
    const shape& one = n.dims_of(v);
    if (one.size() == shape::max_rank) n.unsupported("a stacked output of more than 8 dimensions");
    if (n.type_of(v) != n.type_of(list[0]))
      n.unsupported("a stacked output that changes its type or shape between iterations");
    shape dims;
    for (std::size_t d = 0; d <= one.size(); ++d) {
      if (d == axis) dims.push_back(1);
      if (d < one.size()) dims.push_back(one[d]);
    }
    parts.push_back(n.reshape(v, dims));
  }
  return n.concatenate(std::move(parts), static_cast<std::int64_t>(axis));
}

void importer::lower_loop(lowering& n) {
  const model_graph* body = n.graph_attribute("body");
  if (body == nullptr) n.invalid("it lacks a body");
  const std::size_t carried = n.operands() > 2 ? n.operands() - 2 : 0;
  if (body->inputs.size() != 2 + carried)
    n.invalid("its body must take an iteration number, a condition and all carried values");
  if (body->outputs.size() < 1 + carried) n.invalid("its body must return a condition and all carried values");
  if (n.outputs() > body->outputs.size() - 1) n.invalid("it has more outputs than its body");
  constexpr std::int64_t endless = std::numeric_limits<std::int64_t>::max();
  const bool rounds_known = !n.has(0) || n.is_known(n.operand(0));
  const bool condition_known = !n.has(1) || n.is_known(n.operand(1));
  bool is_too_long = false;
  if (rounds_known && condition_known) {
    const std::int64_t rounds = n.has(0) ? n.integer_of(0, "its number of iterations") : endless;
    if (unroll(n, *body, std::max<std::int64_t>(rounds, 0))) return;
    is_too_long = unroll_left_ <= 0;
  }
  const auto refuse_length = [&](const std::string& why) {
    n.refuse(why + ", and its iterations become more than " + std::to_string(most_unrolled) + " nodes");
  };
  const value rounds =
      n.has(0) ? n.reshape(n.cast(n.operand(0), dtype::i64), {}) : n.reshape(n.integers_constant({&endless, 1}), {});
  const value condition = n.has(1) ? n.reshape(n.operand(1), {}) : n.scalar(1, dtype::boolean);
  std::vector<value> operands{rounds, condition};
  std::vector<tensor_type> types{{dtype::i64, {}}, {dtype::boolean, {}}};
  for (std::size_t i = 0; i < carried; ++i) {
    operands.push_back(n.operand(i + 2));
    types.push_back(n.type_of(operands.back()));
  }
  const std::vector<std::string> captured = captures_of({&body, 1});
  for (const std::string& name : captured) operands.push_back(*find(name));
  const body_graph made = build_body(*body, types, captured);
  if (made.made == nullptr) return leave_without_values(n.node());
  for (std::size_t i = 0; i < carried; ++i)
    if (made.made->type_of(made.made->outputs()[i + 1]) != types[i + 2]) {
      if (is_too_long) refuse_length("a carried value changes its type or shape");
      needs_contents("a carried value changes its type or shape, and the number of iterations is unknown");
    }
  const bool stops = !(made.condition.value_or(false) || made.passes_condition);
  if (body->outputs.size() > 1 + carried && (stops || !n.is_known(rounds) || !n.is_known(condition))) {
    if (is_too_long) refuse_length("data ends it before its stacked outputs are complete");
    needs_contents("the number of its stacked iterations is not known before the run");
  }
  const ops::loop_attributes attributes{.carried = static_cast<std::int64_t>(carried), .stops = stops};
  const value first = add(kind_of<decltype(ops::loop)>, operands, to_words(attributes), "", {&made.made, 1});
  for (std::size_t i = 0; i < n.outputs(); ++i) n.result(i, {first.index + static_cast<std::uint32_t>(i)});
}

/// Reads the attributes of a scan, and checks the signature of its body.
scan_form::scan_form(lowering& n) : body(n.graph_attribute("body")), is_batched(n.opset() < 9) {
  if (body == nullptr) n.invalid("it lacks a body");
  const std::int64_t scanned = n.integer("num_scan_inputs", 0);
  if (is_batched && n.has(0)) n.unsupported("a scan over sequences of different lengths");
  if (scanned < 1 || static_cast<std::uint64_t>(scanned) + skip() > n.operands())
    n.invalid("its num_scan_inputs must be from 1 to the number of its inputs");
  inputs = static_cast<std::size_t>(scanned);
  states = n.operands() - skip() - inputs;
  if (body->inputs.size() != states + inputs || body->outputs.size() < states || n.outputs() > body->outputs.size())
    n.invalid("its body must take and return all states and scanned values");
  outputs = body->outputs.size() - states;
  const auto list = [&](const char* name, std::size_t count) {
    std::vector<std::int64_t> given = n.integers(name, std::vector<std::int64_t>(count, 0));
    if (given.size() != count)
      n.invalid(std::string("its ") + name + " must have one entry for each scanned input or output");
    return given;
  };
  in_directions = list(is_batched ? "directions" : "scan_input_directions", inputs);
  out_directions = list("scan_output_directions", outputs);
  in_axes = list("scan_input_axes", inputs);
  out_axes = list("scan_output_axes", outputs);
  measure(n);
}

/// Reads the axes, batches and iterations from the types of the scanned inputs, and checks them.
void scan_form::measure(lowering& n) {
  for (std::size_t i = 0; i < inputs; ++i) {
    const shape& dims = n.dims_of(n.operand(skip() + states + i));
    if (dims.size() < 1 + skip()) n.invalid("each scanned input must have the dimension of its scan axis");
    if (is_batched) {
      batches = dims[0];
      in_axes[i] = 1;
    }
    in_axes[i] = n.axis(in_axes[i], dims.size());
    const std::int64_t own = dims[static_cast<std::size_t>(in_axes[i])];
    if (length >= 0 && own != length) n.invalid("all scanned inputs must have the same length along their scan axes");
    length = own;
  }
  if (batches < 1 || length < 1)
    n.unsupported("a scan of length 0 or batch size 0 (the shape of its stacked outputs is unknown)");
  const auto inner = static_cast<std::int64_t>(std::max<std::size_t>(count_nodes(*body), 1));
  if (length > 100000 / inner / batches)
    n.refuse("it becomes more than 100000 nodes: " + std::to_string(length) + " iterations of " +
             std::to_string(inner) + " nodes");
}

void importer::lower_scan(lowering& n) {
  const scan_form s(n);
  std::vector<std::vector<value>> results(s.states + s.outputs);  // by output and batch
  for (std::int64_t batch = 0; batch < s.batches; ++batch) {
    const std::optional<std::vector<value>> made = unroll_scan(n, s, batch);
    if (!made) return leave_without_values(n.node());
    for (std::size_t i = 0; i < results.size(); ++i) results[i].push_back((*made)[i]);
  }
  for (std::size_t i = 0; i < results.size(); ++i)
    if (n.wants(i)) n.result(i, s.is_batched ? stack(n, results[i], 0) : results[i][0]);
}

/// Unrolls one batch of a scan. Returns its last states and its stacked outputs, or nothing if a node of the body was refused.
std::optional<std::vector<value>> importer::unroll_scan(lowering& n, const scan_form& s, std::int64_t batch) {
  const auto own_part = [&](std::size_t i) {
    const value v = n.operand(s.skip() + i);
    return s.is_batched ? pick(n, v, 0, batch) : v;
  };
  const std::size_t before = problems_.size();
  std::vector<std::optional<value>> state(s.states);
  for (std::size_t i = 0; i < s.states; ++i) state[i] = own_part(i);
  std::vector<std::vector<value>> stacked(s.outputs);
  for (std::int64_t round = 0; round < s.length; ++round) {
    std::vector<std::optional<value>> given = state;
    for (std::size_t i = 0; i < s.inputs; ++i) {
      const std::size_t axis = static_cast<std::size_t>(s.in_axes[i]) - s.skip();
      const std::int64_t at = s.in_directions[i] == 0 ? round : s.length - 1 - round;
      given.push_back(pick(n, own_part(s.states + i), axis, at));
    }
    const std::vector<std::optional<value>> made = inline_graph(*s.body, given);
    if (problems_.size() != before) return {};
    std::copy_n(made.begin(), s.states, state.begin());
    for (std::size_t i = 0; i < s.outputs; ++i) stacked[i].push_back(*made[s.states + i]);
  }
  std::vector<value> results;
  for (const std::optional<value>& v : state) results.push_back(*v);
  for (std::size_t i = 0; i < s.outputs; ++i) {
    if (s.out_directions[i] != 0) std::reverse(stacked[i].begin(), stacked[i].end());
    const std::int64_t axis = n.axis(s.out_axes[i], n.dims_of(stacked[i][0]).size() + 1);
    results.push_back(stack(n, stacked[i], static_cast<std::size_t>(axis)));
  }
  return results;
}

}  // namespace collage::inline v0::onnx
