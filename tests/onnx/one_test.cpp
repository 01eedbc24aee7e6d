#include "one_test.hpp"

#include <collage/backends/reference.hpp>
#include <collage/io/onnx/model_source.hpp>
#include <collage/place.hpp>
#include <collage/run/processor.hpp>
#include <collage/run/session.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <stdexcept>
#include <utility>

namespace onnx_tests {

namespace c = collage;
namespace fs = std::filesystem;

namespace {

/// How far an element may be from the expected one: |a - e| <= relative |e| + absolute.
struct allowance {
  double relative = 1e-3;
  double absolute = 1e-6;  // published outputs are float32, with its rounding where the true number is 0
};
constexpr allowance of_light_models = {1e-3, 1e-5};

struct named_tensor {
  std::string name;
  c::tensor contents;
};

/// Inputs and expected outputs, in the model's order.
struct data_set {
  std::vector<named_tensor> inputs;
  std::vector<c::tensor> outputs;
};

/// A file's tensor, of the type that the model declares.
c::tensor read(const fs::path& file, const c::onnx::model_port& port) {
  const c::onnx::model_tensor from = c::onnx::read_tensor(file.string());
  std::optional<c::dtype> type = c::onnx::element_type_of(from.element_type);
  // The test data holds bfloat16 as uint16 of the same bits.
  if (type == c::dtype::u16 && c::onnx::element_type_of(port.element_type) == c::dtype::bf16) type = c::dtype::bf16;
  if (!type || from.bytes == nullptr || from.extents.size() > c::shape::max_rank)
    throw std::runtime_error(file.string() + " holds no tensor of ours");
  c::tensor t(c::tensor_type{*type, c::shape(std::span<const std::int64_t>(from.extents))});
  if (t.bytes() != 0) std::memcpy(t.data(), from.bytes.get(), t.bytes());
  return t;
}

bool holds_our_tensors(const c::onnx::model_port& port) {
  return port.is_tensor && c::onnx::element_type_of(port.element_type).has_value();
}

/// The declared inputs without those that are only the defaults of weights.
std::vector<const c::onnx::model_port*> inputs_of(const c::onnx::model_graph& g) {
  std::set<std::string> weights;
  for (const c::onnx::model_tensor& t : g.initializers) weights.insert(t.name);
  std::vector<const c::onnx::model_port*> list;
  for (const c::onnx::model_port& port : g.inputs)
    if (!weights.contains(port.name)) list.push_back(&port);
  return list;
}

/// What the file gives. Inputs that we have no type for are left out: the loader must refuse the model.
data_set read_inputs(const c::onnx::model_graph& g, const fs::path& folder) {
  data_set data;
  std::size_t i = 0;
  for (const c::onnx::model_port* port : inputs_of(g)) {
    const fs::path file = folder / ("input_" + std::to_string(i++) + ".pb");
    if (holds_our_tensors(*port) && fs::exists(file)) data.inputs.push_back({port->name, read(file, *port)});
  }
  return data;
}

void read_outputs(const c::onnx::model_graph& g, const fs::path& folder, data_set& data) {
  for (std::size_t i = 0; i < g.outputs.size(); ++i)
    data.outputs.push_back(read(folder / ("output_" + std::to_string(i) + ".pb"), g.outputs[i]));
}

/// The one input of a light model: element i of n is i / n.
data_set light_data(const c::onnx::model_graph& g, const fs::path& model) {
  data_set data;
  for (const c::onnx::model_port* port : inputs_of(g)) {
    c::tensor_type type{c::dtype::f32, {}};
    for (const c::onnx::model_extent& e : port->extents) type.dims.push_back(e.extent);
    named_tensor input{port->name, c::tensor(type)};
    const std::span<float> elements = input.contents.as<float>();
    for (std::size_t k = 0; k < elements.size(); ++k)
      elements[k] = static_cast<float>(k) / static_cast<float>(elements.size());
    data.inputs.push_back(std::move(input));
  }
  fs::path expected = model;
  expected.replace_extension();
  data.outputs.push_back(read(expected.string() + "_output_0.pb", g.outputs.at(0)));
  return data;
}

std::string words_of(const c::tensor_type& type) {
  std::string text = c::name_of(type.type);
  for (const std::int64_t extent : type.dims) text += " " + std::to_string(extent);
  return text;
}

std::string words_of(double x) {
  char text[32];
  std::snprintf(text, sizeof text, "%.9g", x);
  return text;
}

std::string differing(std::size_t element, const std::string& actual, const std::string& expected) {
  return "element " + std::to_string(element) + " is " + actual + " and not " + expected;
}

/// Why a tensor is not the expected one; empty where it is.
std::string difference(const c::const_tensor_view& actual, const c::const_tensor_view& expected, allowance allowed) {
  if (!(actual.type == expected.type)) return "it is " + words_of(actual.type) + " and not " + words_of(expected.type);
  const c::oracle_value a = c::to_oracle(actual), e = c::to_oracle(expected);
  for (std::size_t i = 0; i < e.integer.size(); ++i)
    if (a.integer[i] != e.integer[i]) return differing(i, std::to_string(a.integer[i]), std::to_string(e.integer[i]));
  const bool is_short = expected.type.type == c::dtype::f16 || expected.type.type == c::dtype::bf16;
  if (is_short) allowed.relative = std::max(allowed.relative, 1e-2);
  for (std::size_t i = 0; i < e.real.size(); ++i) {
    const bool fits = std::isfinite(e.real[i]) && std::isfinite(a.real[i])
                          ? std::abs(a.real[i] - e.real[i]) <= allowed.relative * std::abs(e.real[i]) + allowed.absolute
                          : a.real[i] == e.real[i] || (std::isnan(a.real[i]) && std::isnan(e.real[i]));
    if (!fits) return differing(i, words_of(a.real[i]), words_of(e.real[i]));
  }
  return {};
}

/// The data's inputs in the order of the source.
std::vector<c::const_tensor_view> given_to(const c::onnx::model_source& source, const data_set& data) {
  std::vector<c::const_tensor_view> list;
  for (const c::open_port& p : source.inputs()) {
    const auto found =
        std::find_if(data.inputs.begin(), data.inputs.end(), [&](const named_tensor& t) { return t.name == p.name; });
    // The data lacks inputs of types that are not ours, which the source refuses.
    list.emplace_back(found != data.inputs.end() ? c::const_tensor_view(found->contents) : c::const_tensor_view());
  }
  return list;
}

std::vector<c::tensor> by_engine(std::shared_ptr<const c::onnx::model_source> source,
                                 std::span<const c::const_tensor_view> inputs, c::backend_table backends) {
  c::place_options options;
  options.threads = 1;
  options.costs = c::placing_costs::none;
  const c::session session(std::move(source), backends,
                           [&](const c::graph& network, const auto&) { return c::place(network, backends, options); });
  c::session_context context = session.context();
  std::vector<c::tensor> outputs;
  for (const c::session_output& o : context.run(inputs)) {
    c::tensor& t = outputs.emplace_back(o.contents.type);
    if (t.bytes() != 0) std::memcpy(t.data(), o.contents.data, t.bytes());
  }
  return outputs;
}

/// A run of all stages by the reference alone.
class reference_run {
 public:
  explicit reference_run(const c::onnx::model_source& source) : source_(source) {}

  std::vector<c::tensor> run(std::span<const c::const_tensor_view> inputs) {
    std::vector<c::given_value> given;
    for (std::size_t i = 0; i < inputs.size(); ++i) given.push_back({source_.inputs()[i].name, inputs[i]});
    std::map<std::string, c::tensor> results;
    c::network_stage stage = source_.make(nullptr, given);
    for (;;) {
      std::map<std::string, c::const_tensor_view> known;
      for (const c::given_value& g : given) known[g.name] = g.contents;
      run_stage(stage, known);
      for (const std::string& name : stage.results) results[name] = copy_of(known.at(name));
      if (stage.is_last) break;
      given.clear();
      for (const std::string& name : stage.passed_on) given.push_back({name, known.at(name)});
      stage = source_.make(&stage, given);
    }
    std::vector<c::tensor> outputs;
    for (const c::open_port& p : source_.outputs()) outputs.push_back(std::move(results.at(p.name)));
    return outputs;
  }
  /// Whether anything was computed from an input.
  bool is_live() const { return live_; }

 private:
  static c::tensor copy_of(const c::const_tensor_view& from) {
    c::tensor t(from.type);
    if (t.bytes() != 0) std::memcpy(t.data(), from.data, t.bytes());
    return t;
  }

  void run_stage(const c::network_stage& stage, std::map<std::string, c::const_tensor_view>& known) {
    const c::graph& network = stage.network;
    std::vector<c::const_tensor_view> inputs;
    for (const std::uint32_t v : network.inputs()) inputs.push_back(known.at(network.value_name(v)));
    live_ = live_ || (!inputs.empty() && !network.nodes().empty()) || !stage.late.empty();
    std::vector<c::oracle_value> computed = c::evaluate(network, inputs);
    for (std::size_t i = 0; i < computed.size(); ++i) {
      kept_.push_back(std::make_unique<c::tensor>(computed[i].type));
      c::from_oracle(computed[i], kept_.back()->data());
      known[network.output_name(i)] = *kept_.back();
    }
    for (std::size_t i = 0; i < stage.late.size(); ++i) {
      std::vector<c::const_tensor_view> operands;
      for (const std::string& name : stage.late[i].operands) operands.push_back(known.at(name));
      std::vector<c::tensor> made = source_.compute(stage, i, operands);
      for (std::size_t k = 0; k < made.size(); ++k) {
        kept_.push_back(std::make_unique<c::tensor>(std::move(made[k])));
        known[stage.late[i].results[k]] = *kept_.back();
      }
    }
  }

  const c::onnx::model_source& source_;
  std::vector<std::unique_ptr<c::tensor>> kept_;
  bool live_ = false;
};

/// The first output that is not as expected, and how; empty where all are.
std::string first_difference(std::span<const c::tensor> actual, const data_set& data, allowance allowed) {
  if (actual.size() != data.outputs.size())
    return "there are " + std::to_string(actual.size()) + " outputs and not " + std::to_string(data.outputs.size());
  for (std::size_t i = 0; i < actual.size(); ++i)
    if (const std::string how = difference(actual[i], data.outputs[i], allowed); !how.empty())
      return "output " + std::to_string(i) + ": " + how;
  return {};
}

}  // namespace

std::vector<one_test> tests_of(const fs::path& folder) {
  std::vector<one_test> list;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() == ".onnx") list.push_back({entry.path().stem().string(), entry.path(), {}});
    if (!fs::exists(entry.path() / "model.onnx")) continue;
    one_test t{entry.path().filename().string(), entry.path() / "model.onnx", {}};
    for (const fs::directory_entry& inner : fs::directory_iterator(entry.path()))
      if (inner.is_directory()) t.data_sets.push_back(inner.path());
    std::sort(t.data_sets.begin(), t.data_sets.end());
    list.push_back(std::move(t));
  }
  std::sort(list.begin(), list.end(), [](const one_test& a, const one_test& b) { return a.name < b.name; });
  return list;
}

std::string operator_of(const one_test& test) {
  if (test.data_sets.empty()) return "light models";
  // Without "_expanded" the name is the same.
  const std::string whole = test.name.substr(0, test.name.find("_expanded"));
  fs::path model = test.model.parent_path().parent_path() / whole / "model.onnx";
  if (!fs::exists(model)) model = test.model;
  try {
    const c::onnx::model_node node = c::onnx::read_model(model.string()).graph.nodes.at(0);
    return node.domain.empty() ? node.operator_type : node.domain + "." + node.operator_type;
  } catch (const std::exception&) { return "unreadable"; }
}

/// The logits of this model are equal but for rounding, and so large that rounding decides its softmax. With AVX2, libraries add up the
/// last channels in another order than those before.
bool is_decided_by_rounding(const one_test& test) {
  return test.name == "light_squeezenet" && c::processor_name().find("avx512") == std::string::npos;
}

test_result run(const one_test& test, c::backend_table backends) {
  test_result r;
  r.test = test.name;
  r.operator_name = operator_of(test);
  const char* doing = "reading";
  try {
    const c::onnx::model_graph declared = c::onnx::read_model(test.model.string()).graph;
    const bool is_light = test.data_sets.empty();
    for (std::size_t i = 0; i < std::max<std::size_t>(1, test.data_sets.size()); ++i) {
      doing = "reading";
      data_set data = is_light ? light_data(declared, test.model) : read_inputs(declared, test.data_sets[i]);
      const allowance allowed = is_light ? of_light_models : allowance{};
      const auto source = std::make_shared<const c::onnx::model_source>(test.model.string());
      const std::vector<c::const_tensor_view> inputs = given_to(*source, data);
      doing = "by the reference";
      reference_run reference(*source);
      const std::vector<c::tensor> computed = reference.run(inputs);
      r.live = reference.is_live();
      if (!is_light) read_outputs(declared, test.data_sets[i], data);
      r.why = first_difference(computed, data, allowed);
      doing = "by the engine";
      if (r.why.empty() && !backends.empty() && !is_decided_by_rounding(test))
        r.why = first_difference(by_engine(source, inputs, backends), data, allowed);
      if (!r.why.empty()) r.why = std::string(doing) + ", " + r.why;
      if (!r.why.empty()) return r;
    }
    r.is = outcome::passed;
  } catch (const c::error& e) {
    r.why = std::string(doing) + ": " + e.what();
    if (e.kind() == c::error_kind::unsupported && std::strcmp(doing, "by the engine") != 0) r.is = outcome::refused;
  } catch (const std::exception& e) { r.why = std::string(doing) + ": " + e.what(); }
  return r;
}

}  // namespace onnx_tests
