// The model's inputs: the shapes and values given for them must fit their declarations. One error lists all extents that are still
// unknown.
#include "import_text.hpp"
#include "importer.hpp"

#include <algorithm>
#include <cstring>
#include <map>

namespace collage::inline v0::onnx {

void importer::bind_inputs(load_report& found) {
  std::vector<const model_port*> ports;
  std::string known;
  for (const model_port& p : model_.graph.inputs) {
    if (scope_->initializers.count(p.name) != 0) continue;  // an initializer gives its value
    if (p.name.empty()) throw error(error_kind::invalid_argument, "has an input without a name", model_.file);
    for (const model_port* other : ports)
      if (other->name == p.name)
        throw error(error_kind::invalid_argument, "declares input " + printable(p.name) + " twice", model_.file);
    ports.push_back(&p);
    known += (known.empty() ? "" : ", ") + printable(p.name) + " (" + text_of(p) + ")";
  }
  if (ports.size() > 1000) known = std::to_string(ports.size()) + " inputs";
  const auto check_name = [&](const std::string& name, const char* option) {
    if (std::none_of(ports.begin(), ports.end(), [&](const model_port* p) { return p->name == name; }))
      throw error(error_kind::invalid_argument, "the model has no such input", std::string(option) + " " + name,
                  known.empty() ? "it has none" : "it has " + known);
  };
  for (const bound_shape& b : options_.shapes) check_name(b.input, "--shape");
  for (const bound_value& b : options_.values) check_name(b.input, "--bind");

  // A shape given for an input must fit its declaration, and it gives extents to the symbols there.
  std::map<std::string, std::optional<std::int64_t>> symbols;
  const auto given_shape = [&](const model_port& p) -> const shape* {
    for (const bound_value& b : options_.values)
      if (b.input == p.name) return &b.contents.type.dims;
    for (const bound_shape& b : options_.shapes)
      if (b.input == p.name) return &b.dims;
    return nullptr;
  };
  for (const model_port* p : ports) {
    const shape* dims = given_shape(*p);
    if (dims == nullptr) continue;
    bool fits = dims->is_concrete() && (!p->has_shape || dims->size() == p->extents.size());
    for (std::size_t i = 0; fits && p->has_shape && i < p->extents.size(); ++i) {
      const model_extent& e = p->extents[i];
      fits = e.extent < 0 || e.extent == (*dims)[i];
      if (e.extent >= 0 || e.symbol.empty() || e.symbol == "?") continue;
      // A symbol with different extents in two places stays unknown.
      const auto [at, fresh] = symbols.emplace(e.symbol, (*dims)[i]);
      if (!fresh && at->second != (*dims)[i]) at->second.reset();
    }
    if (!fits)
      throw error(error_kind::invalid_argument,
                  "is given as " + collage::detail::to_string(*dims) + ", but the model declares " + text_of(*p),
                  model_.file + ", input " + printable(p->name));
  }

  std::string unbound, option;
  for (const model_port* p : ports) {
    const std::string where = model_.file + ", input " + printable(p->name);
    if (!p->is_tensor) {
      problems_.push_back({"input " + printable(p->name) +
                               ": it is a sequence, map or optional, and only tensors are "
                               "supported",
                           false});
      scope_->names[p->name] = std::nullopt;
      continue;
    }
    const std::optional<dtype> type = element_type_of(p->element_type);
    if (!type) {
      problems_.push_back({"input " + printable(p->name) + ": its element type " + element_type_name(p->element_type) +
                               " is not supported",
                           false});
      scope_->names[p->name] = std::nullopt;
      continue;
    }
    shape dims;
    if (const shape* given = given_shape(*p); given != nullptr) {
      dims = *given;
    } else {
      bool complete = p->has_shape;
      if (p->extents.size() > shape::max_rank)
        throw error(error_kind::unsupported, "has more than 8 dimensions", where);
      std::string wanted;
      for (const model_extent& e : p->extents) {
        std::int64_t extent = e.extent;
        if (extent < 0)
          if (const auto s = symbols.find(e.symbol); !e.symbol.empty() && s != symbols.end() && s->second) {
            extent = *s->second;
            found.notes.push_back("input " + p->name + ": extent " + printable(e.symbol) + " is taken as " +
                                  std::to_string(extent) + ", as in another input.");
          }
        complete = complete && extent >= 0;
        dims.push_back(extent);
        wanted += (wanted.empty() ? "" : "x") + (extent >= 0 ? std::to_string(extent) : std::string("N"));
      }
      if (!complete) {
        unbound += (unbound.empty() ? "" : "; ") + printable(p->name) + " is " + text_of(*p);
        option += " --shape " + p->name + "=" + (p->has_shape ? wanted : std::string("..."));
        continue;
      }
    }
    const auto bound = std::find_if(options_.values.begin(), options_.values.end(),
                                    [&](const bound_value& b) { return b.input == p->name; });
    current().taken.insert(p->name);
    if (bound == options_.values.end()) {
      scope_->names[p->name] = builder().input(p->name, {*type, dims});
      continue;
    }
    if (bound->contents.type.type != *type)
      throw error(
          error_kind::invalid_argument,
          std::string("is bound to ") + name_of(bound->contents.type.type) + ", but the model declares " + text_of(*p),
          where);
    const std::size_t size = bound->contents.type.bytes();
    const std::shared_ptr<std::byte> bytes = allocate_bytes(size);
    if (size != 0) std::memcpy(bytes.get(), bound->contents.data, size);
    scope_->names[p->name] = builder().constant(p->name, {*type, dims}, bytes);
  }
  if (!unbound.empty())
    throw error(error_kind::invalid_argument, "has inputs whose extents are not known: " + unbound, model_.file,
                "give them, each N replaced by a number:" + option);
}

}  // namespace collage::inline v0::onnx
