// Limits of processor time and memory: control groups, found by /proc/self/cgroup and /proc/self/mountinfo.
#include <collage/detail/memory_check.hpp>
#include <collage/detail/size_check.hpp>
#include <collage/error.hpp>
#include <collage/run/limits.hpp>

#if defined(__linux__)
#include <sys/resource.h>
#include <sys/sysinfo.h>
#include <unistd.h>
#endif

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <initializer_list>
#include <iterator>
#include <limits>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace collage::inline v0 {
namespace {

/// The contents of a file; nothing if it cannot be read.
std::optional<std::string> contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return {};
  std::string text{std::istreambuf_iterator<char>(file), {}};
  return file.bad() ? std::nullopt : std::optional(std::move(text));
}

/// The number that a text begins with; nothing if it begins with none ("max"), or with a negative one ("-1").
std::optional<std::uint64_t> number_in(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  return failed == std::errc() ? std::optional(value) : std::nullopt;
}
std::optional<std::uint64_t> number_of_file(const std::string& path) {
  const std::optional<std::string> text = contents(path);
  return text ? number_in(*text) : std::nullopt;
}

/// The number behind a name, in a text with a line "NAME NUMBER" for each.
std::uint64_t entry(const std::string& text, std::string_view name) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with(name) && line.size() > name.size() && line[name.size()] == ' ')
      return number_in(std::string_view(line).substr(name.size() + 1)).value_or(0);
  return 0;
}

bool has_word(const std::string& list, const std::string& word) {
  return (',' + list + ',').find(',' + word + ',') != std::string::npos;
}

/// A path of /proc/self/mountinfo, which has a space as \040.
std::string unescaped(const std::string& path) {
  std::string plain;
  for (std::size_t i = 0; i < path.size(); ++i) {
    unsigned code = 0;
    const char* const digits = path.data() + i + 1;
    if (path[i] == '\\' && i + 3 < path.size() && std::from_chars(digits, digits + 3, code, 8).ptr == digits + 3) {
      plain += static_cast<char>(code);
      i += 3;
    } else {
      plain += path[i];
    }
  }
  return plain;
}

/// A mounted hierarchy of control groups: `root` is the group that `point` shows.
struct hierarchy {
  std::string root, point;
  bool is_v2 = false;
};

/// The hierarchies that have a controller. Version 2 has one hierarchy, with all controllers that no other has.
std::vector<hierarchy> hierarchies(const std::string& mounts, const std::string& controller) {
  std::vector<hierarchy> found;
  std::istringstream lines(mounts);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t dash = line.find(" - ");
    if (dash == std::string::npos) continue;
    std::string number, parent, device, type, source, options;
    hierarchy h;
    std::istringstream(line.substr(0, dash)) >> number >> parent >> device >> h.root >> h.point;
    std::istringstream(line.substr(dash + 3)) >> type >> source >> options;
    h.is_v2 = type == "cgroup2";
    if (!h.is_v2 && (type != "cgroup" || !has_word(options, controller))) continue;
    h.root = unescaped(h.root);
    h.point = unescaped(h.point);
    found.push_back(std::move(h));
  }
  return found;
}

/// The group of the process in the hierarchy of a controller, or in that of version 2; nothing if it is in none.
std::optional<std::string> group_path(const std::string& groups, const std::string& controller, bool is_v2) {
  std::istringstream lines(groups);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    if (is_v2 ? controllers.empty() && line.starts_with("0:") : has_word(controllers, controller))
      return line.substr(second + 1);
  }
  return {};
}

/// Where a group is below its hierarchy's mount point: "" or "/a/b". A container may see the path of its group on the host, or one
/// that leads out of what is mounted. It is then in the group that the mount point shows, or in one below that has no path.
std::string below_mount(const hierarchy& h, const std::string& path) {
  std::string below = path;
  if (h.root != "/") {
    const bool is_inside = path == h.root || path.starts_with(h.root + '/');
    below = is_inside ? path.substr(h.root.size()) : std::string();
  }
  if ((below + '/').find("/../") != std::string::npos) below.clear();
  while (!below.empty() && below.back() == '/') below.pop_back();
  return below;
}

std::string megabytes(std::uint64_t bytes) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.1f MB", static_cast<double>(bytes) / 1e6);
  return text.data();
}

/// Swap space that is free, in bytes.
std::uint64_t free_swap() {
#if defined(__linux__)
  struct sysinfo info{};
  if (::sysinfo(&info) == 0) return std::uint64_t{info.freeswap} * info.mem_unit;
#endif
  return 0;
}

/// The memory and swap space of this machine, in bytes. A number that is never reached if they are not known.
std::uint64_t machine_memory() {
#if defined(__linux__)
  struct sysinfo info{};
  if (::sysinfo(&info) == 0) return (std::uint64_t{info.totalram} + info.totalswap) * info.mem_unit;
#endif
  return std::numeric_limits<std::uint64_t>::max();
}

/// The limits of this process, which hardly ever changes its groups.
const process_limits& own_limits() {
  static const process_limits limits;
  return limits;
}

[[noreturn]] void refuse(std::uint64_t bytes, const std::string& limit, const std::string& what) {
  throw error(error_kind::environment, "needs " + megabytes(bytes) + ", but " + limit, what,
              "raise this limit, or run a smaller network or batch");
}

/// Linux refuses a block that is larger than all memory, or ends the process when it is written.
void check_machine(std::size_t bytes, const char* what) {
  if (const std::uint64_t all = machine_memory(); bytes > all)
    refuse(bytes, "the memory of this machine is " + megabytes(all), what);
}

}  // namespace

process_limits::process_limits(std::string root) : root_(std::move(root)) {
  add_groups("cpu", processor_groups_);
  add_groups("memory", memory_groups_);
}

void process_limits::add_groups(const std::string& controller, std::vector<group>& to) const {
  const std::optional<std::string> groups = contents(root_ + "/proc/self/cgroup");
  const std::optional<std::string> mounts = contents(root_ + "/proc/self/mountinfo");
  if (!groups || !mounts) return;
  for (const hierarchy& h : hierarchies(*mounts, controller)) {
    const std::optional<std::string> path = group_path(*groups, controller, h.is_v2);
    if (!path) continue;
    for (std::string below = below_mount(h, *path);; below.erase(below.rfind('/'))) {
      to.push_back({h.point + below, h.is_v2});
      if (below.empty()) break;
    }
  }
}

double process_limits::processors() const {
  double least = std::numeric_limits<double>::infinity();
  for (const group& g : processor_groups_) {
    const std::string folder = root_ + g.folder;
    std::optional<std::uint64_t> quota, period;
    if (g.is_v2) {
      const std::string line = contents(folder + "/cpu.max").value_or("");
      quota = number_in(line);
      if (const std::size_t space = line.find(' '); space != std::string::npos)
        period = number_in(std::string_view(line).substr(space + 1));
    } else {
      quota = number_of_file(folder + "/cpu.cfs_quota_us");
      period = number_of_file(folder + "/cpu.cfs_period_us");
    }
    if (quota.value_or(0) != 0 && period.value_or(0) != 0)
      least = std::min(least, static_cast<double>(*quota) / static_cast<double>(*period));
  }
  return least;
}

std::vector<quota_periods> process_limits::periods() const {
  std::vector<quota_periods> found;
  for (const group& g : processor_groups_) {
    const std::string text = contents(root_ + g.folder + "/cpu.stat").value_or("");
    const double seconds = g.is_v2 ? static_cast<double>(entry(text, "throttled_usec")) * 1e-6
                                   : static_cast<double>(entry(text, "throttled_time")) * 1e-9;
    found.push_back({entry(text, "nr_periods"), entry(text, "nr_throttled"), seconds});
  }
  return found;
}

std::optional<memory_limit> process_limits::limit_of(const group& of, std::uint64_t needed) const {
  const std::string name = of.is_v2 ? "memory.max" : "memory.limit_in_bytes";
  const std::optional<std::uint64_t> most = number_of_file(root_ + of.folder + '/' + name);
  if (!most || *most >= std::uint64_t{1} << 62U) return {};  // version 1 has a number of that size for no limit
  memory_limit found{
      *most, number_of_file(root_ + of.folder + (of.is_v2 ? "/memory.current" : "/memory.usage_in_bytes")).value_or(0),
      name + " of " + of.folder};
  if (needed <= found.left()) return {};
  // Reading what can be dropped takes longer than all else, so that it is read only if it matters.
  const std::string detail = contents(root_ + of.folder + "/memory.stat").value_or("");
  std::uint64_t dropped = 0;
  for (const char* const kind : {"inactive_file", "active_file", "slab_reclaimable"})
    dropped += entry(detail, of.is_v2 ? std::string(kind) : "total_" + std::string(kind));
  found.used -= std::min(found.used, dropped);
  if (needed <= found.left() || needed - found.left() <= free_swap()) return {};
  return found;
}

std::optional<memory_limit> process_limits::address_space_without_room_for([[maybe_unused]] std::uint64_t bytes) const {
#if defined(__linux__)
  rlimit most{};
  if (::getrlimit(RLIMIT_AS, &most) != 0 || most.rlim_cur == RLIM_INFINITY) return {};
  const std::uint64_t pages = number_of_file(root_ + "/proc/self/statm").value_or(0);
  const memory_limit found{most.rlim_cur, pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)),
                           "the limit of the address space (ulimit -v)"};
  if (bytes > found.left()) return found;
#endif
  return {};
}

std::optional<memory_limit> process_limits::memory_without_room_for(std::uint64_t bytes) const {
  std::optional<memory_limit> tightest = address_space_without_room_for(bytes);
  for (const group& g : memory_groups_)
    if (std::optional<memory_limit> found = limit_of(g, bytes);
        found && (!tightest || found->left() < tightest->left()))
      tightest = std::move(found);
  return tightest;
}

namespace detail {

void check_memory(std::size_t bytes, const char* what) {
  constexpr std::size_t least_checked = std::size_t{1} << 20U;
  if (bytes < least_checked) return;
  if (const std::optional<memory_limit> limit = own_limits().memory_without_room_for(bytes))
    refuse(bytes,
           limit->set_by + " is " + megabytes(limit->bytes) + ", of which " + megabytes(limit->left()) + " are left",
           what);
  check_machine(bytes, what);
}

void check_size(std::size_t bytes, const char* what) {
  constexpr std::size_t least_checked = std::size_t{1} << 28U;
  if (bytes < least_checked) return;
  if (const std::optional<memory_limit> limit = own_limits().memory_without_room_for(bytes);
      limit && bytes > limit->bytes)
    refuse(bytes, limit->set_by + " is " + megabytes(limit->bytes), what);
  check_machine(bytes, what);
}

}  // namespace detail

}  // namespace collage::inline v0
