// A graph in fixed arrays, for matching in constant evaluation; written like any other network.
#pragma once

#include <collage/graph/build.hpp>
#include <collage/graph/view.hpp>
#include <cstddef>
#include <cstdint>
#include <span>

namespace collage_test {

namespace c = collage;

class small_graph : public c::graph_calls<small_graph> {
 public:
  constexpr c::value input(c::label, const c::tensor_type& type) { return add_value(type, c::value_role::input); }
  constexpr c::value constant(c::label, const c::tensor_type& type, c::uniform) {
    return add_value(type, c::value_role::constant);
  }
  constexpr c::value scalar(c::label, double number, c::dtype type = c::dtype::f32) {
    const c::value v = add_value({type, {}}, c::value_role::constant);
    values_[v.index].has_scalar = true;
    values_[v.index].scalar = number;
    return v;
  }
  constexpr void output(c::label, c::value v) { values_[v.index].is_output = true; }
  constexpr c::value add(const c::kind_info& kind, std::span<const c::value> operands,
                         const c::attribute_words& attributes, c::label) {
    c::node_record& node = nodes_[node_count_];
    node = {&kind,
            static_cast<std::uint32_t>(operand_count_),
            static_cast<std::uint32_t>(operands.size()),
            static_cast<std::uint32_t>(value_count_),
            1,
            static_cast<std::uint32_t>(word_count_),
            0};
    c::tensor_type in[8], out[1];
    for (std::size_t i = 0; i < operands.size(); ++i) {
      in[i] = values_[operands[i].index].type;
      operands_[operand_count_++] = operands[i].index;
    }
    c::attribute_words words = attributes;
    if (kind.normalise != nullptr) kind.normalise(words, {in, operands.size()});
    for (const std::uint64_t w : words.list()) words_[word_count_++] = w;
    node.words = static_cast<std::uint32_t>(words.size);
    c::inference io{{in, operands.size()}, out};
    // Not a constant expression when the shapes do not fit.
    if (const c::verdict v = kind.infer(words.list(), io); !v) throw v.rule;
    const c::value made = add_value(out[0], c::value_role::computed);
    values_[made.index].producer = static_cast<std::int32_t>(node_count_++);
    return made;
  }

  /// Lists the uses; the graph is finished.
  constexpr void finish() {
    for (std::uint32_t v = 0; v < value_count_; ++v) {
      values_[v].first_use = static_cast<std::uint32_t>(use_count_);
      for (std::uint32_t n = 0; n < node_count_; ++n)
        for (std::uint32_t i = 0; i < nodes_[n].inputs; ++i)
          if (operands_[nodes_[n].first_input + i] == v) uses_[use_count_++] = {n, i};
      values_[v].uses = static_cast<std::uint32_t>(use_count_) - values_[v].first_use;
    }
  }
  constexpr c::graph_view view() const {
    return {{nodes_, node_count_},
            {values_, value_count_},
            {operands_, operand_count_},
            {uses_, use_count_},
            {words_, word_count_}};
  }
  constexpr const c::tensor_type& type_of(c::value v) const { return values_[v.index].type; }

 private:
  constexpr c::value add_value(const c::tensor_type& type, c::value_role role) {
    values_[value_count_].type = type;
    values_[value_count_].role = role;
    return {static_cast<std::uint32_t>(value_count_++)};
  }

  c::node_record nodes_[32] = {};
  c::value_record values_[64] = {};
  std::uint32_t operands_[96] = {};
  c::use uses_[96] = {};
  std::uint64_t words_[512] = {};
  std::size_t node_count_ = 0, value_count_ = 0, operand_count_ = 0, use_count_ = 0, word_count_ = 0;
};

/// The graph that a function writes.
template <class Write>
constexpr small_graph write_graph(Write write) {
  small_graph g;
  write(g);
  g.finish();
  return g;
}

}  // namespace collage_test
