// What the tests of passes share: constants in a few words, and running two graphs on the same data.
#pragma once

#include <gtest/gtest.h>

#include <collage/backends/reference.hpp>
#include <collage/collage.hpp>
#include <collage/graph/graph.hpp>
#include <collage/run/tensor.hpp>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "support/random_graph.hpp"

namespace collage_test {

/// A kind with two outputs: x and -x.
inline constexpr struct both_signs : c::kind<both_signs> {
  static constexpr char name[] = "both_signs";
  static constexpr std::uint32_t outputs = 2;
  static constexpr c::verdict infer(const attributes&, c::inference& io) {
    io.out[0] = io.out[1] = io.in[0];
    return {};
  }
  static void reference(const attributes&, const c::reference_call& call) {
    for (std::size_t i = 0; i < call.in[0].real.size(); ++i) {
      call.out[0].real[i] = call.in[0].real[i];
      call.out[1].real[i] = -call.in[0].real[i];
    }
  }
} both_signs{};

/// A kind that the reference does not know.
inline constexpr struct mystery : c::kind<mystery> {
  static constexpr char name[] = "mystery";
  static constexpr c::verdict infer(const attributes&, c::inference& io) {
    io.out[0] = io.in[0];
    return {};
  }
} mystery{};

template <class T>
std::shared_ptr<const std::byte> bytes_of(std::initializer_list<T> list) {
  const std::shared_ptr<std::byte> bytes = c::allocate_bytes(list.size() * sizeof(T));
  std::memcpy(bytes.get(), list.begin(), list.size() * sizeof(T));
  return bytes;
}
inline c::value floats(c::graph_builder& g, const char* name, std::initializer_list<float> list) {
  return g.constant(name, {c::dtype::f32, {list.size()}}, bytes_of(list));
}
inline c::value integers(c::graph_builder& g, const char* name, std::initializer_list<std::int64_t> list) {
  return g.constant(name, {c::dtype::i64, {list.size()}}, bytes_of(list));
}

inline std::uint32_t find(const c::graph& g, const std::string& name) {
  for (std::uint32_t v = 0; v < g.values().size(); ++v)
    if (g.value_name(v) == name) return v;
  ADD_FAILURE() << "no value " << name;
  return 0;
}
inline bool holds(const c::graph& g, const std::string& name) {
  for (std::uint32_t v = 0; v < g.values().size(); ++v)
    if (g.value_name(v) == name) return true;
  return false;
}
inline std::vector<std::string> node_names(const c::graph& g) {
  std::vector<std::string> names;
  for (std::uint32_t n = 0; n < g.nodes().size(); ++n) names.push_back(g.node_name(n));
  return names;
}

using names = std::vector<std::string>;
inline names kinds(const c::graph& g) {
  names list;
  for (const c::node_record& n : g.nodes()) list.emplace_back(n.kind->name);
  return list;
}

/// Both graphs have the same inputs and outputs, and give the same numbers for the same random inputs.
inline void expect_same_results(const c::graph& before, const c::graph& after, double tolerance = 0) {
  ASSERT_EQ(before.inputs().size(), after.inputs().size());
  ASSERT_EQ(before.outputs().size(), after.outputs().size());
  std::vector<c::tensor> inputs;
  for (std::size_t i = 0; i < before.inputs().size(); ++i) {
    const std::uint32_t v = before.inputs()[i], w = after.inputs()[i];
    EXPECT_EQ(before.value_name(v), after.value_name(w));
    ASSERT_EQ(before.type_of(v), after.type_of(w));
    inputs.emplace_back(before.type_of(v));
    if (before.type_of(v).type == c::dtype::f32)
      c::fill_uniform(inputs.back().as<float>(), "input " + std::to_string(i), {-1, 1});
    else
      for (std::size_t at = 0; at < inputs.back().bytes(); ++at)
        inputs.back().data()[at] = static_cast<std::byte>(at * 37 + i);
  }
  const std::vector<c::const_tensor_view> views(inputs.begin(), inputs.end());
  const std::vector<c::oracle_value> a = evaluate(before, views), b = evaluate(after, views);
  for (std::size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(before.output_name(i), after.output_name(i));
    EXPECT_EQ(a[i].type.type, b[i].type.type);
    EXPECT_EQ(a[i].type.dims, b[i].type.dims);
    EXPECT_EQ(a[i].integer, b[i].integer);
    ASSERT_EQ(a[i].real.size(), b[i].real.size());
    for (std::size_t e = 0; e < a[i].real.size(); ++e)
      ASSERT_NEAR(a[i].real[e], b[i].real[e], tolerance) << "element " << e;
  }
}

}  // namespace collage_test
