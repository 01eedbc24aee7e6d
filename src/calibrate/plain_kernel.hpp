// Kernels that write their values plainly and compute by the operators' definition, for runs whose values are looked at.
#pragma once

#include <collage/error.hpp>
#include <collage/graph/graph.hpp>
#include <collage/run/algorithm.hpp>
#include <collage/run/backend_table.hpp>
#include <collage/run/configuration.hpp>
#include <collage/run/kernel.hpp>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

namespace collage::inline v0::detail {

/// A kernel and its configuration.
struct plain_kernel {
  configuration how;
  kernel run;
};

/// The kernel of the first configuration of a match that is plain and direct, and that can be built. Nothing if there is none; `why`
/// then has the last refusal. The backend is on the host. Errors: those of building, other than refusals.
inline std::optional<plain_kernel> build_plain(const graph& network, const backend_entry& backend,
                                               const pattern_entry& pattern, const match_record& record, int threads,
                                               packed_weights& packed, std::string& why) {
  const graph_view view = network.view();
  for (const configuration& how : proposed_for(pattern, view, record)) {
    const value_forms forms = forms_of(pattern, view, record, how);
    const auto is_plain = [&](std::uint32_t v) { return forms.of(v) == form(); };
    if (!std::ranges::all_of(record.argument_list(), is_plain) ||
        !std::ranges::all_of(written_values(view, record), is_plain))
      continue;
    if (pattern.algorithm != nullptr && !pattern.algorithm(view, record, how).is_direct()) continue;
    try {
      build_context context(network, threads, packed, *backend.space);
      context.set_configuration(how);
      const thread_scope scope(backend, threads);
      if (kernel made = pattern.build(view, record, context)) return plain_kernel{how, std::move(made)};
    } catch (const error& e) {
      if (e.kind() != error_kind::unsupported && e.kind() != error_kind::invalid_argument) throw;
      why = std::string(backend.name) + " refuses: " + e.what();
    }
  }
  return {};
}

}  // namespace collage::inline v0::detail
