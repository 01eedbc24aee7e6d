// The messages that a worker sends back about one request, and how the request ended.
#pragma once

#include <sys/wait.h>

#include <collage/measure/time_source.hpp>
#include <collage/place/measuring.hpp>
#include "wire.hpp"
#include "worker_main.hpp"
#include "worker_process.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace collage::inline v0::detail {
namespace {

/// How a request to a worker ended.
enum class fate : std::uint8_t {
  measured,
  blamed,   ///< a candidate made the worker fail, or may have
  outside,  ///< the worker failed, and no candidate is known to be the cause
  cannot,   ///< workers cannot measure this
};

struct outcome {
  fate what = fate::measured;
  std::string why;
  std::size_t which = 0;  ///< index in the requested list
  measuring_step step = measuring_step::build;
  bool is_sure = false;       ///< `which` is certainly the cause
  bool is_under_way = false;  ///< `which` and `step` are valid
};

/// A request under way. Reads the messages about it, and throws if one is damaged.
class exchange {
 public:
  /// `built` counts the kernels that the worker has built, also for earlier requests.
  exchange(std::uint64_t number, const std::vector<std::size_t>& which, const measuring_setup& setup, double timeout_s,
           std::size_t& built)
      : number_(number),
        which_(which),
        setup_(setup),
        timeout_s_(timeout_s),
        patience_ms_(10 * timeout_ms()),
        built_(built),
        results_(which.size()) {}

  /// The time to wait for the next message.
  double patience_ms() const { return patience_ms_; }

  /// Reads a message. Returns the outcome if it is the last one.
  std::optional<outcome> read(std::span<const std::byte> bytes) {
    byte_reader from(bytes);
    const auto about = static_cast<message>(from.get<std::uint64_t>());
    if (from.get<std::uint64_t>() != number_) refuse_message("it belongs to no request");
    switch (about) {
      case message::note: read_note(from); return {};
      case message::beat: from.expect_end(); return {};
      case message::result: read_result(from); return {};
      case message::done: return read_done(from);
      case message::thrown: return read_thrown(from);
      case message::cannot: return read_cannot(from);
      default: refuse_message("it is of an unknown kind");
    }
  }

  // Valid after the message `done`.
  std::vector<std::optional<measured_candidate>>& results() { return results_; }
  double waited_ms() const { return waited_ms_; }
  double held_up_ms() const { return held_up_ms_; }

  outcome after_end(const exit_status& status) {
    if (!o_.is_under_way) {
      o_.what = fate::outside;
      o_.why = "a worker ended before it measured anything";
      return o_;
    }
    o_.why = end_text(status, o_.step);
    if (is_from_outside(status)) {
      o_.why = "was killed by " + signal_text(WTERMSIG(*status)) + " " + step_text(o_.step);
      o_.what = fate::outside;
      return o_;
    }
    // Sure only for the first kernel in a process: an earlier kernel may have damaged the process.
    return blame(o_.step != measuring_step::timing && built_ == 1);
  }

  outcome after_silence() {
    o_.why = o_.is_under_way ? "returned nothing within " + seconds_text(timeout_s_) + " " + step_text(o_.step)
                             : "a worker sent nothing in time before it measured anything";
    return blame(is_of_one());
  }

  outcome after_giving_up() {
    o_.why = std::string("the time was up ") + (o_.is_under_way ? step_text(o_.step) : "before it was measured");
    o_.what = fate::blamed;
    o_.is_sure = true;
    return o_;
  }

  outcome after_damage(const error& e) {
    o_.why = e.what();
    if (o_.is_under_way) o_.why = std::string("its worker sent damaged messages ") + step_text(o_.step);
    return blame(false);
  }

 private:
  void read_note(byte_reader& from) {
    if (o_.is_under_way && o_.step == measuring_step::first_call) first_calls_ms_ += now_ms() - since_ms_;
    since_ms_ = now_ms();
    o_.which = get_which(from);
    o_.step = get_step(from);
    o_.is_under_way = true;
    from.expect_end();
    if (o_.step == measuring_step::build) ++built_;
    patience_ms_ = timeout_ms();
    // Kernels are called about ten times before the first round ends.
    if (o_.step == measuring_step::timing) patience_ms_ += 10 * first_calls_ms_;
    if (setup_.note) setup_.note(o_.step == measuring_step::timing ? 0 : which_[o_.which], o_.step);
  }

  void read_result(byte_reader& from) {
    std::optional<measured_candidate>& result = results_[get_which(from)];
    result = get_measured(from);
    from.expect_end();
  }

  outcome read_done(byte_reader& from) {
    waited_ms_ = from.get_amount();
    held_up_ms_ = from.get_amount();
    from.expect_end();
    for (const auto& result : results_)
      if (!result) refuse_message("results are missing");
    o_.what = fate::measured;
    return o_;
  }

  outcome read_thrown(byte_reader& from) {
    o_.which = get_which(from);
    o_.step = get_step(from);
    o_.why = from.get_text() + " " + step_text(o_.step);
    from.expect_end();
    return blame(is_of_one());
  }

  outcome read_cannot(byte_reader& from) {
    if (o_.is_under_way) refuse_message("it comes after measuring began");
    o_.why = from.get_text();
    from.expect_end();
    o_.what = fate::cannot;
    return o_;
  }

  /// Blames the candidate that is under way; without one, the failure came from outside.
  outcome blame(bool is_sure) {
    o_.what = o_.is_under_way ? fate::blamed : fate::outside;
    o_.is_sure = is_sure;
    return o_;
  }

  double timeout_ms() const { return timeout_s_ * 1e3; }
  std::size_t get_which(byte_reader& from) const { return from.get_count(which_.size() - 1); }
  /// Whether the current step is of one candidate only.
  bool is_of_one() const { return o_.step != measuring_step::timing || which_.size() == 1; }

  std::uint64_t number_;
  const std::vector<std::size_t>& which_;
  const measuring_setup& setup_;
  double timeout_s_;
  double patience_ms_;  // at first long: the reference computes first, which is no candidate's fault
  double first_calls_ms_ = 0, since_ms_ = now_ms(), waited_ms_ = 0, held_up_ms_ = 0;
  std::size_t& built_;
  std::vector<std::optional<measured_candidate>> results_;
  outcome o_;
};

}  // namespace
}  // namespace collage::inline v0::detail
