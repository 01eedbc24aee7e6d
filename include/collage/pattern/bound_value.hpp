// A value that a pattern bound, as backends see it.
#pragma once

#include <collage/dtype.hpp>
#include <collage/op/kind.hpp>
#include <collage/pattern/match_record.hpp>
#include <collage/shape.hpp>
#include <cstdint>

namespace collage::inline v0 {

/// A value that a pattern bound. If it is optional and missing, `present` returns false.
struct bound_value {
  std::uint32_t value = match_record::nothing;  ///< its number in the graph
  dtype type = dtype::f32;
  shape out;  ///< the value's shape; its number of dimensions is out.rank
  bool is_constant = false;
  bool has_scalar = false;  ///< a constant of one element whose value is known
  double scalar = 0;
  const kind_info* kind = nullptr;  ///< of the operator that computes it, if the pattern has matched that
  std::uint64_t kind_id = 0;        ///< its id; 0 if `kind` is null

  /// Whether there is such a value in the match.
  constexpr bool present() const { return value != match_record::nothing; }
};

}  // namespace collage::inline v0
