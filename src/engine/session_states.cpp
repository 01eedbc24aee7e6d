// The states of sessions: outputs of a run that are inputs of the next.
#include "session_parts.hpp"

#include <collage/error.hpp>

#include <algorithm>
#include <cstring>
#include <utility>

namespace collage::inline v0::detail {

void refuse(const std::string& what, const std::string& where) {
  throw error(error_kind::invalid_argument, what, where);
}

void check_type(const open_port& port, const tensor_type& given, const std::string& where) {
  if (given.type != port.type)
    refuse(std::string("is given as ") + name_of(given.type) + ", and the network takes " + name_of(port.type), where);
  if (!given.dims.is_concrete()) refuse("is given with an extent that is not known", where);
  if (!is_countable(given.dims)) refuse("is given as " + to_string(given.dims) + ", which no memory holds", where);
  if (!port.has_rank) return;
  const bool fits = std::equal(port.dims.begin(), port.dims.end(), given.dims.begin(), given.dims.end(),
                               [](std::int64_t own, std::int64_t other) { return own < 0 || own == other; });
  if (!fits)
    refuse("is given as " + to_string(given.dims) + ", but the network declares " + to_string(port.dims), where);
}

void check_tensor(const open_port& port, const const_tensor_view& given, const std::string& where) {
  check_type(port, given.type, where);
  if (given.data == nullptr && given.type.bytes() != 0) refuse("is given without memory", where);
  if (!(given.stored == form())) refuse("must be dense and in the host's memory", where);
}

void check_inputs(std::span<const open_port> taken, std::span<const const_tensor_view> given) {
  if (given.size() != taken.size())
    refuse("it takes " + std::to_string(taken.size()) + (taken.size() == 1 ? " input, not " : " inputs, not ") +
               std::to_string(given.size()),
           "a run");
  for (std::size_t i = 0; i < taken.size(); ++i) check_tensor(taken[i], given[i], "input " + taken[i].name);
}

namespace {

std::size_t index_of(std::span<const open_port> ports, std::string_view name) {
  const auto at = std::find_if(ports.begin(), ports.end(), [&](const open_port& p) { return p.name == name; });
  return static_cast<std::size_t>(at - ports.begin());
}

std::string names_of(std::span<const open_port> ports) {
  std::string names;
  for (const open_port& p : ports) names += (names.empty() ? "" : ", ") + p.name;
  return names;
}

std::size_t checked_index(std::span<const open_port> ports, const std::string& name, const char* thing) {
  const std::size_t at = index_of(ports, name);
  if (at == ports.size())
    throw error(error_kind::invalid_argument, std::string("is carried, and the network has no such ") + thing,
                std::string(thing) + " " + name, "name one of " + names_of(ports));
  return at;
}

/// Throws if no contents of an output can be those of an input.
void check_pair(const open_port& output, const open_port& input) {
  const std::string where = "output " + output.name;
  if (output.type != input.type)
    refuse(std::string("is ") + name_of(output.type) + ", and input " + input.name + ", to which it is carried, is " +
               name_of(input.type),
           where);
  if (!output.has_rank || !input.has_rank) return;
  const bool fits = std::equal(output.dims.begin(), output.dims.end(), input.dims.begin(), input.dims.end(),
                               [](std::int64_t from, std::int64_t to) { return from < 0 || to < 0 || from == to; });
  if (!fits)
    refuse("is declared as " + to_string(output.dims) + ", and input " + input.name + ", to which it is carried, as " +
               to_string(input.dims),
           where);
}

/// The symbol of an open extent; empty if it has none, also where a file writes "?".
std::string symbol_of(const open_port& port, std::size_t dimension) {
  if (dimension >= port.symbols.size() || port.symbols[dimension] == "?") return {};
  return port.symbols[dimension];
}

}  // namespace

std::optional<std::int64_t> extent_of(const open_port& port, std::size_t dimension, std::span<const open_port> inputs,
                                      std::span<const const_tensor_view> given) {
  const std::string symbol = symbol_of(port, dimension);
  if (symbol.empty()) return {};
  for (std::size_t i = 0; i < given.size(); ++i)
    for (std::size_t d = 0; d < given[i].type.dims.size(); ++d)
      if (symbol_of(inputs[i], d) == symbol) return given[i].type.dims[d];
  return {};
}

session_inputs::session_inputs(const network_source& source, std::span<const carried_value> carried) {
  const std::span<const open_port> inputs = source.inputs();
  is_carried.resize(source.outputs().size(), false);
  for (const carried_value& c : carried) {
    const open_port& input = inputs[checked_index(inputs, c.input, "input")];
    const std::size_t output = checked_index(source.outputs(), c.output, "output");
    if (index_of(states, c.input) != states.size()) refuse("two outputs are carried to it", "input " + c.input);
    check_pair(source.outputs()[output], input);
    states.push_back(input);
    outputs.push_back(output);
    is_carried[output] = true;
  }
  for (const open_port& p : inputs) {
    const std::size_t state = index_of(states, p.name);
    const bool is_state = state != states.size();
    origins.push_back({is_state, is_state ? state : taken.size()});
    if (!is_state) taken.push_back(p);
  }
}

context_states::context_states(const session_inputs& of, std::span<const open_port> outputs)
    : of_(of), outputs_(outputs), states_(of.states.size()) {
  reset();
}

std::size_t context_states::find(std::string_view name) const {
  const std::size_t at = index_of(of_.states, name);
  if (at == states_.size())
    throw error(error_kind::invalid_argument, "there is no such state", "state " + std::string(name),
                states_.empty() ? std::string("carry an output to that input") : "name one of " + names_of(of_.states));
  return at;
}

void context_states::start(std::string_view name, const shape& dims) {
  const std::size_t at = find(name);
  const tensor_type type{of_.states[at].type, dims};
  check_type(of_.states[at], type, "state " + of_.states[at].name);
  tensor zeros(type);
  one& state = states_[at];
  state.own = std::move(zeros);
  state.start = dims;
  state.now = {state.own.data(), type};
}

void context_states::set(std::string_view name, const const_tensor_view& contents) {
  const std::size_t at = find(name);
  check_tensor(of_.states[at], contents, "state " + of_.states[at].name);
  tensor copy(contents.type);
  if (copy.bytes() != 0) std::memcpy(copy.data(), contents.data, copy.bytes());
  one& state = states_[at];
  state.own = std::move(copy);
  state.now = {state.own.data(), state.own.type()};
}

const_tensor_view context_states::at(std::string_view name) const {
  const std::size_t at = find(name);
  if (!states_[at].now)
    throw error(error_kind::invalid_argument, "has no contents before the first run, because its shape is not known",
                "state " + of_.states[at].name, "give it a start shape");
  return *states_[at].now;
}

void context_states::reset() {
  std::vector<std::optional<tensor>> zeros(states_.size());
  for (std::size_t i = 0; i < states_.size(); ++i) {
    const open_port& port = of_.states[i];
    if (states_[i].start) zeros[i].emplace(tensor_type{port.type, *states_[i].start});
    else if (port.has_rank && port.dims.is_concrete()) zeros[i].emplace(tensor_type{port.type, port.dims});
  }
  // From here on nothing fails.
  for (std::size_t i = 0; i < states_.size(); ++i) {
    one& state = states_[i];
    state.own = zeros[i] ? std::move(*zeros[i]) : tensor();
    if (zeros[i]) state.now = {state.own.data(), state.own.type()};
    else state.now.reset();
  }
}

shape context_states::start_shape(std::size_t state, std::span<const const_tensor_view> taken) const {
  const open_port& port = of_.states[state];
  const open_port& output = outputs_[of_.outputs[state]];
  const std::string where = "state " + port.name;
  if (!port.has_rank)
    throw error(error_kind::invalid_argument, "has no start, and the network leaves its rank open", where,
                "give it a start shape");
  shape dims = port.dims;
  for (std::size_t d = 0; d < dims.size(); ++d) {
    if (dims[d] >= 0) continue;
    if (const std::optional<std::int64_t> known = extent_of(port, d, of_.taken, taken)) {
      dims[d] = *known;
      continue;
    }
    const std::string symbol = symbol_of(port, d);
    const std::string after = symbol_of(output, d);
    if (symbol.empty() || after.empty() || after == symbol)
      throw error(error_kind::invalid_argument,
                  "has no start, and nothing says what its extent " + std::to_string(d) +
                      (symbol.empty() ? std::string() : ", " + symbol + ",") + " is",
                  where, "give it a start shape");
    dims[d] = 0;
  }
  return dims;
}

void context_states::gather(std::span<const const_tensor_view> taken, std::vector<const_tensor_view>& all) {
  all.clear();
  for (const session_inputs::origin& from : of_.origins) {
    if (!from.is_state) {
      all.push_back(taken[from.index]);
      continue;
    }
    one& state = states_[from.index];
    if (state.now) {
      all.push_back(*state.now);
      continue;
    }
    // It is no state before the run succeeds: after a failure, other inputs may give it another shape.
    state.own = tensor({of_.states[from.index].type, start_shape(from.index, taken)});
    all.push_back(state.own);
  }
}

void context_states::check(std::span<const session_output> outputs) const {
  for (std::size_t i = 0; i < states_.size(); ++i) {
    const session_output& next = outputs[of_.outputs[i]];
    const open_port& port = of_.states[i];
    const tensor_type& type = next.contents.type;
    const bool has_fixed_extents =
        !port.has_rank || std::equal(port.dims.begin(), port.dims.end(), type.dims.begin(), type.dims.end(),
                                     [](std::int64_t own, std::int64_t other) { return own < 0 || own == other; });
    if (type.type != port.type || !has_fixed_extents)
      refuse("is " + to_string(type) + " at these shapes, and cannot be carried to input " + port.name,
             "output " + next.name);
  }
}

void context_states::take(std::span<const session_output> outputs) {
  for (std::size_t i = 0; i < states_.size(); ++i) {
    states_[i].now = outputs[of_.outputs[i]].contents;
    states_[i].own = tensor();
  }
}

}  // namespace collage::inline v0::detail
