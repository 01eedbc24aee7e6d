#include "convolution_kernel.hpp"

#include "bilinear_convolution.hpp"
#include "configuration_reading.hpp"
#include "product_point.hpp"
#include "replica.hpp"
#include "traced_epilogue.hpp"

#include <collage/error.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace collage::inline v0::detail::jit {
namespace {

struct run_convolution {
  std::shared_ptr<const bilinear_convolution> convolution;
  std::shared_ptr<const std::byte> weights;
  kernel_input<float> input;
  std::vector<kernel_input<float>> operands;
  std::vector<kernel_output<float>> outputs;
  int threads;

  void operator()(const kernel_call& call) const {
    std::array<const float*, epilogue::most_operands> read{};
    for (std::size_t i = 0; i < operands.size(); ++i) read[i] = operands[i](call);
    std::array<float*, epilogue::most_outputs> to{};
    for (std::size_t i = 0; i < outputs.size(); ++i) to[i] = outputs[i](call);
    // Whether NaN may have spread is of no use here: placing refuses the kernel where NaN must be kept.
    static_cast<void>(convolution->run({.from = input(call),
                                        .weights = reinterpret_cast<const float*>(weights.get()),
                                        .operands = std::span(read).first(operands.size()),
                                        .to = std::span(to).first(outputs.size()),
                                        .scratch = static_cast<float*>(call.workspace),
                                        .threads = threads}));
  }
};

/// Algorithm and tile: other parts of a configuration do not change how weights are packed. In three dimensions, the slices
/// of the window that the shape needs do. Taps that each run transforms are packed alike for all algorithms.
std::string packing_of(const convolution_configuration& c, const convolution_shape& s) {
  std::string name = std::string("jit convolution ") +
                     (c.weights == weight_transform_time::once ? c.algorithm().name : "taps") + " panels of " +
                     std::to_string(c.product.columns()) + " lanes " + std::to_string(c.product.lanes());
  if (const depth_taps taps = taps_of(s); s.window_depth > 1)
    name += " slices " + std::to_string(taps.first) + " to " + std::to_string(taps.last - 1) + " of " +
            std::to_string(s.window_depth);
  return name;
}

std::string name_of(const convolution_point& p, const std::string& refusal) {
  const convolution_configuration& c = p.how;
  std::string name = std::string(c.algorithm().name) + ", " + std::to_string(c.product.rows) + "x" +
                     std::to_string(c.product.vectors) + ", " +
                     (c.partition == work_partition::tiles ? "blocks of " : "shared blocks of ") +
                     std::to_string(c.block) + (c.slices == 1 ? "" : " by " + std::to_string(c.slices) + " slices") +
                     (c.weights == weight_transform_time::once ? "" : ", weights on the fly") + ", " +
                     layout_of(p.from).name;
  if (p.to != p.from) name += std::string(" to ") + layout_of(p.to).name;
  if (!refusal.empty()) name += std::string(", replica ") + replica().target;
  return name;
}

/// Whether an operator after the convolution reads this value in the result's layout.
bool is_whole_operand(const any_match& m, const product_match& product, std::uint32_t v) {
  const shape& result = m.type_of(m.output_of(product.anchor)).dims;
  for (const std::uint32_t node : m.nodes()) {
    if (!product.is_later(m, node)) continue;
    for (const std::uint32_t in : m.inputs_of(node))
      if (in == v) return product.place(m.type_of(v).dims, result) == operand_place::whole;
  }
  return false;
}

/// The point that a text means for a match, or why there is none.
convolution_point::reading read_for(const any_match& m, const product_match& product,
                                    const collage::configuration& how) {
  const std::string text = how.text();
  convolution_point::reading read = convolution_point::read(text);
  if (!read.point) return read;
  const convolution_shape s = convolution_of(m, product);
  if (!product.suits_bilinear)
    return {{}, "its algorithm is for stride 1 and dilation 1, or for a window of another size"};
  if (read.point->how.algorithm().enlargement != s.enlargement)
    return {{},
            product.is_enlarged() ? "its algorithm does not enlarge images, and this one must be enlarged"
                                  : "its algorithm enlarges images, and this one must not be enlarged"};
  if (!fault_of(read.point->how, s).empty()) return {{}, "it has an algorithm for windows of another size"};
  if (read.point->from != read.point->to && is_whole_operand(m, product, product.left))
    return {{}, "the input is also added to the result, or the like, so that both must have one layout"};
  return read;
}

}  // namespace

convolution_shape convolution_of(const any_match& m, const product_match& product) {
  const shape& x = m.type_of(product.left).dims;
  const shape& w = m.type_of(product.right).dims;
  const ops::conv_attributes t = m.attributes(product.anchor, ops::conv);
  const std::size_t row = x.rank - 2;  // with a depth before it, or without
  convolution_shape s = {.batch = x[0],
                         .channels = x[1],
                         .outputs = w[0],
                         .height = x[row],
                         .width = x[row + 1],
                         .window_height = w[row],
                         .window_width = w[row + 1],
                         .pad_top = t.pads_begin[row - 2],
                         .pad_left = t.pads_begin[row - 1],
                         .pad_bottom = t.pads_end[row - 2],
                         .pad_right = t.pads_end[row - 1],
                         .enlargement = product.is_enlarged() ? 2 : 1};
  if (x.rank == 4) return s;
  s.depth = x[2];
  s.window_depth = w[2];
  s.pad_front = t.pads_begin[0];
  s.pad_back = t.pads_end[0];
  return s;
}

void propose_convolution(const any_match& m, const product_match& product, configuration_list& to) {
  for (const convolution_point& p : promising_points(convolution_of(m, product), this_machine())) to.add(p.text());
}

verdict knows_convolution(const any_match& m, const product_match& product, const collage::configuration& how) {
  const convolution_point::reading read = read_for(m, product, how);
  if (!read.point) return {false, read.fault};
  return runs_here(read.point->how.product.set);
}

kernel_algorithm algorithm_of_convolution(const any_match& m, const product_match& product,
                                          const collage::configuration& how) {
  const convolution_point::reading read = read_for(m, product, how);
  if (!read.point) return {};
  const convolution_shape s = convolution_of(m, product);
  const convolution_family& f = read.point->how.algorithm();
  const std::int64_t inner = s.channels * taps_of(s).count();
  return {.name = f.name,
          .error_bound = f.error_bound(static_cast<std::size_t>(inner)),
          .direct_error = direct_error(inner * s.window_height * s.window_width),
          .input = product.left,
          .channels = 1};
}

kept_constants weights_of_convolution(const any_match& m, const product_match& product,
                                      const collage::configuration& how) {
  const convolution_point::reading read = read_for(m, product, how);
  if (!read.point) return {};
  const convolution_configuration& c = read.point->how;
  const convolution_shape shape = convolution_of(m, product);
  return {{product.right, packing_of(c, shape), static_cast<std::size_t>(weight_bytes(c, shape))}};
}

void set_convolution_layouts(const any_match& m, const product_match& product, const collage::configuration& how,
                             value_forms& to) {
  const convolution_point::reading read = read_for(m, product, how);
  if (!read.point) return;
  to.set(product.left, layout_of(read.point->from));
  for (const std::uint32_t v : m.outputs()) to.set(v, layout_of(read.point->to));
  for (const std::uint32_t v : m.arguments())
    if (is_whole_operand(m, product, v)) to.set(v, layout_of(read.point->to));
}

kernel build_convolution(const any_match& m, const product_match& product, build_context& context) {
  const convolution_point::reading read = read_for(m, product, context.configuration());
  if (!read.point)
    throw error(error_kind::invalid_argument, read.fault, "jit's configuration " + context.configuration().text());
  const convolution_point& point = *read.point;
  convolution_shape shape = convolution_of(m, product);
  shape.from = point.from;
  shape.to = point.to;
  const traced_epilogue then = trace_epilogue(m, product);

  const auto arena = std::make_shared<code_arena>();
  const auto made = std::make_shared<bilinear_convolution>(point.how, shape, then.steps, arena);
  static_cast<void>(arena->seal());  // `bind` and `refusal` know the result
  made->bind();
  auto weights = context.packed(product.right, packing_of(point.how, shape),
                                static_cast<std::size_t>(weight_bytes(point.how, shape)), [&](std::byte* to) {
                                  made->pack(context.constant<float>(product.right), reinterpret_cast<float*>(to),
                                             context.threads());
                                });
  run_convolution run{made, std::move(weights), m.in<float>(product.left), {}, {}, context.threads()};
  for (const std::uint32_t v : then.operands) run.operands.push_back(m.in<float>(v));
  for (const std::size_t o : then.outputs) run.outputs.push_back(m.out<float>(o));
  kernel built(name_of(point, made->refusal()), std::move(run),
               static_cast<std::size_t>(scratch_bytes(point.how, shape, context.threads())));
  set_access(built, m, product, {&then, 1});
  return built;
}

}  // namespace collage::inline v0::detail::jit
