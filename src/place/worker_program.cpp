// The files that workers are started from, and the name of this build.
#include "worker_program.hpp"

#include <collage/fwd.hpp>

#include <elf.h>
#include <link.h>
#include <sys/auxv.h>
#include <sys/stat.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>
#include <utility>

namespace collage::inline v0::detail {

namespace {

struct shared_executable {
  std::mutex mutex;
  worker_executable used;
};
shared_executable& shared() {
  static shared_executable one;
  return one;
}

/// The contents of the note that the linker writes about a build, in hexadecimal digits; empty if there is none.
std::string linker_note(const char* notes, std::size_t size) {
  const auto padded = [](std::size_t bytes) { return (bytes + 3) / 4 * 4; };
  while (size >= sizeof(ElfW(Nhdr))) {
    ElfW(Nhdr) head;
    std::memcpy(&head, notes, sizeof head);
    const std::size_t whole = sizeof head + padded(head.n_namesz) + padded(head.n_descsz);
    if (whole > size) return {};
    const char* const name = notes + sizeof head;
    if (head.n_type == NT_GNU_BUILD_ID && head.n_namesz == 4 && std::memcmp(name, "GNU", 4) == 0) {
      constexpr const char* digits = "0123456789abcdef";
      std::string text;
      for (std::size_t i = 0; i < head.n_descsz; ++i) {
        const auto byte = static_cast<unsigned char>(name[padded(head.n_namesz) + i]);
        text += {digits[byte / 16], digits[byte % 16]};
      }
      return text;
    }
    notes += whole;
    size -= whole;
  }
  return {};
}

/// Called for each loaded object, until it finds the one that contains this code.
int find_note(dl_phdr_info* object, std::size_t, void* to) {
  const auto here = reinterpret_cast<std::uintptr_t>(&find_note);
  const auto address = [object](const ElfW(Phdr) & part) { return object->dlpi_addr + part.p_vaddr; };
  bool is_ours = false;
  for (std::size_t i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)& part = object->dlpi_phdr[i];
    is_ours = is_ours || (part.p_type == PT_LOAD && here >= address(part) && here - address(part) < part.p_memsz);
  }
  if (!is_ours) return 0;
  auto& found = *static_cast<std::string*>(to);
  for (std::size_t i = 0; i < object->dlpi_phnum && found.empty(); ++i)
    if (const ElfW(Phdr)& part = object->dlpi_phdr[i]; part.p_type == PT_NOTE)
      found = linker_note(reinterpret_cast<const char*>(address(part)), part.p_memsz);
  return 1;
}

}  // namespace

noted_program noted_program::now(const char* name) {
  noted_program made{true, name};
  const auto* const started = reinterpret_cast<const char*>(getauxval(AT_EXECFN));
  char* const whole = started != nullptr ? realpath(started, nullptr) : nullptr;
  struct stat found{};
  if (whole != nullptr && stat(whole, &found) == 0) {
    made.path = whole;
    made.device = found.st_dev;
    made.inode = found.st_ino;
  }
  std::free(whole);
  return made;
}

bool noted_program::has_file() const {
  struct stat found{};
  return !path.empty() && stat(path.c_str(), &found) == 0 && found.st_dev == device && found.st_ino == inode;
}

noted_program& program() {
  static noted_program noted;
  return noted;
}

void use_worker_executable(worker_executable found) {
  const std::lock_guard lock(shared().mutex);
  shared().used = std::move(found);
}

worker_executable used_worker_executable() {
  const std::lock_guard lock(shared().mutex);
  return shared().used;
}

const std::string& build_name() {
  static const std::string name = [] {
    std::string note;
    dl_iterate_phdr(find_note, &note);
    return COLLAGE_VERSION " " __VERSION__ " " + note;
  }();
  return name;
}

}  // namespace collage::inline v0::detail
