// A backend set lowered to an array of function pointers: from here on, backends are values.
#pragma once

#include <array>
#include <collage/backend_set.hpp>
#include <collage/run/kernel.hpp>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>

namespace collage::inline v0 {

/// One pattern of one backend.
struct pattern_entry {
  const char* name = "";
  bool last_resort = false;  ///< only for what nothing else in the set can run
  std::span<const pattern_node> nodes;
  verdict (*accepts)(const graph_view&, const match_record&) = nullptr;
  std::size_t (*choices)(const graph_view&, const match_record&) = nullptr;
  kernel (*build)(const graph_view&, const match_record&, build_context&) = nullptr;
};

/// One backend.
struct backend_entry {
  const char* name = "";
  std::span<const pattern_entry> patterns;
  probe_result (*probe)() = nullptr;
  int (*enter)(int threads) = nullptr;  ///< null where the backend has none
  void (*leave)(int token) = nullptr;

  const pattern_entry* find(const std::string& pattern) const {
    for (const pattern_entry& p : patterns)
      if (pattern == p.name) return &p;
    return nullptr;
  }
};

using backend_table = std::span<const backend_entry>;

/// While it lives, a backend's library uses this many threads on the calling thread; afterwards what it used before, also
/// when an error passes through.
class thread_scope {
 public:
  thread_scope(const backend_entry& backend, int threads)
      : leave_(backend.leave), token_(backend.enter != nullptr ? backend.enter(threads) : 0) {}
  thread_scope(const thread_scope&) = delete;
  thread_scope& operator=(const thread_scope&) = delete;
  ~thread_scope() {
    if (leave_ != nullptr) leave_(token_);
  }

 private:
  void (*leave_)(int token);
  int token_;
};

namespace detail {

template <class B, class P>
constexpr pattern_entry lower_pattern() {
  pattern_entry e;
  e.name = P::name;
  e.nodes = P::expr.node;
  if constexpr (requires { P::last_resort; }) e.last_resort = P::last_resort;
  e.accepts = [](const graph_view& g, const match_record& r) { return accepts<B>(match<P>(g, r)); };
  e.choices = [](const graph_view& g, const match_record& r) -> std::size_t {
    if constexpr (requires(const match<P>& m) { B::choices(m); }) return B::choices(match<P>(g, r));
    else return 1;
  };
  e.build = [](const graph_view& g, const match_record& r, build_context& c) { return B::build(match<P>(g, r), c); };
  return e;
}

template <class B, class List>
struct lowered_patterns;
template <class B, class... P>
struct lowered_patterns<B, patterns<P...>> {
  static constexpr std::array<pattern_entry, sizeof...(P)> list = {lower_pattern<B, P>()...};  // may be none
};

template <class B>
constexpr backend_entry lower_backend() {
  backend_entry e;
  e.name = B::name;
  e.patterns = lowered_patterns<B, typename B::patterns>::list;
  e.probe = [] {
    if constexpr (requires { B::probe(); }) return B::probe();
    else return probe_result{};
  };
  if constexpr (requires { B::enter(1); }) {
    e.enter = [](int threads) { return B::enter(threads); };
    e.leave = [](int token) { B::leave(token); };
  }
  return e;
}

template <class Set>
struct lowered_set;
template <class... B>
struct lowered_set<backend_set<B...>> {
  static constexpr std::array<backend_entry, sizeof...(B)> list = {lower_backend<B>()...};
};

}  // namespace detail

/// The table of a set; lowered once per set, in static storage.
template <class Set>
inline constexpr backend_table table_of = detail::lowered_set<Set>::list;

}  // namespace collage::inline v0
