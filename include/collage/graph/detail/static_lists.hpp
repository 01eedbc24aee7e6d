// The lists of a static graph, and the builder that counts their entries and then fills them.
#pragma once

#include <collage/detail/hash.hpp>
#include <collage/error.hpp>
#include <collage/graph/build.hpp>
#include <collage/graph/view.hpp>
#include <collage/list_view.hpp>
#include <cstddef>
#include <cstdint>

namespace collage::inline v0::detail {

/// The lengths of the lists.
struct graph_sizes {
  std::uint32_t nodes = 0, values = 0, operands = 0, inputs = 0, outputs = 0, constants = 0;
  std::uint32_t characters = 0;     ///< of all names, with their terminating zeros
  std::uint32_t integers = 0;       ///< of all constants made by `integers`
  std::uint32_t words = 0;          ///< of all attributes
  std::uint32_t most_operands = 0;  ///< of one node
};

/// A constant, and where its contents come from.
struct constant_record {
  std::uint32_t value = 0;
  contents_source source = contents_source::unbound;
  bool is_list = false;  ///< the contents are integers of the graph, from `first_integer` on
  std::uint32_t first_integer = 0;
  uniform fill;
  double number = 0;  ///< the value of a scalar
};

/// A use of an output that a node does not have: `y[2]` of a node with two outputs.
struct wrong_output {
  bool found = false;
  bool is_output = false;   ///< the use is an output of the graph; otherwise an operand of a node
  std::uint32_t where = 0;  ///< the output or the node
  std::uint32_t operand = 0;
  value asked;
};

/// The lists of a network; `defined_graph` keeps them.
template <graph_sizes Sizes>
struct graph_lists {
  // Empty lists have room for one entry, because C++ has no arrays of length 0.
  static constexpr std::size_t room(std::uint32_t size) { return size == 0 ? 1 : size; }

  node_record nodes[room(Sizes.nodes)] = {};
  value_record values[room(Sizes.values)] = {};
  std::uint32_t operands[room(Sizes.operands)] = {};
  std::uint32_t inputs[room(Sizes.inputs)] = {};
  std::uint32_t outputs[room(Sizes.outputs)] = {};
  std::uint32_t value_names[room(Sizes.values)] = {};    ///< positions in `characters`
  std::uint32_t output_names[room(Sizes.outputs)] = {};  ///< positions in `characters`
  char characters[room(Sizes.characters)] = {};
  constant_record constants[room(Sizes.constants)] = {};
  std::int64_t integers[room(Sizes.integers)] = {};
};

/// The same lists before shapes are inferred.
template <graph_sizes Sizes>
struct graph_draft : graph_lists<Sizes> {
  std::uint64_t words[graph_draft::room(Sizes.words)] = {};          ///< not yet normalised
  std::uint64_t value_hashes[graph_draft::room(Sizes.values)] = {};  ///< hashes of the names
  std::uint64_t output_hashes[graph_draft::room(Sizes.outputs)] = {};
  wrong_output wrong;
};

/// Pointers to the lists of a draft.
struct draft_room {
  node_record* nodes = nullptr;
  value_record* values = nullptr;
  std::uint32_t* operands = nullptr;
  std::uint32_t* inputs = nullptr;
  std::uint32_t* outputs = nullptr;
  std::uint32_t* value_names = nullptr;
  std::uint32_t* output_names = nullptr;
  char* characters = nullptr;
  constant_record* constants = nullptr;
  std::int64_t* integers = nullptr;
  std::uint64_t* words = nullptr;
  std::uint64_t* value_hashes = nullptr;
  std::uint64_t* output_hashes = nullptr;
  wrong_output* wrong = nullptr;
};

/// Stores a scalar's value as its element type represents it, as store_number does at run time. False if the type cannot.
constexpr bool stored_number(dtype type, double number, auto& record) {
  constexpr double infinity = __builtin_bit_cast(double, std::uint64_t{0x7FF} << 52);
  constexpr double largest = 0x1.fffffep127, infinite = 0x1.ffffffp127;  // the largest float; the least that overflows
  const double size = number < 0 ? -number : number;
  const auto within = [&](double low, double limit) { return number >= low && number < limit; };
  record.has_scalar = true;
  switch (type) {
    case dtype::f64: record.scalar = number; return true;
    case dtype::f32:
      if (size > largest) record.scalar = (number < 0 ? -1 : 1) * (size < infinite ? largest : infinity);
      else record.scalar = static_cast<double>(static_cast<float>(number));
      return true;
    case dtype::i64:
      if (!within(-0x1p63, 0x1p63)) return false;
      record.scalar = static_cast<double>(static_cast<std::int64_t>(number));
      return true;
    case dtype::i32:
      if (!within(-0x1p31, 0x1p31)) return false;
      record.scalar = static_cast<double>(static_cast<std::int32_t>(number));
      return true;
    case dtype::i8:
      if (!within(-0x1p7, 0x1p7)) return false;
      record.scalar = static_cast<double>(static_cast<std::int8_t>(number));
      return true;
    case dtype::u8:
      if (!within(0, 0x1p8)) return false;
      record.scalar = static_cast<double>(static_cast<std::uint8_t>(number));
      return true;
    default: record.has_scalar = false;  // graphs store scalars of these six types only
  }
  switch (type) {
    case dtype::boolean: return true;
    case dtype::i16: return within(-0x1p15, 0x1p15);
    case dtype::i4: return within(-8, 8);
    case dtype::u4: return within(0, 16);
    case dtype::i2: return within(-2, 2);
    case dtype::u2: return within(0, 4);
    case dtype::u16: return within(0, 0x1p16);
    case dtype::u32: return within(0, 0x1p32);
    case dtype::u64: return within(0, 0x1p64);
    default: return false;
  }
}

/// The builder of `define`. Without room it counts, with room it writes; the lists are checked later. Like the checks it is a
/// template, so that only includers that define a graph compile the bodies.
template <class Room, class Sizes>
class list_writer {
 public:
  constexpr list_writer() = default;
  constexpr explicit list_writer(const Room& room) : room_(room) {}
  list_writer(const list_writer&) = delete;
  list_writer& operator=(const list_writer&) = delete;

  constexpr const Sizes& sizes() const { return sizes_; }

  constexpr value add_input(text_ref name, const tensor_type& type) {
    if (room_.nodes != nullptr) {
      room_.inputs[sizes_.inputs] = sizes_.values;
      put_value(type, value_role::input);
      put_name(name, room_.value_names, room_.value_hashes, sizes_.values);
    } else {
      sizes_.characters += static_cast<std::uint32_t>(name.size + 1);
    }
    ++sizes_.inputs;
    return {sizes_.values++};
  }
  constexpr value add_constant(text_ref name, const tensor_type& type, contents_source source, uniform fill) {
    if (room_.nodes != nullptr) {
      constant_record& record = put_constant(name, type);
      record.source = source;
      record.fill = fill;
    } else {
      sizes_.characters += static_cast<std::uint32_t>(name.size + 1);
    }
    ++sizes_.constants;
    return {sizes_.values++};
  }
  constexpr value add_scalar(text_ref name, double number, dtype type) {
    if (room_.nodes != nullptr) {
      constant_record& record = put_constant(name, {type, {}});
      record.source = contents_source::given;
      record.number = number;
      stored_number(type, number, room_.values[sizes_.values]);
    } else {
      sizes_.characters += static_cast<std::uint32_t>(name.size + 1);
    }
    ++sizes_.constants;
    return {sizes_.values++};
  }
  constexpr value add_integers(text_ref name, list_view<const std::int64_t> list) {
    if (room_.nodes != nullptr) {
      constant_record& record = put_constant(name, {dtype::i64, {list.size()}});
      record.source = contents_source::given;
      record.is_list = true;
      record.first_integer = sizes_.integers;
      for (std::size_t i = 0; i < list.size(); ++i) room_.integers[sizes_.integers + i] = list[i];
      if (list.size() == 1) {
        room_.values[sizes_.values].has_scalar = true;
        room_.values[sizes_.values].scalar = static_cast<double>(list[0]);
      }
    } else {
      sizes_.characters += static_cast<std::uint32_t>(name.size + 1);
    }
    sizes_.integers += static_cast<std::uint32_t>(list.size());
    ++sizes_.constants;
    return {sizes_.values++};
  }
  constexpr void add_output(text_ref name, value v) {
    if (room_.nodes != nullptr) {
      room_.outputs[sizes_.outputs] = v.index;
      if (v.index < sizes_.values) room_.values[v.index].is_output = true;
      if (v.output != 0) check_output(v, true, sizes_.outputs, 0);
      if (name.size != 0 || v.index >= sizes_.values) {
        put_name(name, room_.output_names, room_.output_hashes, sizes_.outputs);
      } else {
        room_.output_names[sizes_.outputs] = room_.value_names[v.index];
        room_.output_hashes[sizes_.outputs] = room_.value_hashes[v.index];
      }
    } else {
      sizes_.characters += static_cast<std::uint32_t>(name.size + 1);
    }
    ++sizes_.outputs;
  }
  constexpr value add(const kind_info& kind, list_view<const value> operands, const attribute_words& attributes,
                      text_ref name) {
    const value made = {sizes_.values};
    std::size_t outputs = kind.output_count(attributes.list());
    if (outputs > any_number) outputs = 0;  // check_nodes reports it
    const std::size_t size = operands.size();
    if (room_.nodes != nullptr) {
      node_record& node = room_.nodes[sizes_.nodes];
      node.kind = &kind;
      node.first_input = sizes_.operands;
      node.inputs = static_cast<std::uint32_t>(size);
      node.first_output = sizes_.values;
      node.outputs = static_cast<std::uint32_t>(outputs);
      node.first_word = sizes_.words;
      node.words = static_cast<std::uint32_t>(attributes.size);
      for (std::size_t i = 0; i < size; ++i) put_operand(operands[i], i);
      for (std::size_t i = 0; i < attributes.size; ++i) room_.words[sizes_.words + i] = attributes.word[i];
      put_first_output(kind, name);
      for (std::size_t i = 1; i < outputs; ++i) put_further_output(i);
    } else {
      sizes_.operands += static_cast<std::uint32_t>(size);
      count_outputs(kind, outputs, name);
      if (size > sizes_.most_operands) sizes_.most_operands = static_cast<std::uint32_t>(size);
    }
    sizes_.words += static_cast<std::uint32_t>(attributes.size);
    ++sizes_.nodes;
    return made;
  }

 private:
  static constexpr std::uint32_t digits_of(std::uint32_t number) {
    std::uint32_t digits = 1;
    while (number >= 10) number /= 10, ++digits;
    return digits;
  }
  constexpr void count_outputs(const kind_info& kind, std::size_t outputs, text_ref name) {
    const std::uint32_t own =
        static_cast<std::uint32_t>(name.size != 0 ? name.size : text_ref(kind.name).size + 1 + digits_of(unnamed_++));
    sizes_.characters += own + 1;
    ++sizes_.values;
    for (std::uint32_t i = 1; i < outputs; ++i, ++sizes_.values) sizes_.characters += own + 1 + digits_of(i) + 1;
  }

  // Hashes names while writing them, with one statement per character, because clang counts statements.
  constexpr std::uint64_t put_text(const char* text, std::uint64_t hash) {
    char* at = room_.characters + sizes_.characters;
    std::uint32_t size = 0;
    while (text[size] != '\0')
      at[size] = text[size], hash = (hash ^ static_cast<unsigned char>(text[size++])) * fnv_prime;
    sizes_.characters += size;
    return hash;
  }
  constexpr std::uint64_t put_number(std::uint32_t number, std::uint64_t hash) {
    const std::uint32_t digits = digits_of(number);
    char* at = room_.characters + sizes_.characters;
    for (std::uint32_t i = digits; i > 0; number /= 10) at[--i] = static_cast<char>('0' + number % 10);
    for (std::uint32_t i = 0; i < digits; ++i) hash = (hash ^ static_cast<unsigned char>(at[i])) * fnv_prime;
    sizes_.characters += digits;
    return hash;
  }
  constexpr void put_name(text_ref name, std::uint32_t* names, std::uint64_t* hashes, std::uint32_t which) {
    char* at = room_.characters + sizes_.characters;
    std::uint64_t hash = fnv_basis;
    for (std::size_t i = 0; i < name.size; ++i)
      at[i] = name.data[i], hash = (hash ^ static_cast<unsigned char>(name.data[i])) * fnv_prime;
    names[which] = sizes_.characters;
    hashes[which] = hash;
    sizes_.characters += static_cast<std::uint32_t>(name.size + 1);
  }

  constexpr void put_value(const tensor_type& type, value_role role) {
    value_record& record = room_.values[sizes_.values];
    record.type = type;
    record.role = role;
  }
  constexpr constant_record& put_constant(text_ref name, const tensor_type& type) {
    put_value(type, value_role::constant);
    put_name(name, room_.value_names, room_.value_hashes, sizes_.values);
    constant_record& record = room_.constants[sizes_.constants];
    record.value = sizes_.values;
    return record;
  }
  constexpr void put_operand(value v, std::size_t which) {
    room_.operands[sizes_.operands++] = v.index;
    if (v.output != 0) check_output(v, false, sizes_.nodes, static_cast<std::uint32_t>(which));
  }
  constexpr void put_first_output(const kind_info& kind, text_ref name) {
    room_.values[sizes_.values].producer = static_cast<std::int32_t>(sizes_.nodes);
    if (name.size != 0) {
      put_name(name, room_.value_names, room_.value_hashes, sizes_.values);
    } else {
      room_.value_names[sizes_.values] = sizes_.characters;
      std::uint64_t hash = put_text(kind.name, fnv_basis);
      room_.characters[sizes_.characters++] = '_';
      hash = put_number(unnamed_++, (hash ^ '_') * fnv_prime);
      room_.value_hashes[sizes_.values] = hash;
      ++sizes_.characters;
    }
    ++sizes_.values;
  }
  constexpr void put_further_output(std::size_t which) {
    const std::uint32_t first = sizes_.values - static_cast<std::uint32_t>(which);
    room_.values[sizes_.values].producer = static_cast<std::int32_t>(sizes_.nodes);
    room_.value_names[sizes_.values] = sizes_.characters;
    std::uint64_t hash = put_text(room_.characters + room_.value_names[first], fnv_basis);
    room_.characters[sizes_.characters++] = ':';
    hash = put_number(static_cast<std::uint32_t>(which), (hash ^ ':') * fnv_prime);
    room_.value_hashes[sizes_.values] = hash;
    ++sizes_.characters;
    ++sizes_.values;
  }
  constexpr void check_output(value v, bool is_output, std::uint32_t where, std::uint32_t operand) {
    const std::int32_t producer = v.index < sizes_.values ? room_.values[v.index].producer : -1;
    if (producer >= 0 && v.index - room_.nodes[producer].first_output == v.output) return;
    if (!room_.wrong->found) *room_.wrong = {true, is_output, where, operand, v};
  }

  Room room_;
  Sizes sizes_;
  std::uint32_t unnamed_ = 0;
};

class graph_writer : public list_writer<draft_room, graph_sizes>, public graph_calls<graph_writer> {
 public:
  using list_writer::list_writer;
};

/// Read access to a static graph's lists of any length. Only a finished graph has uses; only a draft has hashes and `wrong`.
struct lists_view {
  graph_sizes sizes;
  const node_record* nodes = nullptr;
  const value_record* values = nullptr;
  const std::uint32_t* operands = nullptr;
  const std::uint32_t* inputs = nullptr;
  const std::uint32_t* outputs = nullptr;
  const std::uint32_t* value_names = nullptr;
  const std::uint32_t* output_names = nullptr;
  const char* characters = nullptr;
  const constant_record* constants = nullptr;
  const std::int64_t* integers = nullptr;
  const std::uint64_t* words = nullptr;
  const use* uses = nullptr;
  const std::uint64_t* value_hashes = nullptr;
  const std::uint64_t* output_hashes = nullptr;
  const wrong_output* wrong = nullptr;

  constexpr const char* value_name(std::uint32_t value) const { return characters + value_names[value]; }
  constexpr const char* output_name(std::uint32_t which) const { return characters + output_names[which]; }
};

template <graph_sizes Sizes>
constexpr lists_view view_of(const graph_draft<Sizes>& draft) {
  return {Sizes,
          draft.nodes,
          draft.values,
          draft.operands,
          draft.inputs,
          draft.outputs,
          draft.value_names,
          draft.output_names,
          draft.characters,
          draft.constants,
          draft.integers,
          draft.words,
          nullptr,
          draft.value_hashes,
          draft.output_hashes,
          &draft.wrong};
}

/// The lists of a draft.
template <graph_sizes Sizes>
constexpr draft_room room_of(graph_draft<Sizes>& draft) {
  return {draft.nodes,       draft.values,       draft.operands,      draft.inputs,    draft.outputs,
          draft.value_names, draft.output_names, draft.characters,    draft.constants, draft.integers,
          draft.words,       draft.value_hashes, draft.output_hashes, &draft.wrong};
}

}  // namespace collage::inline v0::detail
