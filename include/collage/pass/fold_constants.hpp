// The pass that computes values that are known already: constants of constants, and shapes.
#pragma once

#include <algorithm>
#include <collage/backends/reference.hpp>
#include <collage/op/movement.hpp>
#include <collage/pass/detail/quantised_values.hpp>
#include <collage/pass/rewrite.hpp>
#include <collage/run/elements.hpp>
#include <collage/run/tensor.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace collage::inline v0 {

struct fold_options {
  /// The largest result that is folded, in bytes of all outputs of a node. A larger one is folded only if the operands
  /// are as large: folding must not make a network much bigger.
  std::size_t largest = std::size_t{16} << 20;
  /// Whether weights that alone are quantised stay so where they bind a product (`detail::is_bound_by_weights`).
  bool leaves_weights = true;
};

namespace detail {

/// Folds one graph. Remembers the contents of the new graph's constants, where they have contents.
class folder {
 public:
  folder(const graph& from, const fold_options& options) : from_(from), options_(options) {}

  void constant(rewriter& r, std::uint32_t old) {
    r.copy_constant(old);
    if (from_.constant(old).bytes != nullptr) know(r.of(old), from_.constant(old).bytes);
  }

  void node(rewriter& r, std::uint32_t node) {
    const std::vector<value> operands = r.operands_of(node);
    if (computable(r, node, operands)) fold(r, node, operands);
    else if (is_kind(from_, node, ops::reshape) && operands.size() == 2 && known(operands[1]))
      fold_target(r, node, operands);
    else r.copy_node(node);
  }

 private:
  bool known(value v) const { return v.index < contents_.size() && contents_[v.index] != nullptr; }
  void know(value v, std::shared_ptr<const std::byte> bytes) {
    if (contents_.size() <= v.index) contents_.resize(v.index + 1);
    contents_[v.index] = std::move(bytes);
  }

  /// Whether the reference can compute the node now, and the result is small enough.
  bool computable(rewriter& r, std::uint32_t node, const std::vector<value>& operands) const {
    const kind_info& kind = *from_.node(node).kind;
    if ((kind.reference == nullptr && kind.body == nullptr) || kind.bodies != 0) return false;
    if (stays_quantised(from_, node, options_.leaves_weights)) return false;
    std::vector<tensor_type> in, out(from_.node(node).outputs);
    std::vector<list_view<const std::int64_t>> integers;
    std::size_t read = 0, written = 0;
    for (const value v : operands) {
      if (!known(v)) return false;
      in.push_back(r.to().type_of(v));
      integers.push_back(r.to().integers(v));
      read += in.back().bytes();
    }
    inference io{in, out, integers};
    if (!kind.infer(from_.view().words_of(node), io)) return false;  // the builder reports the error
    for (const tensor_type& type : out) {
      if (!type.dims.is_concrete()) return false;
      written += type.bytes();
    }
    return written <= std::max(options_.largest, read);
  }

  /// Turns the node's results into constants under the names of its outputs.
  void fold(rewriter& r, std::uint32_t node, const std::vector<value>& operands) {
    std::vector<oracle_value> in;
    for (const value v : operands) in.push_back(to_oracle({contents_[v.index].get(), r.to().type_of(v)}));
    const std::vector<oracle_value> results = evaluate_node(*from_.node(node).kind, from_.view().words_of(node), in);
    for (std::uint32_t i = 0; i < results.size(); ++i) {
      const std::shared_ptr<std::byte> bytes = allocate_bytes(results[i].type.bytes());
      from_oracle(results[i], bytes.get());
      const std::uint32_t old = from_.view().output_of(node, i);
      r.put(old, r.to().constant(from_.value_name(old), results[i].type, bytes));
      know(r.of(old), bytes);
    }
  }

  /// Writes the known target of a reshape into its attributes.
  void fold_target(rewriter& r, std::uint32_t node, const std::vector<value>& operands) {
    auto attributes = from_words<ops::reshape_attributes>(from_.view().words_of(node));
    attributes.dims = shape(r.to().integers(operands[1]));
    r.replace(node, *from_.node(node).kind, {operands.data(), 1}, to_words(attributes));
  }

  const graph& from_;
  const fold_options& options_;
  std::vector<std::shared_ptr<const std::byte>> contents_;  // by new value
};

}  // namespace detail

/// Returns the graph with every node computed that reads only constants with contents. The reference computes in double
/// precision, and the result is rounded to the element type. Known targets of reshapes become attributes, and all
/// shapes are inferred anew. One walk in topological order is the fixed point, since knowledge flows forward only.
/// Constants that are no longer read stay for `remove_dead`. Weights of 4 and 8 bits that kernels read as they are stay so
/// (`detail::stays_quantised`, `fold_options::leaves_weights`). Subgraphs are folded in the same way; nodes that own them stay.
inline graph fold_constants(const graph& network, const fold_options& options = {}) {
  detail::folder folder(network, options);
  return rewrite(network, {.constant = [&](rewriter& r, std::uint32_t v) { folder.constant(r, v); },
                           .node = [&](rewriter& r, std::uint32_t n) { folder.node(r, n); },
                           .body = [&](const graph& body) { return fold_constants(body, options); }});
}

}  // namespace collage::inline v0
