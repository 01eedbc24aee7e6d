// The memory that kernels keep constants in, and how much of it a plan may take.
#pragma once

#include <collage/pattern/match_record.hpp>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace collage::inline v0 {

/// A constant that a kernel keeps. A backend says it by
/// `static kept_constants weights(const match<P>&, const configuration&)`. Constants of the match that it does not name are read
/// as they are, and so are all constants of a backend without this member.
struct kept_constant {
  std::uint32_t value = match_record::nothing;  ///< of the network
  std::string
      packing;  ///< as for `build_context::packed`: kernels with the same text share the memory. Empty: as it is
  std::size_t bytes = 0;  ///< of the packed form
};
using kept_constants = std::vector<kept_constant>;

/// How much memory the weights of a plan may take: a ratio of their own size, or bytes.
struct weight_bound {
  double ratio = 1.5;                       ///< of the size of all constants of the network
  std::optional<std::uint64_t> bytes = {};  ///< if set, in place of the ratio
};

/// The memory of a plan's weights, in bytes. Subgraphs are included.
struct weight_memory {
  std::uint64_t weights = 0;  ///< what the plan's kernels keep, with shared memory counted once
  std::uint64_t network = 0;  ///< the constants of the network as they are
  std::uint64_t bound = 0;    ///< the most that was allowed
  friend bool operator==(const weight_memory&, const weight_memory&) = default;
};

}  // namespace collage::inline v0
