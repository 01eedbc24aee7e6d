// A model as a source of networks: what is open in its declarations, and a stage for each combination of shapes.
#include <collage/io/onnx/model_source.hpp>

#include "import_text.hpp"
#include "importer.hpp"

#include <algorithm>
#include <unordered_set>
#include <utility>

namespace collage::inline v0::onnx {

namespace {

open_port port_of(const model& m, const model_port& p) {
  open_port made;
  made.name = p.name;
  made.type = element_type_of(p.element_type).value_or(dtype::f32);  // making a stage refuses other types
  made.has_rank = p.has_shape;
  if (p.extents.size() > shape::max_rank)
    throw error(error_kind::unsupported, "has more than 8 dimensions", m.file + ", " + printable(p.name));
  for (const model_extent& e : p.extents) {
    made.dims.push_back(e.extent < 0 ? unknown : e.extent);
    made.symbols.push_back(e.extent < 0 ? e.symbol : std::string());
  }
  return made;
}

/// Fixes extents of an input. Those that are `unknown` stay as they are declared.
void give(open_port& port, const shape& dims) {
  if (port.has_rank && port.dims.size() != dims.size())
    port.has_rank = false;  // making a stage says that it does not fit
  if (!port.has_rank) {
    port.dims = dims;
    port.symbols.assign(dims.size(), "");
    port.has_rank = true;
  }
  for (std::size_t d = 0; d < dims.size(); ++d) {
    if (dims[d] < 0) continue;
    port.dims[d] = dims[d];
    port.symbols[d].clear();
  }
}

/// Gives contents to weights that the file describes by a generator, so that all stages share them.
void fill(model& m) {
  for (model_tensor& t : m.graph.initializers) {
    if (!t.fill || element_type_of(t.element_type) != dtype::f32 || t.extents.size() > shape::max_rank) continue;
    const tensor_type type{dtype::f32, shape(std::span<const std::int64_t>(t.extents))};
    const std::shared_ptr<std::byte> bytes = allocate_bytes(type.bytes());
    fill_uniform({reinterpret_cast<float*>(bytes.get()), static_cast<std::size_t>(type.dims.elements())}, t.name,
                 *t.fill);
    t.bytes = bytes;
    t.fill.reset();
  }
}

}  // namespace

model_source::model_source(model read, const load_options& options) : model_(std::move(read)), options_(options) {
  check_kinds(options_.kinds);
  describe(model_, about_);
  for (bound_value& b : options_.values) {
    bound_.push_back(copy_of(b.contents));
    b.contents.data = bound_.back().get();
  }
  const auto is_bound = [&](const std::string& name) {
    return std::any_of(options_.values.begin(), options_.values.end(),
                       [&](const bound_value& b) { return b.input == name; });
  };
  for (const model_port* p : open_inputs(model_)) {
    if (const std::string why = why_not_supported(*p); !why.empty())
      throw error(error_kind::unsupported, why, model_.file + ", input " + printable(p->name));
    if (is_bound(p->name)) continue;
    open_port& port = inputs_.emplace_back(port_of(model_, *p));
    for (const bound_shape& b : options_.shapes)
      if (b.input == p->name) give(port, b.dims);
  }
  std::unordered_set<std::string> names;
  for (const model_port& p : model_.graph.outputs)
    if (names.insert(p.name).second) outputs_.push_back(port_of(model_, p));
  try {
    importer(model_, options_).check_operators();
  } catch (const error& unknown) {
    (void)
        example_shapes();  // at shapes that work, an error has all that is not supported, and not unknown operators alone
    throw told_of(unknown, model_.file);
  }
}

model_source::model_source(const std::string& file, const load_options& options)
    : model_source(read_model(file, {.tensor_bytes = options.most_bytes}), options) {}

model_source::~model_source() = default;

network_stage model_source::make(const network_stage* before, std::span<const given_value> given) const {
  if (before == nullptr && given.size() != inputs_.size())
    throw error(error_kind::invalid_argument,
                "it takes " + std::to_string(inputs_.size()) +
                    (inputs_.size() == 1 ? " input, not " : " inputs, not ") + std::to_string(given.size()),
                model_.file);
  std::call_once(filled_, [&] { fill(model_); });
  staging wanted;
  wanted.is_first = before == nullptr;
  wanted.given = given;
  if (before == nullptr) {
    load_options shapes = options_;
    for (const given_value& g : given) shapes.shapes.insert(shapes.shapes.begin(), {g.name, g.contents.type.dims});
    wanted.contradictions = contradictions(model_, shapes);
  } else {
    const auto& memory = *static_cast<const stage_memory*>(before->memory.get());
    wanted.constants = memory.constants;
    wanted.delivered = memory.delivered;
    wanted.contradictions = memory.contradictions;
  }
  for (;;) {
    staging attempt = wanted;
    load_options how = options_;
    std::erase_if(how.shapes, [&](const bound_shape& b) { return attempt.find(b.input) != nullptr; });
    if (wanted.is_first)
      for (const given_value& g : given) {
        if (wanted.decided.count(g.name) != 0) how.values.push_back({g.name, g.contents});
        else how.shapes.push_back({g.name, g.contents.type.dims});
      }
    try {
      network_stage stage = importer(model_, how, &attempt).run_stage();
      fill_constants(stage.network);
      return stage;
    } catch (const begin_again&) { wanted.decided = attempt.decided; } catch (const error& e) {
      throw told_of(with_sentences(e, wanted.contradictions), model_.file);
    }
  }
}

std::vector<tensor> model_source::compute(const network_stage& stage, std::size_t late,
                                          std::span<const const_tensor_view> operands) const {
  const auto& memory = *static_cast<const stage_memory*>(stage.memory.get());
  const model_node& node = *memory.late[late];
  const late_operator& op = stage.late[late];
  kept_values known;
  for (const std::string& name : node.inputs)
    if (const auto kept = memory.constants.find(name); kept != memory.constants.end()) known.insert(*kept);
  for (std::size_t i = 0; i < op.operands.size(); ++i) {
    known[op.operands[i]] = {operands[i].type, copy_of(operands[i])};
  }
  try {
    return importer(model_, options_).run_late(node, known, op.results);
  } catch (const error& e) { throw told_of(e, model_.file); }
}

}  // namespace collage::inline v0::onnx
