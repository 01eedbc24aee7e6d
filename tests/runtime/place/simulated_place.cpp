// Places a simulated network with a store, as slowly as real kernels make it, and writes the plan: for tests that kill it,
// or start it several times at once.
//
// usage: simulated_place NETWORK_SEED NODES STORE PLAN LOG
// A line "KERNEL COMPUTES" is added to LOG when a kernel is raced for the first time.
#include <collage/error.hpp>
#include <collage/io/file.hpp>
#include <collage/io/json.hpp>
#include <collage/io/plan_file.hpp>
#include <collage/place.hpp>

#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <set>
#include <thread>

#include "simulated_backends.hpp"

namespace {

namespace c = collage;

int place(const char* const* words) {
  const c::graph network =
      collage_test::simulated_network(std::strtoull(words[0], nullptr, 10), std::strtoul(words[1], nullptr, 10));
  const int log = ::open(words[4], O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
  if (log < 0) throw c::error(c::error_kind::environment, "cannot be opened", words[4]);
  collage_test::simulated_machine machine;
  std::mt19937 chance(std::random_device{}());
  machine.on_build = [&] { std::this_thread::sleep_for(std::chrono::microseconds(chance() % 1500)); };
  std::set<std::uint64_t> told;
  machine.on_race = [&](const collage_test::simulated_kernel& kernel) {
    if (!told.insert(kernel.name).second) return;
    char line[64];
    const int size = std::snprintf(line, sizeof line, "%016llx %016llx\n", static_cast<unsigned long long>(kernel.name),
                                   static_cast<unsigned long long>(kernel.computes));
    if (::write(log, line, static_cast<std::size_t>(size)) != size) std::abort();
  };
  c::place_options how = machine.options();
  how.store = words[2];
  const c::placed_plan made = c::place<collage_test::simulated_set>(network, how);
  const c::place_report& report = made.report;
  if (!report.unstored.empty()) throw c::error(c::error_kind::failure, report.unstored, words[2]);
  c::save_plan(made, network, words[3]);
  std::printf("%zu\n", report.measured);
  return 0;
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 6) {
    std::fprintf(stderr, "usage: simulated_place NETWORK_SEED NODES STORE PLAN LOG\n");
    return 2;
  }
  try {
    return place(arguments + 1);
  } catch (const c::error& e) {
    std::fprintf(stderr, "simulated_place: %s\n", e.what());
    return 1;
  }
}
