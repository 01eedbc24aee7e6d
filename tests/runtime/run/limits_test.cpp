// The limits of a process, from files as those of /proc and /sys; and what the processor says of itself.
#include "support/files.hpp"
#include "support/messages.hpp"

#include <collage/detail/memory_check.hpp>
#include <collage/error.hpp>
#include <collage/run/limits.hpp>
#include <collage/run/processor.hpp>

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace run_limits_test {

namespace c = collage;
using namespace collage_test;

constexpr double infinite = std::numeric_limits<double>::infinity();
constexpr std::uint64_t mb = 1000000;

/// A folder that stands for the root of the file system.
class root_folder {
 public:
  root_folder(const std::string& groups, const std::string& mounts) {
    write("/proc/self/cgroup", groups);
    write("/proc/self/mountinfo", mounts);
  }
  void write(const std::string& path, const std::string& text) const {
    std::filesystem::create_directories(std::filesystem::path(here_.path() + path).parent_path());
    write_file(here_.path() + path, text);
  }
  c::process_limits limits() const { return c::process_limits(here_.path()); }

 private:
  temporary_folder here_;
};

const std::string v2_mount = "29 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";
const std::string v1_mounts =
    "31 23 0:28 / /sys/fs/cgroup ro - tmpfs tmpfs ro,mode=755\n"
    "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,nosuid shared:9 - cgroup cgroup rw,cpu,cpuacct\n"
    "34 31 0:31 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n"
    "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n";
const std::string v1_groups = "9:cpuset:/\n8:memory:/job/a\n7:cpu,cpuacct:/job/a\n1:name=systemd:/x\n";

TEST(limits, none_without_files) {
  const temporary_folder empty;
  const c::process_limits none(empty.path());
  EXPECT_EQ(none.processors(), infinite);
  EXPECT_TRUE(none.periods().empty());
  EXPECT_FALSE(none.memory_without_room_for(std::uint64_t{1} << 61U));
  const root_folder strange("nothing\n::\n0:\n", "nothing\n - \n1 2 3 - cgroup2\n");
  EXPECT_EQ(strange.limits().processors(), infinite);
}

TEST(limits, quotas_of_version_2) {
  const root_folder root("0::/a.slice/b.scope\n", v2_mount);
  EXPECT_EQ(root.limits().processors(), infinite);
  root.write("/sys/fs/cgroup/a.slice/b.scope/cpu.max", "max 100000\n");
  EXPECT_EQ(root.limits().processors(), infinite);
  root.write("/sys/fs/cgroup/a.slice/b.scope/cpu.max", "250000 100000\n");
  EXPECT_EQ(root.limits().processors(), 2.5);
  root.write("/sys/fs/cgroup/a.slice/cpu.max", "75000 50000\n");  // a parent's quota holds as well
  EXPECT_EQ(root.limits().processors(), 1.5);
  root.write("/sys/fs/cgroup/cpu.max",
             "20000 100000\n");  // as in a container, where the mount point shows its own group
  EXPECT_EQ(root.limits().processors(), 0.2);
  for (const char* text : {"", "max", "100000", "0 100000", "5 0", "-1 100000", "x y"}) {
    root.write("/sys/fs/cgroup/cpu.max", text);
    EXPECT_EQ(root.limits().processors(), 1.5) << text;
  }
}

TEST(limits, quotas_of_version_1) {
  const root_folder root(v1_groups, v1_mounts);
  const auto set = [&](const std::string& group, const char* quota) {
    root.write("/sys/fs/cgroup/cpu,cpuacct" + group + "/cpu.cfs_quota_us", quota);
    root.write("/sys/fs/cgroup/cpu,cpuacct" + group + "/cpu.cfs_period_us", "100000\n");
  };
  set("", "-1\n");
  set("/job/a", "-1\n");
  EXPECT_EQ(root.limits().processors(), infinite);
  set("/job", "300000\n");
  EXPECT_EQ(root.limits().processors(), 3);
  set("/job/a", "50000\n");
  EXPECT_EQ(root.limits().processors(), 0.5);
  set("/job/b", "1000\n");  // another group
  EXPECT_EQ(root.limits().processors(), 0.5);
}

TEST(limits, groups_are_found_where_they_are_mounted) {
  // Docker without namespaces of groups: the mount shows the container's group, and the process sees its path on the host.
  const root_folder host("4:cpu:/docker/123/job\n",
                         "40 30 0:29 /docker/123 /sys/fs/cgroup/cpu ro - cgroup cgroup rw,cpu\n");
  host.write("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000");
  host.write("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "400000");
  EXPECT_EQ(host.limits().processors(), 4);
  host.write("/sys/fs/cgroup/cpu/job/cpu.cfs_period_us", "100000");
  host.write("/sys/fs/cgroup/cpu/job/cpu.cfs_quota_us", "200000");
  EXPECT_EQ(host.limits().processors(), 2);
  // A group that the mount does not show: its parents are looked at as far as they are shown.
  for (const char* path : {"0::/../../elsewhere\n", "0::/elsewhere/x\n", "0::/docker/12\n", "0::/\n"}) {
    const root_folder other(path, "40 30 0:29 /docker/123 /cg\\040groups rw - cgroup2 none rw\n");
    other.write("/cg groups/cpu.max", "100000 100000");
    other.write("/cpu.max", "1 100000");
    EXPECT_EQ(other.limits().processors(), 1) << path;
  }
}

TEST(limits, both_versions_at_once) {
  const root_folder root(v1_groups + "0::/job\n",
                         v1_mounts + v2_mount.substr(0, 10) + " / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n");
  root.write("/sys/fs/cgroup/unified/job/cpu.max", "800000 100000");
  EXPECT_EQ(root.limits().processors(), 8);
  root.write("/sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_period_us", "100000");
  root.write("/sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us", "700000");
  EXPECT_EQ(root.limits().processors(), 7);
}

TEST(limits, throttled_periods) {
  const root_folder v2("0::/job\n", v2_mount);
  v2.write("/sys/fs/cgroup/job/cpu.stat", "usage_usec 9\nnr_periods 120\nnr_throttled 30\nthrottled_usec 1500000\n");
  std::vector<c::quota_periods> found = v2.limits().periods();
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].periods, 120U);
  EXPECT_EQ(found[0].throttled, 30U);
  EXPECT_DOUBLE_EQ(found[0].throttled_s, 1.5);
  EXPECT_EQ(found[1].periods, 0U);
  const root_folder v1(v1_groups, v1_mounts);
  v1.write("/sys/fs/cgroup/cpu,cpuacct/job/cpu.stat", "nr_periods 7\nnr_throttled 2\nthrottled_time 2500000000\n");
  found = v1.limits().periods();
  ASSERT_EQ(found.size(), 3U);
  EXPECT_EQ(found[1].periods, 7U);
  EXPECT_EQ(found[1].throttled, 2U);
  EXPECT_DOUBLE_EQ(found[1].throttled_s, 2.5);
}

/// The limit that has no room, as text; empty if the bytes fit.
std::string without_room(const root_folder& root, std::uint64_t bytes) {
  const auto found = root.limits().memory_without_room_for(bytes);
  return found ? found->set_by + ": " + std::to_string(found->left() / mb) + " of " + std::to_string(found->bytes / mb)
               : std::string();
}

TEST(limits, memory_of_version_2) {
  constexpr std::uint64_t large = std::uint64_t{1} << 50U;  // no machine has so much swap space
  const auto text = [](std::uint64_t bytes) { return std::to_string(bytes) + "\n"; };
  const root_folder root("0::/a/b\n", v2_mount);
  root.write("/sys/fs/cgroup/a/b/memory.max", "max\n");
  EXPECT_EQ(without_room(root, large), "");
  root.write("/sys/fs/cgroup/a/memory.max", text(500 * mb));
  root.write("/sys/fs/cgroup/a/memory.current", text(200 * mb));
  EXPECT_EQ(without_room(root, 300 * mb), "");
  EXPECT_EQ(without_room(root, large), "memory.max of /sys/fs/cgroup/a: 300 of 500");
  // Copies of files are dropped when memory is needed.
  root.write("/sys/fs/cgroup/a/memory.stat", "anon 1\ninactive_file " + text(50 * mb) + "active_file " + text(30 * mb) +
                                                 "slab_reclaimable " + text(20 * mb));
  EXPECT_EQ(without_room(root, 400 * mb), "");
  EXPECT_EQ(without_room(root, large), "memory.max of /sys/fs/cgroup/a: 400 of 500");
  // The limit with least memory left is named.
  root.write("/sys/fs/cgroup/a/b/memory.max", text(100 * mb));
  EXPECT_EQ(without_room(root, large), "memory.max of /sys/fs/cgroup/a/b: 100 of 100");
}

TEST(limits, memory_of_version_1) {
  constexpr std::uint64_t large = std::uint64_t{1} << 50U;
  const root_folder root(v1_groups, v1_mounts);
  root.write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(without_room(root, large), "");
  root.write("/sys/fs/cgroup/memory/job/a/memory.limit_in_bytes", std::to_string(64 * mb));
  root.write("/sys/fs/cgroup/memory/job/a/memory.usage_in_bytes", std::to_string(60 * mb));
  root.write("/sys/fs/cgroup/memory/job/a/memory.stat",
             "inactive_file 1\ntotal_inactive_file " + std::to_string(10 * mb) + "\ntotal_active_file 0\n");
  EXPECT_EQ(without_room(root, 14 * mb), "");
  EXPECT_EQ(without_room(root, large), "memory.limit_in_bytes of /sys/fs/cgroup/memory/job/a: 14 of 64");
}

TEST(limits, memory_of_the_address_space) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_AS, &before), 0);
  rlimit lower = before;
  lower.rlim_cur = std::size_t{1} << 46U;
  ASSERT_EQ(setrlimit(RLIMIT_AS, &lower), 0);
  c::detail::check_memory(std::size_t{1} << 20U, "the arena");
  const std::string said =
      message_of([] { c::detail::check_memory(std::size_t{1} << 47U, "the arena"); }, c::error_kind::environment);
  ASSERT_EQ(setrlimit(RLIMIT_AS, &before), 0);
  EXPECT_TRUE(contains(said, "the arena: needs 140737488.4 MB, but the limit of the address space (ulimit -v) is"))
      << said;
  EXPECT_TRUE(contains(said, "; raise this limit")) << said;
}

TEST(limits, processors_are_named_as_by_linux) {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    if (line.starts_with("flags")) EXPECT_EQ(c::is_virtual_machine(), contains(line + ' ', " hypervisor "));
    if (!line.starts_with("model name")) continue;
    const std::string name = line.substr(line.find(':') + 2);
    const std::string found = c::processor_name();
    EXPECT_TRUE(found == name || found == name + " (avx512)" || found == name + " (avx2)") << found << '\n' << name;
  }
}

}  // namespace run_limits_test
