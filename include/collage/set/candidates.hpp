// The candidates of a backend set in a static graph, enumerated by the compiler. find_candidates (collage/place/candidates.hpp)
// finds the same candidates in the run-time graph, in the same order.
#pragma once

#include <collage/backend_set.hpp>
#include <collage/list_view.hpp>
#include <collage/set/detail/enumerate.hpp>
#include <cstddef>
#include <cstdint>

namespace collage::inline v0 {

/// A match that a backend declares and accepts.
struct static_candidate {
  std::uint32_t backend = 0;                 ///< index into the set
  std::uint32_t pattern = 0;                 ///< index into the backend's patterns
  std::uint32_t node = 0;                    ///< the root, which computes the value that is read outside
  list_view<const std::uint32_t> nodes;      ///< as match_record::node
  list_view<const std::uint32_t> arguments;  ///< values that a kernel reads, as match_record::argument
};

namespace detail {

/// The positions at which the candidates of each node begin.
template <std::size_t Nodes>
struct candidate_starts {
  std::uint32_t start[Nodes + 1] = {};
  std::uint32_t candidates = 0, words = 0;

  constexpr candidate_starts(const backend_matches* matched, std::size_t count) {
    for_each_match(matched, count, [&](std::uint32_t, std::uint32_t, const std::uint32_t* m, const char*) {
      if (m[2] == refused_mark) return;
      ++start[m[0]];
      ++candidates;
      words += m[1] + m[2];
    });
    std::uint32_t at = 0;
    for (std::uint32_t& s : start) {
      const std::uint32_t here = s;
      s = at;
      at += here;
    }
  }
};

struct candidate_record {
  std::uint32_t backend = 0, pattern = 0, node = 0, nodes = 0, arguments = 0, first = 0;
};

/// Lists candidates by node, then backend, then pattern. The lists of their nodes and arguments keep the order in which the
/// candidates were found.
template <std::size_t Count, std::size_t Nodes>
constexpr listed<candidate_record, Count> list_records(const backend_matches* backends, std::size_t count,
                                                       candidate_starts<Nodes> next) {
  listed<candidate_record, Count> list{};
  std::uint32_t first = 0;
  for_each_match(backends, count, [&](std::uint32_t b, std::uint32_t p, const std::uint32_t* m, const char*) {
    if (m[2] == refused_mark) return;
    list.at[next.start[m[0]]++] = {b, p, m[0], m[1], m[2], first};
    first += m[1] + m[2];
  });
  return list;
}
template <std::size_t Words>
constexpr listed<std::uint32_t, Words> list_words(const backend_matches* backends, std::size_t count) {
  listed<std::uint32_t, Words> list{};
  std::uint32_t* to = list.at;
  for_each_match(backends, count, [&](std::uint32_t, std::uint32_t, const std::uint32_t* m, const char*) {
    if (m[2] == refused_mark) return;
    const std::uint32_t* const end = m + header_words + m[1] + m[2];
    for (const std::uint32_t* from = m + header_words; from != end; ++from) *to++ = *from;
  });
  return list;
}

}  // namespace detail

/// A list of candidates in static storage.
class static_candidates {
 public:
  constexpr static_candidates(const detail::candidate_record* records, const std::uint32_t* words, std::size_t size)
      : records_(records), words_(words), size_(size) {}
  constexpr std::size_t size() const { return size_; }
  /// Requires index < size().
  constexpr static_candidate operator[](std::size_t index) const {
    const detail::candidate_record& r = records_[index];
    return {r.backend, r.pattern, r.node, {words_ + r.first, r.nodes}, {words_ + r.first + r.nodes, r.arguments}};
  }

 private:
  const detail::candidate_record* records_;
  const std::uint32_t* words_;
  std::size_t size_;
};

namespace detail {

// Counting, listing and copying are constant evaluations of their own.
template <class G, class... B>
inline constexpr candidate_starts<node_count<G>> starts_of{matches_in<G, B...>, sizeof...(B)};
template <class G, class... B>
inline constexpr auto records_of =
    list_records<starts_of<G, B...>.candidates>(matches_in<G, B...>, sizeof...(B), starts_of<G, B...>);
template <class G, class... B>
inline constexpr auto words_of = list_words<starts_of<G, B...>.words>(matches_in<G, B...>, sizeof...(B));

template <class G, class... B>
consteval static_candidates find_static_candidates(const backend_list<B...>&) {
  static_assert(holds<conclusion<kinds_check<G, B...>>>);
  return {records_of<G, B...>.at, words_of<G, B...>.at, starts_of<G, B...>.candidates};
}

}  // namespace detail

/// The candidates of a set in a static graph (named by its tag type), by node, then backend, then pattern:
/// `for (std::size_t i = 0; i < candidates_of<backends, lenet>.size(); ++i) ... candidates_of<backends, lenet>[i].nodes`.
template <backend_set_type Set, static_graph G>
inline constexpr static_candidates candidates_of = detail::find_static_candidates<G>(detail::backends_in<Set>{});

}  // namespace collage::inline v0
