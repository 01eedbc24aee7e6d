// Matching by recursive specialisation, for comparison: graphs and patterns are types, and every question asked of them
// is a class of its own. It decides what collage's matcher decides of the same networks: kinds, constants, operands of
// commutative operators in either order, the same value again, no inner value read outside.
//
// It is written as well as this way allows: nodes are found in constant time by overload resolution, readers are counted
// in an array once per graph, and a graph travels under the name of one class.
#pragma once

#include <type_traits>
#include <utility>

namespace recursive {

// Graphs -------------------------------------------------------------------------------------------------------------

struct conv {};
struct max_pool {};
struct relu {};
struct leaky_relu {};
struct sigmoid {};
struct tanh {};
struct elu {};
struct add {};
struct mul {};

template <class Kind>
inline constexpr bool commutes = std::is_same_v<Kind, add> || std::is_same_v<Kind, mul>;

/// Number 0 and up is the output of that node; below are values from outside.
template <int Number>
struct value {
  static constexpr int number = Number;
};
using input = value<-1>;
using weights = value<-2>;
using bias = value<-3>;

template <class Value>
inline constexpr bool is_constant = Value::number < -1;

template <class Kind, class... Operands>
struct node {};

template <int I, class Node>
struct numbered {};

template <class Numbers, class... Nodes>
struct numbered_nodes;
template <int... I, class... Nodes>
struct numbered_nodes<std::integer_sequence<int, I...>, Nodes...> : numbered<I, Nodes>... {};

template <int I, class Node>
Node find(const numbered<I, Node>*);

template <class... Nodes>
struct graph : numbered_nodes<std::make_integer_sequence<int, sizeof...(Nodes)>, Nodes...> {
  static constexpr int size = sizeof...(Nodes);

  struct counts {
    int readers[sizeof...(Nodes)] = {};
    template <class Kind, class... Operands>
    constexpr int add(node<Kind, Operands...>) {
      ((Operands::number >= 0 ? ++readers[Operands::number] : 0), ...);
      return 0;
    }
  };
  static constexpr counts count() {
    counts all;
    [[maybe_unused]] const int each[] = {all.add(Nodes{})...};
    return all;
  }
  static constexpr counts counted = count();
};

template <class Graph, int I>
using node_at = decltype(find<I>(static_cast<const Graph*>(nullptr)));

// Patterns -----------------------------------------------------------------------------------------------------------

struct any {};
struct constant {};
struct captured {};  ///< any value, which `same` means
struct same {};
template <class Kind, class... Operands>
struct apply {};

// Matching -----------------------------------------------------------------------------------------------------------

struct nothing {};

/// What is bound so far: the nodes of the match, the root last, and the captured value.
template <class Captured, int... Nodes>
struct bound {};
struct miss {};

template <class Graph, class Pattern, class Value, class Bound>
struct match;

template <class Graph, class Pattern, class Value>
struct match<Graph, Pattern, Value, miss> {
  using type = miss;
};

template <class Graph, class Value, class Captured, int... Nodes>
struct match<Graph, any, Value, bound<Captured, Nodes...>> {
  using type = bound<Captured, Nodes...>;
};
template <class Graph, class Value, class Captured, int... Nodes>
struct match<Graph, constant, Value, bound<Captured, Nodes...>> {
  using type = std::conditional_t<is_constant<Value>, bound<Captured, Nodes...>, miss>;
};
template <class Graph, class Value, class Captured, int... Nodes>
struct match<Graph, captured, Value, bound<Captured, Nodes...>> {
  using type = bound<Value, Nodes...>;
};
/// A `same` that comes before its capture is compared when that is bound; here captures come first or in commuted order.
template <class Graph, class Value, class Captured, int... Nodes>
struct match<Graph, same, Value, bound<Captured, Nodes...>> {
  using type = std::conditional_t<std::is_same_v<Captured, Value>, bound<Captured, Nodes...>, miss>;
};

/// Operands one after another.
template <class Graph, class Patterns, class Values, class Bound>
struct match_all {
  using type = miss;  // another number of operands
};
template <class... T>
struct list {};
template <class Graph, class Bound>
struct match_all<Graph, list<>, list<>, Bound> {
  using type = Bound;
};
template <class Graph, class P, class... Ps, class V, class... Vs, class Bound>
struct match_all<Graph, list<P, Ps...>, list<V, Vs...>, Bound> {
  using type = typename match_all<Graph, list<Ps...>, list<Vs...>, typename match<Graph, P, V, Bound>::type>::type;
};

/// The second order of two operands, tried where the first misses. It goes from the last pattern to the first value, so
/// that a capture is bound before what means it.
template <class Graph, class First, class Kind, class Patterns, class Values, class Bound>
struct or_swapped {
  using type = First;
};
template <class Graph, class Kind, class P, class Q, class V, class W, class Bound>
  requires commutes<Kind>
struct or_swapped<Graph, miss, Kind, list<P, Q>, list<V, W>, Bound> {
  using type = typename match_all<Graph, list<P, Q>, list<W, V>, Bound>::type;
};

template <class Graph, class Pattern, int I, class Node, class Bound>
struct match_node {
  using type = miss;  // another operator
};
template <int I, class Bound>
struct with_node;
template <int I>
struct with_node<I, miss> {
  using type = miss;
};
template <int I, class Captured, int... Nodes>
struct with_node<I, bound<Captured, Nodes...>> {
  using type = std::conditional_t<((Nodes == I) || ...), miss, bound<Captured, Nodes..., I>>;
};
template <class Graph, class Kind, class... Ps, int I, class... Vs, class Bound>
struct match_node<Graph, apply<Kind, Ps...>, I, node<Kind, Vs...>, Bound> {
  using first = typename match_all<Graph, list<Ps...>, list<Vs...>, Bound>::type;
  using either = typename or_swapped<Graph, first, Kind, list<Ps...>, list<Vs...>, Bound>::type;
  using type = typename with_node<I, either>::type;
};

template <class Graph, class Kind, class... Ps, int I, class Captured, int... Nodes>
  requires(I >= 0)
struct match<Graph, apply<Kind, Ps...>, value<I>, bound<Captured, Nodes...>> {
  using type = typename match_node<Graph, apply<Kind, Ps...>, I, node_at<Graph, I>, bound<Captured, Nodes...>>::type;
};
template <class Graph, class Kind, class... Ps, int I, class Captured, int... Nodes>
  requires(I < 0)
struct match<Graph, apply<Kind, Ps...>, value<I>, bound<Captured, Nodes...>> {
  using type = miss;
};

/// Whether every node but the root is read inside alone: as often as its only reader in the pattern reads it.
template <class Graph, class Bound>
struct is_closed : std::false_type {};
template <class Graph, int I, class Node, int... Nodes>
struct reads_of;
template <class Graph, int I, class Kind, class... Operands>
struct reads_of<Graph, I, node<Kind, Operands...>> {
  static constexpr int value = ((Operands::number == I ? 1 : 0) + ... + 0);
};
template <class Graph, class Captured, int... Nodes>
struct is_closed<Graph, bound<Captured, Nodes...>> {
  template <int I>
  static constexpr bool is_read_inside =
      Graph::counted.readers[I] == (reads_of<Graph, I, node_at<Graph, Nodes>>::value + ...);
  template <int Root, int... Inner>
  static constexpr bool of_list() {
    return true;
  }
  static constexpr int root() {
    int last = 0;
    ((last = Nodes), ...);
    return last;
  }
  static constexpr bool value = ((Nodes == root() || (Nodes != Graph::size - 1 && is_read_inside<Nodes>)) && ...);
};

template <class Graph, class Pattern, int I>
struct matches_at {
  static constexpr bool value =
      is_closed<Graph, typename match<Graph, Pattern, recursive::value<I>, bound<nothing>>::type>::value;
};

/// How often a pattern matches, node by node.
template <class Graph, class Pattern, int I = Graph::size>
struct count_matches {
  static constexpr int value =
      count_matches<Graph, Pattern, I - 1>::value + (matches_at<Graph, Pattern, I - 1>::value ? 1 : 0);
};
template <class Graph, class Pattern>
struct count_matches<Graph, Pattern, 0> {
  static constexpr int value = 0;
};

}  // namespace recursive
