// Functions that a model defines itself: each call is inlined.
#include "import_text.hpp"
#include "importer.hpp"

#include <algorithm>

namespace collage::inline v0::onnx {

namespace {

/// A function's node as it stands in a call: attributes that refer to the call's are replaced by them.
model_node instance(const model_node& node, const std::map<std::string, const model_attribute*>& given);

model_graph instance(const model_graph& g, const std::map<std::string, const model_attribute*>& given) {
  model_graph copy = g;
  for (model_node& n : copy.nodes) n = instance(n, given);
  return copy;
}

model_node instance(const model_node& node, const std::map<std::string, const model_attribute*>& given) {
  model_node copy = node;
  copy.attributes.clear();
  for (const model_attribute& a : node.attributes) {
    model_attribute own = a;
    if (!a.refers_to.empty()) {
      const auto found = given.find(a.refers_to);
      if (found == given.end()) continue;  // left out by the call as well
      own = *found->second;
      own.name = a.name;
    }
    for (auto& body : own.graphs) body = std::make_shared<const model_graph>(instance(*body, given));
    copy.attributes.push_back(std::move(own));
  }
  return copy;
}

void leave_out(model_node& node, const std::unordered_set<std::string>& absent) {
  for (std::string& name : node.inputs)
    if (absent.count(name) != 0) name.clear();
  for (model_attribute& a : node.attributes)
    for (auto& body : a.graphs) {
      model_graph copy = *body;
      for (model_node& n : copy.nodes) leave_out(n, absent);
      body = std::make_shared<const model_graph>(std::move(copy));
    }
}

}  // namespace

const model_function* importer::function_of(const model_node& node) const {
  for (const model_function& f : model_.functions)
    if (f.domain == node.domain && f.name == node.operator_type && f.overload == node.overload) return &f;
  return nullptr;
}

void importer::call_function(const model_node& node, const model_function& function) {
  const depth_guard guard(depth_, where_);
  std::map<std::string, const model_attribute*> given;
  for (const model_attribute& a : function.attribute_defaults) given[a.name] = &a;
  for (const model_attribute& a : node.attributes) given[a.name] = &a;
  std::vector<model_node> nodes;
  for (const model_node& n : function.nodes) {
    nodes.push_back(instance(n, given));
    if (!nodes.back().name.empty()) nodes.back().name = name_of(node) + "/" + nodes.back().name;
  }
  scope inner{scope_->into, nullptr, {}, {}, &function.opsets};
  for (std::size_t i = 0; i < function.inputs.size(); ++i)
    if (i < node.inputs.size() && !node.inputs[i].empty()) inner.names[function.inputs[i]] = find(node.inputs[i]);
  // An input that the call leaves out is left out wherever the function reads it, also within subgraphs.
  std::unordered_set<std::string> absent;
  for (const std::string& name : function.inputs)
    if (inner.names.count(name) == 0) absent.insert(name);
  if (!absent.empty())
    for (model_node& n : nodes) leave_out(n, absent);
  std::vector<std::optional<value>> results;
  {
    const restore<scope*> entered(scope_, &inner);
    walk(nodes, function.outputs, "function " + printable(function.name));
    for (const std::string& name : function.outputs) results.push_back(find(name));
  }
  for (std::size_t i = 0; i < node.outputs.size(); ++i)
    if (!node.outputs[i].empty() && i < results.size()) scope_->names[node.outputs[i]] = results[i];
}

}  // namespace collage::inline v0::onnx
