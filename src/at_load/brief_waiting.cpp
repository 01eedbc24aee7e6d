// Has libgomp wait briefly where it is loaded together with the C library.
//
// libgomp reads GOMP_SPINCOUNT once, in its constructor, so that a library cannot set it for the libgomp that it needs. This one
// can. The C library names it behind libgomp among the libraries that it needs, and behind all that need libgomp. glibc's loader
// initialises the later one of two libraries first if neither needs the other. So the constructor here sets the variable before
// libgomp's reads it. The C library's own constructor comes last, and takes the variable away. Where the order is another one, nothing
// is set.
#include <collage/run/waiting.hpp>

#include <sched.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

extern "C" {
bool collage_end_of_loading(bool only_if_in_vain);
__attribute__((weak)) int omp_get_max_threads();  // of the OpenMP library that the C library finds
__attribute__((weak)) void __kmpc_fork_call();    // LLVM's has it
}

namespace {

constexpr const char* name = "GOMP_SPINCOUNT";
bool is_set = false;

/// libgomp has one thread before it reads its variables, and then as many as there are processors, or as a program has set.
bool has_one_thread() { return omp_get_max_threads() == 1; }

bool has_one_processor() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  return sched_getaffinity(0, sizeof allowed, &allowed) == 0 && CPU_COUNT(&allowed) == 1;
}

__attribute__((constructor)) void begin_of_loading() {
  const char* const wish = std::getenv("COLLAGE_WAIT_BRIEFLY");
  if (wish != nullptr && std::strcmp(wish, "0") == 0) return;
  if (std::getenv(name) != nullptr || std::getenv("OMP_WAIT_POLICY") != nullptr) return;
  for (const char* const number :
       {"OMP_NUM_THREADS", "OMP_THREAD_LIMIT"})  // one thread would not show what libgomp has read
    if (const char* const text = std::getenv(number); text != nullptr && std::atoi(text) == 1) return;
  if (omp_get_max_threads == nullptr || __kmpc_fork_call != nullptr || has_one_processor() || !has_one_thread()) return;
  char checks[16];
  std::snprintf(checks, sizeof checks, "%d", collage::brief_checks);
  is_set = setenv(name, checks, 1) == 0;
}

}  // namespace

/// Takes the variable away. `only_if_in_vain`: only where libgomp still has one thread, now that it is initialised. Then it was
/// initialised before, and its user has set the number. Returns whether the variable was taken away.
extern "C" __attribute__((visibility("default"))) bool collage_end_of_loading(bool only_if_in_vain) {
  if (!is_set || (only_if_in_vain && !has_one_thread())) return false;
  is_set = false;
  return unsetenv(name) == 0;
}
