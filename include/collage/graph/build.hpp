// The interface of every graph builder, so that one function describes a network at compile time and at run time.
#pragma once

#include <collage/detail/label.hpp>
#include <collage/error.hpp>
#include <collage/graph/view.hpp>
#include <collage/list_view.hpp>
#include <collage/op/extents.hpp>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <type_traits>

namespace collage::inline v0 {

/// Element type and shape as networks write them: `{1, 3, 224, 224}` is float32, `{dtype::i64, {1, 64}}` is not.
struct typed_shape : tensor_type {
  constexpr typed_shape() = default;
  template <class... Int>
    requires(sizeof...(Int) > 0 && (std::is_integral_v<Int> && ...))
  constexpr typed_shape(Int... extents) : tensor_type{dtype::f32, shape(extents...)} {}
  constexpr typed_shape(const shape& extents) : tensor_type{dtype::f32, extents} {}
  constexpr typed_shape(dtype element, const shape& extents) : tensor_type{element, extents} {}
  constexpr typed_shape(const tensor_type& both) : tensor_type(both) {}
};

namespace detail {

/// Whether a tensor has more elements than graphs may hold. Within this limit, sizes computed from it fit into 64 bits.
constexpr bool is_too_large(const shape& dims) { return !is_countable(dims, std::int64_t{1} << 48); }

/// The attributes of an operator kind. For any other type there is a substitute, so that the call is found and can report the
/// error.
template <class K>
struct attributes_of_anything {
  using type = no_attributes;
};
template <operator_kind K>
struct attributes_of_anything<K> {
  using type = typename K::attributes;
};
template <class K>
using attributes_of = typename attributes_of_anything<K>::type;

template <class T> concept list_of_values = std::is_constructible_v<list_view<const value>, const T&>;

/// Whether a call for a node is valid with these arguments; a compile error of one sentence if it is not.
template <class K, class... Operands>
constexpr bool is_node_call() {
  if constexpr (!operator_kind<K>) {
    static_assert(operator_kind<K>,
                  "g(operator, operands..., {attributes}): the first argument is an operator kind, as "
                  "in g(collage::ops::relu, x)");
    return false;
  } else if constexpr (!(std::is_same_v<Operands, value> && ...)) {
    static_assert((std::is_same_v<Operands, value> && ...),
                  "an operand of a node is a value, as g.input, g.constant, g.scalar and nodes return it");
    return false;
  } else {
    return true;
  }
}

}  // namespace detail

/// The calls that add nodes: `g(ops::conv, x, w, {.groups = 32})`, `g(ops::concat, {a, b, c}, {.axis = 1})`. All return the
/// node's first output; `y[1]` is the second. The language leaves the order of calls nested as arguments open, as in
/// `g(op, f(g), h(g))`. In braces, `g(op, {f(g), h(g)})`, they run from left to right.
///
/// Operands may have any type, so that a wrong one is reported in one sentence instead of a list of candidates.
template <class Derived>
class node_calls {
 public:
  template <class K, class A, class B>
    requires(!std::is_same_v<B, detail::attributes_of<K>>)
  constexpr value operator()(const K&, const A& a, const B& b, const detail::attributes_of<K>& attributes = {}) {
    if constexpr (detail::is_node_call<K, A, B>()) {
      const value operands[] = {a, b};
      return call<K>({operands, 2}, attributes);
    } else {
      return {};
    }
  }
  template <class K, class A>
  constexpr value operator()(const K&, const A& a, const detail::attributes_of<K>& attributes = {}) {
    if constexpr (detail::list_of_values<A>) {
      return call<K>(list_view<const value>(a), attributes);
    } else if constexpr (detail::is_node_call<K, A>()) {
      return call<K>({&a, 1}, attributes);
    } else {
      return {};
    }
  }
  template <class K, class A, class B, class C>
    requires(!std::is_same_v<C, detail::attributes_of<K>>)
  constexpr value operator()(const K&, const A& a, const B& b, const C& c,
                             const detail::attributes_of<K>& attributes = {}) {
    if constexpr (detail::is_node_call<K, A, B, C>()) {
      const value operands[] = {a, b, c};
      return call<K>({operands, 3}, attributes);
    } else {
      return {};
    }
  }
  template <class K, class A, class B, class C, class D, class... More>
    requires(sizeof...(More) > 0 || !std::is_same_v<D, detail::attributes_of<K>>)
  constexpr value operator()(const K&, const A&, const B&, const C&, const D&, const More&...) {
    static_assert(sizeof...(More) > 99, "more than three operands go in braces: g(collage::ops::concat, {a, b, c, d})");
    return {};
  }
  template <class K>
  constexpr value operator()(const K&, std::initializer_list<value> operands,
                             const detail::attributes_of<K>& attributes = {}) {
    if constexpr (detail::is_node_call<K>()) return call<K>({operands.begin(), operands.size()}, attributes);
    else return {};
  }

 private:
  template <class K>
  constexpr value call(list_view<const value> operands, const typename K::attributes& attributes) {
    return static_cast<Derived&>(*this).add_node(kind_of<K>, operands, to_words(attributes));
  }
};

/// The calls for a named node: `g.named("stem")(ops::conv, x, w)`.
template <class Builder>
class named_node_calls : public node_calls<named_node_calls<Builder>> {
 public:
  constexpr named_node_calls(Builder& builder, text_ref name) : builder_(builder), name_(name) {}
  constexpr value add_node(const kind_info& kind, list_view<const value> operands, const attribute_words& attributes) {
    return builder_.add(kind, operands, attributes, name_);
  }

 private:
  Builder& builder_;
  text_ref name_;
};

/// The calls that write networks, the same in `define` and in `graph_builder`. `Derived` has
///   value add_input(text_ref name, const tensor_type&);
///   value add_constant(text_ref name, const tensor_type&, contents_source, uniform fill);
///   value add_scalar(text_ref name, double number, dtype);
///   value add_integers(text_ref name, list_view<const std::int64_t>);
///   void add_output(text_ref name, value);                      // no name: the value's own
///   value add(const kind_info&, list_view<const value> operands, const attribute_words&, text_ref name);
template <class Derived>
class graph_calls : public node_calls<Derived> {
 public:
  constexpr value input(text_ref name, const typed_shape& type) { return self().add_input(name, type); }
  /// A constant whose contents are bound later by its name: graph::bind.
  constexpr value constant(text_ref name, const typed_shape& type) {
    return self().add_constant(name, type, contents_source::unbound, uniform{});
  }
  /// A float32 constant. `fill_constants` generates its elements unless others are bound.
  constexpr value constant(text_ref name, const typed_shape& type, uniform fill) {
    return self().add_constant(name, type, contents_source::rule, fill);
  }
  /// A constant of rank 0.
  constexpr value scalar(text_ref name, double number, dtype type = dtype::f32) {
    return self().add_scalar(name, number, type);
  }
  /// A constant of rank 1 and type int64: axes, extents, the target of a reshape.
  constexpr value integers(text_ref name, list_view<const std::int64_t> list) {
    return self().add_integers(name, list);
  }
  constexpr value integers(text_ref name, std::initializer_list<std::int64_t> list) {
    return self().add_integers(name, {list.begin(), list.size()});
  }
  /// Adds an output of the network; outputs keep their order. An output without a name has the value's name.
  constexpr void output(text_ref name, value v) { self().add_output(name, v); }
  constexpr void output(value v) { self().add_output(text_ref(), v); }

  /// Names the next node. A node without a name is called by its kind and a number.
  constexpr named_node_calls<Derived> named(text_ref name) { return {self(), name}; }

  /// Called by the calls for nodes.
  constexpr value add_node(const kind_info& kind, list_view<const value> operands, const attribute_words& attributes) {
    return self().add(kind, operands, attributes, text_ref());
  }

 private:
  constexpr Derived& self() { return static_cast<Derived&>(*this); }
};

}  // namespace collage::inline v0
