// A backend set lowered to an array of function pointers: from here on, backends are values.
#pragma once

#include <algorithm>
#include <array>
#include <collage/backend_set.hpp>
#include <collage/error.hpp>
#include <collage/fwd.hpp>
#include <collage/op/convert_layout.hpp>
#include <collage/run/algorithm.hpp>
#include <collage/run/configuration.hpp>
#include <collage/run/form.hpp>
#include <collage/run/kernel.hpp>
#include <collage/run/layouts.hpp>
#include <collage/run/node_group.hpp>
#include <collage/run/precision.hpp>
#include <collage/run/space.hpp>
#include <collage/run/weights.hpp>
#include <collage/set/algebra.hpp>
#include <collage/set/candidate.hpp>
#include <collage/set/declared.hpp>
#include <collage/set/variants.hpp>
#include <collage/verdict.hpp>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace collage::inline v0 {

/// One pattern of one backend, with the functions that build its kernels.
struct pattern_entry : declared_pattern {
  /// The number of variants. Null if the backend proposes configurations instead.
  std::size_t (*choices)(const graph_view&, const match_record&) = nullptr;
  void (*configurations)(const graph_view&, const match_record&, configuration_list&) = nullptr;
  /// Whether the backend has a configuration. Null: it has those that it numbers or proposes.
  verdict (*knows)(const graph_view&, const match_record&, const configuration&) = nullptr;
  /// The whole space of configurations like one that the backend has: with the same forms, for so many threads. Null, the function or
  /// its result: there is none to search.
  std::shared_ptr<const tune::any_space> (*search_space)(const graph_view&, const match_record&,
                                                         const configuration& like, int threads) = nullptr;
  /// How the kernel of a configuration computes. Null: by the operator's definition.
  kernel_algorithm (*algorithm)(const graph_view&, const match_record&, const configuration&) = nullptr;
  /// The constants that the kernel of a configuration keeps in another form. Null: none, it reads them as they are.
  kept_constants (*weights)(const graph_view&, const match_record&, const configuration&) = nullptr;
  kernel (*build)(const graph_view&, const match_record&, build_context&) = nullptr;
  /// Null if every variant reads and writes plain values.
  void (*layouts)(const graph_view&, const match_record&, const configuration&, value_forms&) = nullptr;
  /// The memory space of all that it reads and writes, except constants. Null: `layouts` gives it, as for conversions.
  const memory_space* space = nullptr;
};

/// One backend.
struct backend_entry {
  const char* name = "";
  std::span<const pattern_entry> patterns;
  probe_result (*probe)() = nullptr;
  int (*enter)(int threads) = nullptr;  ///< null if the backend has none
  void (*leave)(int token) = nullptr;
  const memory_space* space = &host_space;  ///< that its kernels read and write
  // For a backend with a fusion rule; null without one. A null `takes` accepts every operator. A backend that takes regions
  // lists no groups.
  bool takes_regions = false;
  void (*list_groups)(const fuse::dataflow&, fuse::group_list&) = nullptr;
  verdict (*takes)(const graph&, std::uint32_t node) = nullptr;
  kernel (*build_group)(const node_group&, build_context&) = nullptr;
  verdict (*joins)(const graph&, std::uint32_t node) = nullptr;  ///< for regions; null: every node joins what it reads
  /// The element type in which its regions compute, if it rounds values of the network. Nothing: they round nothing.
  std::optional<dtype> rounds_to = {};
  /// The values and constants that a region rounds; null: none. Values without a scale are not rounded to integers.
  std::vector<rounded_value> (*rounds)(const graph&, const node_group&, const value_scales*) = nullptr;
  const char* variant_of = nullptr;  ///< the backend with which this one is allowed, too; null: none

  const pattern_entry* find(const std::string& pattern) const {
    for (const pattern_entry& p : patterns)
      if (pattern == p.name) return &p;
    return nullptr;
  }
};

using backend_table = std::span<const backend_entry>;

/// The backend of a table with a name; null if there is none.
inline const backend_entry* find_backend(backend_table backends, std::string_view name) {
  for (const backend_entry& b : backends)
    if (name == b.name) return &b;
  return nullptr;
}

/// The values that a kernel for a match writes, in the order of kernel_call::out. All outputs of the root's operator come
/// first, then other values that are read outside, in the order of match::output.
inline std::vector<std::uint32_t> written_values(const graph_view& graph, const match_record& record) {
  std::vector<std::uint32_t> values;
  const auto root = static_cast<std::uint32_t>(graph.values[record.output[0]].producer);
  for (std::uint32_t i = 0; i < graph.nodes[root].outputs; ++i) values.push_back(graph.output_of(root, i));
  for (const std::uint32_t v : record.output_list())
    if (static_cast<std::uint32_t>(graph.values[v].producer) != root) values.push_back(v);
  return values;
}

namespace detail {

/// Puts the values that a kernel reads and writes into a memory space. Constants are left out: the kernel has its own form of
/// them, or the engine puts them into the space once.
inline void put_into(const memory_space& space, const graph_view& graph, std::span<const std::uint32_t> arguments,
                     std::span<const std::uint32_t> outputs, value_forms& found) {
  for (const auto& list : {arguments, outputs})
    for (const std::uint32_t v : list)
      if (graph.values[v].role != value_role::constant) found.put_into(space, v);
}

}  // namespace detail

/// The configurations that a backend proposes for a match.
inline configuration_list proposed_for(const pattern_entry& pattern, const graph_view& graph,
                                       const match_record& record) {
  if (pattern.configurations == nullptr) return configuration_list::numbered(pattern.choices(graph, record));
  configuration_list list;
  pattern.configurations(graph, record, list);
  if (pattern.knows != nullptr)
    list.judge_all([&](const configuration& how) { return pattern.knows(graph, record, how); });
  return list;
}
/// Whether a backend has a configuration for a match, and why not. It may have more than it proposes.
inline verdict judge_configuration(const pattern_entry& pattern, const graph_view& graph, const match_record& record,
                                   const configuration& how) {
  if (pattern.configurations == nullptr) {
    const std::optional<std::size_t> number = how.number();
    return {number && *number < pattern.choices(graph, record),
            "it is not the number of one of the backend's variants"};
  }
  if (pattern.knows != nullptr) return pattern.knows(graph, record, how);
  return {proposed_for(pattern, graph, record).contains(how), "the backend does not propose it"};
}

/// The forms in which a kernel reads and writes the values of a match. The backend has the configuration.
inline value_forms forms_of(const pattern_entry& pattern, const graph_view& graph, const match_record& record,
                            const configuration& how) {
  value_forms found;
  if (pattern.layouts != nullptr) pattern.layouts(graph, record, how, found);
  if (pattern.space != nullptr && *pattern.space != host_space)
    detail::put_into(*pattern.space, graph, record.argument_list(), written_values(graph, record), found);
  return found;
}
/// The same for a group that a fusion rule lists, or for a region.
inline value_forms forms_of(const backend_entry& backend, const graph& network, const node_group& group) {
  value_forms found;
  if (*backend.space != host_space)
    detail::put_into(*backend.space, network.view(), group.arguments, group.outputs, found);
  return found;
}

/// The smallest element type to which a kernel with these forms rounds values. It also multiplies in this type. Nothing if it rounds
/// none.
inline std::optional<dtype> rounding_of(const graph& network, const value_forms& forms) {
  std::optional<dtype> lowest;
  for (const auto& [v, stored] : forms.list())
    if (stored.element && is_rounded(network.type_of(v).type, *stored.element) &&
        (!lowest || size_of(*stored.element) < size_of(*lowest)))
      lowest = stored.element;
  return lowest;
}

/// The memory spaces of a table's backends, each once, without the host's. Errors: two different spaces have the same id or the
/// same name; a name is empty or contains an @.
inline std::vector<const memory_space*> spaces_of(backend_table backends) {
  std::vector<const memory_space*> list;
  for (const backend_entry& b : backends) {
    if (*b.space == host_space) continue;
    const std::string_view name = b.space->name;
    const auto wrong = [&](const std::string& what) {
      return error(error_kind::invalid_argument, what, "memory space " + std::string(name) + " of backend " + b.name,
                   "give it another id and name");
    };
    if (name.empty() || name.find('@') != std::string_view::npos) throw wrong("its name is empty or has an @");
    bool is_known = false;
    for (const memory_space* s : list) {
      is_known = is_known || *s == *b.space;
      if ((*s == *b.space) != (name == s->name))
        throw wrong("another one has its id or its name, " + std::string(s->name) + " (" + std::to_string(s->id) + ")");
    }
    if (!is_known) list.push_back(b.space);
  }
  return list;
}
/// The forms in which backends may pass values to each other: the shared layouts, first on the host and then in each other
/// space. On the host, their elements may also be of these types.
inline std::vector<form> forms_between(backend_table backends, std::span<const dtype> elements = {}) {
  std::vector<form> list(shared_layouts.begin(), shared_layouts.end());
  for (const dtype element : elements)
    for (const layout& order : shared_layouts) list.push_back(form(order).of(element));
  for (const memory_space* space : spaces_of(backends))
    for (const layout& order : shared_layouts) list.emplace_back(order, *space);
  return list;
}

/// Whether a backend does more than conversions, which no network contains.
inline bool runs_operators(const backend_entry& backend) {
  const auto converts = [](const pattern_entry& p) {
    return std::string_view(p.name) == decltype(ops::convert_layout)::name;
  };
  return backend.build_group != nullptr || !std::ranges::all_of(backend.patterns, converts);
}

/// Whether a fusion rule may use a node, or a region may hold it, and why not. Control flow is for no backend, and views only for
/// those that take regions.
inline verdict judge_node(const backend_entry& backend, const graph& network, std::uint32_t node) {
  if ((!backend.takes_regions && is_alias(network.view(), node)) || is_control(network.view(), node)) return false;
  return backend.takes == nullptr ? verdict() : backend.takes(network, node);
}
/// The same without a reason.
inline bool takes_node(const backend_entry& backend, const graph& network, std::uint32_t node) {
  return static_cast<bool>(judge_node(backend, network, node));
}

/// Whether a region may hold a node together with the nodes that it reads, and why not.
inline verdict judge_join(const backend_entry& backend, const graph& network, std::uint32_t node) {
  return backend.joins == nullptr ? verdict() : backend.joins(network, node);
}
/// By node: whether a region must begin there, so that it holds none of the nodes that this node reads.
inline std::vector<bool> region_beginnings(const backend_entry& backend, const graph& network) {
  std::vector<bool> begins(network.nodes().size());
  for (std::uint32_t n = 0; n < begins.size(); ++n) begins[n] = !judge_join(backend, network, n);
  return begins;
}

/// Makes a backend's library use a number of threads on the calling thread. Its destructor restores the previous number, also
/// when an exception passes through.
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
void configurations_at(const graph_view& graph, const match_record& record, configuration_list& to) {
  B::configurations(match<P>(graph, record), to);
}
template <class B, class P>
verdict knows_at(const graph_view& graph, const match_record& record, const configuration& how) {
  return B::knows(match<P>(graph, record), how);
}

template <class B, class P>
std::shared_ptr<const tune::any_space> search_space_at(const graph_view& graph, const match_record& record,
                                                       const configuration& like, int threads) {
  return B::search_space(match<P>(graph, record), like, threads);
}

template <class B, class P>
kernel_algorithm algorithm_at(const graph_view& graph, const match_record& record, const configuration& how) {
  return B::algorithm(match<P>(graph, record), how);
}

template <class B, class P>
kept_constants weights_at(const graph_view& graph, const match_record& record, const configuration& how) {
  return B::weights(match<P>(graph, record), how);
}

template <class B, class P>
void layouts_at(const graph_view& graph, const match_record& record, const configuration& how, value_forms& to) {
  if constexpr (has_configurations<B, const match<P>&>) B::layouts(match<P>(graph, record), how, to);
  else if (const std::optional<std::size_t> choice = how.number()) B::layouts(match<P>(graph, record), *choice, to);
}

template <class B, class P>
constexpr pattern_entry lower_pattern() {
  using m = const match<P>&;
  pattern_entry e{declare<B, P>()};
  if constexpr (has_configurations<B, m>) e.configurations = configurations_at<B, P>;
  else if constexpr (has_choices<B, m>) e.choices = choices_at<B, P>;
  else e.choices = one_choice;
  if constexpr (has_knows<B, m>) e.knows = knows_at<B, P>;
  if constexpr (has_search_space<B, m>) e.search_space = search_space_at<B, P>;
  if constexpr (has_algorithm<B, m>) e.algorithm = algorithm_at<B, P>;
  if constexpr (has_weights<B, m>) e.weights = weights_at<B, P>;
  e.build = build_at<B, P>;
  if constexpr (has_layouts<B, m>) e.layouts = layouts_at<B, P>;
  if constexpr (has_space<B>)
    if (std::string_view(P::name) != decltype(ops::convert_layout)::name) e.space = B::space;
  return e;
}
template <class B, class... P>
constexpr std::array<pattern_entry, sizeof...(P)> lower_patterns(const patterns<P...>&) {
  return {lower_pattern<B, P>()...};  // may be empty
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
  if constexpr (has_space<B>) {
    static_assert(!has_regions<B>, "a backend that takes regions reads and writes the host's memory");
    e.space = B::space;
  }
  if constexpr (has_regions<B>) e.takes_regions = true;
  else if constexpr (has_rule<B>)
    e.list_groups = [](const fuse::dataflow& flow, fuse::group_list& to) { B::rule.collect(flow, to); };
  if constexpr (requires(const graph& g) {
                  { B::joins(g, std::uint32_t{}) } -> std::same_as<verdict>;
                })
    e.joins = [](const graph& network, std::uint32_t n) { return B::joins(network, n); };
  if constexpr (has_rounding_regions<B>) {
    static_assert(
        requires(const graph& g, const node_group& group) {
          { B::rounds(g, group, nullptr) } -> std::same_as<std::vector<rounded_value>>;
        },
        "a backend with rounds_to has static std::vector<rounded_value> rounds(const graph&, const node_group&, const value_scales*)");
    e.rounds_to = B::rounds_to;
    e.rounds = [](const graph& network, const node_group& group, const value_scales* scales) {
      return B::rounds(network, group, scales);
    };
  }
  if constexpr (requires { B::variant_of::name; }) e.variant_of = B::variant_of::name;
  if constexpr (has_rule<B> || has_regions<B>) {
    e.build_group = [](const node_group& group, build_context& context) { return B::build(group, context); };
    if constexpr (has_takes<B>)
      e.takes = [](const graph& network, std::uint32_t n) -> verdict { return B::takes(network, n); };
  }
  return e;
}
template <class... B>
constexpr std::array<backend_entry, sizeof...(B)> lower_set(const backend_list<B...>&) {
  return {lower_backend<B>()...};
}
template <class Set>
constexpr auto lower() {
  // A set that is not sound has one error already.
  if constexpr (Set::is_sound) return lower_set(backends_in<Set>{});
  else return std::array<backend_entry, 0>{};
}
template <class Set>
inline constexpr auto lowered_set = lower<Set>();

}  // namespace detail

/// The table of a set, in static storage. Each set is lowered once.
template <backend_set_type Set>
inline constexpr backend_table table_of = detail::lowered_set<Set>;

}  // namespace collage::inline v0
