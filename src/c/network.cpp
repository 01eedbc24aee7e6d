// Networks: those of the zoo, and what all say of themselves.
#include "networks.hpp"
#include "states.hpp"

#include <collage/error.hpp>
#include <collage/graph/totals.hpp>
#include <collage/pass/optimise.hpp>
#include <collage/place/requantise.hpp>
#include <collage/zoo/all.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace c_interface {

namespace c = collage;

constexpr std::size_t oldest_port = offsetof(collage_port, bytes) + sizeof(std::size_t);

namespace {

c::requantised_network requantised(const c::graph& loaded, const std::string& name) {
  try {
    return c::requantise(loaded);
  } catch (const c::error& e) {
    if (e.kind() != c::error_kind::invalid_argument) throw;
    throw c::error(e.kind(), "no value is quantised to 8 bits by one known scale and zero point", "network " + name,
                   "set requantise to 0");
  }
}

}  // namespace

collage_network* new_network(c::graph loaded, std::string name, const model_words& from, bool requantise) {
  c::fill_constants(loaded);
  auto made = std::make_shared<network_state>();
  if (requantise) {
    c::requantised_network free = requantised(loaded, name);
    made->graph = std::move(free.network);
    made->ranges = std::make_shared<const c::network_ranges>(std::move(free.ranges));
  } else {
    made->graph = c::optimise(loaded);
  }
  loaded = {};  // before anything is measured: weights that passes have replaced would stay in memory
  made->name = std::move(name);
  made->fingerprint = made->graph.fingerprint();
  made->packed = std::make_shared<c::packed_weights>();
  const c::graph& g = made->graph;
  for (const std::uint32_t v : g.inputs()) made->inputs.push_back({g.value_name(v), g.type_of(v)});
  for (std::size_t i = 0; i < g.outputs().size(); ++i)
    made->outputs.push_back({g.output_name(i), g.type_of(g.outputs()[i])});

  c::json inputs = c::json::array(), outputs = c::json::array(), metadata = c::json::object();
  for (const c::port& p : made->inputs) inputs.push_back(port_to_json(p));
  for (const c::port& p : made->outputs) outputs.push_back(port_to_json(p));
  for (const auto& [key, value] : from.metadata) metadata[key] = value;
  const c::graph_totals totals = c::totals_of(g);
  made->summary = c::to_text({{"name", made->name},
                              {"fingerprint", c::detail::hex_of(made->fingerprint)},
                              {"nodes", totals.nodes},
                              {"parameters", totals.parameters},
                              {"constant_bytes", totals.constant_bytes},
                              {"flops", static_cast<std::int64_t>(totals.flops)},
                              {"inputs", inputs},
                              {"outputs", outputs},
                              {"opset", from.opset},
                              {"producer", from.producer},
                              {"metadata", metadata},
                              {"notes", from.notes}});
  return new collage_network(std::move(made));
}

const c::graph& graph_with_weights(const network_state& network) {
  if (!network.has_weights)
    throw c::error(c::error_kind::invalid_argument, "its weights were released to another engine",
                   "network " + network.name, "load the network again");
  return network.graph;
}

c::json port_to_json(const c::port& port) {
  c::json dims = c::json::array();
  for (const std::int64_t extent : port.type.dims) dims.push_back(extent);
  return {{"name", port.name}, {"type", c::name_of(port.type.type)}, {"shape", dims}};
}

c::shape shape_of(const call& here, const std::string& what, const std::int64_t* extents, std::size_t rank) {
  here.check_list(extents, rank, "extents");
  if (rank > COLLAGE_MAX_RANK)
    here.misuse("the shape of " + what + " has " + std::to_string(rank) + " extents",
                "give at most " + std::to_string(COLLAGE_MAX_RANK));
  c::shape dims;
  for (std::size_t i = 0; i < rank; ++i) {
    if (extents[i] < 0)
      here.misuse("the shape of " + what + " has the extent " + std::to_string(extents[i]),
                  "give extents of 0 or more");
    dims.push_back(extents[i]);
  }
  return dims;
}

std::size_t checked_bytes(const c::tensor_type& type) {
  std::size_t bytes = c::size_of(type.type);
  for (const std::int64_t extent : type.dims)
    if (__builtin_mul_overflow(bytes, static_cast<std::size_t>(extent), &bytes)) return SIZE_MAX;
  return bytes;
}

void answer_port(const call& here, std::span<const c::port> ports, std::size_t index, const char* thing,
                 collage_port* to) {
  here.check_index(index, ports.size(), thing);
  const c::port& from = ports[index];
  collage_port port{};
  port.name = from.name.c_str();
  port.dtype = static_cast<std::int32_t>(from.type.type);
  port.rank = from.type.dims.rank;
  for (std::uint32_t i = 0; i < port.rank; ++i) port.extents[i] = from.type.dims[i];
  port.bytes = from.type.bytes();
  here.answer(to, port, "collage_port", oldest_port);
}

}  // namespace c_interface

using c_interface::call;
using c_interface::guarded;

collage_status collage_network_from_zoo(const char* name, collage_network** network) noexcept {
  return guarded(__func__, [&](const call& here) {
    namespace c = collage;
    collage_network*& to = here.target(network, "network");
    const std::string wanted = here.text(name, "name");
    c::graph_builder builder;
    if (!c::zoo::build(wanted.c_str(), builder)) {
      std::string known;
      for (const c::zoo::network& n : c::zoo::networks) known += (known.empty() ? "" : ", ") + std::string(n.name);
      here.misuse("there is no network '" + wanted + "'", "name one of " + known);
    }
    to = c_interface::new_network(builder.finish(), "zoo:" + wanted, {});
  });
}

void collage_network_release(collage_network* network) noexcept { c_interface::release(__func__, network); }

collage_status collage_network_input_count(const collage_network* network, std::size_t* count) noexcept {
  return guarded(__func__,
                 [&](const call& here) { here.target(count, "count") = here.state_of(network).inputs.size(); });
}

collage_status collage_network_output_count(const collage_network* network, std::size_t* count) noexcept {
  return guarded(__func__,
                 [&](const call& here) { here.target(count, "count") = here.state_of(network).outputs.size(); });
}

collage_status collage_network_input(const collage_network* network, std::size_t index, collage_port* port) noexcept {
  return guarded(__func__, [&](const call& here) {
    c_interface::answer_port(here, here.state_of(network).inputs, index, "input", port);
  });
}

collage_status collage_network_output(const collage_network* network, std::size_t index, collage_port* port) noexcept {
  return guarded(__func__, [&](const call& here) {
    c_interface::answer_port(here, here.state_of(network).outputs, index, "output", port);
  });
}

collage_status collage_network_fingerprint(const collage_network* network, std::uint64_t* fingerprint) noexcept {
  return guarded(__func__, [&](const call& here) {
    here.target(fingerprint, "fingerprint") = here.state_of(network).fingerprint;
  });
}

collage_status collage_network_json(const collage_network* network, const char** json) noexcept {
  return guarded(__func__,
                 [&](const call& here) { here.target(json, "json") = here.state_of(network).summary.c_str(); });
}
