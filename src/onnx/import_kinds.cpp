// Nodes of the user's own kinds: operands as they stand, attributes by the names of the kind's fields.
#include "import_text.hpp"
#include "importer.hpp"

#include <collage/op/built_in.hpp>

#include <algorithm>

namespace collage::inline v0::onnx {

namespace {

using tag = attribute_value::tag;

/// Null stands for ONNX's own domain too, as "ai.onnx" does in files.
std::string domain_of(const kind_info& kind) {
  const std::string domain = kind.onnx.domain != nullptr ? kind.onnx.domain : "";
  return domain == "ai.onnx" ? std::string() : domain;
}

/// A kind may have two descriptions, of the type and of the const type.
bool is_same(const kind_info& a, const kind_info& b) { return a.id == b.id && a.infer == b.infer; }

std::vector<attribute_value> fields_of(const kind_info& kind, const attribute_words& words) {
  std::vector<attribute_value> fields;
  kind.list(words.list(), {&fields, [](void* to, const attribute_value& field) {
                             static_cast<std::vector<attribute_value>*>(to)->push_back(field);
                           }});
  return fields;
}

/// Fills a field with the node's attribute of that name, where it has one.
void read(const lowering& n, attribute_value& field) {
  const char* name = field.name;
  if (!n.has_attribute(name)) return;
  const auto check_size = [&](std::size_t size, std::size_t most, const char* what) {
    if (size > most)
      n.invalid(std::string("its attribute ") + name + " has " + std::to_string(size) + " " + what +
                ", and the kind's field holds at most " + std::to_string(most));
  };
  switch (field.what) {
    case tag::boolean:
    case tag::integer: field.integer = n.integer(name, 0); break;
    case tag::real: field.real = n.real(name, 0); break;
    case tag::list: {
      const std::vector<std::int64_t> list = n.integers(name);
      check_size(list.size(), shape::max_rank, "entries");
      field.list = shape(std::span<const std::int64_t>(list));
      break;
    }
    case tag::reals: {
      const std::vector<double> list = n.reals(name);
      check_size(list.size(), shape::max_rank, "entries");
      field.reals = {};
      for (const double number : list) field.reals.push_back(number);
      break;
    }
    case tag::text: {
      const std::string text = n.text(name, "");
      check_size(text.size(), sizeof(field.text.text) - 1, "characters");
      if (text.find('\0') != std::string::npos)
        n.invalid(std::string("its attribute ") + name + " contains a zero byte");
      field.text = text.c_str();
      break;
    }
  }
}

/// The record of fields, as the kind itself would write it: one field after the other.
attribute_words record_of(std::span<const attribute_value> fields) {
  attribute_words words;
  collage::detail::attribute_writer write{words};
  for (const attribute_value& f : fields) switch (f.what) {
      case tag::boolean:
      case tag::integer: write(f.name, f.integer); break;
      case tag::real: write(f.name, f.real); break;
      case tag::list: write(f.name, f.list); break;
      case tag::reals: write(f.name, f.reals); break;
      case tag::text: write(f.name, f.text); break;
    }
  return words;
}

/// The node's attributes as the kind stores them.
attribute_words words_of(const lowering& n, const kind_info& kind) {
  std::vector<attribute_value> fields = fields_of(kind, kind.defaults());
  for (const model_attribute& a : n.node().attributes) {
    if (std::any_of(fields.begin(), fields.end(), [&](const attribute_value& f) { return a.name == f.name; })) continue;
    const std::string known = joined(fields, [](const attribute_value& f) { return std::string(f.name); });
    n.invalid("the kind " + std::string(kind.name) + " has no attribute " + printable(a.name, 30) +
              (known.empty() ? "; it has none at all" : "; it has " + known));
  }
  for (attribute_value& f : fields) read(n, f);
  const attribute_words words = record_of(fields);
  // A field may be narrower than the number: then it holds another.
  const std::vector<attribute_value> held = fields_of(kind, words);
  for (std::size_t i = 0; i < fields.size(); ++i)
    if (held[i].integer != fields[i].integer)
      n.invalid("its attribute " + std::string(fields[i].name) + " is " + std::to_string(fields[i].integer) +
                (fields[i].what == tag::boolean
                     ? std::string(", and must be 0 or 1")
                     : ", which is outside the range of this attribute of kind " + std::string(kind.name)));
  return words;
}

/// The node's operands; only the last may be left out.
std::vector<value> operands_of(const lowering& n, const kind_info& kind) {
  std::size_t count = n.operands();
  while (count > 0 && !n.has(count - 1)) --count;
  std::vector<value> operands;
  for (std::size_t i = 0; i < count; ++i) {
    if (!n.has(i))
      n.refuse("its operand " + std::to_string(i) + " is left out but a later one is not, which kind " + kind.name +
               " does not allow; write a rule for it (load_options::rules)");
    operands.push_back(n.operand(i));
  }
  return operands;
}

}  // namespace

void check_kinds(std::span<const kind_info* const> kinds) {
  const auto wrong = [](const std::string& what, const char* remedy) {
    throw error(error_kind::invalid_argument, what, "load_options::kinds", remedy);
  };
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    if (kinds[i] == nullptr)
      wrong("entry " + std::to_string(i) + " is null", "set load_options::kinds to onnx::kinds<...>");
    const kind_info& kind = *kinds[i];
    const std::string name = "the kind " + std::string(kind.name);
    if (kind.onnx.op_type == nullptr || *kind.onnx.op_type == '\0')
      wrong(name + " has no name in ONNX", "declare it in the kind: static constexpr onnx_name onnx{domain, operator}");
    if (kind.bodies != 0)
      wrong(name + " owns subgraphs, which onnx::kinds cannot import",
            "give load_options::rules a rule that imports this kind");
    for (const kind_info* built_in : built_in_kinds)
      if (built_in->id == kind.id && !is_same(*built_in, kind))
        wrong(name + " has the name or the id of the built-in kind " + built_in->name, "rename it");
    for (std::size_t j = 0; j < i; ++j) {
      const kind_info& other = *kinds[j];
      if (is_same(other, kind)) continue;
      const std::string both = "kind " + std::string(kind.name) + " and kind " + other.name;
      if (other.id == kind.id) wrong(both + " have the same name or id", "rename one of them");
      if (domain_of(other) == domain_of(kind) && other.onnx.op_type == std::string(kind.onnx.op_type))
        wrong(both + " are both ONNX's " + (domain_of(kind).empty() ? "" : domain_of(kind) + ".") + kind.onnx.op_type,
              "give each a name of its own");
    }
  }
}

const kind_info* importer::users_kind_of(const model_node& node) const {
  for (const kind_info* kind : options_.kinds)
    if (node.operator_type == kind->onnx.op_type && node.domain == domain_of(*kind)) return kind;
  return nullptr;
}

void importer::check_operators() {
  building nothing;
  scope top{&nothing, nullptr, {}, {}, &model_.opsets};
  const restore<scope*> entered(scope_, &top);
  std::unordered_map<std::string, const model_node*> producers;
  for (const model_node& node : model_.graph.nodes)
    for (const std::string& output : node.outputs) producers.emplace(output, &node);
  std::unordered_set<const model_node*> seen;
  std::vector<std::string> open;
  for (const model_port& p : model_.graph.outputs) open.push_back(p.name);
  while (!open.empty()) {
    const auto found = producers.find(open.back());
    open.pop_back();
    if (found == producers.end() || !seen.insert(found->second).second) continue;
    for (std::string& name : names_read(*found->second)) open.push_back(std::move(name));
  }
  for (const model_node& node : model_.graph.nodes) {
    if (seen.count(&node) == 0 || is_known(node)) continue;
    const auto version = model_.opsets.find(node.domain);
    report(node, version != model_.opsets.end() ? version->second : 1, unknown_operator(node), false);
  }
  if (!problems_.empty()) refuse_all();
}

std::string importer::unknown_operator(const model_node& node) const {
  std::string text = "this operator is not known";
  for (const kind_info* kind : options_.kinds)
    if (node.operator_type == kind->onnx.op_type)
      text += "; kind " + std::string(kind->name) + " has this name in domain " +
              (domain_of(*kind).empty() ? "ai.onnx" : domain_of(*kind));
  return text;
}

void importer::lower_kind(lowering& n, const kind_info& kind) {
  if (scope_->opsets->count(n.node().domain) == 0)
    n.invalid("the model imports no version of its domain, and must list it under opset_import");
  const std::vector<value> operands = operands_of(n, kind);
  attribute_words words = words_of(n, kind);
  std::vector<tensor_type> types;
  for (const value v : operands) types.push_back(n.type_of(v));
  if (kind.normalise != nullptr && types.size() >= kind.inputs.least) kind.normalise(words, types);
  const std::size_t outputs = kind.output_count(words.list());
  if (n.outputs() > outputs)
    n.invalid("it has " + std::to_string(n.outputs()) + " outputs, and the kind " + kind.name + " has " +
              std::to_string(outputs));
  const value first = n.add_node(kind, operands, words);
  for (std::size_t i = 0; i < n.outputs(); ++i) {
    const value v{first.index + static_cast<std::uint32_t>(i)};
    if (!n.dims_of(v).is_concrete())
      n.refuse("the shape of its output " + std::to_string(i) + " is " + collage::detail::to_string(n.dims_of(v)) +
               ", and every extent must be known before it is run");
    n.result(i, v);
  }
}

}  // namespace collage::inline v0::onnx
