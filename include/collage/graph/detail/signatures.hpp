// The inputs and outputs of a node's subgraphs, for shape rules.
#pragma once

#include <collage/graph/graph.hpp>
#include <collage/op/kind.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace collage::inline v0 {

namespace detail {

/// The inputs and outputs of a node's subgraphs, as shape rules see them.
struct signatures_of_bodies {
  std::vector<tensor_type> types;
  std::vector<body_signature> list;

  explicit signatures_of_bodies(std::span<const std::shared_ptr<const graph>> bodies) {
    std::size_t count = 0;
    for (const auto& body : bodies) count += body->inputs().size() + body->outputs().size();
    types.reserve(count);  // so that the spans into it stay valid
    for (const auto& body : bodies) {
      const auto put = [&](std::span<const std::uint32_t> values) {
        for (const std::uint32_t v : values) types.push_back(body->type_of(v));
        return std::span<const tensor_type>(types).last(values.size());
      };
      const std::span<const tensor_type> in = put(body->inputs());
      list.push_back({in, put(body->outputs())});
    }
  }
};

}  // namespace detail

}  // namespace collage::inline v0
