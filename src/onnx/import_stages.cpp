// Stages: the importer walks as far as shapes and contents are known, and leaves the rest of the nodes for the stages after it.
#include "import_text.hpp"
#include "importer.hpp"

#include <collage/pass/remove_dead.hpp>

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>

namespace collage::inline v0::onnx {

namespace {

/// The operators whose results have shapes that depend on data. Their rules (lower_data.cpp) compute them from contents.
bool is_data_dependent(const model_node& node) {
  constexpr std::array<std::string_view, 4> all{"Compress", "NonMaxSuppression", "NonZero", "Unique"};
  return node.domain.empty() && std::find(all.begin(), all.end(), node.operator_type) != all.end();
}

/// Whether the contents of a given value may be part of what a stage is made for. Lists of integers and scales are small.
bool is_small(const tensor_type& type) {
  const std::int64_t elements = type.dims.elements();
  return elements <= (is_floating(type.type) ? 64 : 1024);
}

/// The inputs of the graph under construction from which a value is computed. Empty if one of them is not small.
std::vector<std::uint32_t> small_origins(const graph_builder& builder, value v) {
  const graph_view view = builder.view();
  std::vector<std::uint32_t> open{v.index}, origins;
  std::unordered_set<std::uint32_t> seen{v.index};
  while (!open.empty()) {
    const std::uint32_t at = open.back();
    open.pop_back();
    const value_record& r = view.values[at];
    if (r.role == value_role::input) {
      if (!is_small(r.type)) return {};
      origins.push_back(at);
    }
    if (r.producer < 0) continue;
    for (const std::uint32_t from : view.inputs_of(static_cast<std::uint32_t>(r.producer)))
      if (seen.insert(from).second) open.push_back(from);
  }
  return origins;
}

/// The values that a node may need in this stage. Control flow first needs what decides about it: a condition, a number of rounds.
std::vector<std::string> names_needed(const model_node& node, std::size_t operand, auto is_known) {
  if (operand != late_contents::all_operands) return {node.inputs[operand]};
  const std::size_t deciding = !node.domain.empty()           ? 0
                               : node.operator_type == "If"   ? 1
                               : node.operator_type == "Loop" ? 2
                                                              : 0;
  std::vector<std::string> names;
  for (std::size_t i = 0; i < std::min(deciding, node.inputs.size()); ++i)
    if (!node.inputs[i].empty() && !is_known(node.inputs[i])) names.push_back(node.inputs[i]);
  return names.empty() ? names_read(node) : names;
}

}  // namespace

std::shared_ptr<const std::byte> copy_of(const const_tensor_view& contents) {
  const std::size_t size = contents.type.bytes();
  const std::shared_ptr<std::byte> bytes = allocate_bytes(size);
  if (size != 0) std::memcpy(bytes.get(), contents.data, size);
  return bytes;
}

void importer::needs_contents(const std::string& why, std::size_t operand) const {
  if (staging_ != nullptr) throw late_contents{operand};
  throw error(error_kind::unsupported, why, where_, "bind the input that decides it to a value (--bind NAME=FILE.npy)");
}

bool importer::reads_later(const model_node& node) const {
  if (staging_ == nullptr || !is_top() || staging_->later.empty()) return false;
  const std::vector<std::string> names = names_read(node);
  return std::any_of(names.begin(), names.end(), [&](const std::string& n) { return staging_->later.count(n) != 0; });
}

void importer::leave_for_later(const model_node& node) {
  staging_->deferred.push_back(&node);
  for (const std::string& output : node.outputs)
    if (!output.empty()) staging_->later.insert(output);
}

/// Makes the given values on which a value depends part of what this stage is made for. Returns false if there are none, or if
/// one of them is not small and `also_large` is false.
bool importer::decide(const std::string& name, bool also_large) {
  const std::optional<value> v = find(name);
  if (!v || builder().at(*v).role == value_role::constant) return false;
  if (const given_value* given = staging_->find(name); given != nullptr) {
    if (!also_large && !is_small(given->contents.type)) return false;
    return staging_->decided.insert(name).second;
  }
  bool found = false;
  for (const std::uint32_t origin : small_origins(builder(), *v))
    for (const given_value& g : staging_->given)
      if (const auto at = scope_->names.find(g.name); at != scope_->names.end() && at->second == value{origin})
        found = staging_->decided.insert(g.name).second || found;
  return found;
}

/// Leaves a node for later because contents that it needs are not known yet, or begins the stage again with more of them known.
void importer::set_aside(const model_node& node, std::size_t operand) {
  if (is_data_dependent(node)) {
    staging_->late.push_back(&node);
    for (const std::string& output : node.outputs)
      if (!output.empty()) staging_->later.insert(output);
    return;
  }
  const std::vector<std::string> names = names_needed(node, operand, [&](const std::string& name) {
    const std::optional<value> v = find(name);
    return !v || builder().at(*v).role == value_role::constant;
  });
  bool again = false;
  for (const std::string& name : names) again = decide(name, false) || again;
  if (again) throw begin_again{};
  bool waits = false;  // for a value that this stage computes
  std::size_t bytes = 0;
  for (const std::string& name : names) {
    const std::optional<value> v = find(name);
    if (!v || builder().at(*v).role == value_role::constant) continue;
    if (staging_->find(name) == nullptr) waits = true;
    else bytes += builder().type_of(*v).bytes();
  }
  constexpr std::size_t most_bytes = std::size_t{1} << 22;
  if (!waits) {
    if (bytes > most_bytes)
      throw error(error_kind::unsupported,
                  "what it computes depends on the contents of " + std::to_string(bytes >> 20U) + " MiB of values",
                  model_.file + ", " + where_, "at most 4 MiB are supported");
    for (const std::string& name : names) again = decide(name, true) || again;
    if (again) throw begin_again{};
    throw error(error_kind::failure, "is not known, though all that it reads is", where_, "please report it");
  }
  leave_for_later(node);
}

/// Adds the values from which this stage starts.
void importer::seed() {
  for (const auto& [name, kept] : staging_->constants) {
    current().taken.insert(name);
    scope_->names[name] = builder().constant(name, kept.type, kept.bytes);
  }
  for (const given_value& g : staging_->given) {
    current().taken.insert(g.name);
    scope_->names[g.name] = staging_->decided.count(g.name) != 0
                                ? builder().constant(g.name, g.contents.type, copy_of(g.contents))
                                : builder().input(g.name, g.contents.type);
  }
}

/// Keeps a constant that this stage made, for the stages after it. Initializers are there anyway.
void importer::keep(const std::string& name, value v, stage_memory& memory) {
  const constant_data& data = builder().contents_of(v);
  if (data.bytes != nullptr && scope_->initializers.count(name) == 0)
    memory.constants[name] = {builder().type_of(v), data.bytes};
}

/// Lists what later stages and late operators read of this stage, and makes it outputs.
void importer::pass_on(network_stage& stage, stage_memory& memory) {
  std::set<std::string> outputs, passed;
  for (const std::string& name : stage.results) outputs.insert(name);
  // Returns whether the value is known only while running.
  const auto give = [&](const std::string& name) {
    const std::optional<value> v = scope_->initializers.count(name) == 0 ? find(name) : std::nullopt;
    if (!v) return false;
    if (builder().at(*v).role == value_role::constant) {
      keep(name, *v, memory);
      return false;
    }
    if (staging_->find(name) == nullptr && outputs.insert(name).second) builder().output(name, *v);
    return true;
  };
  std::set<std::string> late_results;
  for (const model_node* node : staging_->late) {
    late_operator& op = stage.late.emplace_back();
    op.label = operator_name(*node) + " " + printable(name_of(*node));
    for (const std::string& name : node->inputs)
      if (!name.empty() && give(name)) op.operands.push_back(name);
    for (const std::string& name : node->outputs)
      if (!name.empty() && reads(name)) op.results.push_back(name);
    late_results.insert(op.results.begin(), op.results.end());
    memory.late.push_back(node);
  }
  for (const model_node* node : staging_->deferred)
    for (const std::string& name : names_read(*node)) {
      if (passed.count(name) != 0) continue;
      const bool is_later = staging_->later.count(name) != 0;
      if (is_later ? late_results.count(name) != 0 : give(name)) {
        passed.insert(name);
        stage.passed_on.push_back(name);
      }
    }
}

network_stage importer::run_stage() {
  building whole;
  scope top{&whole, nullptr, {}, {}, &model_.opsets};
  const restore<scope*> entered(scope_, &top);
  const restore<scope*> outermost(top_, &top);
  where_ = model_.file;
  declare(top, model_.graph);
  load_report ignored;
  if (staging_->is_first) bind_inputs(ignored);
  else seed();
  std::vector<std::string> wanted;
  for (const model_port& p : model_.graph.outputs)
    if (staging_->delivered.count(p.name) == 0 && std::find(wanted.begin(), wanted.end(), p.name) == wanted.end())
      wanted.push_back(p.name);
  if (wanted.empty()) throw error(error_kind::invalid_argument, "the graph has no output", model_.file);
  walk(model_.graph.nodes, wanted, model_.graph.name.empty() ? "the graph" : "graph " + printable(model_.graph.name));
  if (!problems_.empty()) refuse_all();

  network_stage stage;
  const auto memory = std::make_shared<stage_memory>();
  memory->constants = staging_->constants;
  memory->delivered = staging_->delivered;
  memory->contradictions = staging_->contradictions;
  std::set<std::string> late_results;
  for (const model_node* node : staging_->late) late_results.insert(node->outputs.begin(), node->outputs.end());
  for (const std::string& name : wanted) {
    const bool is_later = staging_->later.count(name) != 0;
    if (is_later && late_results.count(name) == 0) continue;
    stage.results.push_back(name);
    memory->delivered.insert(name);
    if (is_later) continue;
    const restore<std::string> named(where_, model_.file + ", output " + printable(name));
    const std::optional<value> v = find(name);
    if (!v) throw error(error_kind::failure, "is not computed", where_, "please report it");
    if (staging_->find(name) == nullptr || builder().at(*v).role == value_role::constant) builder().output(name, *v);
  }
  pass_on(stage, *memory);
  stage.decided_by.assign(staging_->decided.begin(), staging_->decided.end());
  stage.is_last = staging_->deferred.empty();
  stage.memory = memory;
  stage.network = remove_dead(whole.builder.finish());
  return stage;
}

std::vector<tensor> importer::run_late(const model_node& node, const kept_values& operands,
                                       std::span<const std::string> results) {
  building whole;
  scope top{&whole, nullptr, {}, {}, &model_.opsets};
  const restore<scope*> entered(scope_, &top);
  for (const auto& [name, kept] : operands) top.names[name] = builder().constant(name, kept.type, kept.bytes);
  for (const model_tensor& t : model_.graph.initializers)
    if (std::find(node.inputs.begin(), node.inputs.end(), t.name) != node.inputs.end() && !t.name.empty())
      top.initializers.emplace(t.name, &t);
  top.read.insert(results.begin(), results.end());
  import_node(node);
  if (!problems_.empty()) refuse_all();
  std::vector<tensor> computed;
  for (const std::string& name : results) {
    const std::optional<value> v = find(name);
    if (!v || builder().contents_of(*v).bytes == nullptr)
      throw error(error_kind::failure, "is not computed", model_.file + ", " + printable(name), "please report it");
    tensor& t = computed.emplace_back(builder().type_of(*v));
    if (t.bytes() != 0) std::memcpy(t.data(), builder().contents_of(*v).bytes.get(), t.bytes());
  }
  return computed;
}

}  // namespace collage::inline v0::onnx
