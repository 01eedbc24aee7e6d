// Workers, in the target collage::place: the process that places starts this program again, and lets it measure.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <collage/measure/time_source.hpp>
#include <collage/place/worker.hpp>
#include "sub_graph.hpp"
#include "wire.hpp"
#include "worker_client.hpp"
#include "worker_exchange.hpp"
#include "worker_main.hpp"
#include "worker_process.hpp"
#include "worker_program.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace collage::inline v0 {

namespace detail {

class worker_client::state {
 public:
  explicit state(const worker_options& options) : options_(options) {}

  std::vector<measured_candidate> measure(const graph& network, backend_table backends,
                                          const place_candidates& candidates, std::span<const std::uint32_t> asked,
                                          const measuring_setup& setup) {
    std::vector<measured_candidate> found(asked.size());
    if (asked.empty()) return found;
    std::vector<std::size_t> open(asked.size());  // positions in `asked` without a result
    std::iota(open.begin(), open.end(), std::size_t{0});
    const auto here = [&](const std::string& why) {
      where_ = "in this process (" + why + ")";
      std::vector<std::uint32_t> rest;
      for (const std::size_t i : open) rest.push_back(asked[i]);
      measuring_setup how = setup;
      how.fence = false;
      if (setup.note) how.note = [&](std::size_t i, measuring_step step) { setup.note(open[i], step); };
      const auto measured = measure_candidates(network, backends, candidates, rest, how);
      for (std::size_t i = 0; i < open.size(); ++i) found[open[i]] = measured[i];
      return found;
    };
    if (!worker_client::is_possible()) return here(why_no_worker());
    if (!given_up_.empty()) return here(given_up_);
    sub_graph_maker maker(network, backends, candidates, asked);
    std::optional<sub_graph> group;
    try {
      group = maker.make();
    } catch (const error& e) { return here(e.what()); }
    if (!group) return here(maker.why_not());
    where_ = in_a_worker;
    outside_ = 0;
    const question q{*group, backends, setup};
    if (const std::string why_not = run(q, open, found); !why_not.empty()) return here(why_not);
    return found;
  }

  const std::string& where() const { return where_; }
  std::size_t restarts() const { return starts_ == 0 ? 0 : starts_ - 1; }
  double waited_ms() const { return waited_ms_; }
  double held_up_ms() const { return held_up_ms_; }
  int process() const { return process_.pid(); }

 private:
  /// The common part of all requests about one list.
  struct question {
    const sub_graph& group;
    backend_table backends;
    const measuring_setup& setup;

    bool is_last_resort(std::size_t i) const {
      return collage::is_last_resort(backends, group.candidates.list[group.asked[i]]);
    }
    bool rounds_nothing(std::size_t i) const {
      return collage::rounds_nothing(group.network, backends, group.candidates, group.candidates.list[group.asked[i]]);
    }
  };

  /// Sends requests until all candidates in `open` have a result. If workers cannot measure them, returns why. The caller then
  /// measures elsewhere the candidates that are left in `open`.
  std::string run(const question& q, std::vector<std::size_t>& open, std::vector<measured_candidate>& found) {
    bool is_puzzling = false;
    while (!open.empty()) {
      // A request may be large. It is not written again for each candidate that is left.
      if (q.setup.give_up && q.setup.give_up()) {
        while (!open.empty()) refuse(open, open.back(), "the time was up before it was measured", found);
        return {};
      }
      const outcome o = ask(q, open, found);
      if (o.what == fate::measured) return {};
      if (o.what == fate::cannot) return o.why;
      if (o.what == fate::outside) {
        if (const auto guilty = count_outside(o, open)) refuse(open, *guilty, o.why + ", three times", found);
        if (!given_up_.empty()) return given_up_;
        continue;
      }
      if (o.is_sure) {
        refuse(open, open[o.which], o.why, found);
        continue;
      }
      // The cause may be another candidate, which ran before in the same process. Each is tried in a worker of its own.
      std::vector<std::size_t> suspects = {open[o.which]};
      if (o.step == measuring_step::timing) suspects = those_that_run(q, open);
      bool is_clear = false;
      for (const std::size_t suspect : suspects) {
        if (const std::string why_not = try_alone(q, suspect, open, found, is_clear); !why_not.empty()) return why_not;
      }
      if (!is_clear && is_puzzling) return measure_apart(q, open, found);
      is_puzzling = is_puzzling || !is_clear;
    }
    return {};
  }

  static void refuse(std::vector<std::size_t>& open, std::size_t which, const std::string& why,
                     std::vector<measured_candidate>& found) {
    found[which] = {};
    found[which].refusal = why;
    std::erase(open, which);
  }

  /// The candidates that are not fallback kernels; if there are only fallback kernels, all of them.
  static std::vector<std::size_t> those_that_run(const question& q, const std::vector<std::size_t>& open) {
    std::vector<std::size_t> list;
    for (const std::size_t i : open)
      if (!q.is_last_resort(i)) list.push_back(i);
    return list.empty() ? open : list;
  }

  /// Measures a candidate in a worker of its own, and refuses it if the worker fails. If workers cannot measure it, returns why.
  std::string try_alone(const question& q, std::size_t which, std::vector<std::size_t>& open,
                        std::vector<measured_candidate>& found, bool& is_refused) {
    const std::vector<std::size_t> alone = {which};
    for (;;) {
      process_.end();
      const outcome o = ask(q, alone, found);
      if (o.what == fate::measured) return {};
      if (o.what == fate::cannot) return o.why;
      std::string why = o.why;
      if (o.what == fate::outside) {
        const auto guilty = count_outside(o, alone);
        if (!given_up_.empty()) return given_up_;
        if (!guilty) continue;
        why += ", three times";
      }
      refuse(open, which, why, found);
      is_refused = true;
      return {};
    }
  }

  /// Measures each candidate in a worker of its own, because only several together make a worker fail. Returns as `run`.
  std::string measure_apart(const question& q, std::vector<std::size_t>& open, std::vector<measured_candidate>& found) {
    bool any = false;
    for (const bool last_resorts : {false, true}) {
      const std::vector<std::size_t> list = open;
      for (const std::size_t i : list) {
        if (q.is_last_resort(i) != last_resorts) continue;
        bool is_refused = false;
        if (last_resorts && any) {
          refuse(open, i, needless_fallback, found);
          continue;
        }
        if (const std::string why_not = try_alone(q, i, open, found, is_refused); !why_not.empty()) return why_not;
        any = any || (found[i].refusal.empty() && q.rounds_nothing(i));
        std::erase(open, i);
      }
    }
    return {};
  }

  /// Counts a failure that no candidate is known to have caused. After three in a row at the same step of the same candidate, it
  /// returns that candidate as the cause. After three others in a row, no more workers are started.
  std::optional<std::size_t> count_outside(const outcome& o, const std::vector<std::size_t>& open) {
    const bool is_one = o.is_under_way && o.step != measuring_step::timing;
    const std::size_t which = is_one ? open[o.which] : 0;
    same_ = is_one && outside_ > 0 && last_which_ == which && last_step_ == o.step ? same_ + 1 : is_one ? 1U : 0U;
    last_which_ = which;
    last_step_ = o.step;
    if (++outside_ < 3) return {};
    outside_ = 0;
    if (same_ >= 3) return which;
    given_up_ = "three workers in a row have failed, the last: " + o.why;
    return {};
  }

  /// Requests the candidates at these positions from a worker.
  outcome ask(const question& q, const std::vector<std::size_t>& which, std::vector<measured_candidate>& found) {
    outcome o;
    measuring_request request;
    request.group.network = q.group.network;
    request.group.candidates.groups = q.group.candidates.groups;
    for (const std::size_t i : which)
      request.group.candidates.list.push_back(q.group.candidates.list[q.group.asked[i]]);
    request.setup.threads = q.setup.threads;
    request.setup.seed = q.setup.seed;
    request.setup.timing = q.setup.timing;
    request.setup.slot_ms = q.setup.slot_ms;
    request.setup.needs_all = q.setup.needs_all;
    request.setup.fence = true;
    request.setup.keep_non_finite = q.setup.keep_non_finite;
    request.setup.algorithms = q.setup.algorithms;
    if (q.setup.monitor != nullptr) {
      request.drift = q.setup.monitor->options();
      request.drift->usual_ms = q.setup.monitor->usual_ms();
    }
    o.what = fate::cannot;
    const request_file contents = write_request(request, q.backends);
    const descriptor file = to_file(contents, o.why);
    if (!o.why.empty()) return o;

    o.what = fate::outside;
    byte_writer letter = start_letter(message::request, ++number_);
    // A worker that ended while it was idle is replaced without a report.
    if (process_.is_there() && !send_packet(process_.socket(), letter.bytes(), file.get())) process_.end(1000);
    if (!process_.is_there()) {
      const auto poll = [&] { (void)(q.setup.stop && q.setup.stop()); };
      if (o.why = start(poll); !o.why.empty()) {
        if (!given_up_.empty()) o.what = fate::cannot;
        return o;
      }
      if (!send_packet(process_.socket(), letter.bytes(), file.get())) {
        o.why = "a worker ended before it got its request";
        process_.end(1000);
        return o;
      }
    }
    return listen(q, which, found);
  }

  /// Ends the worker if an exception of the caller's functions leaves a request without its end.
  class end_if_abandoned {
   public:
    explicit end_if_abandoned(worker_process& process) : process_(process), before_(std::uncaught_exceptions()) {}
    end_if_abandoned(const end_if_abandoned&) = delete;
    end_if_abandoned& operator=(const end_if_abandoned&) = delete;
    ~end_if_abandoned() {
      if (std::uncaught_exceptions() > before_) process_.end();
    }

   private:
    worker_process& process_;
    int before_;
  };

  static byte_writer start_letter(message about, std::uint64_t number) {
    byte_writer letter;
    letter.put(static_cast<std::uint64_t>(about));
    letter.put(number);
    return letter;
  }

  /// Returns why there is no worker. If another start would fail in the same way, `given_up_` says so, too. `poll` is called now
  /// and then; it may throw.
  template <class Poll>
  std::string start(Poll poll) {
    built_ = 0;
    ++starts_;
    std::string why = process_.start();
    const bool is_first = !process_.is_program() && !has_started_;  // whether an executable may be no worker at all
    if (why.empty()) {
      if (why = greet(is_first ? std::min(options_.timeout_s, executable_patience_s) : options_.timeout_s, poll);
          why.empty())
        has_started_ = true;
    }
    if (!why.empty() && is_first) given_up_ = why;
    return why;
  }

  /// Waits until the worker says that it is ready; ends it if it does not, or if it is of another build.
  template <class Poll>
  std::string greet(double patience_s, Poll poll) {
    const auto named = [this](const std::string& what) {
      return (process_.is_program() ? std::string("a worker") : process_.executable()) + " " + what;
    };
    packet p;
    std::string why = named("did not start");
    try {
      const end_if_abandoned watch(process_);
      const waited what = wait_for(process_, p, patience_s * 1e3, poll);
      if (what == waited::end) why = named(end_text(process_.end(1000)) + " before it was ready");
      byte_reader from(p.bytes);
      if (what == waited::message && from.get<std::uint64_t>() == static_cast<std::uint64_t>(message::hello)) {
        (void)from.get<std::uint64_t>();
        if (from.get_text() == build_name()) return {};
        given_up_ = why = named("is of another build of collage than this process");
      }
    } catch (const error&) {
      // The first message was not a hello.
    }
    process_.end();
    return why;
  }

  outcome listen(const question& q, const std::vector<std::size_t>& which, std::vector<measured_candidate>& found) {
    const end_if_abandoned watch(process_);
    exchange sent(number_, which, q.setup, options_.timeout_s, built_);
    bool is_told = false;
    const auto tick = [&] {
      if (is_told || !q.setup.stop || !q.setup.stop()) return;
      const byte_writer letter = start_letter(message::stop, number_);
      is_told = send_packet(process_.socket(), letter.bytes(), -1, MSG_DONTWAIT);
    };
    constexpr double slice_ms = 200;  // between looks at whether to give up
    packet p;
    for (double left_ms = sent.patience_ms();;) {
      if (q.setup.give_up && q.setup.give_up()) {
        process_.end();
        return sent.after_giving_up();
      }
      const waited what = wait_for(process_, p, std::min(left_ms, slice_ms), tick);
      left_ms -= slice_ms;
      if (what == waited::too_long && left_ms > 0) continue;
      if (what == waited::end) return sent.after_end(process_.end(1000));
      if (what == waited::too_long) {
        process_.end();
        return sent.after_silence();
      }
      try {
        const std::optional<outcome> o = sent.read(p.bytes);
        left_ms = sent.patience_ms();
        if (!o) continue;
        if (o->what == fate::measured) accept(sent, which, found);
        return *o;
      } catch (const error& e) {
        process_.end();
        return sent.after_damage(e);
      }
    }
  }

  void accept(exchange& sent, const std::vector<std::size_t>& which, std::vector<measured_candidate>& found) {
    waited_ms_ += sent.waited_ms();
    held_up_ms_ += sent.held_up_ms();
    for (std::size_t i = 0; i < which.size(); ++i) found[which[i]] = std::move(*sent.results()[i]);
    outside_ = 0;
  }

  /// Why no worker can be started.
  static std::string why_no_worker() {
    const worker_executable none = used_worker_executable();
    return none.why_not.empty() ? "the program does not call collage::worker first in main" : none.why_not;
  }

  static constexpr double executable_patience_s = 20;  // for the first sign of life of a file that may be no worker

  worker_options options_;
  worker_process process_;
  std::string where_ = worker_client::is_possible() ? in_a_worker : "in this process (" + why_no_worker() + ")";
  std::string given_up_;
  bool has_started_ = false;
  std::size_t starts_ = 0, built_ = 0;  // `built_`: kernels that the current worker built
  std::size_t outside_ = 0, same_ = 0;  // failures in a row without a known cause, and at one step of one candidate
  std::size_t last_which_ = 0;
  measuring_step last_step_ = measuring_step::build;
  double waited_ms_ = 0, held_up_ms_ = 0;
  std::uint64_t number_ =
      hash(std::to_string(now_ms()).c_str());  // of the last request; the first number cannot be guessed
};

worker_client::worker_client(const worker_options& options) : state_(std::make_unique<state>(options)) {}
worker_client::worker_client(worker_client&&) noexcept = default;
worker_client& worker_client::operator=(worker_client&&) noexcept = default;
worker_client::~worker_client() = default;

bool worker_client::is_possible() { return program().is_noted || !used_worker_executable().path.empty(); }

std::vector<measured_candidate> worker_client::measure(const graph& network, backend_table backends,
                                                       const place_candidates& candidates,
                                                       std::span<const std::uint32_t> asked,
                                                       const measuring_setup& setup) {
  return state_->measure(network, backends, candidates, asked, setup);
}
std::string worker_client::where() const { return state_->where(); }
std::size_t worker_client::restarts() const { return state_->restarts(); }
double worker_client::waited_ms() const { return state_->waited_ms(); }
double worker_client::held_up_ms() const { return state_->held_up_ms(); }
int worker_client::process() const { return state_->process(); }

}  // namespace detail

bool is_worker(int argc, const char* const* argv) { return detail::worker_socket(argc, argv) >= 0; }

bool worker(backend_table backends, int argc, char** argv, list_view<const kind_info* const> kinds) {
  const int socket = detail::worker_socket(argc, argv);
  if (socket < 0) {
    detail::program() = detail::noted_program::now(argc > 0 ? argv[0] : "collage");
    return false;
  }
  detail::prepare_worker(socket);
  detail::watch_connection(socket);
  try {
    detail::worker_loop(socket, backends, kinds).run();
  } catch (const error&) {
    // The process that started this worker sent an invalid message. It notices that the connection ends.
  }
  close(socket);
  return true;
}

}  // namespace collage::inline v0
