// One repetition within another, and a graph that it matches: rows of cells.
#pragma once

#include <collage/collage.hpp>
#include <cstdint>

namespace collage_test {

/// The match of P at a node of a graph, which must be there.
template <class P>
constexpr collage::match_record match_record_of(const collage::graph_view& graph, std::uint32_t node) {
  collage::match_record record;
  if (!collage::match_at(graph, collage::nodes_of<P>, node, record)) throw "no match";
  return record;
}

struct rows : collage::pattern<"rows"> {
  static constexpr auto row = collage::repeat<1, 3>(collage::ops::sub(collage::previous, collage::constant.as<"w">()),
                                                    collage::ops::relu(collage::previous).as<"start">());
  static constexpr auto expr = collage::ops::exp(collage::repeat<1, 3>(row, collage::any.as<"x">()));
};
/// A row of one cell, and one of three.
struct two_rows {
  static constexpr auto graph = collage::define([](auto& g) {
    auto x = g.input("x", {4});
    int number = 0;
    for (int count : {1, 3}) {
      x = g(collage::ops::relu, x);
      for (int i = 0; i < count; ++i) x = g(collage::ops::sub, x, g.constant(collage::label("w") + number++, {4}));
    }
    g.output(g(collage::ops::exp, x));
  });
};
inline constexpr collage::match_record rows_found = match_record_of<rows>(two_rows::graph.view(), 6);
inline constexpr collage::match<rows> rows_match(two_rows::graph.view(), rows_found);

}  // namespace collage_test
