#include <collage/run/holdups.hpp>

#include <algorithm>
#include <collage/run/limits.hpp>
#include <collage/run/process_clock.hpp>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>
#include <vector>

namespace collage::inline v0 {

namespace detail {

double waited_for_processors_ms() {
  namespace fs = std::filesystem;
  double nanoseconds = 0;
  std::error_code failed;
  for (fs::directory_iterator at("/proc/self/task", failed), end; !failed && at != end; at.increment(failed)) {
    double ran = 0, waited = 0;
    if (std::ifstream(at->path() / "schedstat") >> ran >> waited) nanoseconds += waited;
  }
  return nanoseconds * 1e-6;
}

}  // namespace detail

namespace {

constexpr double least_throttled = 0.01, least_waited = 0.1;

std::size_t since(std::uint64_t before, std::uint64_t now) {
  return now > before ? static_cast<std::size_t>(now - before) : 0;
}

std::string text(const char* format, double number) {
  char made[64];
  std::snprintf(made, sizeof made, format, number);
  return made;
}

std::string advice(const process_holdups& found, int threads, double seconds, double quota) {
  const std::string fewer = threads > 1 ? "Use fewer than " + std::to_string(threads) + " threads, or " : "";
  const auto remedy = [&](std::string rest) {
    if (fewer.empty()) rest[0] = static_cast<char>(rest[0] - 'a' + 'A');
    return fewer + rest;
  };
  if (static_cast<double>(found.throttled) > least_throttled * static_cast<double>(found.periods))
    return "The quota of " + text("%.3g", quota) + (quota == 1 ? " processor" : " processors") +
           " held up the process in " + std::to_string(found.throttled) + " of " + std::to_string(found.periods) +
           " periods (" +
           text("%.0f %%", 100 * static_cast<double>(found.throttled) / static_cast<double>(found.periods)) +
           "), for " + text("%.1f s", found.throttled_s) + " in all, so its times are less exact. " +
           remedy("raise the quota.");
  if (found.waited_s > least_waited * threads * seconds)
    return "Threads waited " + text("%.1f s", found.waited_s) + " for a processor, " +
           text("%.0f %%", 100 * std::min(1.0, found.waited_s / (threads * seconds))) +
           " of the time, so the times are less exact. " + remedy("end the other programs that run here.");
  return {};
}

}  // namespace

holdup_watch::holdup_watch()
    : quotas_(limits_.periods()),
      waited_ms_(detail::waited_for_processors_ms()),
      start_ms_(detail::now_ms()),
      preempted_(detail::preemptions_so_far()) {}

process_holdups holdup_watch::report(int threads, double workers_ms) const {
  process_holdups found;
  const std::vector<quota_periods> now = limits_.periods();
  for (std::size_t i = 0; i < std::min(now.size(), quotas_.size()); ++i) {
    const std::size_t periods = since(quotas_[i].periods, now[i].periods);
    const std::size_t throttled = since(quotas_[i].throttled, now[i].throttled);
    if (periods == 0 || (found.periods != 0 && throttled <= found.throttled)) continue;
    found.periods = periods;
    found.throttled = throttled;
    found.throttled_s = std::max(0.0, now[i].throttled_s - quotas_[i].throttled_s);
  }
  found.waited_s = (std::max(0.0, detail::waited_for_processors_ms() - waited_ms_) + workers_ms) / 1e3;
  found.preempted = since(preempted_, detail::preemptions_so_far());
  found.advice = advice(found, threads, (detail::now_ms() - start_ms_) / 1e3, limits_.processors());
  return found;
}

}  // namespace collage::inline v0
