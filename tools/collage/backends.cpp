#include "backends.hpp"

#include <collage/backend_set.hpp>
#include <collage/backends/reference.hpp>
#include <collage/pattern/describe.hpp>
#include <collage/place/backends.hpp>

#include <collage/every_backend.hpp>

#include <algorithm>
#include <cstddef>

namespace program {

namespace c = collage;

namespace {

using program_set = c::every_backend;

/// A backend of a complete build, and what to install for it.
struct known_backend {
  const char* name;
  const char* remedy;
};
constexpr known_backend complete[] = {
    {"onednn", "let tools/setup fetch oneDNN 3 for GNU OpenMP"},
    {"openblas", "install libopenblas-openmp-dev"},
    {"eigen", "install libeigen3-dev"},
    {"stacked", "install libhwy-dev"},
    {"jit", "install libxbyak-dev and libhwy-dev on x86-64"},
    {"openvino", "let tools/setup fetch OpenVINO"},
    {"openvino-bf16", "let tools/setup fetch OpenVINO"},
    {"openvino-int8", "let tools/setup fetch OpenVINO"},
    {"cublas", "install the CUDA toolkit from version 12 on, name its folder in CUDA_HOME,"},
    {"cuda", "install the CUDA toolkit from version 12 on, name its folder in CUDA_HOME,"},
};

described_backend left_out(const known_backend& known) {
  described_backend d;
  d.name = known.name;
  d.reason = std::string("this program was built without it; ") + known.remedy + " and build again";
  return d;
}

}  // namespace

c::backend_table backends() { return c::table_of<program_set>; }

std::vector<described_backend> describe_backends(bool all) {
  std::vector<described_backend> list;
  c::for_each_backend<program_set>([&](auto type) {
    using backend = typename decltype(type)::type;
    const c::probe_result found = c::probe_of<backend>();
    described_backend d;
    d.name = backend::name;
    d.available = found.available;
    d.version = found.version;
    d.details = found.details;
    d.reason = found.reason;
    for (const c::declared_pattern& p : c::declaration_of<backend>.patterns)
      d.patterns.push_back({p.name, c::describe(p.nodes).text});
    d.has_rule = c::detail::has_rule<backend>;
    d.takes_regions = c::detail::has_regions<backend>;
    const c::backend_entry& entry = *c::find_backend(backends(), backend::name);
    if (entry.rounds_to) d.rounds_to = name_of(*entry.rounds_to);
    if (entry.variant_of != nullptr) d.variant_of = entry.variant_of;
    list.push_back(std::move(d));
  });
  for (const known_backend& k : complete)
    if (all && std::none_of(list.begin(), list.end(), [&](const described_backend& d) { return d.name == k.name; }))
      list.push_back(left_out(k));
  const c::probe_result found = c::reference::probe();
  described_backend d;
  d.name = c::reference::name;
  d.available = found.available;
  d.placed = false;
  d.version = found.version;
  d.details =
      std::string(found.details) + "; the reference: it checks the other backends, and no network is placed on it";
  list.push_back(std::move(d));
  return list;
}

described_coverage describe_coverage() {
  constexpr const auto& table = c::coverage_of<program_set>;
  described_coverage all;
  std::vector<std::size_t> columns;
  for (std::size_t b = 0; b < table.backends(); ++b) {
    const bool has_patterns = !backends()[b].patterns.empty();
    (has_patterns ? all.backends : all.by_rule).emplace_back(table.backend[b]);
    if (has_patterns) columns.push_back(b);
  }
  for (std::size_t row = 0; row < table.rows(); ++row) {
    all.rows.push_back({table.kind[row], {}});
    for (const std::size_t b : columns) all.rows.back().cells.push_back(table.cell[row][b]);
  }
  return all;
}

void check_backend_names(const std::vector<std::string>& names) {
  const c::backend_table table = backends();
  std::string known;
  for (const c::backend_entry& b : table) known += (known.empty() ? "" : ", ") + std::string(b.name);
  for (const std::string& name : names) {
    if (c::find_backend(table, name) != nullptr) continue;
    const auto k =
        std::find_if(std::begin(complete), std::end(complete), [&](const known_backend& b) { return name == b.name; });
    if (k != std::end(complete))
      throw c::error(c::error_kind::invalid_argument, left_out(*k).reason, "backend " + name);
    if (name == c::reference::name)
      throw c::error(c::error_kind::invalid_argument,
                     "the reference checks the other backends, and no network is placed on it", "backend " + name,
                     "choose among " + known);
    throw c::error(c::error_kind::invalid_argument, "there is no such backend", "backend '" + name + "'",
                   "this program has " + (known.empty() ? "none" : known));
  }
}

}  // namespace program
