// Has libgomp wait briefly where it is loaded together with the C library.
//
// libgomp reads GOMP_SPINCOUNT once, in its constructor, so that a library cannot set it for the libgomp that it needs. This one
// can. The C library names it behind libgomp among the libraries that it needs, and behind all that need libgomp. glibc's loader
// initialises the later one of two libraries first if neither needs the other. So the constructor here sets the variable before
// libgomp's reads it. The C library's own constructor comes last, and takes the variable away. Where the order is another one, nothing
// is set.
#include <collage/run/waiting.hpp>

#include <sched.h>
#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>

extern "C" bool collage_end_of_loading();
extern "C" __attribute__((weak)) int omp_get_max_threads();  // of the libgomp that the C library finds

namespace {

constexpr const char* name = "GOMP_SPINCOUNT";
char variable[32] = {};

/// The environment as it was, and as it is while libraries are loaded. The second is never freed: other threads may read it.
char** before = nullptr;
char** made = nullptr;

/// Whether libgomp is loaded and has not read its variables yet. Before, it has one thread; then as many as there are processors.
bool waits_for_its_constructor() { return omp_get_max_threads != nullptr && omp_get_max_threads() == 1; }

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
  if (environ == nullptr || has_one_processor() || !waits_for_its_constructor()) return;
  std::size_t count = 0;
  while (environ[count] != nullptr) ++count;
  made = static_cast<char**>(std::malloc((count + 2) * sizeof(char*)));
  if (made == nullptr) return;
  std::snprintf(variable, sizeof variable, "%s=%d", name, collage::brief_checks);
  std::memcpy(made, environ, count * sizeof(char*));
  made[count] = variable;
  made[count + 1] = nullptr;
  before = environ;
  environ = made;
}

}  // namespace

/// Makes the environment what it was. Returns whether the variable was set meanwhile.
extern "C" __attribute__((visibility("default"))) bool collage_end_of_loading() {
  if (before == nullptr) return false;
  if (environ == made) environ = before;
  else unsetenv(name);  // another constructor has changed the environment
  before = nullptr;
  return true;
}
