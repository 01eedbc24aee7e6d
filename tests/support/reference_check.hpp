// What the tests of the reference share: random tensors from a printed seed, tensors by index, running a kind.
#pragma once

#include "random_numbers.hpp"

#include <collage/backends/reference.hpp>
#include <collage/ops.hpp>
#include <collage/run/elements.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace collage_test::reference {

namespace op = collage::ops;
using collage::dtype;
using collage::oracle_value;
using collage::shape;

inline constexpr double infinity = std::numeric_limits<double>::infinity();
inline const double not_a_number = std::numeric_limits<double>::quiet_NaN();

using multi_index = std::vector<std::int64_t>;

/// Random shapes and tensors.
class random_source : public random_numbers {
 public:
  double real() { return random_numbers::real(-2, 2); }

  /// A shape of the given rank; extents are small, often 1, and sometimes 0.
  collage::shape dims(std::int64_t rank, bool with_empty = true) {
    collage::shape s;
    for (std::int64_t i = 0; i < rank; ++i)
      s.push_back(with_empty && chance(0.03) ? 0 : chance(0.25) ? 1 : number(1, 7));
    return s;
  }
  /// Random elements: reals in [-2, 2], integers that fit the type and are often at its ends.
  collage::oracle_value tensor(const collage::shape& dims, collage::dtype type = collage::dtype::f32,
                               double specials = 0) {
    collage::oracle_value v(collage::tensor_type{type, dims});
    const double special[] = {not_a_number, infinity, -infinity, 0.0, -0.0};
    for (double& x : v.real) x = chance(specials) ? special[number(0, 4)] : real();
    if (!v.integer.empty())
      collage::detail::with_integer_type(type, [&](auto zero) {
        using limits = std::numeric_limits<decltype(zero)>;
        for (std::int64_t& x : v.integer) {
          x = static_cast<std::int64_t>(static_cast<decltype(zero)>(number(-9, 9)));
          if (chance(0.1)) x = static_cast<std::int64_t>(chance(0.5) ? limits::max() : limits::min());
        }
      });
    return v;
  }
};

/// The extents of both, one after the other.
inline collage::shape joined(std::initializer_list<std::int64_t> head, const collage::shape& tail) {
  collage::shape s;
  for (const std::int64_t e : head) s.push_back(e);
  for (const std::int64_t e : tail) s.push_back(e);
  return s;
}

/// The elements as a tensor of its type stores them.
inline std::shared_ptr<const std::byte> bytes_of(const collage::oracle_value& v) {
  const std::shared_ptr<std::byte> bytes = collage::allocate_bytes(v.type.bytes());
  collage::from_oracle(v, bytes.get());
  return bytes;
}

/// Where an index lies in a dense tensor; missing leading entries and extents of 1 broadcast.
inline std::size_t at(const collage::shape& dims, const multi_index& i) {
  std::int64_t linear = 0;
  for (std::size_t d = 0; d < dims.size(); ++d)
    linear = linear * dims[d] + (dims[d] == 1 ? 0 : i[i.size() - dims.size() + d]);
  return static_cast<std::size_t>(linear);
}

/// Calls body(index) for every index of a shape, in order.
template <class Body>
void for_each_index(const collage::shape& dims, const Body& body) {
  if (dims.elements() == 0) return;
  multi_index i(dims.size(), 0);
  for (;;) {
    body(i);
    std::size_t d = dims.size();
    while (d > 0 && ++i[d - 1] == dims[d - 1]) i[--d] = 0;
    if (d == 0) return;
  }
}

/// Runs a kind as a node of it would run: attributes normalised, types inferred.
template <class K>
collage::oracle_value run(const K&, std::vector<collage::oracle_value> in, typename K::attributes attributes = {}) {
  std::vector<collage::tensor_type> types;
  for (const collage::oracle_value& v : in) types.push_back(v.type);
  if constexpr (requires { K::normalise(attributes, types); }) K::normalise(attributes, types);
  const collage::attribute_words words = collage::to_words(attributes);
  return collage::evaluate_node(collage::kind_of<K>, words.list(), in).at(0);
}

/// A float tensor with given elements.
inline collage::oracle_value reals(const collage::shape& dims, std::vector<double> list) {
  collage::oracle_value v(collage::tensor_type{collage::dtype::f32, dims});
  EXPECT_EQ(v.real.size(), list.size());
  v.real = std::move(list);
  return v;
}
inline collage::oracle_value integers(const collage::shape& dims, std::vector<std::int64_t> list,
                                      collage::dtype type = collage::dtype::i64) {
  collage::oracle_value v(collage::tensor_type{type, dims});
  EXPECT_EQ(v.integer.size(), list.size());
  v.integer = std::move(list);
  return v;
}

inline std::string text_of(const collage::shape& dims) {
  std::string text = "[";
  for (const std::int64_t e : dims) text += ' ' + std::to_string(e);
  return text + " ]";
}

/// Element for element, to a few units in the last place of the largest; NaN and infinities in the same places.
inline void expect_same(const collage::oracle_value& got, const collage::oracle_value& wanted,
                        const std::string& what) {
  ASSERT_EQ(text_of(got.type.dims), text_of(wanted.type.dims)) << what;
  ASSERT_EQ(got.integer, wanted.integer) << what;
  double largest = 0;
  for (const double r : wanted.real)
    if (std::isfinite(r)) largest = std::max(largest, std::abs(r));
  for (std::size_t i = 0; i < wanted.real.size(); ++i) {
    const double a = got.real[i];
    const double r = wanted.real[i];
    const bool same = std::isfinite(r) ? std::abs(a - r) <= 1e-13 * (largest + 1)
                      : std::isnan(r)  ? std::isnan(a)
                                       : a == r;
    ASSERT_TRUE(same) << what << ": element " << i << " is " << a << ", not " << r;
  }
}

}  // namespace collage_test::reference
