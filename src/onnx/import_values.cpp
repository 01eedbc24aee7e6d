// The importer's values: names, constants, and nodes that are computed at once.
#include "import_text.hpp"
#include "importer.hpp"

#include <collage/backends/reference.hpp>
#include <collage/op/quantise.hpp>
#include <collage/pass/detail/weight_matrix.hpp>

#include <algorithm>

namespace collage::inline v0::onnx {

std::vector<std::string> names_read(const model_node& node) {
  std::vector<std::string> names;
  for (const std::string& name : node.inputs)
    if (!name.empty()) names.push_back(name);
  for (const model_attribute& a : node.attributes)
    for (const auto& body : a.graphs)
      for (std::string& name : outer_names(*body)) names.push_back(std::move(name));
  return names;
}

std::vector<std::string> outer_names(const model_graph& g) {
  std::unordered_set<std::string> told;  // names defined inside or listed already
  for (const model_port& p : g.inputs) told.insert(p.name);
  for (const model_tensor& t : g.initializers) told.insert(t.name);
  for (const model_node& n : g.nodes) told.insert(n.outputs.begin(), n.outputs.end());
  std::vector<std::string> found;
  const auto read = [&](const std::string& name) {
    if (!name.empty() && told.insert(name).second) found.push_back(name);
  };
  for (const model_node& n : g.nodes) {
    for (const std::string& name : n.inputs) read(name);
    for (const model_attribute& a : n.attributes)
      for (const auto& body : a.graphs)
        for (const std::string& name : outer_names(*body)) read(name);
  }
  for (const model_port& p : g.outputs) read(p.name);
  return found;
}

std::optional<value> importer::find(const std::string& name) {
  for (scope* s = scope_; s != nullptr; s = s->outer) {
    const bool here = s->into == scope_->into;
    if (const auto found = s->names.find(name); found != s->names.end()) {
      if (here || !found->second) return found->second;
      // A constant of the graph around this one; anything else was made an input of this one before.
      const value_record record = s->into->builder.at(*found->second);
      const constant_data data = s->into->builder.contents_of(*found->second);
      if (record.role != value_role::constant)
        throw error(error_kind::failure, "reads " + name + ", which was not passed in", where_);
      const std::string own = scope_->into->name_like(name);
      const value copy = data.bytes != nullptr ? builder().constant(own, record.type, data.bytes)
                                               : builder().constant(own, record.type, data.fill);
      scope_->names[name] = copy;
      return copy;
    }
    if (const auto found = s->initializers.find(name); found != s->initializers.end()) {
      const value made = constant(*found->second, name);
      (here ? s : scope_)->names[name] = made;
      return made;
    }
  }
  throw error(error_kind::invalid_argument, "reads " + printable(name) + ", which nothing defines", where_);
}

value importer::constant(const model_tensor& tensor, const std::string& name) {
  const std::string where = "tensor " + printable(name.empty() ? tensor.name : name);
  if (!tensor.refusal.empty()) throw error(error_kind::unsupported, tensor.refusal, where);
  const std::optional<dtype> type = element_type_of(tensor.element_type);
  if (!type || tensor.extents.size() > shape::max_rank)
    throw error(error_kind::unsupported,
                "its element type or rank is not supported (" + element_type_name(tensor.element_type) + ")", where);
  const tensor_type full{*type, shape(std::span<const std::int64_t>(tensor.extents))};
  // The names of a graph's initializers were kept free for them.
  if (tensor.fill) return builder().constant(name, full, *tensor.fill);
  if (tensor.bytes == nullptr) throw error(error_kind::invalid_argument, "has no data", where);
  return builder().constant(name, full, tensor.bytes);
}

value importer::constant(const std::string& label, const tensor_type& type, std::shared_ptr<const std::byte> bytes) {
  return builder().constant(current().name_like(label), type, std::move(bytes));
}

void importer::spend(std::size_t bytes) {
  spent_ += bytes;
  if (spent_ > options_.most_bytes)
    throw error(error_kind::invalid_argument,
                "loading it would make more than " + std::to_string(options_.most_bytes >> 20U) + " MiB of constants",
                where_, "raise load_options::most_bytes to load it");
}

bool importer::foldable(const kind_info& kind, std::span<const value> operands, const attribute_words& words) {
  if ((kind.reference == nullptr && kind.body == nullptr) || kind.bodies != 0) return false;
  const std::size_t outputs = kind.output_count(words.list());
  if (outputs == 0 || outputs > any_number) return false;  // adding the node says what is wrong
  std::vector<tensor_type> in, out(outputs);
  std::vector<list_view<const std::int64_t>> integers;
  std::size_t read = 0, written = 0;
  std::int64_t elements = 0;
  for (const value v : operands) {
    const value_record& r = builder().at(v);
    if (r.role != value_role::constant || builder().contents_of(v).bytes == nullptr) return false;
    in.push_back(r.type);
    integers.push_back(builder().integers(v));
    read += r.type.bytes();
    elements += r.type.dims.elements();
  }
  if (operands.size() < kind.inputs.least || operands.size() > kind.inputs.most) return false;
  // Some kernels read weights of 4 and 8 bits as they are. `fold_constants` sees all readers, and folds the others.
  if (kind.id == kind_id<struct ops::dequantize_linear> && detail::is_weight_type(in[0].type) && in[0].dims.rank >= 2)
    return false;
  inference io{in, out, integers};
  if (!kind.infer(words.list(), io)) return false;  // adding the node says what is wrong
  for (const tensor_type& type : out) {
    constexpr std::int64_t most = std::int64_t{1} << 40;  // beyond it the builder refuses
    if (!type.dims.is_concrete() || type.dims.elements() > most) return false;
    written += type.bytes();
    elements += type.dims.elements();
  }
  // The reference works on copies of 8 bytes an element, and not fast: what is large is left to the engine.
  constexpr std::int64_t most_elements = std::int64_t{1} << 27;
  constexpr double most_flops = 1e9;
  if (written > std::max(options_.largest_folded, read) || elements > most_elements) return false;
  return kind.count == nullptr || kind.count(words.list(), io).flops < most_flops;
}

value importer::add(const kind_info& kind, std::span<const value> operands, const attribute_words& words,
                    const std::string& label, std::span<const std::shared_ptr<const graph>> bodies) {
  if (++walked_ > options_.most_nodes)
    throw error(error_kind::invalid_argument, "it becomes more than " + std::to_string(options_.most_nodes) + " nodes",
                model_.file, "raise load_options::most_nodes to load it");
  const std::string base = node_ != nullptr ? name_of(*node_) : std::string(kind.name);
  const std::string name = current().name_like(!label.empty() ? base + "/" + label
                                               : pieces_ == 0 ? base
                                                              : base + "/" + kind.name);
  ++pieces_;
  attribute_words own = words;
  std::vector<tensor_type> types;
  for (const value v : operands) types.push_back(builder().type_of(v));
  // A rule of a kind may look at its first operand.
  if (kind.normalise != nullptr && types.size() >= kind.inputs.least) kind.normalise(own, types);
  if (!bodies.empty() || !foldable(kind, operands, own)) {
    const value first = builder().add(kind, operands, own, name, bodies);
    return first;
  }
  std::vector<oracle_value> in;
  for (const value v : operands) in.push_back(to_oracle({builder().contents_of(v).bytes.get(), builder().type_of(v)}));
  const std::vector<oracle_value> results = evaluate_node(kind, own.list(), in);
  value first{};
  for (std::size_t i = 0; i < results.size(); ++i) {
    spend(results[i].type.bytes());
    const std::shared_ptr<std::byte> bytes = allocate_bytes(results[i].type.bytes());
    from_oracle(results[i], bytes.get());
    const value made =
        builder().constant(i == 0 ? name : current().name_like(name + ":" + std::to_string(i)), results[i].type, bytes);
    if (i == 0) first = made;
  }
  return first;
}

}  // namespace collage::inline v0::onnx
