// The model's inputs: the shapes and values given for them must fit their declarations. One error lists all extents that are still
// unknown.
#include "import_text.hpp"
#include "importer.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <string>
#include <unordered_set>

namespace collage::inline v0::onnx {

namespace {

using input_ports = std::vector<const model_port*>;

/// The names and types of the inputs, as the end of a message.
std::string list_of(const input_ports& ports) {
  if (ports.empty()) return "it has none";
  if (ports.size() > 1000) return "it has " + std::to_string(ports.size()) + " inputs";
  std::string list;
  for (const model_port* p : ports) list += (list.empty() ? "" : ", ") + printable(p->name) + " (" + text_of(*p) + ")";
  return "it has " + list;
}

/// Throws if a shape or a value is given for an input that the model does not have.
void check_names(const load_options& options, const input_ports& ports) {
  const auto check = [&](const std::string& name, const char* option) {
    if (std::none_of(ports.begin(), ports.end(), [&](const model_port* p) { return p->name == name; }))
      throw error(error_kind::invalid_argument, "the model has no such input", std::string(option) + " " + name,
                  list_of(ports));
  };
  for (const bound_shape& b : options.shapes) check(b.input, "--shape");
  for (const bound_value& b : options.values) check(b.input, "--bind");
}

/// The value given for an input; null if there is none.
const bound_value* value_given(const load_options& options, const model_port& p) {
  for (const bound_value& b : options.values)
    if (b.input == p.name) return &b;
  return nullptr;
}

/// The shape given for an input, also by its value; null if there is none.
const shape* given_shape(const load_options& options, const model_port& p) {
  if (const bound_value* b = value_given(options, p); b != nullptr) return &b->contents.type.dims;
  for (const bound_shape& b : options.shapes)
    if (b.input == p.name) return &b.dims;
  return nullptr;
}

/// A given extent may be unknown. Then the declaration holds.
bool fits(const shape& dims, const model_port& p) {
  return !p.has_shape || std::equal(p.extents.begin(), p.extents.end(), dims.begin(), dims.end(),
                                    [](const model_extent& e, std::int64_t given) {
                                      return given == unknown || (given >= 0 && (e.extent < 0 || e.extent == given));
                                    });
}

std::string place_of(const model& m, const model_port& p) { return m.file + ", input " + printable(p.name); }

/// The extents of symbols. A symbol with different extents in two places has none.
using symbol_extents = std::map<std::string, std::optional<std::int64_t>>;

/// The extents that given shapes define for the symbols of declarations. Throws if a shape does not fit its declaration.
symbol_extents given_extents(const model& m, const load_options& options, const input_ports& ports) {
  symbol_extents symbols;
  for (const model_port* p : ports) {
    const shape* dims = given_shape(options, *p);
    if (dims == nullptr) continue;
    if (!fits(*dims, *p))
      throw error(error_kind::invalid_argument,
                  "is given as " + collage::detail::to_string(*dims) + ", but the model declares " + text_of(*p),
                  place_of(m, *p));
    for (std::size_t i = 0; p->has_shape && i < p->extents.size(); ++i) {
      const model_extent& e = p->extents[i];
      if (e.extent >= 0 || (*dims)[i] < 0 || e.symbol.empty() || e.symbol == "?") continue;
      const auto [at, fresh] = symbols.emplace(e.symbol, (*dims)[i]);
      if (!fresh && at->second != (*dims)[i]) at->second.reset();
    }
  }
  return symbols;
}

/// The declared shape of an input, with extents that are given, and those of its symbols. Other extents stay unknown.
shape declared_shape(const model_port& p, const shape* given, const symbol_extents& symbols,
                     std::vector<std::string>& notes) {
  if (!p.has_shape) return given != nullptr ? *given : shape{};
  shape dims;
  for (const model_extent& e : p.extents) {
    const std::int64_t own = given != nullptr ? (*given)[dims.size()] : unknown;
    dims.push_back(own >= 0 ? own : e.extent);
    if (own >= 0 || e.extent >= 0 || e.symbol.empty()) continue;
    const auto s = symbols.find(e.symbol);
    if (s == symbols.end() || !s->second) continue;
    dims[dims.size() - 1] = *s->second;
    notes.push_back("input " + p.name + ": extent " + printable(e.symbol) + " is taken as " +
                    std::to_string(*s->second) + ", as in another input.");
  }
  return dims;
}

/// The inputs whose extents are not known, and the options that would give them.
struct unbound_inputs {
  std::string list, options;

  void add(const model_port& p, const shape& dims) {
    std::string wanted;
    for (const std::int64_t extent : dims)
      wanted += (wanted.empty() ? "" : "x") + (extent >= 0 ? std::to_string(extent) : std::string("N"));
    list += (list.empty() ? "" : "; ") + printable(p.name) + " is " + text_of(p);
    options += " --shape " + p.name + "=" + (p.has_shape ? wanted : std::string("..."));
  }
};

}  // namespace

std::vector<const model_port*> open_inputs(const model& m) {
  std::vector<const model_port*> ports;
  std::unordered_set<std::string> names, initialized;
  for (const model_tensor& t : m.graph.initializers) initialized.insert(t.name);
  for (const model_port& p : m.graph.inputs) {
    if (!p.name.empty() && initialized.count(p.name) != 0) continue;
    if (p.name.empty()) throw error(error_kind::invalid_argument, "has an input without a name", m.file);
    if (!names.insert(p.name).second)
      throw error(error_kind::invalid_argument, "declares input " + printable(p.name) + " twice", m.file);
    ports.push_back(&p);
  }
  return ports;
}

std::string contradictions(const model& m, const load_options& options) {
  struct first_use {
    std::string input;
    std::int64_t extent;
  };
  std::map<std::string, first_use> symbols;
  std::string text;
  for (const model_port* p : open_inputs(m)) {
    const shape* const dims = given_shape(options, *p);
    for (std::size_t d = 0; dims != nullptr && d < std::min(p->extents.size(), dims->size()); ++d) {
      const std::string& symbol = p->extents[d].symbol;
      const std::int64_t extent = (*dims)[d];
      if (p->extents[d].extent >= 0 || extent < 0 || symbol.empty() || symbol == "?") continue;
      const auto [at, fresh] = symbols.emplace(symbol, first_use{p->name, extent});
      if (!fresh && at->second.extent != extent)
        text += "\nThe extent " + printable(symbol) + " is " + std::to_string(at->second.extent) + " in input " +
                printable(at->second.input) + " and " + std::to_string(extent) + " in input " + printable(p->name) +
                ".";
    }
  }
  return text;
}

void importer::bind_inputs(load_report& found) {
  const input_ports ports = open_inputs(model_);
  check_names(options_, ports);
  const symbol_extents symbols = given_extents(model_, options_, ports);
  unbound_inputs unbound;
  for (const model_port* p : ports) {
    const std::optional<dtype> type = supported_type(*p);
    if (!type) {
      scope_->names[p->name] = std::nullopt;
      continue;
    }
    const shape* given = given_shape(options_, *p);
    if (given == nullptr && p->extents.size() > shape::max_rank)
      throw error(error_kind::unsupported, "has more than 8 dimensions", place_of(model_, *p));
    const shape dims =
        given != nullptr && given->is_concrete() ? *given : declared_shape(*p, given, symbols, found.notes);
    if ((given == nullptr && !p->has_shape) || !dims.is_concrete()) unbound.add(*p, dims);
    else scope_->names[p->name] = declare_input(*p, {*type, dims});
  }
  if (!unbound.list.empty())
    throw error(error_kind::invalid_argument, "has inputs whose extents are not known: " + unbound.list, model_.file,
                "give them, each N replaced by a number:" + unbound.options);
}

std::string why_not_supported(const model_port& p) {
  if (!p.is_tensor) return "it is a sequence, map or optional, and only tensors are supported";
  if (element_type_of(p.element_type)) return "";
  return "its element type " + element_type_name(p.element_type) + " is not supported";
}

/// The element type of an input. Reports an input that cannot be imported, and returns nothing for it.
std::optional<dtype> importer::supported_type(const model_port& p) {
  const std::string why = why_not_supported(p);
  if (why.empty()) return element_type_of(p.element_type);
  problems_.push_back({"input " + printable(p.name) + ": " + why, false});
  return std::nullopt;
}

/// Adds an input, or the constant that it is bound to.
value importer::declare_input(const model_port& p, const tensor_type& type) {
  current().taken.insert(p.name);
  const bound_value* bound = value_given(options_, p);
  if (bound == nullptr) return builder().input(p.name, type);
  const const_tensor_view& contents = bound->contents;
  if (contents.type.type != type.type)
    throw error(error_kind::invalid_argument,
                std::string("is bound to ") + name_of(contents.type.type) + ", but the model declares " + text_of(p),
                place_of(model_, p));
  const std::size_t size = contents.type.bytes();
  const std::shared_ptr<std::byte> bytes = allocate_bytes(size);
  if (size != 0) std::memcpy(bytes.get(), contents.data, size);
  return builder().constant(p.name, type, bytes);
}

}  // namespace collage::inline v0::onnx
