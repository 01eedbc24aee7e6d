// Checks of static graphs: finds mistakes in the lists and describes them in sentences; also infers the shapes.
#pragma once

#include <collage/detail/sentence.hpp>
#include <collage/graph/detail/static_lists.hpp>
#include <cstddef>
#include <cstdint>

namespace collage::inline v0::detail {

/// "x [1, 3, 8, 8]"; other element types than float32 are named: "ids int64 [1, 64]".
constexpr void say_value(auto& why, const auto& g, const tensor_type* types, std::uint32_t v) {
  why << g.value_name(v) << " ";
  if (types[v].type != dtype::f32) why << name_of(types[v].type) << " ";
  why << types[v].dims;
}

/// "node 3 (conv): ".
constexpr void say_node(auto& why, const auto& g, std::uint32_t n) {
  why << "node " << n << " (" << g.nodes[n].kind->name << "): ";
}
/// "node 3 (conv of x [1, 3, 8, 8] and w [4, 3, 3, 3]): ".
constexpr void say_node(auto& why, const auto& g, std::uint32_t n, const tensor_type* types) {
  const node_record& node = g.nodes[n];
  why << "node " << n << " (" << node.kind->name;
  constexpr std::uint32_t most = 4;
  for (std::uint32_t i = 0; i < node.inputs && i < most; ++i) {
    why << (i == 0 ? " of " : i + 1 == node.inputs ? " and " : ", ");
    say_value(why, g, types, g.operands[node.first_input + i]);
  }
  if (node.inputs > most) why << " and " << node.inputs - most << " more";
  why << "): ";
}

constexpr void say_operands(auto& why, const arity& inputs) {
  why << inputs.least;
  if (inputs.most == any_number) why << " or more";
  else if (inputs.most != inputs.least) why << " to " << inputs.most;
  why << (inputs.most == 1 ? " operand" : " operands");
}

/// A hash table with open addressing, at most half full.
template <std::uint32_t Entries>
struct look_up_table {
  static constexpr std::uint32_t room() {
    std::uint32_t size = 2;
    while (size < 2 * Entries) size *= 2;
    return size;
  }
  std::uint32_t slots[room()] = {};  ///< the entry plus 1; 0: free
};

/// Puts an entry into a table. Returns an earlier entry with the same hash for which `same` holds, or else the new one.
template <class Same>
constexpr std::uint32_t put_entry(std::uint32_t* slots, std::uint32_t room, std::uint64_t hash, std::uint32_t entry,
                                  Same same) {
  std::uint64_t at = hash ^ (hash >> 32);
  while (slots[at & (room - 1)] != 0) {
    if (same(slots[at & (room - 1)] - 1)) return slots[at & (room - 1)] - 1;
    ++at;
  }
  slots[at & (room - 1)] = entry + 1;
  return entry;
}

constexpr bool equal_text(const char* a, const char* b) {
  while (*a != '\0' && *a == *b) ++a, ++b;
  return *a == *b;
}

/// Whether all names of values, or of outputs, differ. `name_at` returns a name, and `hashes` are the hashes of the names.
constexpr bool check_names(auto& why, auto name_at, const std::uint64_t* hashes, std::uint32_t count,
                           std::uint32_t* slots, std::uint32_t room, const char* what, const char* owners) {
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint32_t first = put_entry(slots, room, hashes[i], i, [&](std::uint32_t other) {
      return hashes[other] == hashes[i] && equal_text(name_at(other), name_at(i));
    });
    if (first == i) continue;
    why << what << name_at(i) << ": the name is used twice; give every " << owners << " a name of its own";
    return false;
  }
  return true;
}

constexpr bool check_sizes(auto& why, const auto& g) {
  for (std::uint32_t v = 0; v < g.sizes.values; ++v) {
    if (g.values[v].role == value_role::computed || !is_too_large(g.values[v].type.dims)) continue;
    why << "value " << g.value_name(v) << ": a tensor of " << g.values[v].type.dims
        << " is too large; its extents and their product must be at most 2^48";
    return false;
  }
  return true;
}

constexpr bool check_constants(auto& why, const auto& g) {
  for (std::uint32_t i = 0; i < g.sizes.constants; ++i) {
    const constant_record& record = g.constants[i];
    const tensor_type& type = g.values[record.value].type;
    const bool is_unknown = !type.dims.is_concrete();
    const bool is_odd_rule = record.source == contents_source::rule && type.type != dtype::f32;
    value_record stored;
    const bool is_odd_number =
        record.source == contents_source::given && !record.is_list && !stored_number(type.type, record.number, stored);
    if (!is_unknown && !is_odd_rule && !is_odd_number) continue;
    why << "constant " << g.value_name(record.value) << ": ";
    if (is_unknown)
      why << "every extent of a constant must be known, and it is " << type.dims << "; give it extents of 0 or more";
    else if (is_odd_rule)
      why << "only float32 constants can be filled by the generator, and it is " << name_of(type.type)
          << "; bind the contents instead";
    else why << "its value cannot be stored as " << name_of(type.type) << "; choose an element type that holds it";
    return false;
  }
  return true;
}

constexpr void say_wrong_output(auto& why, const auto& g) {
  const wrong_output& wrong = *g.wrong;
  if (wrong.is_output) {
    why << "output " << wrong.where << " of the graph";
  } else {
    say_node(why, g, wrong.where);
    why << "operand " << wrong.operand;
  }
  const std::uint32_t first = wrong.asked.index - wrong.asked.output;
  why << " asks for output " << wrong.asked.output;
  if (first < g.sizes.values && g.values[first].producer >= 0) {
    const auto producer = static_cast<std::uint32_t>(g.values[first].producer);
    const node_record& node = g.nodes[producer];
    why << " of node " << producer << " (" << node.kind->name << "), which has " << node.outputs
        << (node.outputs == 1 ? " output" : " outputs") << "; they are counted from 0";
  } else if (first < g.sizes.values) {
    why << " of " << g.value_name(first) << ", which no node computes; only nodes have further outputs";
  } else {
    why << " of a value that does not exist; only nodes have further outputs";
  }
}

constexpr bool check_nodes(auto& why, const auto& g, std::uint32_t* slots, std::uint32_t room) {
  for (std::uint32_t n = 0; n < g.sizes.nodes; ++n) {
    const node_record& node = g.nodes[n];
    const kind_info& kind = *node.kind;
    const std::uint32_t first =
        put_entry(slots, room, kind.id, n, [&](std::uint32_t other) { return g.nodes[other].kind->id == kind.id; });
    if (first != n && g.nodes[first].kind != node.kind) {
      say_node(why, g, n);
      why << "its kind has the id of another, " << g.nodes[first].kind->name << " of node " << first
          << "; ids are hashes of names, so give one of the two kinds another name";
      return false;
    }
    if (kind.bodies != 0) {
      say_node(why, g, n);
      why << "it owns subgraphs, which static graphs do not have; build this network with graph_builder";
      return false;
    }
    if (node.inputs < kind.inputs.least || node.inputs > kind.inputs.most) {
      say_node(why, g, n);
      why << "takes ";
      say_operands(why, kind.inputs);
      why << ", not " << node.inputs << "; give it as many values as that";
      return false;
    }
    if (node.outputs == 0) {
      say_node(why, g, n);
      why << output_count_rule;
      return false;
    }
    for (std::uint32_t i = 0; i < node.inputs; ++i) {
      if (g.operands[node.first_input + i] < node.first_output) continue;
      if (g.wrong->found && !g.wrong->is_output && g.wrong->where == n && g.wrong->operand == i) break;
      say_node(why, g, n);
      why << "operand " << i << " names value " << g.operands[node.first_input + i]
          << ", which does not exist yet; a graph has no cycles: add values before the nodes that read them, and use "
             "only values of this graph";
      return false;
    }
    if (g.wrong->found && !g.wrong->is_output && g.wrong->where == n) {
      say_wrong_output(why, g);
      return false;
    }
  }
  return true;
}

constexpr bool check_outputs(auto& why, const auto& g) {
  if (g.wrong->found && g.wrong->is_output) {
    say_wrong_output(why, g);
    return false;
  }
  if (g.sizes.outputs == 0) {
    why << "the graph has no output; name its outputs with g.output(y)";
    return false;
  }
  for (std::uint32_t i = 0; i < g.sizes.outputs; ++i) {
    if (g.outputs[i] < g.sizes.values) continue;
    why << "output " << i << " names value " << g.outputs[i] << ", which does not exist; use only values of this graph";
    return false;
  }
  return true;
}

/// The mistake in a draft, apart from its shapes; empty if there is none. `slots` are all 0.
template <graph_sizes Sizes>
constexpr auto check_draft(const auto& g) {
  sentence why;
  look_up_table<Sizes.nodes> kinds;
  look_up_table<Sizes.values> values;
  look_up_table<Sizes.outputs> outputs;
  check_nodes(why, g, kinds.slots, kinds.room()) && check_outputs(why, g) && check_sizes(why, g) &&
      check_constants(why, g) &&
      check_names(
          why, [&](std::uint32_t v) { return g.value_name(v); }, g.value_hashes, g.sizes.values, values.slots,
          values.room(), "value ", "input, constant and node") &&
      check_names(
          why, [&](std::uint32_t i) { return g.output_name(i); }, g.output_hashes, g.sizes.outputs, outputs.slots,
          outputs.room(), "output ", "output");
  return why;
}

/// The types of all values, and the number of words of all normalised attributes.
template <std::uint32_t Values>
struct inferred_types {
  tensor_type types[Values == 0 ? 1 : Values];
  std::uint32_t words = 0;
  bool fits = true;
  std::uint32_t node = 0;  ///< the node that breaks a rule
  verdict why;
};

/// The tensors of one node while its shape rule runs.
template <std::uint32_t Operands>
struct operand_room {
  tensor_type in[Operands == 0 ? 1 : Operands];
  list_view<const std::int64_t> contents[Operands == 0 ? 1 : Operands];
};

/// The record of constant `v`, by binary search: the list is sorted.
constexpr const constant_record& constant_of(const constant_record* constants, std::uint32_t count, std::uint32_t v) {
  std::uint32_t low = 0, high = count;
  while (high - low > 1) {
    const std::uint32_t middle = low + (high - low) / 2;
    (constants[middle].value <= v ? low : high) = middle;
  }
  return constants[low];
}

template <graph_sizes Sizes>
constexpr inferred_types<Sizes.values> infer_types(const auto& g) {
  inferred_types<Sizes.values> result;
  operand_room<Sizes.most_operands> room;
  attribute_words words;
  for (std::uint32_t v = 0; v < g.sizes.values; ++v)
    if (g.values[v].role != value_role::computed) result.types[v] = g.values[v].type;
  for (std::uint32_t n = 0; n < g.sizes.nodes; ++n) {
    const node_record& node = g.nodes[n];
    const std::uint32_t* operands = g.operands + node.first_input;
    for (std::uint32_t i = 0; i < node.inputs; ++i) room.in[i] = result.types[operands[i]];
    inference io{.in = {room.in, node.inputs}, .out = {result.types + node.first_output, node.outputs}};
    if (Sizes.integers != 0) {
      for (std::uint32_t i = 0; i < node.inputs; ++i) {
        room.contents[i] = {};
        if (g.values[operands[i]].role != value_role::constant) continue;
        const constant_record& record = constant_of(g.constants, g.sizes.constants, operands[i]);
        if (record.is_list)
          room.contents[i] = {g.integers + record.first_integer, static_cast<std::size_t>(room.in[i].dims[0])};
      }
      io.contents = {room.contents, node.inputs};
    }
    list_view<const std::uint64_t> list(g.words + node.first_word, node.words);
    if (node.kind->has_normalise) {
      words.size = node.words;
      for (std::uint32_t i = 0; i < node.words; ++i) words.word[i] = list[i];
      node.kind->normalise(words, io.in);
      list = words.list();
    }
    result.words += static_cast<std::uint32_t>(list.size());
    verdict why;
    if (node.kind->output_count(list) != node.outputs)
      why = {false, "how many outputs it has depends on its operands, so only graph_builder can build it"};
    else why = node.kind->infer(list, io);
    for (std::uint32_t i = 0; why && i < node.outputs; ++i)
      if (is_too_large(io.out[i].dims)) why = {false, "its output would be too large"};
    if (why) continue;
    result.fits = false;
    result.node = n;
    result.why = why;
    return result;
  }
  return result;
}

/// The rule that a node's operands break, with the remedy.
constexpr sentence say_misfit(const auto& g, const tensor_type* types, std::uint32_t node, const verdict& broken) {
  sentence why;
  say_node(why, g, node, types);
  why << broken.rule;
  if (broken.operand >= 0)
    why << " (operand " << broken.operand << "); change that operand or the attributes of the node";
  else why << "; change its operands or its attributes";
  return why;
}

}  // namespace collage::inline v0::detail
