// collage-worker: measures kernels for programs that use libcollage.so and cannot be started again themselves. The library starts
// it with the two arguments of a worker, its own path, and how threads wait.
//
// It opens the library by that path, so that both processes have the same one, wherever each is installed.
#include <collage/run/waiting.hpp>

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

int main(int argc, char** argv) {
  if (argc != 5) {
    std::fputs("collage-worker: libcollage.so starts this program to measure kernels; it does nothing else\n", stderr);
    return 2;
  }
  // OpenMP reads it when the library is loaded.
  const bool is_chosen = std::getenv("GOMP_SPINCOUNT") != nullptr || std::getenv("OMP_WAIT_POLICY") != nullptr;
  char checks[16];
  std::snprintf(checks, sizeof checks, "%d", collage::brief_checks);
  const bool is_brief = std::strcmp(argv[4], "brief") == 0;
  if (!is_brief) setenv("COLLAGE_WAIT_BRIEFLY", "0", 1);  // src/at_load/
  if (!is_chosen && is_brief) setenv("GOMP_SPINCOUNT", checks, 1);
  void* const library = dlopen(argv[3], RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    std::fprintf(stderr, "collage-worker: %s cannot be opened: %s\n", argv[3], dlerror());
    return 1;
  }
  const auto set_waiting = reinterpret_cast<int (*)(const char*)>(dlsym(library, "collage_set_waiting"));
  const auto work = reinterpret_cast<int (*)(int, char**)>(dlsym(library, "collage_worker"));
  if (set_waiting == nullptr || work == nullptr) {
    std::fprintf(stderr, "collage-worker: %s is no libcollage.so\n", argv[3]);
    return 1;
  }
  return set_waiting(argv[4]) == 0 && work(3, argv) == 1 ? 0 : 1;
}
