// The definitions of collage/backends/portable.hpp. Exactly one file of a program includes them and is compiled with OpenMP. It is
// src/portable.cpp, which is the target collage::portable, or a file of the user.
#pragma once

#include <collage/backends/impl/compiled_for.hpp>
#include <collage/backends/impl/portable_bytes.hpp>
#include <collage/backends/impl/portable_elementwise.hpp>
#include <collage/backends/impl/portable_movement.hpp>
#include <collage/backends/impl/portable_quantise_linear.hpp>
#include <collage/backends/impl/portable_quantised.hpp>
#include <collage/backends/impl/portable_quantised_windows.hpp>
#include <collage/backends/impl/portable_recurrent.hpp>
#include <collage/backends/impl/portable_weights.hpp>
#include <collage/backends/impl/team.hpp>
#include <collage/backends/portable.hpp>
#include <collage/backends/reference.hpp>
#include <collage/error.hpp>
#include <collage/fwd.hpp>
#include <collage/layout.hpp>
#include <collage/run/elements.hpp>
#include <collage/run/form.hpp>
#include <collage/run/kernel.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace collage::inline v0::detail::host {
namespace {

/// Runs a node by its kind's reference. Operands are converted to the reference's double or int64, and results are converted
/// back. Constants were converted when the kernel was built.
struct reference_kernel {
  struct operand {
    tensor_type type;
    std::size_t argument = 0;                ///< of the kernel
    std::size_t offset = 0;                  ///< of its converted copy in the workspace
    std::shared_ptr<oracle_value> constant;  ///< or the constant itself
  };
  const kind_info* kind = nullptr;
  std::vector<std::uint64_t> words;
  std::vector<operand> in, out;

  /// The memory of an operand in the workspace, in the reference's form.
  static reference_tensor tensor_at(const operand& o, void* workspace) {
    const auto count = static_cast<std::size_t>(o.type.dims.elements());
    std::byte* const at = static_cast<std::byte*>(workspace) + o.offset;
    if (is_floating(o.type.type)) return {o.type, {reinterpret_cast<double*>(at), count}, {}};
    return {o.type, {}, {reinterpret_cast<std::int64_t*>(at), count}};
  }

  void operator()(const kernel_call& call) const {
    std::vector<reference_tensor> given, made;
    for (const operand& o : in) {
      if (o.constant != nullptr) {
        given.push_back(o.constant->view());
        continue;
      }
      given.push_back(tensor_at(o, call.workspace));
      if (is_floating(o.type.type)) load_elements(o.type.type, call.in[o.argument], given.back().real);
      else load_elements(o.type.type, call.in[o.argument], given.back().integer);
    }
    for (const operand& o : out) made.push_back(tensor_at(o, call.workspace));
    run_kind(*kind, words, {given, made}, kind->name);
    for (std::size_t i = 0; i < out.size(); ++i) {
      if (call.out[i] == nullptr) continue;
      if (is_floating(out[i].type.type))
        store_elements(out[i].type.type, std::span<const double>(made[i].real), call.out[i]);
      else store_elements(out[i].type.type, std::span<const std::int64_t>(made[i].integer), call.out[i]);
    }
  }
};

inline kernel build_from_reference(const any_match& m, build_context& context) {
  const std::uint32_t node = m.nodes().back();
  const node_record& record = m.graph().nodes[node];
  reference_kernel k;
  k.kind = record.kind;
  const std::span<const std::uint64_t> words = m.graph().words_of(node);
  k.words.assign(words.begin(), words.end());
  std::size_t bytes = 0;
  const auto place = [&](const tensor_type& type) {
    const std::size_t at = bytes;
    bytes += (static_cast<std::size_t>(type.dims.elements()) * sizeof(double) + 63) / 64 * 64;
    return at;
  };
  std::vector<std::size_t> converted;
  for (const std::uint32_t v : m.inputs_of(node)) {
    reference_kernel::operand o{m.type_of(v), m.index_of(v), 0, nullptr};
    if (const std::byte* contents = context.constant<std::byte>(v); contents != nullptr) {
      o.constant = std::make_shared<oracle_value>(to_oracle({contents, o.type}));
      converted.push_back(o.argument);
    } else {
      o.offset = place(o.type);
    }
    k.in.push_back(std::move(o));
  }
  for (std::uint32_t i = 0; i < record.outputs; ++i) {
    const tensor_type& type = m.type_of(m.graph().output_of(node, i));
    k.out.push_back({type, 0, place(type), nullptr});
  }
  kernel made(std::string("reference ") + record.kind->name, std::move(k), bytes);
  for (const std::size_t argument : converted) made.does_not_read(argument);
  return made;
}

/// Whether loops on integers of 8 bits serve images with channels last, too.
inline bool serves_channels_last(const any_match& m) {
  if (is_dynamic_quantize(m) || is_product_by_integers(m)) return false;
  return can_have_channels_last(m) && (m.nodes().size() > 1 || is_on_bytes(m, m.nodes().back()));
}

/// The number of variants of a match that do not compute on uint8 what the network has in float32.
inline std::size_t first_byte_variant(const any_match& m) {
  if (is_of_reals_on_bytes(m)) return 0;
  return std::string(m.pattern()) != portable_patterns::from_reference::name && serves_channels_last(m) ? 2 : 1;
}

/// Groups and single operators on integers of 8 bits. Nothing if there are no such loops.
inline std::optional<kernel> build_on_bytes(const any_match& m, build_context& context) {
  const std::string pattern = m.pattern();
  const std::uint32_t node = m.nodes().back();
  const bool last = context.choice() == 1;
  if (pattern == portable_patterns::quantised_function::name) return build_function(m, context);
  if (pattern == portable_patterns::quantised_pair::name) return build_pair(m, context);
  if (pattern == portable_patterns::quantised_mean::name) return build_mean(m, context, last);
  if (!is_on_bytes(m, node)) return {};
  if (m.is(node, ops::max_pool)) return build_max_pool_of_bytes(m, context, node, last);
  if (m.is(node, ops::concat) && last) return build_concat_of_channels(m, context, node);
  return {};
}

}  // namespace
}  // namespace collage::inline v0::detail::host

namespace collage::inline v0 {

std::size_t portable::choices(const any_match& m) {
  return detail::host::first_byte_variant(m) + detail::host::byte_variants(m).size();
}

void portable::layouts(const any_match& m, std::size_t choice, value_forms& to) {
  using namespace detail::host;
  if (const std::size_t first = first_byte_variant(m); choice >= first) {
    const std::vector<byte_variant> list = byte_variants(m);
    if (choice - first < list.size()) set_byte_forms(m, list[choice - first], to);
    return;
  }
  if (choice == 0) return;
  for (const std::uint32_t v : m.arguments())
    if (!m.graph().is_constant(v)) to.set(v, channels_last);
  if (m.type_of(m.output()).dims.from(2).elements() != 1) to.set(m.output(), channels_last);
}

kept_constants portable::weights(const any_match& m, const configuration&) {
  using namespace detail::host;
  return is_product_by_integers(m) ? weights_of_product(m) : kept_constants();
}

kernel portable::build(const any_match& m, build_context& context) {
  using namespace detail::host;
  if (const probe_result here = probe(); !here.available) throw error(error_kind::unsupported, here.reason, name);
  if (std::string(m.pattern()) == portable_patterns::from_reference::name) return build_from_reference(m, context);
  if (const std::size_t first = first_byte_variant(m); context.choice() >= first)
    return build_byte_variant(m, context, byte_variants(m).at(context.choice() - first));
  if (detail::is_dynamic_quantize(m)) return build_dynamic_quantise(m, context);
  if (is_product_by_integers(m)) return build_product_by_integers(m, context);
  if (std::optional<kernel> made = build_on_bytes(m, context)) return *std::move(made);
  const std::uint32_t node = m.nodes().back();
  if (portable_quantises(m, node)) return build_portable_quantise(m, context);
  if (portable_takes_elementwise(m, node)) return build_portable_elementwise(m, context);
  if (portable_moves(m, node)) return build_portable_movement(m, context);
  if (portable_recurs(m, node)) return build_portable_recurrent(m, context);
  throw error(error_kind::unsupported, std::string("there are no loops for the operator ") + m.kind_of(node).name,
              name);
}

probe_result portable::probe() {
  using namespace detail::host;
  if (const char* reason = why_not_here(); *reason != '\0') return {.available = false, .reason = reason};
  return {.version = COLLAGE_VERSION, .details = compiled_for};
}

int portable::enter(int threads) { return detail::host::enter_team(threads); }
void portable::leave(int token) { detail::host::leave_team(token); }

}  // namespace collage::inline v0
