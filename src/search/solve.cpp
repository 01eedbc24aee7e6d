#include "solve.hpp"

#include "exact_search.hpp"

namespace collage::inline v0::search::detail {

placement solve(const problem& p, std::span<const std::int64_t> costs, const std::vector<bool>& may_cycle,
                const limits& l, const pace& how) {
  return exact_search(p, costs, may_cycle, l, how).run();
}

}  // namespace collage::inline v0::search::detail
