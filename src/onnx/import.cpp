// The importer's walk over a model: the order of the nodes, the rule for each, and the report of refused nodes.
#include "import_text.hpp"
#include "importer.hpp"
#include "rules.hpp"

#include <collage/backends/reference.hpp>
#include <collage/pass/remove_dead.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <queue>
#include <string_view>

namespace collage::inline v0::onnx {

namespace {

/// All built-in lowering rules, by domain and operator.
const std::map<std::pair<std::string, std::string>, void (*)(lowering&)>& built_in_rules() {
  static const auto rules = [] {
    std::map<std::pair<std::string, std::string>, void (*)(lowering&)> all;
    for (const std::span<const lowering_rule> list :
         {elementwise_rules(), movement_rules(), indexing_rules(), layer_rules(), norm_rules(), reduction_rules(),
          recurrent_rules(), sampling_rules(), quantise_rules(), packed_weight_rules(), algebra_rules(), data_rules(),
          shape_rules(), attention_rules(), decoding_rules(), training_rules(), microsoft_quantise_rules()})
      for (const lowering_rule& r : list) all.emplace(std::pair(r.domain, r.operator_type), r.lower);
    return all;
  }();
  return rules;
}

/// Whether the node is control flow, which the importer lowers itself.
bool is_control(const model_node& node) {
  return node.domain.empty() &&
         (node.operator_type == "If" || node.operator_type == "Loop" || node.operator_type == "Scan");
}

/// An operator whose definition changed after the newest supported operator set, and the set in which it changed. Changes that only
/// add element types which there are no tensors of are left out.
struct later_change {
  const char* operator_type;
  std::int64_t opset;
};
constexpr later_change later_changes[] = {
    {"BitShift", 28},
    {"Cast", 28},
    {"Celu", 28},
    {"Compress", 28},
    {"DepthToSpace", 28},
    {"Einsum", 28},
    {"DequantizeLinear", 28},
    {"Mod", 28},
    {"OneHot", 28},
    {"ReduceLogSum", 28},
    {"QuantizeLinear", 28},
    {"ReduceLogSumExp", 28},
    {"ReverseSequence", 28},
    {"SpaceToDepth", 28},
    {"Unique", 28},
};

}  // namespace

std::string building::name_like(const std::string& wanted) {
  if (taken.insert(wanted).second) return wanted;
  for (std::size_t& number = numbered[wanted];;)
    if (std::string name = wanted + "_" + std::to_string(++number); taken.insert(name).second) return name;
}

value importer::operand(const lowering& n, std::size_t i) {
  const std::optional<value> v = find(n.node().inputs[i]);
  if (!v) throw error(error_kind::failure, "reads the result of a refused node", where_);
  return *v;
}

void importer::result(const lowering& n, std::size_t i, value v) { scope_->names[n.node().outputs[i]] = v; }

void importer::report(const model_node& node, std::int64_t opset, const std::string& what, bool is_mistake) {
  std::string text = printable(name_of(node)) + " (" + operator_name(node) + ", opset " + std::to_string(opset);
  const std::string types = joined(node.inputs, [&](const std::string& name) -> std::string {
    if (name.empty()) return "nothing";
    try {
      const std::optional<value> v = find(name);
      return v ? collage::detail::to_string(builder().type_of(*v)) : std::string("?");
    } catch (const error&) { return "?"; }
  });
  if (!types.empty()) text += ", of " + types;
  const std::string attributes =
      joined(node.attributes, [](const model_attribute& a) { return printable(a.name, 30) + "=" + text_of(a); });
  if (!attributes.empty()) text += ", {" + attributes + "}";
  problems_.push_back({text + "): " + printable(what, 500), is_mistake});
}

void importer::refuse_all() const {
  bool mistake = false;
  for (const problem& p : problems_) mistake = mistake || p.is_mistake;
  const error_kind kind = mistake ? error_kind::invalid_argument : error_kind::unsupported;
  if (problems_.size() == 1) throw error(kind, "node " + problems_[0].text, model_.file);
  std::string text = std::to_string(problems_.size()) + " nodes cannot be imported:";
  constexpr std::size_t most = 200;
  for (std::size_t i = 0; i < std::min(problems_.size(), most); ++i) text += "\n  " + problems_[i].text;
  if (problems_.size() > most) text += "\n  and " + std::to_string(problems_.size() - most) + " more";
  throw error(kind, text, model_.file);
}

void importer::declare(scope& s, const model_graph& g) {
  for (const model_tensor& t : g.initializers) {
    if (t.name.empty()) continue;
    if (!s.initializers.emplace(t.name, &t).second)
      throw error(error_kind::invalid_argument, "defines " + printable(t.name) + " twice", model_.file);
    s.into->taken.insert(t.name);
  }
}

void importer::walk(const model_graph& g) {
  std::vector<std::string> outputs;
  for (const model_port& p : g.outputs) outputs.push_back(p.name);
  walk(g.nodes, outputs, g.name.empty() ? "the graph" : "graph " + printable(g.name));
}

void importer::walk(std::span<const model_node> nodes, std::span<const std::string> outputs,
                    const std::string& graph_name) {
  // Sorts the nodes: a file should have them in an order in which they can be computed, but not every file does.
  const std::string where = model_.file + ", " + graph_name;
  std::unordered_map<std::string_view, std::size_t> producer;
  for (std::size_t i = 0; i < nodes.size(); ++i)
    for (const std::string& output : nodes[i].outputs) {
      if (output.empty() || (scope_ == top_ && scope_->names.count(output) != 0 && !staging_->is_first)) continue;
      if (!producer.emplace(output, i).second || scope_->names.count(output) != 0 ||
          scope_->initializers.count(output) != 0)
        throw error(error_kind::invalid_argument,
                    "node " + printable(name_of(nodes[i])) + " defines " + printable(output) +
                        ", which is defined elsewhere too",
                    where, "names in a graph must be unique");
    }
  std::vector<std::size_t> waits(nodes.size(), 0);
  std::vector<std::vector<std::size_t>> readers(nodes.size());
  std::vector<std::vector<std::string>> read(nodes.size());
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    read[i] = names_read(nodes[i]);
    for (const std::string& name : read[i])
      if (const auto found = producer.find(name); found != producer.end()) {
        readers[found->second].push_back(i);
        ++waits[i];
      }
  }
  // Nodes that no output needs are left out, supported or not: exporters leave many of them behind.
  std::vector<bool> needed(nodes.size(), false);
  std::vector<std::string_view> open(outputs.begin(), outputs.end());
  scope_->read.insert(outputs.begin(), outputs.end());
  while (!open.empty()) {
    const auto found = producer.find(open.back());
    open.pop_back();
    if (found == producer.end() || needed[found->second]) continue;
    needed[found->second] = true;
    for (const std::string& name : read[found->second]) {
      scope_->read.insert(name);
      open.push_back(name);
    }
  }
  std::priority_queue<std::size_t, std::vector<std::size_t>, std::greater<>> ready;
  for (std::size_t i = 0; i < nodes.size(); ++i)
    if (waits[i] == 0) ready.push(i);
  std::size_t done = 0;
  while (!ready.empty()) {
    const std::size_t i = ready.top();
    ready.pop();
    ++done;
    if (needed[i]) import_node(nodes[i]);
    for (const std::size_t reader : readers[i])
      if (--waits[reader] == 0) ready.push(reader);
  }
  if (done == nodes.size()) return;
  std::size_t stuck = 0;
  while (waits[stuck] == 0) ++stuck;
  throw error(error_kind::invalid_argument,
              "node " + printable(name_of(nodes[stuck])) + " (" + operator_name(nodes[stuck]) +
                  ") reads a value that is computed only after it: the graph has a cycle",
              where);
}

void importer::import_node(const model_node& node) {
  const restore<const model_node*> now(node_, &node);
  const restore<std::string> named(where_, "node " + printable(name_of(node)) + " (" + operator_name(node) + ")");
  const restore<std::size_t> piece(pieces_, 0);
  const restore<std::size_t> deeper(node_depth_, node_depth_ + 1);
  --unroll_left_;
  if (++walked_ > options_.most_nodes)
    throw error(error_kind::invalid_argument, "it becomes more than " + std::to_string(options_.most_nodes) + " nodes",
                model_.file, "raise load_options::most_nodes to load it");
  const auto version = scope_->opsets->find(node.domain);
  const std::int64_t opset = version != scope_->opsets->end() ? version->second : 1;

  // A node that reads a refused value is refused without a report: the reason is reported already. A missing rule is reported all
  // the same.
  bool poisoned = false;
  const auto fail = [&](const std::string& what, bool is_mistake) {
    report(node, opset, what, is_mistake);
    poisoned = true;
  };
  if (reads_later(node)) return leave_for_later(node);
  try {
    for (const std::string& name : names_read(node)) poisoned = !find(name) || poisoned;
    if (!poisoned) lower(node, opset);
    else if (!is_known(node)) fail(unknown_operator(node), false);
    for (const std::string& output : node.outputs)
      if (!poisoned && !output.empty() && reads(output) && scope_->names.count(output) == 0)
        fail("its output " + printable(output) + " is not supported", false);
  } catch (const late_contents& needed) {
    if (!is_top()) throw late_contents{late_contents::all_operands};
    return set_aside(node, needed.operand);
  } catch (const error& e) {
    if (e.kind() == error_kind::environment) throw;
    std::string text = e.what();
    // The report names the node, so the name at the front is removed. The graph's builder adds to it the kind that the node became.
    const std::string own = "node " + name_of(node);
    if (const std::size_t end = text.find("): "); text.starts_with(own) && end != std::string::npos)
      text = text.substr(end + 3);
    fail(text, e.kind() == error_kind::invalid_argument);
    if (problems_.size() > 10000) refuse_all();
  }
  for (const std::string& output : node.outputs)
    if (!output.empty() && (poisoned || scope_->names.count(output) == 0)) scope_->names[output] = std::nullopt;
}

bool importer::is_known(const model_node& node) const {
  return users_rule_of(node) != nullptr || users_kind_of(node) != nullptr || function_of(node) != nullptr ||
         is_control(node) || built_in_rules().count({node.domain, node.operator_type}) != 0;
}

auto importer::users_rule_of(const model_node& node) const -> decltype(lowering_rule::lower) {
  for (const lowering_rule& r : options_.rules)
    if (node.domain == r.domain && node.operator_type == r.operator_type) return r.lower;
  return nullptr;
}

/// Operators that had their definition of operator set 7 before, and since when.
struct early_operator {
  const char* operator_type;
  std::int64_t since;
};
constexpr early_operator early_operators[] = {
    {"Abs", 6},
    {"ArgMax", 1},
    {"ArgMin", 1},
    {"Cast", 6},
    {"Ceil", 6},
    {"Clip", 6},
    {"Concat", 4},
    {"Constant", 1},
    {"Conv", 1},
    {"ConvTranspose", 1},
    {"DepthToSpace", 1},
    {"Elu", 6},
    {"Exp", 6},
    {"Flatten", 1},
    {"Floor", 6},
    {"Gather", 1},
    {"GlobalAveragePool", 1},
    {"GlobalMaxPool", 1},
    {"HardSigmoid", 6},
    {"Identity", 1},
    {"InstanceNormalization", 6},
    {"LRN", 1},
    {"LeakyRelu", 6},
    {"Log", 6},
    {"LogSoftmax", 1},
    {"MatMul", 1},
    {"Max", 6},
    {"MaxPool", 1},
    {"Mean", 6},
    {"Min", 6},
    {"Neg", 6},
    {"Not", 1},
    {"Pad", 2},
    {"Reciprocal", 6},
    {"ReduceL1", 1},
    {"ReduceL2", 1},
    {"ReduceLogSum", 1},
    {"ReduceLogSumExp", 1},
    {"ReduceMax", 1},
    {"ReduceMean", 1},
    {"ReduceMin", 1},
    {"ReduceProd", 1},
    {"ReduceSum", 1},
    {"ReduceSumSquare", 1},
    {"Relu", 6},
    {"Reshape", 5},
    {"Selu", 6},
    {"Shape", 1},
    {"Sigmoid", 6},
    {"Size", 1},
    {"Slice", 1},
    {"Softmax", 1},
    {"Softplus", 1},
    {"Softsign", 1},
    {"SpaceToDepth", 1},
    {"Split", 2},
    {"Sqrt", 6},
    {"Squeeze", 1},
    {"Sum", 6},
    {"Tanh", 6},
    {"Tile", 6},
    {"Transpose", 1},
    {"Unsqueeze", 1},
};

static bool is_too_old(const model_node& node, std::int64_t opset) {
  if (!node.domain.empty() || opset <= 0 || opset >= oldest_opset) return false;
  return std::none_of(std::begin(early_operators), std::end(early_operators), [&](const early_operator& e) {
    return node.operator_type == e.operator_type && opset >= e.since;
  });
}

void importer::lower(const model_node& node, std::int64_t opset) {
  lowering n(*this, node, opset);
  if (const auto lower_own = users_rule_of(node); lower_own != nullptr) return lower_own(n);
  if (const kind_info* kind = users_kind_of(node); kind != nullptr) return lower_kind(n, *kind);
  if (const model_function* function = function_of(node); function != nullptr) return call_function(node, *function);
  if (is_too_old(node, opset))
    n.refuse("its definition in operator set " + std::to_string(opset) + " is not supported, only that from " +
             std::to_string(oldest_opset) + " on; convert the model with ONNX's version converter");
  if (is_control(node)) {
    if (node.operator_type == "If") return lower_if(n);
    if (node.operator_type == "Loop") return lower_loop(n);
    return lower_scan(n);
  }
  const auto found = built_in_rules().find({node.domain, node.operator_type});
  if (found == built_in_rules().end()) n.refuse(unknown_operator(node));
  if (node.domain.empty() && scope_->opsets->count("") == 0)
    n.invalid("the model imports no version of ONNX's operators");
  found->second(n);
}

void describe(const model& m, load_report& found) {
  found.opset = 0;
  if (const auto own = m.opsets.find(""); own != m.opsets.end()) found.opset = own->second;
  found.producer = m.producer;
  found.metadata = m.metadata;
  if (found.opset > newest_opset) {
    std::set<std::string> changed;
    for (const model_node& n : m.graph.nodes)
      for (const later_change& c : later_changes)
        if (n.domain.empty() && n.operator_type == c.operator_type && found.opset >= c.opset)
          changed.insert(n.operator_type);
    std::string names;
    for (const std::string& name : changed) names += (names.empty() ? "" : ", ") + name;
    found.notes.push_back("the model uses operator set " + std::to_string(found.opset) +
                          ", newer than the newest known (" + std::to_string(newest_opset) + "); " +
                          (names.empty() ? "no operator of it is known to have changed since."
                                         : "of its operators these have changed since: " + names + "."));
  }
}

graph importer::run(load_report& found) {
  describe(model_, found);
  building whole;
  scope top{&whole, nullptr, {}, {}, &model_.opsets};
  const restore<scope*> entered(scope_, &top);
  where_ = model_.file;
  declare(top, model_.graph);
  bind_inputs(found);
  walk(model_.graph);
  if (model_.graph.outputs.empty()) throw error(error_kind::invalid_argument, "the graph has no output", model_.file);
  std::unordered_set<std::string> names;
  for (const model_port& p : model_.graph.outputs) {
    const restore<std::string> named(where_, model_.file + ", output " + printable(p.name));
    if (!names.insert(p.name).second) continue;  // declared twice: one output
    const std::optional<value> v = find(p.name);
    if (v) whole.builder.output(p.name, *v);
    else if (problems_.empty()) throw error(error_kind::failure, "is not computed", where_, "please report it");
  }
  if (!problems_.empty()) refuse_all();
  // Loops that could not be unrolled and values that only decided a shape leave nodes behind.
  return remove_dead(whole.builder.finish());
}

error told_of(const error& e, const std::string& file) {
  // A message quotes text of the file, which may hold any byte.
  std::string text = e.what();
  for (char& c : text)
    if ((static_cast<unsigned char>(c) < ' ' && c != '\n') || c == 127) c = '?';
  if (text.starts_with(file)) return error(e.kind(), text);
  return error(e.kind(), text, file);
}

namespace {

/// Lowers a model that was read from a file, or from memory under a name.
graph lower(const model& read, const load_options& options, load_report* report) {
  load_report own;
  importer work(read, options);
  try {
    return work.run(report != nullptr ? *report : own);
  } catch (const error& e) { throw told_of(with_sentences(e, contradictions(read, options)), read.file); }
}

}  // namespace

graph load(const std::string& file, const load_options& options, load_report* report) {
  check_kinds(options.kinds);
  return lower(read_model(file, {.tensor_bytes = options.most_bytes}), options, report);
}

graph load(std::span<const std::byte> model, const std::string& name, const load_options& options,
           load_report* report) {
  check_kinds(options.kinds);
  return lower(read_model(model, name, {.tensor_bytes = options.most_bytes}), options, report);
}

std::vector<std::string> supported_operators() {
  std::vector<std::string> names{"If", "Loop", "Scan"};
  for (const auto& [key, rule] : built_in_rules())
    names.push_back(key.first.empty() ? key.second : key.first + "." + key.second);
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace collage::inline v0::onnx
