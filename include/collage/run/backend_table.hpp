// A backend set lowered to an array of function pointers: from here on, backends are values.
#pragma once

#include <array>
#include <collage/backend_set.hpp>
#include <collage/fwd.hpp>
#include <collage/run/kernel.hpp>
#include <collage/set/algebra.hpp>
#include <collage/set/candidate.hpp>
#include <collage/set/declared.hpp>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace collage::inline v0 {

/// One pattern of one backend, and how its kernels are built.
struct pattern_entry : declared_pattern {
  std::size_t (*choices)(const graph_view&, const match_record&) = nullptr;
  kernel (*build)(const graph_view&, const match_record&, build_context&) = nullptr;
  /// Null where every choice reads and writes plain values.
  void (*layouts)(const graph_view&, const match_record&, std::size_t choice, value_layouts&) = nullptr;
};

/// One backend.
struct backend_entry {
  const char* name = "";
  std::span<const pattern_entry> patterns;
  probe_result (*probe)() = nullptr;
  int (*enter)(int threads) = nullptr;  ///< null where the backend has none
  void (*leave)(int token) = nullptr;
  // Of a backend that has a rule; null where it has none, and `takes` also where every operator is asked about. One that
  // takes regions lists nothing.
  bool takes_regions = false;
  void (*list_groups)(const fuse::dataflow&, fuse::group_list&) = nullptr;
  bool (*takes)(const graph&, std::uint32_t node) = nullptr;
  kernel (*build_group)(const node_group&, build_context&) = nullptr;

  const pattern_entry* find(const std::string& pattern) const {
    for (const pattern_entry& p : patterns)
      if (pattern == p.name) return &p;
    return nullptr;
  }
};

using backend_table = std::span<const backend_entry>;

/// In which layouts a kernel reads and writes the values of a match.
inline value_layouts layouts_of(const pattern_entry& pattern, const graph_view& graph, const match_record& record,
                                std::size_t choice) {
  value_layouts found;
  if (pattern.layouts != nullptr) pattern.layouts(graph, record, choice, found);
  return found;
}

/// The values that a kernel for a match writes, in the order of kernel_call::out: all outputs of the root's operator, then
/// what else is read outside, in the order of match::output.
inline std::vector<std::uint32_t> written_values(const graph_view& graph, const match_record& record) {
  std::vector<std::uint32_t> values;
  const auto root = static_cast<std::uint32_t>(graph.values[record.output[0]].producer);
  for (std::uint32_t i = 0; i < graph.nodes[root].outputs; ++i) values.push_back(graph.output_of(root, i));
  for (const std::uint32_t v : record.output_list())
    if (static_cast<std::uint32_t>(graph.values[v].producer) != root) values.push_back(v);
  return values;
}

/// Whether a backend's rule is asked about a node, or a region may hold it. About control flow nobody is asked, and about
/// views those alone that take regions.
inline bool takes_node(const backend_entry& backend, const graph& network, std::uint32_t node) {
  return (backend.takes_regions || !is_alias(network.view(), node)) && !is_control(network.view(), node) &&
         (backend.takes == nullptr || backend.takes(network, node));
}

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
std::size_t choices_at(const graph_view& graph, const match_record& record) {
  return B::choices(match<P>(graph, record));
}
inline std::size_t one_choice(const graph_view&, const match_record&) { return 1; }
template <class B, class P>
kernel build_at(const graph_view& graph, const match_record& record, build_context& context) {
  return B::build(match<P>(graph, record), context);
}

template <class B, class P>
void layouts_at(const graph_view& graph, const match_record& record, std::size_t choice, value_layouts& to) {
  B::layouts(match<P>(graph, record), choice, to);
}

template <class B, class P>
constexpr pattern_entry lower_pattern() {
  pattern_entry e{declare<B, P>()};
  if constexpr (requires(const match<P>& m) { B::choices(m); }) e.choices = choices_at<B, P>;
  else e.choices = one_choice;
  e.build = build_at<B, P>;
  if constexpr (requires(const match<P>& m, value_layouts& to) { B::layouts(m, std::size_t{}, to); })
    e.layouts = layouts_at<B, P>;
  return e;
}
template <class B, class... P>
constexpr std::array<pattern_entry, sizeof...(P)> lower_patterns(const patterns<P...>&) {
  return {lower_pattern<B, P>()...};  // may be none
}
template <class B>
inline constexpr auto lowered_patterns = lower_patterns<B>(patterns_of<B>{});

template <class B>
constexpr backend_entry lower_backend() {
  backend_entry e;
  e.name = B::name;
  e.patterns = lowered_patterns<B>;
  e.probe = probe_of<B>;
  if constexpr (requires { B::enter(1); }) {
    e.enter = [](int threads) { return B::enter(threads); };
    e.leave = [](int token) { B::leave(token); };
  }
  if constexpr (has_regions<B>) e.takes_regions = true;
  else if constexpr (has_rule<B>)
    e.list_groups = [](const fuse::dataflow& flow, fuse::group_list& to) { B::rule.collect(flow, to); };
  if constexpr (has_rule<B> || has_regions<B>) {
    e.build_group = [](const node_group& group, build_context& context) { return B::build(group, context); };
    if constexpr (has_takes<B>) e.takes = [](const graph& network, std::uint32_t n) { return B::takes(network, n); };
  }
  return e;
}
template <class... B>
constexpr std::array<backend_entry, sizeof...(B)> lower_set(const backend_list<B...>&) {
  return {lower_backend<B>()...};
}
template <class Set>
constexpr auto lower() {
  // Of a set that is none, one error is enough.
  if constexpr (Set::is_sound) return lower_set(backends_in<Set>{});
  else return std::array<backend_entry, 0>{};
}
template <class Set>
inline constexpr auto lowered_set = lower<Set>();

}  // namespace detail

/// The table of a set; lowered once per set, in static storage.
template <backend_set_type Set>
inline constexpr backend_table table_of = detail::lowered_set<Set>;

}  // namespace collage::inline v0
