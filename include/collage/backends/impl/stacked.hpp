// The definitions of collage/backends/stacked.hpp. Exactly one file of a program includes this header, and is compiled
// with OpenMP. By default this file is src/stacked.cpp, the target collage::stacked. A user's own file must include
// nothing else of Highway.
#pragma once

#include <collage/backends/impl/stacked_targets.hpp>  // first: it configures Highway

#include <algorithm>
#include <collage/backends/impl/stacked_expression.hpp>
#include <collage/backends/impl/stacked_group.hpp>
#include <collage/backends/impl/stacked_maker.hpp>
#include <collage/backends/impl/stacked_program.hpp>
#include <collage/backends/impl/stacked_run.hpp>
#include <collage/backends/stacked.hpp>
#include <collage/error.hpp>
#include <collage/graph/graph.hpp>
#include <collage/list_view.hpp>
#include <collage/op/body.hpp>
#include <collage/op/norm.hpp>
#include <collage/op/reduce.hpp>
#include <collage/ops.hpp>
#include <collage/run/kernel.hpp>
#include <collage/run/node_group.hpp>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace collage::inline v0::detail::host {
namespace {

inline bool is_boolean(const graph& network, std::uint32_t value) {
  return network.type_of(value).type == dtype::boolean;
}
inline bool is_known(const graph& network, std::uint32_t value) {
  const tensor_type& type = network.type_of(value);
  return (type.type == dtype::f32 || type.type == dtype::boolean) && type.dims.is_concrete();
}

/// Whether an instruction means the same for booleans as for the numbers 0 and 1.
inline bool is_logical(opcode code) {
  return operands_of(code) == 0 || (code >= opcode::less && code <= opcode::logical_or) || code == opcode::select ||
         code == opcode::minimum || code == opcode::maximum;
}
/// Whether the tile functions have every instruction of a body. For boolean operands (`is_logic`), each instruction
/// must also mean the same as for numbers.
inline bool has_instructions(const traced_body& body, const tile_table& table, bool is_logic) {
  for (std::uint32_t i = 0; i < body.size; ++i) {
    const opcode code = body.code[i].code;
    if (operands_of(code) > 0 && table.of(code, tile_form::tiles) == nullptr) return false;
    const bool is_truth = code != opcode::constant || body.code[i].value == 0 || body.code[i].value == 1;
    if (is_logic && !(is_logical(code) && is_truth)) return false;
  }
  return true;
}

/// Whether the only output of a group may lie where an argument lies. Each tile of the argument must be read where the
/// same tile of the output is written, and never later. The output is written in the last phase, which folds nothing.
inline bool writes_over(const tile_program& program, std::uint32_t argument) {
  const tile_leaf& output = program.outputs[0];
  if (!output.varies()) return false;
  for (const tile_pieces& pieces : program.pieces)
    for (const tile_part& part : pieces.parts)
      if (!part.is_number && part.from.argument == argument) return false;
  std::size_t reads = 0;
  for (const tile_leaf& leaf : program.leaves) {
    if (leaf.argument != argument) continue;
    const bool is_same = leaf.offset == output.offset && leaf.outer_steps == output.outer_steps &&
                         leaf.inner_dims == output.inner_dims && leaf.inner_steps == output.inner_steps &&
                         leaf.is_bytes == output.is_bytes;
    if (!is_same) return false;
    ++reads;
  }
  return reads == 1;
}

/// A name such as "AVX3: add relu"; it lists the first few of many operators.
inline std::string kernel_name(const graph& network, const node_group& group, const tile_table& table) {
  constexpr std::size_t named = 8;
  std::string name = table.target + std::string(":");
  for (std::size_t i = 0; i < group.nodes.size() && i < named; ++i)
    name += std::string(" ") + network.node(group.nodes[i]).kind->name;
  if (group.nodes.size() > named) name += " and " + std::to_string(group.nodes.size() - named) + " more";
  return name;
}

}  // namespace
}  // namespace collage::inline v0::detail::host

namespace collage::inline v0 {

bool stacked::takes(const graph& network, std::uint32_t node) {
  using namespace detail::host;
  const graph_view view = network.view();
  const node_record& record = network.node(node);
  if (record.outputs != 1 || record.inputs == 0 || record.bodies != 0) return false;
  const list_view<const std::uint32_t> in = view.inputs_of(node);
  bool is_logic = true;  // all operands are booleans
  for (const std::uint32_t v : in) {
    if (!is_known(network, v)) return false;
    is_logic = is_logic && is_boolean(network, v);
  }
  if (!is_known(network, view.output_of(node))) return false;
  if (record.kind->has_body) return has_instructions(*record.kind->body, best_tile_functions(), is_logic);
  const auto is = [&]<class Kind>(const Kind&) { return record.kind->id == kind_id<Kind>; };
  if (is(ops::transpose) || is(ops::slice) || is(ops::expand) || is(ops::concat) || is(ops::tile) || is(ops::pad) ||
      is(ops::trilu))
    return true;
  if (is_boolean(network, in[0])) return false;
  const auto rank = static_cast<std::int64_t>(network.type_of(in[0]).rank());
  if (is(ops::layer_norm)) return true;
  if (is(ops::softmax) || is(ops::log_softmax))
    return from_words<ops::softmax_attributes>(view.words_of(node)).axis == rank - 1;
  if (is(ops::reduce_sum) || is(ops::reduce_mean) || is(ops::reduce_max) || is(ops::reduce_min) ||
      is(ops::reduce_log_sum_exp))
    return !from_words<ops::reduce_attributes>(view.words_of(node)).axes.empty();
  return false;
}

kernel stacked::build(const node_group& group, build_context& context) {
  using namespace detail::host;
  const graph& network = context.network();
  for (const std::uint32_t n : group.nodes)
    if (!takes(network, n)) refuse_group("it does not compute " + network.node_name(n));
  const tile_table& table = best_tile_functions();
  stacked_kernel made{programs_of(network, group, table), std::max(1, context.threads())};
  std::vector<bool> is_read(group.arguments.size(), false);
  const auto read = [&](const tile_leaf& leaf) {
    if (leaf.argument < is_read.size()) is_read[leaf.argument] = true;
  };
  for (const tile_program& program : made.programs) {
    for (const tile_leaf& leaf : program.leaves) read(leaf);
    for (const tile_pieces& pieces : program.pieces)
      for (const tile_part& part : pieces.parts)
        if (!part.is_number) read(part.from);
  }
  std::vector<std::uint32_t> written_over;
  const std::uint32_t result = group.outputs[0];
  for (std::uint32_t i = 0; i < group.arguments.size(); ++i)
    if (group.outputs.size() == 1 && made.programs.size() == 1 &&
        network.type_of(group.arguments[i]).bytes() == network.type_of(result).bytes() &&
        writes_over(made.programs[0], i))
      written_over.push_back(i);
  const std::size_t workspace = made.workspace();
  kernel built(kernel_name(network, group, table), std::move(made), workspace);
  for (std::size_t i = 0; i < is_read.size(); ++i)
    if (!is_read[i]) built.does_not_read(i);
  for (const std::uint32_t i : written_over) built.may_write_over(i);
  return built;
}

probe_result stacked::probe() {
  using namespace detail::host;
  static const std::string version =
      std::to_string(HWY_MAJOR) + '.' + std::to_string(HWY_MINOR) + '.' + std::to_string(HWY_PATCH);
  return {.version = version.c_str(), .details = best_tile_functions().target};
}

}  // namespace collage::inline v0
