#include <collage/error.hpp>
#include <collage/search/checker.hpp>
#include <collage/search/exact.hpp>
#include <collage/search/objective.hpp>

#include <vector>

#include "bounded_search.hpp"
#include "close_order.hpp"
#include "solve.hpp"

namespace collage::inline v0::search {

placement exact(const problem& p, const limits& l) {
  const std::vector<bool> may_cycle = check(p);
  const bool is_bounded = !p.resources.empty() || !p.excluded.empty();
  placement best = detail::solve_in_close_order(p, [&](const problem& in_order) {
    return is_bounded ? detail::solve_bounded(in_order, may_cycle, l)
                      : detail::solve(in_order, detail::costs_of(in_order), may_cycle, l);
  });
#ifndef NDEBUG
  if (const auto fault = violation(p, best))
    throw error(error_kind::failure, "the search's result is not a placement: " + *fault, "search",
                "report this as a fault of collage");
#endif
  return best;
}

}  // namespace collage::inline v0::search
