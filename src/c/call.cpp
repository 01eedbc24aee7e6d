#include "call.hpp"

#include <collage/error.hpp>

#include <exception>
#include <new>

namespace c_interface {

namespace c = collage;

namespace {

/// The last error of a thread. `text` points to the string in `owner`, or to a literal if there was no memory for the string.
struct thread_error {
  std::string owner;
  const char* text = "";
};
thread_error& last() noexcept {
  static thread_local thread_error error;
  return error;
}

collage_status keep(collage_status status, const char* text) noexcept {
  thread_error& to = last();
  try {
    to.owner = text;
    to.text = to.owner.c_str();
  } catch (...) { to.text = "out of memory"; }
  return status;
}

constexpr handle_kind kinds[] = {handle_kind::network,         handle_kind::plan,    handle_kind::engine,
                                 handle_kind::context,         handle_kind::session, handle_kind::session_context,
                                 handle_kind::growing_context, handle_kind::trace,   handle_kind::session_tuning};

/// A larger struct_size can only be uninitialised memory.
constexpr std::size_t largest_struct = 4096;

}  // namespace

const char* name_of(handle_kind kind) {
  switch (kind) {
    case handle_kind::network: return "network";
    case handle_kind::plan: return "plan";
    case handle_kind::engine: return "engine";
    case handle_kind::context: return "context";
    case handle_kind::session: return "session";
    case handle_kind::session_context: return "session context";
    case handle_kind::growing_context: return "growing context";
    case handle_kind::trace: return "trace";
    case handle_kind::session_tuning: return "session tuning";
  }
  return "handle";
}

void call::misuse(const std::string& what, const std::string& remedy) const {
  throw c::error(c::error_kind::invalid_argument, what, function_, remedy);
}

void call::no_pointer(const char* name) const { misuse(std::string(name) + " is NULL", "it is required"); }

void call::wrong_handle(std::uint32_t found, handle_kind expected) const {
  const std::string wanted = name_of(expected);
  for (const handle_kind kind : kinds)
    if (found == static_cast<std::uint32_t>(kind))
      misuse(wanted + " is a handle of " + (kind == handle_kind::engine ? "an " : "a ") + name_of(kind),
             "give a handle of " + std::string(expected == handle_kind::engine ? "an " : "a ") + wanted);
  misuse(wanted + " is not a handle of this library",
         "give a handle that the library returned and that is not released");
}

std::string call::text(const char* given, const char* name) const {
  if (given == nullptr) no_pointer(name);
  if (*given == '\0') misuse(std::string(name) + " is empty", "give a non-empty text");
  return given;
}

void call::check_index(std::size_t index, std::size_t count, const char* thing) const {
  if (index < count) return;
  misuse("there is no " + std::string(thing) + " " + std::to_string(index) + ": there are " + std::to_string(count) +
             ", counted from 0",
         "query their number first");
}

void call::check_list(const void* first, std::size_t count, const char* name) const {
  if (first == nullptr && count != 0)
    misuse(std::string(name) + " is NULL, but its count is " + std::to_string(count),
           "give the address of the first, or set the count to 0");
}

std::size_t call::checked_size(const void* given, std::size_t known, const char* name, std::size_t oldest,
                               bool is_read) const {
  std::size_t size = 0;
  std::memcpy(&size, given, sizeof size);  // the first member of each options and result struct
  if (size < oldest || size > largest_struct)
    misuse(std::string(name) + " has struct_size " + std::to_string(size) + ", which no version of " + name + " has",
           "set it to sizeof(" + std::string(name) + "), which is " + std::to_string(known) + " here");
  const auto* bytes = static_cast<const unsigned char*>(given);
  for (std::size_t i = known; is_read && i < size; ++i)
    if (bytes[i] != 0)
      misuse(std::string(name) + " has members that are not zero and that this library, version " + collage_version() +
                 ", does not know",
             "leave newer members zero, or load a newer library");
  return size;
}

collage_status note_failure() noexcept {
  try {
    throw;
  } catch (const c::error& e) {
    if (e.kind() == c::error_kind::cancelled) return keep(COLLAGE_CANCELLED, e.what());
    return keep(e.exit_code() == 2 ? COLLAGE_MISUSE : COLLAGE_FAILURE, e.what());
  } catch (const std::bad_alloc&) {
    return keep(COLLAGE_FAILURE, "out of memory; release contexts, engines or networks that are not needed");
  } catch (const std::exception& e) {
    try {
      return keep(COLLAGE_FAILURE, ("unexpected: " + std::string(e.what())).c_str());
    } catch (...) { return keep(COLLAGE_FAILURE, "out of memory"); }
  } catch (...) {
    return keep(COLLAGE_FAILURE, "an exception was thrown that is not a std::exception; please report it");
  }
}

}  // namespace c_interface

const char* collage_last_error() noexcept { return c_interface::last().text; }
