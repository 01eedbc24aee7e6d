// The one exception type, thrown at every boundary.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <new>

namespace collage::inline v0 {

/// The kind of a failure. It determines the program's exit code: 2 for the user's mistakes, 1 for failures.
enum class error_kind : std::uint8_t {
  invalid_argument,  ///< an option, file, shape or name that the user gave cannot be right
  unsupported,       ///< a correct request for something that no backend here can do
  environment,       ///< a fault of the machine: a missing library, a file system, too little memory
  failure,           ///< this library or another one failed; not the user's mistake
  cancelled,         ///< the caller ended the call before its result was complete
};

/// Text that another object owns, made from a literal or from anything with data() and size().
struct text_ref {
  const char* data = "";
  std::size_t size = 0;

  constexpr text_ref() = default;
  constexpr text_ref(const char* text) : data(text) {
    while (text[size] != '\0') ++size;
  }
  template <class Text>
    requires requires(const Text& t) {
      static_cast<const char*>(t.data());
      static_cast<std::size_t>(t.size());
    }
  constexpr text_ref(const Text& text) : data(text.data()), size(text.size()) {}
};

/// An error message in parts: the fault, its place, and the remedy. `what()` joins them as "where: what; remedy". All parts are
/// copied; empty parts are left out.
class error : public std::exception {
 public:
  error(error_kind kind, text_ref what, text_ref where = {}, text_ref remedy = {}) : kind_(kind) {
    text_ = allocate(where.size + what.size + remedy.size + 8);
    if (text_ == nullptr) return;  // what() then returns a fixed text
    char* at = text_;
    const auto append = [&at](text_ref part) {
      for (std::size_t i = 0; i < part.size; ++i) *at++ = part.data[i];
    };
    if (where.size != 0) {
      append(where);
      append(": ");
    }
    append(what);
    if (remedy.size != 0) {
      append("; ");
      append(remedy);
    }
    *at = '\0';
  }
  error(const error& other) noexcept : std::exception(other), kind_(other.kind_) {
    if (other.text_ == nullptr) return;
    const std::size_t room = text_ref(other.text_).size + 1;
    text_ = allocate(room);
    for (std::size_t i = 0; text_ != nullptr && i < room; ++i) text_[i] = other.text_[i];
  }
  error& operator=(const error&) = delete;
  ~error() override { ::operator delete(text_); }

  error_kind kind() const noexcept { return kind_; }
  const char* what() const noexcept override { return text_ != nullptr ? text_ : "collage: out of memory"; }
  /// The exit code for a program: 2 for the user's mistake, 1 for a failure.
  int exit_code() const noexcept {
    return kind_ == error_kind::invalid_argument || kind_ == error_kind::unsupported ? 2 : 1;
  }

 private:
  static char* allocate(std::size_t room) noexcept { return static_cast<char*>(::operator new(room, std::nothrow)); }

  error_kind kind_;
  char* text_ = nullptr;
};

}  // namespace collage::inline v0
