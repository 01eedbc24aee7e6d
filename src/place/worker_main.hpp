// The worker's side: this program runs it if it was started as a worker. Definitions: include this header in exactly one file.
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <collage/measure/drift.hpp>
#include <collage/measure/time_source.hpp>
#include <collage/op/built_in.hpp>
#include <collage/op/kind.hpp>
#include <collage/place/measuring.hpp>
#include <collage/run/backend_table.hpp>
#include <collage/run/holdups.hpp>
#include <collage/run/kernel.hpp>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>
#include "fixed_work.hpp"
#include "request.hpp"
#include "sub_graph.hpp"
#include "wire.hpp"
#include "worker_program.hpp"

namespace collage::inline v0::detail {
namespace {

/// The first argument of a worker; the second is the number of its socket.
constexpr char worker_mark[] = "--collage-worker";

/// A packet, and the descriptor of the file that is attached to it; -1 if there is none.
struct packet {
  std::vector<std::byte> bytes;
  int file = -1;
};

/// Sends a packet. Returns false if the other process is gone, or if sending would wait and `flags` forbid that.
inline bool send_packet(int socket, std::span<const std::byte> bytes, int file = -1, int flags = 0) {
  iovec part{const_cast<std::byte*>(bytes.data()), bytes.size()};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  alignas(cmsghdr) std::byte room[CMSG_SPACE(sizeof(int))] = {};
  if (file >= 0) {
    header.msg_control = room;
    header.msg_controllen = sizeof room;
    cmsghdr* const control = CMSG_FIRSTHDR(&header);
    control->cmsg_level = SOL_SOCKET;
    control->cmsg_type = SCM_RIGHTS;
    control->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(control), &file, sizeof file);
  }
  for (;;) {
    if (sendmsg(socket, &header, MSG_NOSIGNAL | flags) >= 0) return true;
    if (errno != EINTR) return false;
  }
}

enum class received : std::uint8_t { packet, nothing, end };

/// Receives a packet. Returns `nothing` if there is none and `flags` forbid waiting.
inline received receive_packet(int socket, packet& to, int flags = 0) {
  to.bytes.resize(most_message_bytes);
  to.file = -1;
  iovec part{to.bytes.data(), to.bytes.size()};
  alignas(cmsghdr) std::byte room[CMSG_SPACE(sizeof(int))] = {};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = room;
  header.msg_controllen = sizeof room;
  ssize_t size = -1;
  do size = recvmsg(socket, &header, MSG_CMSG_CLOEXEC | flags);
  while (size < 0 && errno == EINTR);
  if (size < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return received::nothing;
  if (size <= 0) return received::end;
  to.bytes.resize(static_cast<std::size_t>(size));
  for (cmsghdr* control = CMSG_FIRSTHDR(&header); control != nullptr; control = CMSG_NXTHDR(&header, control))
    if (control->cmsg_level == SOL_SOCKET && control->cmsg_type == SCM_RIGHTS &&
        control->cmsg_len >= CMSG_LEN(sizeof(int))) {
      if (to.file >= 0) close(to.file);
      std::memcpy(&to.file, CMSG_DATA(control), sizeof to.file);
    }
  return received::packet;
}

/// The work of a worker: receives requests, measures and sends results.
class worker_loop {
 public:
  worker_loop(int socket, backend_table backends, list_view<const kind_info* const> more)
      : socket_(socket), backends_(backends) {
    for (std::size_t i = 0; i < more.size(); ++i) kinds_.emplace(more[i]->id, more[i]);
    for (const backend_entry& b : backends)
      for (const pattern_entry& p : b.patterns)
        for (std::size_t n = 0; n < p.nodes.size; ++n)
          for (std::size_t i = 0; i < p.nodes[n].kinds; ++i) kinds_.emplace(p.nodes[n].kind[i]->id, p.nodes[n].kind[i]);
    for (std::size_t i = 0; i < built_in_kinds.size(); ++i) kinds_.emplace(built_in_kinds[i]->id, built_in_kinds[i]);
  }

  /// Serves requests until the connection ends.
  void run() {
    byte_writer hello = start(message::hello);
    hello.put(build_name());
    send(hello);
    for (packet p; !ended_ && receive_packet(socket_, p) == received::packet;) {
      byte_reader from(p.bytes);
      const auto about = from.get<std::uint64_t>();
      const auto number = from.get<std::uint64_t>();
      if (about == static_cast<std::uint64_t>(message::stop)) continue;  // for a request that is already done
      if (about != static_cast<std::uint64_t>(message::request) || p.file < 0) return;
      number_ = number;
      serve(p.file);
    }
  }

 private:
  byte_writer start(message about) const {
    byte_writer to;
    to.put(static_cast<std::uint64_t>(about));
    to.put(number_);
    return to;
  }
  void send(const byte_writer& what) {
    if (!send_packet(socket_, what.bytes())) ended_ = true;
  }

  /// Maps a file into memory, and closes its descriptor.
  static std::shared_ptr<const std::byte> map(int file, std::size_t& size) {
    struct stat known{};
    void* memory = MAP_FAILED;
    if (fstat(file, &known) == 0 && known.st_size > 0) {
      size = static_cast<std::size_t>(known.st_size);
      memory = mmap(nullptr, size, PROT_READ, MAP_SHARED, file, 0);
    }
    close(file);
    if (memory == MAP_FAILED) refuse_message("its file cannot be read");
    return {static_cast<const std::byte*>(memory),
            [size](const std::byte* p) { munmap(const_cast<std::byte*>(p), size); }};
  }

  void serve(int file) {
    std::optional<measuring_request> request;
    try {
      std::size_t size = 0;
      const std::shared_ptr<const std::byte> bytes = map(file, size);
      const kind_finder find = [this](std::uint64_t id) {
        const auto known = kinds_.find(id);
        return known == kinds_.end() ? nullptr : known->second;
      };
      request = request_reader({bytes.get(), size}, bytes, backends_, find).read();
    } catch (const std::exception& e) {
      byte_writer answer = start(message::cannot);
      answer.put_cut(e.what());
      send(answer);
      return;
    }
    measure(*request);
  }

  void measure(measuring_request& request) {
    measuring_setup& setup = request.setup;
    packed_weights packed;
    setup.packed = &packed;
    std::size_t which = 0;
    measuring_step step = measuring_step::build;
    setup.note = [&](std::size_t at, measuring_step doing) {
      which = at;
      step = doing;
      byte_writer to = start(message::note);
      to.put(std::uint64_t{at});
      to.put(static_cast<std::uint64_t>(doing));
      send(to);
    };
    bool stopped = false;
    double told_ms = now_ms();
    setup.stop = [&] {
      stopped = stopped || ended_ || is_stopped();
      if (const double now = now_ms(); now - told_ms >= 100) {
        told_ms = now;
        send_packet(socket_, start(message::beat).bytes(), -1, MSG_DONTWAIT);
      }
      return stopped;
    };
    std::string why;
    try {
      double waited_ms = 0;
      const double held_up_ms = waited_for_processors_ms();
      if (request.drift) {
        setup.monitor = &monitor_for(setup.threads, *request.drift);
        waited_ms = setup.monitor->waited_ms();
      }
      const sub_graph& group = request.group;
      const auto measured = measure_candidates(group.network, backends_, group.candidates, group.asked, setup);
      for (std::size_t i = 0; i < measured.size(); ++i) {
        byte_writer to = start(message::result);
        to.put(std::uint64_t{i});
        put(to, measured[i]);
        send(to);
      }
      byte_writer to = start(message::done);
      to.put(setup.monitor != nullptr ? setup.monitor->waited_ms() - waited_ms : 0.0);
      to.put(std::max(0.0, waited_for_processors_ms() - held_up_ms));
      send(to);
      return;
    } catch (const std::exception& e) { why = std::string("failed: ") + e.what(); } catch (...) {
      why = "threw an object that is no std::exception";
    }
    byte_writer to = start(message::thrown);
    to.put(std::uint64_t{which});
    to.put(static_cast<std::uint64_t>(step));
    to.put_cut(why);
    send(to);
  }

  /// Whether the process that sent the request wants no more results, or is gone.
  bool is_stopped() {
    packet p;
    const received what = receive_packet(socket_, p, MSG_DONTWAIT);
    if (what == received::nothing) return false;
    if (p.file >= 0) close(p.file);
    ended_ = what == received::end || p.bytes.size() < 2 * sizeof(std::uint64_t);
    if (ended_) return true;
    byte_reader from(p.bytes);
    ended_ = from.get<std::uint64_t>() != static_cast<std::uint64_t>(message::stop);
    return ended_ || from.get<std::uint64_t>() == number_;
  }

  /// The monitor is kept from request to request, because its readings show which times are usual on this machine.
  drift_monitor& monitor_for(int threads, const drift_options& options) {
    const auto are_same = [](const drift_options& a, const drift_options& b) {
      return a.calm == b.calm && a.patience_ms == b.patience_ms && a.part == b.part &&
             a.longest_wait_ms == b.longest_wait_ms;
    };
    std::optional<drift_monitor>& known = monitors_[threads];
    if (!known || !are_same(known->options(), options)) known.emplace(drift_works(threads), options);
    return *known;
  }

  int socket_;
  backend_table backends_;
  std::map<std::uint64_t, const kind_info*> kinds_;
  std::map<int, std::optional<drift_monitor>> monitors_;
  std::uint64_t number_ = 0;  // of the request
  bool ended_ = false;
};

/// Ends this process soon after the end of the process that started it, even if a kernel never returns.
inline void watch_connection(int socket) {
  std::thread([socket] {
    pollfd on{socket, 0, 0};
    do on.revents = 0;
    while (poll(&on, 1, -1) < 0 && errno == EINTR);
    _exit(0);
  }).detach();
}

/// Prepares this process to be a worker, before anything else runs.
inline void prepare_worker(int socket) {
  fcntl(socket, F_SETFD, FD_CLOEXEC);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  signal(SIGINT, SIG_IGN);  // the process that started this worker decides when it ends
  signal(SIGQUIT, SIG_IGN);
  const rlimit none{0, 0};
  setrlimit(RLIMIT_CORE, &none);       // crashes are expected
  dup2(STDERR_FILENO, STDOUT_FILENO);  // output of libraries must not mix with the program's own
  if (const int empty = open("/dev/null", O_RDONLY | O_CLOEXEC); empty >= 0) {
    dup2(empty, STDIN_FILENO);
    if (empty != STDIN_FILENO) close(empty);
  }
}

/// The socket of a worker, or -1 if the program was not started as a worker.
inline int worker_socket(int argc, const char* const* argv) {
  if (argc != 3 || std::strcmp(argv[1], worker_mark) != 0) return -1;
  int socket = -1;
  const char* const end = argv[2] + std::strlen(argv[2]);
  const auto [at, error] = std::from_chars(argv[2], end, socket);
  return error == std::errc() && at == end ? socket : -1;
}

}  // namespace
}  // namespace collage::inline v0::detail
