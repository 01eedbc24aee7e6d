// Sessions: networks of open shapes, each new combination of which is placed when it is met.
#include "networks.hpp"
#include "plans.hpp"
#include "sessions.hpp"
#include "states.hpp"

#include <collage/error.hpp>
#include <collage/io/json.hpp>
#include <collage/place.hpp>
#include <collage/place/cost_index.hpp>
#include <collage/place/session.hpp>
#include <collage/run/session.hpp>

#if COLLAGE_HAS_ONNX
#include <collage/io/onnx/model_source.hpp>
#endif

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace c_interface {

namespace c = collage;

namespace {

constexpr std::size_t oldest_session_options = offsetof(collage_session_options, carried_count) + sizeof(std::size_t);
constexpr std::size_t oldest_session_info = offsetof(collage_session_info, making_ms) + sizeof(double);
constexpr std::size_t oldest_open_port = offsetof(collage_open_port, symbols) + sizeof(collage_open_port::symbols);

c::json open_ports_to_json(std::span<const c::open_port> ports) {
  c::json list = c::json::array();
  for (const c::open_port& p : ports) {
    c::json dims;  // null where the rank is open
    if (p.has_rank) dims = c::json::array();
    for (std::size_t i = 0; i < p.dims.size() && p.has_rank; ++i) {
      const std::string symbol = i < p.symbols.size() ? p.symbols[i] : std::string();
      if (p.dims[i] >= 0) dims.push_back(p.dims[i]);
      else dims.push_back(symbol.empty() ? c::json() : c::json(symbol));
    }
    list.push_back({{"name", p.name}, {"type", c::name_of(p.type)}, {"shape", dims}});
  }
  return list;
}

#if COLLAGE_HAS_ONNX

/// Places each network that a session makes. The store's costs are read once.
c::session_planner planner_of(const call& here, const collage_place_options& given, const std::string& name) {
  if (given.previous != nullptr)
    here.misuse("previous is a plan, and a session places networks that are not known yet", "set it to NULL");
  placing_request by = placing_of(here, given);
  if (by.may_round())
    here.misuse("precision is " + std::string(c::name_of(by.how.precision.elements)) +
                    ", and a session places networks whose shapes, and samples, are not known yet",
                "place at fixed shapes by collage_plan_place, or in fp32");
  by.how.network = name;
  by.how.check_s = c::session_placing().check_s;
  std::shared_ptr<const c::cost_index> index;
  if (by.how.costs == c::placing_costs::estimated && !by.how.store.empty()) try {
      index = std::make_shared<const c::cost_index>(by.how.store);
    } catch (const c::error&) {
      if (!by.how.store_is_optional) throw;
      index = std::make_shared<const c::cost_index>();
    }
  by.how.index = index.get();
  wait_briefly_unless_chosen();
  return [by, index](const c::graph& network, const std::shared_ptr<c::packed_weights>& packed) -> c::plan {
    placing_request own = by;
    own.how.packed = packed;
    return place_by(own, network);
  };
}

c::session_options session_options_of(const call& here, const collage_session_options& given) {
  c::session_options how;
  if (given.most_engines != 0) how.most_engines = given.most_engines;
  how.most_bytes = given.most_bytes;
  here.check_list(given.carried, given.carried_count, "carried");
  for (std::size_t i = 0; i < given.carried_count; ++i)
    how.carried.push_back({here.text(given.carried[i].output, "the output of a state"),
                           here.text(given.carried[i].input, "the input of a state")});
  return how;
}

std::vector<std::string> carried_outputs(const c::session_options& how) {
  std::vector<std::string> names;
  for (const c::carried_value& one : how.carried) names.push_back(one.output);
  return names;
}

/// Makes a session of a model. `read` reads it.
template <class Read>
collage_session* new_session(const call& here, const std::string& name, const collage_session_options& given,
                             Read read) {
  // Options are checked before a large file is read.
  const c::session_options how = session_options_of(here, given);
  const auto loading = here.options(given.loading, "collage_network_options", oldest_network_options);
  if (loading.requantise != 0)
    here.misuse("loading.requantise is set, and sessions do not take it",
                "set it to 0, or load a network of fixed shapes");
  const model_inputs inputs = model_inputs_of(here, loading);
  collage_place_options placing = here.options(given.placing, "collage_place_options", oldest_place_options);
  if (given.placing == nullptr) placing.how = COLLAGE_PLACE_ESTIMATE;
  c::session_planner planner = planner_of(here, placing, name);
  const auto source = in_our_words([&] { return std::make_shared<c::onnx::model_source>(read(), inputs.how); });
  c::session made(source, backends(), std::move(planner), how);
  const c::onnx::load_report& about = source->about();
  c::json metadata = c::json::object();
  for (const auto& [key, value] : about.metadata) metadata[key] = value;
  std::string summary = c::to_text({{"model", name},
                                    {"inputs", open_ports_to_json(made.inputs())},
                                    {"outputs", open_ports_to_json(made.outputs())},
                                    {"states", open_ports_to_json(made.states())},
                                    {"opset", about.opset},
                                    {"producer", about.producer},
                                    {"metadata", metadata},
                                    {"notes", about.notes}});
  return new collage_session(
      std::make_shared<const session_state>(std::move(made), std::move(summary), carried_outputs(how)));
}

collage_session* session_of_file(const call& here, const std::string& path, const collage_session_options& given) {
  return new_session(here, path, given, [&] { return c::onnx::read_model(path); });
}

collage_session* session_of_bytes(const call& here, const void* model, std::size_t bytes,
                                  const collage_session_options& given) {
  const std::string name = "model in memory";
  return new_session(here, name, given,
                     [&] { return c::onnx::read_model({static_cast<const std::byte*>(model), bytes}, name); });
}

#else

collage_session* session_of_file(const call&, const std::string& path, const collage_session_options&) {
  refuse_model(path);
}
collage_session* session_of_bytes(const call&, const void*, std::size_t, const collage_session_options&) {
  refuse_model("model in memory");
}

#endif

}  // namespace

void answer_open_port(const call& here, std::span<const c::open_port> ports, std::size_t index, const char* thing,
                      collage_open_port* to) {
  here.check_index(index, ports.size(), thing);
  const c::open_port& from = ports[index];
  collage_open_port port{};
  port.name = from.name.c_str();
  port.dtype = static_cast<std::int32_t>(from.type);
  port.rank = from.has_rank ? static_cast<std::int32_t>(from.dims.size()) : -1;
  for (const char*& symbol : port.symbols) symbol = "";
  for (std::size_t i = 0; i < from.dims.size() && from.has_rank; ++i) {
    port.extents[i] = from.dims[i] < 0 ? -1 : from.dims[i];
    if (i < from.symbols.size()) port.symbols[i] = from.symbols[i].c_str();
  }
  here.answer(to, port, "collage_open_port", oldest_open_port);
}

}  // namespace c_interface

using c_interface::call;
using c_interface::guarded;

collage_status collage_session_from_file(const char* path, const collage_session_options* options,
                                         collage_session** session) noexcept {
  return guarded(__func__, [&](const call& here) {
    collage_session*& to = here.target(session, "session");
    const std::string file = here.text(path, "path");
    const auto given = here.options(options, "collage_session_options", c_interface::oldest_session_options);
    to = c_interface::session_of_file(here, file, given);
  });
}

collage_status collage_session_from_memory(const void* model, std::size_t bytes, const collage_session_options* options,
                                           collage_session** session) noexcept {
  return guarded(__func__, [&](const call& here) {
    collage_session*& to = here.target(session, "session");
    if (model == nullptr) here.misuse("model is NULL", "give the bytes of an ONNX file");
    const auto given = here.options(options, "collage_session_options", c_interface::oldest_session_options);
    to = c_interface::session_of_bytes(here, model, bytes, given);
  });
}

void collage_session_release(collage_session* session) noexcept { c_interface::release(__func__, session); }

collage_status collage_session_get_info(const collage_session* session, collage_session_info* info) noexcept {
  return guarded(__func__, [&](const call& here) {
    const collage::session& of = here.state_of(session).session;
    const collage::session_state now = of.state();
    collage_session_info filled{};
    filled.inputs = of.inputs().size();
    filled.outputs = of.outputs().size();
    filled.states = of.states().size();
    filled.engines = now.engines;
    filled.made = now.made;
    filled.given_back = now.given_back;
    filled.packed_bytes = now.packed_bytes;
    filled.making_ms = now.making_ms;
    here.answer(info, filled, "collage_session_info", c_interface::oldest_session_info);
  });
}

collage_status collage_session_input(const collage_session* session, std::size_t index,
                                     collage_open_port* port) noexcept {
  return guarded(__func__, [&](const call& here) {
    c_interface::answer_open_port(here, here.state_of(session).session.inputs(), index, "input", port);
  });
}

collage_status collage_session_output(const collage_session* session, std::size_t index,
                                      collage_open_port* port) noexcept {
  return guarded(__func__, [&](const call& here) {
    c_interface::answer_open_port(here, here.state_of(session).session.outputs(), index, "output", port);
  });
}

collage_status collage_session_state(const collage_session* session, std::size_t index,
                                     collage_open_port* port) noexcept {
  return guarded(__func__, [&](const call& here) {
    c_interface::answer_open_port(here, here.state_of(session).session.states(), index, "state", port);
  });
}

collage_status collage_session_json(const collage_session* session, const char** json) noexcept {
  return guarded(__func__,
                 [&](const call& here) { here.target(json, "json") = here.state_of(session).summary.c_str(); });
}
