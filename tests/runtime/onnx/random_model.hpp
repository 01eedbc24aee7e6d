// Random ONNX models with symbols, as exporters write them. The shapes at which a model will run are drawn first: an extent is the
// list of its numbers at all of these. So the generator knows which operators are legal, and the shapes of all results, without any
// arithmetic over symbols. random_operators.hpp draws the operators.
#pragma once

#include <algorithm>
#include <collage/run/tensor.hpp>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "support/random_numbers.hpp"
#include "support/sessions.hpp"
#include "writer.hpp"

namespace collage_test {

/// One number for each run.
using numbers_of_runs = std::vector<std::int64_t>;

/// A float32 value of the model.
struct drawn_value {
  std::string name;
  std::vector<numbers_of_runs> dims;
  std::size_t rank() const { return dims.size(); }
};

/// An int64 list of the model, whose contents are known.
struct drawn_list {
  std::string name;
  std::vector<numbers_of_runs> elements;
};

class random_model {
 public:
  /// Draws up to three symbols, inputs with them, and a list of data that decides shapes if `has_data`.
  random_model(random_numbers& numbers, bool has_data) : random(numbers), model(new_model()) {
    const std::int64_t symbols = random.number(1, 3);
    const bool may_be_empty = random.chance(0.2);
    for (std::int64_t i = 0; i < symbols; ++i)
      symbols_.push_back(draw([&] {
        if (may_be_empty && random.chance(0.2)) return std::int64_t{0};
        return random.chance(0.2) ? 1 : random.number(2, 8);
      }));
    const std::int64_t inputs = random.number(1, 3);
    for (std::int64_t i = 0; i < inputs; ++i) add_float_input(random.number(0, 2) == 0 ? 4 : random.number(1, 3));
    if (has_data) add_data();
  }

  static constexpr std::size_t runs = 4;
  static constexpr std::int64_t most_elements = 3000;  ///< of one value

  random_numbers& random;
  proto::ModelProto model;
  std::vector<drawn_value> values;
  std::vector<drawn_list> lists;   ///< results of arithmetic over shapes
  std::vector<drawn_list> wanted;  ///< inputs that decide shapes
  std::vector<float> data[runs];   ///< the contents of the input "data"

  proto::GraphProto& graph() { return *model.mutable_graph(); }
  std::string fresh(const std::string& what) { return what + "_" + std::to_string(++count_); }

  numbers_of_runs draw(const std::function<std::int64_t()>& number) const {
    numbers_of_runs list(runs);
    for (std::int64_t& n : list) n = number();
    return list;
  }
  static numbers_of_runs always(std::int64_t number) { return numbers_of_runs(runs, number); }
  static bool is_constant(const numbers_of_runs& n) {
    return std::all_of(n.begin(), n.end(), [&](std::int64_t e) { return e == n[0]; });
  }
  static std::int64_t least(const numbers_of_runs& n) { return *std::min_element(n.begin(), n.end()); }
  /// The same function of every run's numbers.
  template <class Function, class... Lists>
  static numbers_of_runs each(const Function& function, const Lists&... lists) {
    numbers_of_runs made(runs);
    for (std::size_t i = 0; i < runs; ++i) made[i] = function(lists[i]...);
    return made;
  }
  static bool fits(const std::vector<numbers_of_runs>& dims) {
    if (dims.size() > 6) return false;
    for (std::size_t i = 0; i < runs; ++i) {
      std::int64_t elements = 1;
      for (const numbers_of_runs& d : dims) elements *= std::max<std::int64_t>(d[i], 1);
      if (elements > most_elements) return false;
    }
    return true;
  }

  /// Adds a node with one float32 result. Results that could be large are brought back to [-1, 1]: what is computed from larger ones
  /// in float32 may be far from the reference.
  drawn_value& node(const std::string& operator_type, const std::vector<std::string>& operands,
                    std::vector<numbers_of_runs> dims, const std::vector<proto::AttributeProto>& attributes = {}) {
    std::string name = helper(operator_type, operands, attributes);
    if (magnitude_[name] > 6) name = helper("Tanh", {name});
    return values.emplace_back(drawn_value{name, std::move(dims)});
  }
  /// Adds a node whose result is neither a value nor a list: its name.
  std::string helper(const std::string& operator_type, const std::vector<std::string>& operands,
                     const std::vector<proto::AttributeProto>& attributes = {}) {
    const std::string name = fresh("v");
    add_node(graph(), operator_type, operands, {name}, attributes);
    reads(operands);
    int sum = 0, most = 0;
    for (const std::string& o : operands) {
      sum += magnitude_[o];
      most = std::max(most, magnitude_[o]);
    }
    int& own = magnitude_[name];
    if (operator_type == "MatMul" || operator_type == "Conv") own = sum + 4;
    else if (operator_type == "Mul") own = sum;
    else if (operator_type == "Range") own = 6;
    else if (operator_type == "Add" || operator_type == "Sub") own = most + 1;
    else if (operator_type.starts_with("Reduce")) own = most + 3;
    else if (operator_type != "Tanh" && operator_type != "Sigmoid" && operator_type != "Softmax") own = most;
    return name;
  }
  void reads(const std::vector<std::string>& names) { read_.insert(read_.end(), names.begin(), names.end()); }
  drawn_list& list_node(const std::string& operator_type, const std::vector<std::string>& operands,
                        std::vector<numbers_of_runs> elements,
                        const std::vector<proto::AttributeProto>& attributes = {}) {
    return lists.emplace_back(drawn_list{helper(operator_type, operands, attributes), std::move(elements)});
  }
  std::string integers(const std::vector<std::int64_t>& list) {
    const std::string name = fresh("i");
    add_initializer(graph(), tensor_of<std::int64_t>(name, {std::ssize(list)}, list));
    return name;
  }
  std::string integer(std::int64_t number) {
    const std::string name = fresh("i");
    add_initializer(graph(), tensor_of<std::int64_t>(name, {}, {number}));
    return name;
  }
  std::string weights(const std::vector<std::int64_t>& extents, double size = 0.5) {
    std::int64_t count = 1;
    for (const std::int64_t e : extents) count *= e;
    std::vector<float> list;
    for (std::int64_t i = 0; i < count; ++i)
      list.push_back(static_cast<float>(static_cast<double>(random.number(-8, 8)) * size / 8));
    const std::string name = fresh("w");
    add_initializer(graph(), tensor_of<float>(name, extents, list));
    return name;
  }

  /// An int64 list of one element: an extent of a value, by one of the ways in which exporters ask for it.
  drawn_list extent_of(const drawn_value& v, std::size_t axis) {
    const auto at = static_cast<std::int64_t>(axis);
    if (random.chance(0.3))
      return list_node("Shape", {v.name}, {v.dims[axis]}, {attribute("start", at), attribute("end", at + 1)});
    const std::string dims = helper("Shape", {v.name});
    if (random.chance(0.3)) return list_node("Slice", {dims, integers({at}), integers({at + 1})}, {v.dims[axis]});
    if (random.chance(0.5)) return list_node("Gather", {dims, integers({at})}, {v.dims[axis]});
    const std::string scalar = helper("Gather", {dims, integer(at)});
    return list_node("Unsqueeze", {scalar, integers({0})}, {v.dims[axis]});
  }
  /// An int64 list of one element with the given numbers, computed from the shape of a value that has such an extent; a constant if
  /// there is none and it is one; an input of the model otherwise.
  drawn_list element(const numbers_of_runs& n) {
    std::vector<std::pair<std::size_t, std::size_t>> found;
    for (std::size_t v = 0; v < values.size(); ++v)
      for (std::size_t d = 0; d < values[v].rank(); ++d)
        if (values[v].dims[d] == n) found.emplace_back(v, d);
    if (is_constant(n) && (found.empty() || random.chance(0.7))) return {integers({n[0]}), {n}};
    if (found.empty()) return given_list({n});
    const auto [v, d] = found[pick(found.size())];
    return extent_of(drawn_value(values[v]), d);
  }
  drawn_list joined(const std::vector<drawn_list>& parts) {
    if (parts.size() == 1) return parts[0];
    std::vector<std::string> names;
    std::vector<numbers_of_runs> elements;
    for (const drawn_list& p : parts) {
      names.push_back(p.name);
      elements.insert(elements.end(), p.elements.begin(), p.elements.end());
    }
    return list_node("Concat", names, elements, {attribute("axis", 0)});
  }
  /// The extents as an int64 list.
  drawn_list list_of(const std::vector<numbers_of_runs>& dims) {
    if (dims.empty()) return {integers({}), {}};
    if (random.chance(0.1)) return given_list(dims);
    std::vector<drawn_list> parts;
    for (const numbers_of_runs& n : dims) parts.push_back(element(n));
    return joined(parts);
  }
  /// An input of the model whose contents decide shapes.
  drawn_list given_list(const std::vector<numbers_of_runs>& elements) {
    const drawn_list& made = wanted.emplace_back(drawn_list{fresh("wanted"), elements});
    add_input(graph(), made.name, {std::ssize(elements)}, proto::TensorProto::INT64);
    return made;
  }

  std::size_t pick(std::size_t count) {
    return static_cast<std::size_t>(random.number(0, static_cast<std::ptrdiff_t>(count) - 1));
  }
  /// Recent values are likelier, so that chains form.
  drawn_value any_value() {
    const std::size_t window = random.chance(0.6) ? std::min<std::size_t>(3, values.size()) : values.size();
    return values[values.size() - 1 - pick(window)];
  }
  template <class Test>
  std::optional<drawn_value> value_with(const Test& test) {
    std::vector<std::size_t> found;
    for (std::size_t i = 0; i < values.size(); ++i)
      if (test(values[i])) found.push_back(i);
    if (found.empty()) return std::nullopt;
    return values[found[pick(found.size())]];
  }

  /// Declares the outputs: values that nothing reads, at least the last one, and some list.
  void finish() {
    for (std::size_t i = inputs_; i < values.size(); ++i)
      if (i + 1 == values.size() || std::find(read_.begin(), read_.end(), values[i].name) == read_.end())
        add_output(values[i].name, values[i].dims, proto::TensorProto::FLOAT);
    if (lists.empty()) return;
    const drawn_list& l = lists[pick(lists.size())];
    add_output(l.name, {always(std::ssize(l.elements))}, proto::TensorProto::INT64);
  }

  std::vector<std::vector<numbers_of_runs>> output_dims;
  std::vector<drawn_value> float_inputs() const {
    return {values.begin(), values.begin() + static_cast<std::ptrdiff_t>(inputs_)};
  }

 private:
  void add_output(const std::string& name, const std::vector<numbers_of_runs>& dims, int type) {
    std::vector<declared_extent> extents;
    for (std::size_t d = 0; d < dims.size(); ++d) extents.emplace_back(("out" + std::to_string(d)).c_str());
    collage_test::add_output(graph(), name, extents, type);
    output_dims.push_back(dims);
  }

  /// An input of symbols and constant extents. One of rank 4 is an image.
  void add_float_input(std::int64_t rank) {
    drawn_value v{"x" + std::to_string(inputs_++), {}};
    std::vector<declared_extent> extents;
    for (std::int64_t d = 0; d < rank; ++d) {
      const bool is_fixed = rank == 4 ? d == 1 : random.chance(0.4);
      const std::size_t s = pick(symbols_.size());
      v.dims.push_back(is_fixed ? always(random.number(1, 4)) : symbols_[s]);
      if (is_fixed) extents.emplace_back(v.dims.back()[0]);
      else extents.emplace_back(("s" + std::to_string(s)).c_str());
    }
    add_input(graph(), v.name, extents);
    values.push_back(v);
  }

  void add_data() {
    // Values that decide shapes may follow from few numbers, but not from many: then they end a stage.
    const bool few = random.chance(0.5);
    const numbers_of_runs n = few ? symbols_[pick(symbols_.size())] : draw([&] { return random.number(65, 90); });
    for (std::size_t r = 0; r < runs; ++r)
      for (std::int64_t i = 0; i < n[r]; ++i) data[r].push_back(0.5F * static_cast<float>(random.number(-3, 3)));
    add_input(graph(), "data", {"D"});
    values.push_back({"data", {n}});
    ++inputs_;
  }

  std::vector<numbers_of_runs> symbols_;
  std::vector<std::string> read_;
  std::map<std::string, int> magnitude_;  // powers of two
  std::size_t inputs_ = 0, count_ = 0;
};

/// A model as text: inputs, integer constants, nodes, outputs.
inline std::string text_of(const proto::GraphProto& g, const std::string& indent = "  ") {
  std::string text;
  for (const auto& i : g.input()) {
    text += indent + "input " + i.name() + " [";
    for (const auto& d : i.type().tensor_type().shape().dim())
      text += " " + (d.has_dim_param() ? d.dim_param() : std::to_string(d.dim_value()));
    text += " ]\n";
  }
  for (const auto& t : g.initializer()) {
    text += indent + t.name() + " = constant [";
    for (const std::int64_t d : t.dims()) text += " " + std::to_string(d);
    text += " ]";
    if (t.data_type() == proto::TensorProto::INT64)
      for (std::size_t at = 0; at < t.raw_data().size(); at += 8) {
        std::int64_t n = 0;
        std::memcpy(&n, t.raw_data().data() + at, 8);
        text += " " + std::to_string(n);
      }
    text += "\n";
  }
  for (const auto& n : g.node()) {
    text += indent;
    for (const std::string& o : n.output()) text += o + " ";
    text += "= " + n.op_type() + "(";
    for (const std::string& i : n.input()) text += " " + i;
    text += " )";
    for (const auto& a : n.attribute()) {
      text += " " + a.name() + "=";
      if (a.type() == proto::AttributeProto::GRAPH) text += "{\n" + text_of(a.g(), indent + "  ") + indent + "}";
      else if (a.type() == proto::AttributeProto::INT) text += std::to_string(a.i());
      else if (a.type() == proto::AttributeProto::FLOAT) text += std::to_string(a.f());
      else if (a.type() == proto::AttributeProto::STRING) text += a.s();
      for (const std::int64_t i : a.ints()) text += std::to_string(i) + ",";
    }
    text += "\n";
  }
  for (const auto& o : g.output()) text += indent + "output " + o.name() + "\n";
  return text;
}

}  // namespace collage_test
