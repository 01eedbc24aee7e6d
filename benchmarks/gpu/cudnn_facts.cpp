// What cuDNN's backend API offers on a device, for convolutions alone and with what follows them: engines, their notes, the
// time to build a plan, workspaces and times. Each plan is a line of commas; the first line that begins with # names them.
//   cudnn_facts [--cudnn FOLDER] [--seconds N] [--engines N] [--only SECTION,...] [--dry]
// --engines holds for each precision of a case. --dry needs no device: plans are built for the properties of an H100 and do
// not run; engines that compile at run time are offered only where a libcuda.so.1 can be opened.
// Times: the median and the least of 10 replays of a CUDA graph of 20 executions, in microseconds of one execution; what
// fits the caches stays in them. Notes: numerical, behavior and knobs are the numbers of the header's enumerations.
// Nothing is linked: libcuda and libcudnn are opened when the program runs. Exit status 2 for a wrong argument, 1 where the
// device or cuDNN cannot be opened.
#include "cudnn_facts_check.hpp"
#include "cudnn_facts_operations.hpp"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

namespace facts {
namespace {

struct section {
  const char* name;
  double share;  ///< of the time, by whose end this section ends
  void (*run)(session&);
};

const std::vector<section> sections{
    {"versions", 1, print_versions},
    {"resnet_float", 0.35, [](session& s) { plain(s, resnet_cases, CUDNN_DATA_FLOAT); }},
    {"fusions_float_nhwc", 0.5, [](session& s) { fusions(s, true, CUDNN_DATA_FLOAT); }},
    {"fusions_bf16_nhwc", 0.62, [](session& s) { fusions(s, true, CUDNN_DATA_BFLOAT16); }},
    {"check", 0.7, check_all},
    {"resnet_bf16", 0.77, [](session& s) { plain(s, resnet_cases, CUDNN_DATA_BFLOAT16); }},
    {"other_float", 0.85, [](session& s) { plain(s, other_cases, CUDNN_DATA_FLOAT); }},
    {"ops", 0.91, others},
    {"fusions_float_nchw", 0.93, [](session& s) { fusions(s, false, CUDNN_DATA_FLOAT); }},
    {"modes", 0.96, compare_modes},
    {"other_bf16", 1, [](session& s) { plain(s, other_cases, CUDNN_DATA_BFLOAT16); }},
};

constexpr int section_failed = 2, not_opened = 4;  // exit statuses of a section's process

/// One process's work on a section; never returns.
[[noreturn]] void run_section(const options& asked, const section& what, clock_type::time_point end, int* begun) {
  int code = not_opened;
  try {
    session s;
    s.asked = asked;
    s.deadline = end;
    s.begun = begun;
    const double left = std::chrono::duration<double>(end - clock_type::now()).count();
    alarm(static_cast<unsigned>(std::max(left, 0.0)) + 20);  // for a call that never returns
    s.open();
    code = section_failed;
    what.run(s);
    if (!s.in_time()) std::printf("# %s: its time is up after %d cases\n", what.name, *begun);
    code = 0;
  } catch (const std::exception& e) {
    if (code == not_opened) std::fprintf(stderr, "cudnn_facts: %s\n", e.what());
    else std::printf("# %s: %s\n", what.name, e.what());
  }
  std::fflush(stdout);
  _exit(code);  // without the libraries' own endings
}

/// Runs a section in a process of its own, and one more where that dies: it goes on after the case it died in. Returns
/// whether the device and cuDNN could be opened.
bool run_in_processes(const options& asked, const section& what, clock_type::time_point start, int* begun) {
  const double share = asked.only.empty() ? what.share : 1;
  const auto end =
      start + std::chrono::duration_cast<clock_type::duration>(std::chrono::duration<double>(asked.seconds * share));
  *begun = 0;
  for (int attempt = 0; attempt < 4; ++attempt) {
    std::printf("# section %s at %.1f s\n", what.name, seconds_since(start));
    std::fflush(stdout);
    const pid_t child = fork();
    if (child == 0) run_section(asked, what, end, begun);
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child) return false;
    const int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    if (code == not_opened) return false;
    if (code == 0 || code == section_failed) return true;
    if (WIFSIGNALED(status)) std::printf("# %s died of signal %d in case %d\n", what.name, WTERMSIG(status), *begun);
    else std::printf("# %s ended with status %d in case %d\n", what.name, code, *begun);
  }
  return true;
}

/// The first name in `only` that is no section's, or nothing.
std::string unknown_section(const std::string& only) {
  for (std::size_t at = 0; at < only.size();) {
    const std::size_t end = std::min(only.find(',', at), only.size());
    const std::string name = only.substr(at, end - at);
    if (std::ranges::none_of(sections, [&](const section& s) { return s.name == name; })) return name;
    at = end + 1;
  }
  return "";
}

int run_all(const options& asked) {
  auto* const begun =
      static_cast<int*>(mmap(nullptr, sizeof(int), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  if (begun == MAP_FAILED) return 1;
  const auto start = clock_type::now();
  std::printf("# fp32: engines of float data without the note TENSOR_CORE; tf32: those with it\n");
  std::printf("# kind,case,layout,precision,fusion,engine,workspace_bytes,median_us,min_us,note\n");
  for (const section& what : sections) {
    const bool is_asked = ("," + asked.only + ",").find("," + std::string(what.name) + ",") != std::string::npos;
    if (!asked.only.empty() && !is_asked) continue;
    if (!run_in_processes(asked, what, start, begun)) return 1;
  }
  std::printf("# done at %.1f s\n", seconds_since(start));
  return 0;
}

}  // namespace
}  // namespace facts

int main(int argc, char** argv) {
  facts::options asked;
  for (int i = 1; i < argc; ++i) {
    const std::string_view name = argv[i];
    if (name == "--dry") {
      asked.dry = true;
      continue;
    }
    const char* const value = i + 1 < argc ? argv[i + 1] : nullptr;
    if (value != nullptr && name == "--cudnn") asked.cudnn = value;
    else if (value != nullptr && name == "--seconds") asked.seconds = std::atof(value);
    else if (value != nullptr && name == "--engines") asked.engines = static_cast<std::size_t>(std::atoi(value));
    else if (value != nullptr && name == "--only") asked.only = value;
    else {
      std::fprintf(stderr,
                   "cudnn_facts: '%s' is not understood: cudnn_facts [--cudnn FOLDER] [--seconds N] [--engines N] "
                   "[--only SECTION,...] [--dry]\n",
                   argv[i]);
      return 2;
    }
    ++i;
  }
  if (const std::string name = facts::unknown_section(asked.only); !name.empty()) {
    std::fprintf(stderr, "cudnn_facts: there is no section '%s'\n", name.c_str());
    return 2;
  }
  return facts::run_all(asked);
}
