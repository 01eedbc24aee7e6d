// The target collage::place: candidates, costs and the search composed, compiled once.
#include <collage/run/waiting.hpp>
#include "placer.hpp"

namespace collage::inline v0 {

drift_monitor watch_machine(int threads, const drift_options& options) {
  return drift_monitor(detail::drift_works(threads), options);
}

placed_plan place(const graph& network, backend_table backends, const place_options& options) {
  detail::check_stack();
  check_contents(network);
  detail::prepare_for_forks();  // kernels may run in this process before it has an engine
  try {
    placed_plan made = detail::placer(network, backends, options).run();
    detail::log_report(made);
    return made;
  } catch (const detail::cancellation&) {  // while candidates were listed, or kernels built without measuring
    throw error(error_kind::cancelled, "placing was cancelled before there was a plan", options.network,
                "let it run longer");
  }
}

}  // namespace collage::inline v0
