// What every graph builder offers, so that one function describes a network at compile time and at run time.
#pragma once

#include <collage/detail/label.hpp>
#include <collage/graph/view.hpp>
#include <cstddef>
#include <initializer_list>
#include <span>

namespace collage::inline v0 {

/// The calls with which networks are written. `Derived` has
///   value input(label name, tensor_type);
///   value constant(label name, tensor_type, uniform fill);     // elements from the generator
///   value scalar(label name, double v, dtype = dtype::f32);    // a constant of rank 0
///   void output(label name, value);
///   value add(const kind_info&, std::span<const value> operands, const attribute_words&, label name);
/// and gets from here the calls for nodes: `g(ops::conv, x, w, {.groups = 32})`, `g(ops::concat, {a, b, c}, {.axis =
/// 1})`. All answer the node's first output. Calls nested as arguments, `g(op, f(g), h(g))`, are made in an order that
/// the language leaves open; in braces, `g(op, {f(g), h(g)})`, from left to right.
template <class Derived>
class graph_calls {
 public:
  template <operator_kind K>
  constexpr value operator()(const K&, value a, const typename K::attributes& attributes = {}) {
    const value operands[] = {a};
    return call<K>(operands, attributes);
  }
  template <operator_kind K>
  constexpr value operator()(const K&, value a, value b, const typename K::attributes& attributes = {}) {
    const value operands[] = {a, b};
    return call<K>(operands, attributes);
  }
  template <operator_kind K>
  constexpr value operator()(const K&, value a, value b, value c, const typename K::attributes& attributes = {}) {
    const value operands[] = {a, b, c};
    return call<K>(operands, attributes);
  }
  template <operator_kind K>
  constexpr value operator()(const K&, std::span<const value> operands, const typename K::attributes& attributes = {}) {
    return call<K>(operands, attributes);
  }
  template <operator_kind K>
  constexpr value operator()(const K&, std::initializer_list<value> operands,
                             const typename K::attributes& attributes = {}) {
    return call<K>(std::span<const value>(operands.begin(), operands.size()), attributes);
  }

 private:
  template <class K>
  constexpr value call(std::span<const value> operands, const typename K::attributes& attributes) {
    return static_cast<Derived&>(*this).add(kind_of<K>, operands, to_words(attributes), label());
  }
};

}  // namespace collage::inline v0
