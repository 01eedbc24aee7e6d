// The class `lowering`: reading a node's operands and attributes, and building nodes.
#include "import_text.hpp"
#include "importer.hpp"

#include <collage/op/cast.hpp>
#include <collage/op/movement.hpp>
#include <collage/pattern/match.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>

namespace collage::inline v0::onnx {

namespace {

const char* form_name(attribute_form form) {
  switch (form) {
    case attribute_form::real: return "a number";
    case attribute_form::integer: return "an integer";
    case attribute_form::text: return "a text";
    case attribute_form::tensor: return "a tensor";
    case attribute_form::graph: return "a graph";
    case attribute_form::reals: return "a list of numbers";
    case attribute_form::integers: return "a list of integers";
    case attribute_form::texts: return "a list of texts";
    case attribute_form::tensors: return "a list of tensors";
    case attribute_form::graphs: return "a list of graphs";
    case attribute_form::other: break;
  }
  return "something else";
}

}  // namespace

value lowering::operand(std::size_t i) const {
  if (!has(i)) invalid("it lacks operand " + std::to_string(i));
  return into_->operand(*this, i);
}

bool lowering::wants(std::size_t i) const {
  return i < node_->outputs.size() && !node_->outputs[i].empty() && into_->reads(node_->outputs[i]);
}

void lowering::result(std::size_t i, value v) {
  if (wants(i)) into_->result(*this, i, v);
}

const tensor_type& lowering::type_of(value v) const { return into_->builder().type_of(v); }

bool lowering::is_known(value v) const {
  return into_->builder().at(v).role == value_role::constant && into_->builder().contents_of(v).bytes != nullptr;
}

oracle_value lowering::contents_of(std::size_t i, const char* what) const {
  const value v = operand(i);
  if (!is_known(v)) into_->needs_contents(std::string(what) + " must be known before it is run", i);
  return to_oracle({into_->builder().contents_of(v).bytes.get(), type_of(v)});
}

std::vector<std::int64_t> lowering::integers_of(std::size_t i, const char* what) const {
  const oracle_value contents = contents_of(i, what);
  if (!is_floating(contents.type.type)) return contents.integer;
  std::vector<std::int64_t> list;
  for (const double x : contents.real) {
    if (!(std::abs(x) < 0x1p62) || x != std::floor(x)) invalid(std::string(what) + " must be whole numbers");
    list.push_back(static_cast<std::int64_t>(x));
  }
  return list;
}

std::vector<double> lowering::numbers_of(std::size_t i, const char* what) const {
  const oracle_value contents = contents_of(i, what);
  if (is_floating(contents.type.type)) return contents.real;
  return {contents.integer.begin(), contents.integer.end()};
}

std::int64_t lowering::integer_of(std::size_t i, const char* what) const {
  const std::vector<std::int64_t> list = integers_of(i, what);
  if (list.size() != 1) invalid(std::string(what) + " must be one number, not " + std::to_string(list.size()));
  return list[0];
}

double lowering::number_of(std::size_t i, const char* what) const {
  const std::vector<double> list = numbers_of(i, what);
  if (list.size() != 1) invalid(std::string(what) + " must be one number, not " + std::to_string(list.size()));
  return list[0];
}

const model_attribute* lowering::find(const char* name) const {
  for (const model_attribute& a : node_->attributes)
    if (a.name == name) return &a;
  return nullptr;
}

const model_attribute* lowering::find(const char* name, attribute_form form, const char* wanted) const {
  const model_attribute* a = find(name);
  if (a != nullptr && a->form != form)
    invalid(std::string("its attribute ") + name + " is " + form_name(a->form) + ", and must be " + wanted);
  return a;
}

std::int64_t lowering::integer(const char* name, std::int64_t otherwise) const {
  const model_attribute* a = find(name, attribute_form::integer, form_name(attribute_form::integer));
  return a != nullptr ? a->integer : otherwise;
}

double lowering::real(const char* name, double otherwise) const {
  const model_attribute* a = find(name, attribute_form::real, form_name(attribute_form::real));
  return a != nullptr ? a->real : otherwise;
}

std::string lowering::text(const char* name, const char* otherwise) const {
  const model_attribute* a = find(name, attribute_form::text, form_name(attribute_form::text));
  return a != nullptr ? a->text : otherwise;
}

std::vector<std::int64_t> lowering::integers(const char* name, std::vector<std::int64_t> otherwise) const {
  const model_attribute* a = find(name, attribute_form::integers, form_name(attribute_form::integers));
  return a != nullptr ? a->integers : otherwise;
}

std::vector<double> lowering::reals(const char* name, std::vector<double> otherwise) const {
  const model_attribute* a = find(name, attribute_form::reals, form_name(attribute_form::reals));
  return a != nullptr ? a->reals : otherwise;
}

std::vector<std::string> lowering::texts(const char* name, std::vector<std::string> otherwise) const {
  const model_attribute* a = find(name, attribute_form::texts, form_name(attribute_form::texts));
  return a != nullptr ? a->texts : otherwise;
}

const model_tensor* lowering::tensor_attribute(const char* name) const {
  const model_attribute* a = find(name, attribute_form::tensor, form_name(attribute_form::tensor));
  return a != nullptr && !a->tensors.empty() ? &a->tensors[0] : nullptr;
}

const model_graph* lowering::graph_attribute(const char* name) const {
  const model_attribute* a = find(name, attribute_form::graph, form_name(attribute_form::graph));
  return a != nullptr && !a->graphs.empty() ? a->graphs[0].get() : nullptr;
}

shape lowering::to_shape(std::span<const std::int64_t> list, const char* what) const {
  if (list.size() > shape::max_rank)
    refuse(std::string(what) + " have " + std::to_string(list.size()) + " entries, and at most 8 are supported");
  return shape(list);
}

std::int64_t lowering::axis(std::int64_t given, std::size_t rank) const {
  const auto count = static_cast<std::int64_t>(rank);
  if (given < -count || given >= count)
    invalid("its axis " + std::to_string(given) + " is not within rank " + std::to_string(rank));
  return given < 0 ? given + count : given;
}

value lowering::add_node(const kind_info& kind, std::span<const value> operands, const attribute_words& attributes) {
  return into_->add(kind, operands, attributes, {});
}

value lowering::scalar(double number, dtype type) { return filled({type, {}}, number); }

value lowering::filled(const tensor_type& type, double number) {
  if (!type.dims.is_concrete()) invalid("a constant needs extents that are known");
  std::int64_t elements = 1;
  for (const std::int64_t extent : type.dims) {
    if (extent != 0 && elements > (std::int64_t{1} << 40) / extent) invalid("a constant of it would be too large");
    elements *= extent;
  }
  into_->spend(type.bytes());
  const std::shared_ptr<std::byte> bytes = allocate_bytes(type.bytes());
  std::byte element[8] = {};
  if (is_floating(type.type)) {
    store_elements(type.type, std::span<const double>(&number, 1), element);
  } else {
    const auto whole = static_cast<std::int64_t>(number);
    store_elements(type.type, std::span<const std::int64_t>(&whole, 1), element);
  }
  const std::size_t size = size_of(type.type);
  for (std::size_t i = 0; i < type.bytes(); i += size) std::memcpy(bytes.get() + i, element, size);
  return constant(type, bytes);
}

value lowering::integers_constant(std::span<const std::int64_t> list) {
  const std::shared_ptr<std::byte> bytes = allocate_bytes(list.size_bytes());
  if (!list.empty()) std::memcpy(bytes.get(), list.data(), list.size_bytes());
  return constant(tensor_type{dtype::i64, {static_cast<std::int64_t>(list.size())}}, bytes);
}

value lowering::constant(const tensor_type& type, std::shared_ptr<const std::byte> bytes) {
  return into_->constant(name_of(*node_) + "/constant", type, std::move(bytes));
}

value lowering::constant(const oracle_value& contents) {
  into_->spend(contents.type.bytes());
  const std::shared_ptr<std::byte> bytes = allocate_bytes(contents.type.bytes());
  from_oracle(contents, bytes.get());
  return constant(contents.type, bytes);
}

value lowering::constant(const model_tensor& tensor) {
  // A generator is seeded with the name of its constant, so the constant keeps the tensor's name. It is named after the node's
  // output only if the tensor has no name, or the name is taken.
  const std::string name = !tensor.name.empty() && into_->current().taken.insert(tensor.name).second
                               ? tensor.name
                               : into_->current().name_like(wants(0) ? node_->outputs[0] : "constant");
  return into_->constant(tensor, name);
}

value lowering::reshape(value x, const shape& dims) {
  if (dims_of(x) == dims) return x;
  return (*this)(ops::reshape, x, {.dims = dims, .allow_zero = true});
}

value lowering::concatenate(std::vector<value> parts, std::int64_t axis) {
  constexpr std::size_t most = match_record::max_arguments;
  while (parts.size() > 1) {
    std::vector<value> joined;
    for (std::size_t i = 0; i < parts.size(); i += most) {
      const std::span<const value> some = std::span(parts).subspan(i, std::min(most, parts.size() - i));
      joined.push_back(some.size() == 1 ? some[0] : (*this)(ops::concat, some, {.axis = axis}));
    }
    parts = std::move(joined);
  }
  if (parts.empty()) invalid("it has no operands to concatenate");
  return parts[0];
}

value lowering::cast(value x, dtype to) {
  if (element_type_of(x) == to) return x;
  return (*this)(ops::cast, x, {.to = to});
}

void lowering::unsupported(const std::string& what) const { refuse(what + " is not supported"); }
void lowering::refuse(const std::string& why) const { throw error(error_kind::unsupported, why, into_->where()); }
void lowering::invalid(const std::string& what) const {
  throw error(error_kind::invalid_argument, what, into_->where());
}

}  // namespace collage::inline v0::onnx
