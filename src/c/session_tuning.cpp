// Tuning the engines of a session in the background.
#include "plans.hpp"
#include "sessions.hpp"

#include <collage/place/background_tuning.hpp>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <utility>

namespace c_interface {

namespace c = collage;

struct tuning_state {
  std::shared_ptr<const session_state> session;
  c::background_tuning tuning;
};

namespace {

constexpr std::size_t oldest_tuning_info =
    offsetof(collage_session_tuning_info, failure) + sizeof(collage_session_tuning_info::failure);

placing_request tuning_request_of(const call& here, const collage_place_options& given) {
  if (given.previous != nullptr)
    here.misuse("previous is a plan, and a tuning places several networks", "set it to NULL");
  if (given.how != COLLAGE_PLACE_MEASURE)
    here.misuse("how is not COLLAGE_PLACE_MEASURE, and a tuning measures", "set it to COLLAGE_PLACE_MEASURE");
  placing_request by = placing_of(here, given);
  if (by.may_round())
    here.misuse("precision is " + std::string(c::name_of(by.how.precision.elements)) +
                    ", and a tuning places networks for which there are no samples",
                "set it to NULL");
  by.is_in_background = true;
  return by;
}

template <std::size_t N>
void copy_text(const std::string& from, char (&to)[N]) {
  const std::size_t size = std::min(from.size(), N - 1);
  std::copy_n(from.data(), size, to);
  to[size] = '\0';
}

}  // namespace
}  // namespace c_interface

struct collage_session_tuning
    : c_interface::handle<c_interface::handle_kind::session_tuning, const c_interface::tuning_state> {
  using handle::handle;
};

using c_interface::call;
using c_interface::guarded;

collage_status collage_session_tuning_start(const collage_session* session, const collage_place_options* placing,
                                            collage_session_tuning** tuning) noexcept {
  return guarded(__func__, [&](const call& here) {
    const auto& of = here.shared_state_of(session);
    collage_session_tuning*& to = here.target(tuning, "tuning");
    const auto given = here.options(placing, "collage_place_options", c_interface::oldest_place_options);
    c_interface::placing_request by = c_interface::tuning_request_of(here, given);
    const auto place = [by = std::move(by)](const collage::graph& network,
                                            const std::function<bool()>& cancel) -> collage::plan {
      c_interface::placing_request own = by;
      own.how.cancel = cancel;
      return c_interface::place_by(own, network);
    };
    to = new collage_session_tuning(std::make_shared<const c_interface::tuning_state>(
        c_interface::tuning_state{of, collage::background_tuning(of->session, place)}));
  });
}

void collage_session_tuning_release(collage_session_tuning* tuning) noexcept { c_interface::release(__func__, tuning); }

collage_status collage_session_tuning_get_info(const collage_session_tuning* tuning,
                                               collage_session_tuning_info* info) noexcept {
  return guarded(__func__, [&](const call& here) {
    const collage::background_tuning_state now = here.state_of(tuning).tuning.state();
    collage_session_tuning_info filled{};
    filled.improved = now.improved;
    filled.failed = now.failed;
    c_interface::copy_text(now.tuning, filled.tuning);
    c_interface::copy_text(now.last_failure, filled.failure);
    here.answer(info, filled, "collage_session_tuning_info", c_interface::oldest_tuning_info);
  });
}
