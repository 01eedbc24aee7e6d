// Workers of the C library: the program itself, if its main offers that, or the executable that is installed with the library.
#include "states.hpp"

#include <collage/place/worker.hpp>
#include <collage/run/waiting.hpp>
#include <place/worker_program.hpp>

#include <dlfcn.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>

namespace c = collage;

namespace c_interface {

namespace {

constexpr const char* executable_name = "collage-worker";

/// The absolute path of a file, without symbolic links; empty if there is no such file.
std::string absolute(const char* path) {
  char* const whole = realpath(path, nullptr);
  std::string text = whole != nullptr ? whole : "";
  std::free(whole);
  return text;
}

std::string path_of_library() {
  Dl_info found{};
  const bool is_known = dladdr(reinterpret_cast<const void*>(&path_of_library), &found) != 0;
  return is_known && found.dli_fname != nullptr ? absolute(found.dli_fname) : std::string();
}

/// Noted while the library is loaded: its path may be relative, and the program may change its folder later.
const std::string library = path_of_library();

/// Whether a path leads to a file that can be executed. If it leads to another file, `why_not` says what is wrong.
bool is_executable(const std::string& path, std::string& why_not) {
  struct stat found{};
  if (stat(path.c_str(), &found) != 0) return false;
  if (S_ISREG(found.st_mode) && access(path.c_str(), X_OK) == 0) return true;
  why_not = path + " cannot be executed: " + (S_ISREG(found.st_mode) ? std::strerror(errno) : "it is no file");
  return false;
}

/// The executable that the environment names, or the one that is installed with the library.
c::detail::worker_executable find_executable() {
  c::detail::worker_executable found;
  const auto take = [&found](const std::string& path) {
    if (!is_executable(path, found.why_not)) return false;
    found.path = absolute(path.c_str());
    found.why_not.clear();
    return true;
  };
  const char* const chosen = secure_getenv("COLLAGE_WORKER");
  if (chosen != nullptr && *chosen != '\0') {
    if (std::strcmp(chosen, "none") == 0) found.why_not = "COLLAGE_WORKER is none";
    else if (!take(chosen) && found.why_not.empty())
      found.why_not = "COLLAGE_WORKER is " + std::string(chosen) + ", and there is no such file";
    return found;
  }
  // A library without a path, as one that was loaded from memory, has no neighbours.
  const std::string folder = library.substr(0, library.rfind('/') + 1);
  for (const char* beside : {"", "../libexec/collage/", "../../libexec/collage/"})
    if (!folder.empty() && take(folder + beside + executable_name)) return found;
  if (found.why_not.empty())
    found.why_not = std::string("the program does not call collage_worker first in main, and there is no ") +
                    executable_name + " beside " + (library.empty() ? "libcollage.so" : library);
  return found;
}

}  // namespace

void offer_worker() {
  c::detail::worker_executable found = find_executable();
  found.arguments = {library, waits_briefly() ? "brief" : "default"};
  c::detail::use_worker_executable(std::move(found));
}

}  // namespace c_interface

int collage_worker(int argc, char** argv) noexcept {
  try {
    c_interface::wait_briefly_unless_chosen();
    return c::worker(c_interface::backends(), argc, argv) ? 1 : 0;
  } catch (...) {
    (void)c_interface::note_failure();  // without workers, kernels are measured in this process
    return 0;
  }
}
