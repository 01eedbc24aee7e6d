// Every function of the C interface checks its arguments and turns exceptions into a status.
#pragma once

#include <collage.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

namespace c_interface {

/// The first member of every handle. It shows when a caller gives a handle of another kind: many languages have one type of
/// pointer for all handles.
enum class handle_kind : std::uint32_t {
  network = 0x636e6574,
  plan = 0x63706c6e,
  engine = 0x63656e67,
  context = 0x63637478,
  session = 0x63736573,
  session_context = 0x63736374,
  growing_context = 0x63676374,
  trace = 0x63747263,
  session_tuning = 0x6373746e,
};

/// A handle shares its state with other handles, so that releasing it does not end a state that another handle needs.
template <handle_kind Kind, class State>
struct handle {
  static constexpr handle_kind expected = Kind;
  using state_type = State;

  handle_kind kind = Kind;
  std::shared_ptr<State> state;

  explicit handle(std::shared_ptr<State> s) : state(std::move(s)) {}
};

/// "network"
const char* name_of(handle_kind kind);

/// One call of a function of the interface. Errors name the function.
class call {
 public:
  explicit call(const char* function) : function_(function) {}

  /// Throws an error about the caller's mistake: "collage_network_input: <what>; <remedy>".
  [[noreturn]] void misuse(const std::string& what, const std::string& remedy) const;

  /// The state of a handle. Throws if the handle is NULL or of another kind.
  template <class Handle>
  typename Handle::state_type& state_of(const Handle* given) const {
    if (given == nullptr) no_pointer(name_of(Handle::expected));
    // Copied, because a handle of another kind must not be read through this type.
    std::uint32_t found = 0;
    std::memcpy(&found, given, sizeof found);
    if (found != static_cast<std::uint32_t>(Handle::expected)) wrong_handle(found, Handle::expected);
    return *given->state;
  }
  template <class Handle>
  const std::shared_ptr<typename Handle::state_type>& shared_state_of(const Handle* given) const {
    (void)state_of(given);
    return given->state;
  }

  /// The target of a result. Throws if it is NULL.
  template <class T>
  T& target(T* given, const char* name) const {
    if (given == nullptr) no_pointer(name);
    return *given;
  }
  /// A text. Throws if it is NULL or empty.
  std::string text(const char* given, const char* name) const;

  /// Throws if an index is not below `count`. `thing` names the things that are counted, as "input".
  void check_index(std::size_t index, std::size_t count, const char* thing) const;
  /// Throws if a list has entries but no address.
  void check_list(const void* first, std::size_t count, const char* name) const;

  /// The options of a caller, whose version of the struct may have fewer members or more. All options are zero if `given` is NULL.
  /// `oldest` is the size of the struct in the first version of the interface.
  template <class Options>
  Options options(const Options* given, const char* name, std::size_t oldest) const {
    Options known{};
    if (given == nullptr) return known;
    const std::size_t size = checked_size(given, sizeof(Options), name, oldest, true);
    std::memcpy(&known, given, size < sizeof(Options) ? size : sizeof(Options));
    return known;
  }

  /// Fills a struct of a caller, whose version of it may have fewer members or more. Members that this library does not know
  /// become zero.
  template <class Answer>
  void answer(Answer* given, Answer filled, const char* name, std::size_t oldest) const {
    if (given == nullptr) no_pointer(name);
    const std::size_t size = checked_size(given, sizeof(Answer), name, oldest, false);
    filled.struct_size = size;
    if (size > sizeof(Answer)) std::memset(given, 0, size);
    std::memcpy(given, &filled, size < sizeof(Answer) ? size : sizeof(Answer));
  }

 private:
  [[noreturn]] void no_pointer(const char* name) const;
  [[noreturn]] void wrong_handle(std::uint32_t found, handle_kind expected) const;
  std::size_t checked_size(const void* given, std::size_t known, const char* name, std::size_t oldest,
                           bool is_read) const;

  const char* function_;
};

/// Keeps the message of the current exception for collage_last_error. Returns the status for the caller.
collage_status note_failure() noexcept;

/// The body of a function: `return guarded(__func__, [&](const call& here) { ... });`.
template <class Body>
collage_status guarded(const char* function, Body&& body) noexcept {
  try {
    body(call(function));
    return COLLAGE_OK;
  } catch (...) { return note_failure(); }
}

/// Deletes a handle. Ignores NULL and leaves a handle of another kind alone, but keeps an error about it for collage_last_error.
template <class Handle>
void release(const char* function, Handle* given) noexcept {
  if (given == nullptr) return;
  (void)guarded(function, [&](const call& here) {
    (void)here.state_of(given);
    delete given;
  });
}

}  // namespace c_interface
