// Which values kernels and plans round, by the forms in which they are read and written.
#pragma once

#include <algorithm>
#include <collage/dtype.hpp>
#include <collage/graph/graph.hpp>
#include <collage/op/conv.hpp>
#include <collage/op/conv_transpose.hpp>
#include <collage/op/matmul.hpp>
#include <collage/op/movement.hpp>
#include <collage/run/backend_table.hpp>
#include <collage/run/form.hpp>
#include <collage/run/layouts.hpp>
#include <collage/run/plan.hpp>
#include <collage/run/planned_kernel.hpp>
#include <collage/run/precision.hpp>
#include <collage/run/value_scales.hpp>
#include <collage/run/views.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

namespace collage::inline v0 {

namespace detail {

/// Whether kernels of lower precision round a constant: it has several dimensions, or it is multiplied or concatenated.
inline bool is_weight(const graph& network, std::uint32_t constant) {
  const graph_view view = network.view();
  if (std::ranges::count_if(network.type_of(constant).dims, [](std::int64_t extent) { return extent > 1; }) > 1)
    return true;
  return std::ranges::any_of(view.uses_of(constant), [&](const use& reader) {
    const std::uint64_t kind = view.kind_id_of(reader.node);
    if (kind == kind_id<struct ops::concat>) return true;
    const bool multiplies = kind == kind_id<struct ops::matmul> || kind == kind_id<struct ops::conv> ||
                            kind == kind_id<struct ops::conv_transpose>;
    return multiplies && (view.inputs_of(reader.node)[0] == constant || view.inputs_of(reader.node)[1] == constant);
  });
}

}  // namespace detail

/// The values that a kernel with these forms rounds. Error is a property of values and constants, and kernels only say in which element
/// types they read, multiply and write them. A kernel rounds what it writes in another element type than the network's. If it reads or
/// writes any such value, it also rounds its weights: to int8 if it reads or writes integers of 8 bits. Biases and other lists with one number for each channel stay as they are. Its operands were rounded by the kernels that wrote them, or by conversions.
inline std::vector<rounded_value> rounded_by(const graph& network, const value_forms& forms,
                                             std::span<const std::uint32_t> arguments,
                                             std::span<const std::uint32_t> outputs) {
  std::vector<rounded_value> list;
  const std::optional<dtype> lowest = rounding_of(network, forms);
  if (!lowest) return list;
  for (const std::uint32_t v : outputs)
    if (const std::optional<dtype> element = forms.of(v).element;
        element && is_rounded(network.type_of(v).type, *element))
      list.push_back({v, *element});
  const dtype of_weights = is_8_bit_integer(*lowest) ? dtype::i8 : *lowest;
  for (const std::uint32_t v : arguments)
    if (network.at(v).role == value_role::constant && is_rounded(network.type_of(v).type, of_weights) &&
        detail::is_weight(network, v))
      list.push_back({v, of_weights});
  return list;
}

/// The values that a group rounds that is a region. Empty if it is none.
inline std::vector<rounded_value> rounded_by_region(const graph& network, backend_table backends, const plan_group& g,
                                                    const value_scales* scales) {
  const auto* const step = std::get_if<group_step>(&g.step);
  const backend_entry* const backend = step == nullptr ? nullptr : find_backend(backends, step->backend);
  if (backend == nullptr || backend->rounds == nullptr) return {};
  return backend->rounds(network, group_of(network, g.nodes), scales);
}

/// The values that the kernels and conversions of a placement round, without its subgraphs: sorted, each once.
inline std::vector<rounded_value> rounded_in(const graph& network, backend_table backends, const placement& of) {
  std::vector<rounded_value> list;
  for (const plan_group& g : of.groups)
    if (const std::optional<planned_kernel> k = planned_kernel::find(network, backends, g)) {
      const value_forms forms = forms_of(*k->pattern, network.view(), k->record, k->how);
      const std::vector<std::uint32_t> written = written_values(network.view(), k->record);
      const std::vector<rounded_value> its = rounded_by(network, forms, k->record.argument_list(), written);
      list.insert(list.end(), its.begin(), its.end());
    } else {
      const std::vector<rounded_value> its = rounded_by_region(network, backends, g, of.scales.get());
      list.insert(list.end(), its.begin(), its.end());
    }
  for (const plan_conversion& one : of.conversions) {
    const std::optional<form> to = form_of(one.step.to, shared_layouts, spaces_of(backends));
    if (to && to->element && is_rounded(network.type_of(one.value).type, *to->element))
      list.push_back({one.value, *to->element});
  }
  std::ranges::sort(list);
  const auto repeated = std::ranges::unique(list);
  list.erase(repeated.begin(), repeated.end());
  return list;
}

/// The scales that a placement needs, of those that it has: of the values that it stores as integers of 8 bits. Null if there is none.
inline std::shared_ptr<const value_scales> used_scales(const graph& network, backend_table backends,
                                                       const placement& of) {
  if (of.scales == nullptr) return {};
  auto used = std::make_shared<value_scales>();
  const auto use = [&](std::uint32_t v, const form& stored) {
    if (!stored.element || !is_8_bit_integer(*stored.element)) return;
    if (const std::optional<integer_scale> how = of.scales->of(v, *stored.element)) used->set(v, *stored.element, *how);
  };
  for (const plan_group& g : of.groups) {
    if (const auto* const view = std::get_if<view_step>(&g.step)) {
      const std::optional<form> stored = form_of(view->form, shared_layouts, spaces_of(backends));
      if (!stored) continue;
      for (const value_view& v : views_of(network, g.nodes[0], *stored)) use(v.value, *stored), use(v.of, *stored);
    } else if (const std::optional<planned_kernel> k = planned_kernel::find(network, backends, g)) {
      const value_forms forms = forms_of(*k->pattern, network.view(), k->record, k->how);
      for (const auto& [v, stored] : forms.list()) use(v, stored);
    } else {
      for (const rounded_value& one : rounded_by_region(network, backends, g, of.scales.get()))
        use(one.value, form().of(one.element));
    }
  }
  for (const plan_conversion& one : of.conversions)
    for (const std::string& text : {one.step.from, one.step.to})
      if (const std::optional<form> stored = form_of(text, shared_layouts, spaces_of(backends)))
        use(one.value, *stored);
  return used->empty() ? nullptr : used;
}

}  // namespace collage::inline v0
