// A table of the operator kinds that the backends of a set declare, with a row for each kind and a column for each backend. The
// compiler makes it. It is printed at run time as text, or by the compiler itself.
#pragma once

#include <collage/backend_set.hpp>
#include <collage/detail/decimal.hpp>
#include <collage/detail/fixed_string.hpp>
#include <collage/detail/indices.hpp>
#include <collage/detail/label.hpp>
#include <collage/set/declared.hpp>
#include <collage/set/detail/enumerate.hpp>
#include <collage/set/kinds.hpp>
#include <cstddef>
#include <cstdint>

namespace collage::inline v0 {

/// The patterns that one backend declares for one operator kind. The backend may still refuse each match.
struct coverage_cell {
  bool alone = false;       ///< some pattern takes the operator by itself
  std::uint32_t fused = 0;  ///< the number of patterns that take it together with others

  friend constexpr bool operator==(const coverage_cell&, const coverage_cell&) = default;
};

/// Describes a cell: "alone, 5 fused"; "-" if it is empty.
constexpr label to_label(const coverage_cell& cell) {
  label text = cell.alone ? label("alone") : label();
  if (cell.alone && cell.fused != 0) text = text + ", ";
  if (cell.fused != 0) text = text + cell.fused + " fused";
  return text.empty() ? label("-") : text;
}

/// Rows are the kinds that any pattern names, in the order in which they are first named. If a backend takes operators of any
/// kind, the last row stands for all kinds that no pattern names.
template <std::size_t Rows, std::size_t Backends>
struct coverage_table {
  const char* kind[Rows + 1] = {};
  const char* backend[Backends + 1] = {};
  coverage_cell cell[Rows + 1][Backends + 1] = {};

  static constexpr std::size_t rows() { return Rows; }
  static constexpr std::size_t backends() { return Backends; }
};

/// The number of nodes of a graph that each backend can run, by kind.
template <std::size_t Rows, std::size_t Backends>
struct graph_coverage_table {
  const char* kind[Rows + 1] = {};
  const char* backend[Backends + 1] = {};
  std::uint32_t nodes[Rows + 1] = {};                ///< the nodes of the kind
  std::uint32_t taken[Rows + 1][Backends + 1] = {};  ///< those in a match that the backend declares and accepts

  static constexpr std::size_t rows() { return Rows; }
  static constexpr std::size_t backends() { return Backends; }
};

/// Zero-terminated text whose length is part of its type.
template <std::size_t Size>
struct constant_text {
  char text[Size + 1] = {};
  static constexpr std::size_t size() { return Size; }
  constexpr const char* c_str() const { return text; }
};

namespace detail {

inline constexpr char other_operators[] = "any other";

/// Whether a match of the sub-pattern at `at` may hold no operator at all.
constexpr bool may_be_value(pattern_view pattern, std::size_t at) {
  const pattern_node& p = pattern[at];
  if (p.count != pattern_count::once) return true;
  if (p.role == pattern_role::either) {
    for (std::size_t c = 0; c < p.children; ++c)
      if (may_be_value(pattern, p.child[c])) return true;
    return false;
  }
  if (p.role == pattern_role::repeat) return p.least == 0 && may_be_value(pattern, p.child[0]);
  return p.role != pattern_role::apply && p.role != pattern_role::outputs;
}
/// Whether an operator of this kind alone may be a match. Kind 0 stands for kinds that no pattern names.
constexpr bool may_be_alone(pattern_view pattern, std::size_t at, std::uint64_t kind) {
  const pattern_node& p = pattern[at];
  if (p.role == pattern_role::either) {
    for (std::size_t c = 0; c < p.children; ++c)
      if (may_be_alone(pattern, p.child[c], kind)) return true;
    return false;
  }
  if (p.role == pattern_role::repeat)
    return (p.least == 0 && may_be_alone(pattern, p.child[0], kind)) ||
           (p.least <= 1 && p.most >= 1 && may_be_alone(pattern, p.iteration(1), kind));
  if (p.role != pattern_role::apply) return false;
  bool fits = takes_kind(p, kind);
  for (std::size_t c = 0; c < p.children; ++c) fits = fits && may_be_value(pattern, p.child[c]);
  return fits;
}
/// Whether a match of the sub-pattern at `at` may hold an operator.
constexpr bool may_be_operator(pattern_view pattern, std::size_t at) {
  const pattern_node& p = pattern[at];
  bool some = p.role == pattern_role::apply;
  for (std::size_t c = 0; c < p.children && !some; ++c) some = may_be_operator(pattern, p.child[c]);
  return some;
}
/// The parts of a pattern that were looked at in vain. Alternatives share parts, so there may be far more ways to a part than parts.
struct seen_parts {
  static constexpr std::size_t most = 512;  // later ones are looked at again
  bool seen[most][2] = {};

  /// Whether a part was looked at before; from now on it was.
  constexpr bool again(std::size_t at, bool beside) {
    if (at >= most) return false;
    const bool before = seen[at][beside ? 1 : 0];
    seen[at][beside ? 1 : 0] = true;
    return before;
  }
};
/// Whether a match of the sub-pattern at `at` may hold an operator of this kind. Kind 0 stands for kinds that no pattern names.
/// The operator must not be the only one of the whole match; `beside` says whether another may stand above it.
constexpr bool may_be_fused(pattern_view pattern, std::size_t at, std::uint64_t kind, bool beside, seen_parts& seen) {
  if (seen.again(at, beside)) return false;
  const pattern_node& p = pattern[at];
  if (p.role == pattern_role::apply) {
    bool under = false;
    for (std::size_t c = 0; c < p.children; ++c) under = under || may_be_operator(pattern, p.child[c]);
    if (takes_kind(p, kind) && (beside || under)) return true;
    beside = true;
  } else if (p.role == pattern_role::repeat && p.most > 1) {
    beside = true;
  }
  for (std::size_t c = 0; c < p.children; ++c) {
    // A match holds all outputs, but only one alternative of an either.
    bool others = beside;
    for (std::size_t o = 0; o < p.children && p.role == pattern_role::outputs; ++o)
      others = others || (o != c && may_be_operator(pattern, p.child[o]));
    if (may_be_fused(pattern, p.child[c], kind, others, seen)) return true;
  }
  return false;
}

constexpr coverage_cell cover(const declared_backend& backend, std::uint64_t kind) {
  coverage_cell cell;
  for (std::uint32_t p = 0; p < backend.patterns.size(); ++p) {
    const pattern_view pattern = backend.patterns[p].nodes;
    cell.alone = cell.alone || may_be_alone(pattern, pattern.size - 1, kind);
    seen_parts seen;
    cell.fused += may_be_fused(pattern, pattern.size - 1, kind, false, seen) ? 1U : 0U;
  }
  return cell;
}

/// One column; a constant evaluation of its own.
template <std::size_t Rows>
struct coverage_column {
  coverage_cell cell[Rows + 1] = {};
};
template <class B, class... Set>
inline constexpr auto coverage_by = [] {
  constexpr const auto& kinds = kinds_named_by<Set...>;
  coverage_column<kinds.count + 1> column;
  for (std::uint32_t k = 0; k < kinds.count; ++k) column.cell[k] = cover(declaration_of<B>, kinds.kind[k]->id);
  column.cell[kinds.count] = cover(declaration_of<B>, 0);
  return column;
}();

template <class... B>
constexpr auto make_coverage() {
  constexpr const auto& kinds = kinds_named_by<B...>;
  constexpr std::size_t rows = kinds.count + (kinds.any_operator ? 1 : 0);
  coverage_table<rows, sizeof...(B)> table;
  for (std::uint32_t k = 0; k < kinds.count; ++k) table.kind[k] = kinds.kind[k]->name;
  if (kinds.any_operator) table.kind[kinds.count] = other_operators;
  std::size_t b = 0;
  [[maybe_unused]] const auto put = [&](const char* name, const coverage_cell* column) {
    table.backend[b] = name;
    for (std::size_t r = 0; r < rows; ++r) table.cell[r][b] = column[r];
    ++b;
  };
  (put(B::name, coverage_by<B, B...>.cell), ...);
  return table;
}
template <class... B>
inline constexpr auto coverage_found = make_coverage<B...>();
template <class... B>
consteval const auto& find_coverage(const backend_list<B...>&) {
  return coverage_found<B...>;
}

template <class G, class... B>
constexpr auto make_graph_coverage() {
  constexpr const auto& chains = chains_of<G>;
  graph_coverage_table<chains.chains, sizeof...(B)> table;
  const graph_view graph = G::graph.view();
  for (std::uint32_t k = 0; k < chains.chains; ++k) {
    table.kind[k] = graph.nodes[chains.chain[k].first].kind->name;
    table.nodes[k] = chains.chain[k].count;
  }
  for (std::uint32_t b = 0; b < sizeof...(B); ++b) {
    table.backend[b] = backends_of<B...>[b].name;
    bool taken[node_count<G> + 1] = {};
    for_each_match(matches_in<G, B...> + b, 1, [&](std::uint32_t, std::uint32_t, const std::uint32_t* m, const char*) {
      for (std::uint32_t i = 0; i < m[1] && m[2] != refused_mark; ++i) taken[m[header_words + i]] = true;
    });
    for (std::uint32_t k = 0; k < chains.chains; ++k)
      for (std::uint32_t n = chains.chain[k].first; n != no_node; n = chains.next_alike[n])
        table.taken[k][b] += taken[n] ? 1U : 0U;
  }
  return table;
}
template <class G, class... B>
inline constexpr auto graph_coverage_found = make_graph_coverage<G, B...>();
template <class G, class... B>
consteval const auto& find_graph_coverage(const backend_list<B...>&) {
  return graph_coverage_found<G, B...>;
}

/// Writes a page, or only counts its characters.
struct page_writer {
  char* to = nullptr;
  std::size_t size = 0;

  constexpr void put(char c) {
    if (to != nullptr) to[size] = c;
    ++size;
  }
  constexpr std::size_t put(const char* text) {
    std::size_t length = 0;
    for (; text[length] != '\0'; ++length) put(text[length]);
    return length;
  }
  constexpr std::size_t put(std::uint32_t number) { return put(decimal(number).c_str()); }
  constexpr void fill(std::size_t from, std::size_t to_width) {
    for (; from < to_width; ++from) put(' ');
  }
};

/// Writes columns that are as wide as their widest entry, two spaces apart, without spaces after the last. `put` writes one
/// entry and returns its width.
template <std::size_t Columns, class Put>
constexpr void put_page(page_writer& page, std::size_t rows, Put put) {
  std::size_t widths[Columns] = {};
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t c = 0; c < Columns; ++c) {
      page_writer counter;
      const std::size_t width = put(counter, r, c);
      if (width > widths[c]) widths[c] = width;
    }
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t c = 0; c < Columns; ++c) {
      const std::size_t width = put(page, r, c);
      if (c + 1 == Columns) page.put('\n');
      else page.fill(width, widths[c] + 2);
    }
}

template <std::size_t Rows, std::size_t Backends>
constexpr void put_table(page_writer& page, const coverage_table<Rows, Backends>& table) {
  put_page<Backends + 1>(page, Rows + 1, [&](page_writer& to, std::size_t row, std::size_t column) {
    if (row == 0) return to.put(column == 0 ? "operator" : table.backend[column - 1]);
    return column == 0 ? to.put(table.kind[row - 1]) : to.put(to_label(table.cell[row - 1][column - 1]).c_str());
  });
}
template <std::size_t Rows, std::size_t Backends>
constexpr void put_table(page_writer& page, const graph_coverage_table<Rows, Backends>& table) {
  put_page<Backends + 2>(page, Rows + 1, [&](page_writer& to, std::size_t row, std::size_t column) {
    if (row == 0) return to.put(column == 0 ? "operator" : column == 1 ? "nodes" : table.backend[column - 2]);
    if (column == 0) return to.put(table.kind[row - 1]);
    return to.put(column == 1 ? table.nodes[row - 1] : table.taken[row - 1][column - 2]);
  });
}

template <const auto& Table>
constexpr std::size_t length_of_page() {
  page_writer counter;
  put_table(counter, Table);
  return counter.size;
}
template <const auto& Table>
constexpr auto make_page() {
  constant_text<length_of_page<Table>()> text;
  page_writer writer{text.text};
  put_table(writer, Table);
  return text;
}

}  // namespace detail

/// The coverage table of a set.
template <backend_set_type Set>
inline constexpr const auto& coverage_of = detail::find_coverage(detail::backends_in<Set>{});

/// The number of nodes of a static graph (named by its tag type) that each backend of a set can run.
template <backend_set_type Set, static_graph G>
inline constexpr const auto& coverage_in = detail::find_graph_coverage<G>(detail::backends_in<Set>{});

/// The tables as text, a line for each row: `std::puts(coverage_text<backends>.c_str())`.
template <backend_set_type Set>
inline constexpr auto coverage_text = detail::make_page<coverage_of<Set>>();
template <backend_set_type Set, static_graph G>
inline constexpr auto graph_coverage_text = detail::make_page<coverage_in<Set, G>>();

namespace detail {

/// "conv: onednn alone, 5 fused; eigen alone, 4 fused".
template <class Table>
constexpr void put_row(page_writer& page, const Table& table, std::size_t row) {
  page.put(table.kind[row]);
  for (std::size_t b = 0; b < table.backends(); ++b) {
    page.put(b == 0 ? ": " : "; ");
    page.put(table.backend[b]);
    page.put(' ');
    page.put(to_label(table.cell[row][b]).c_str());
  }
}
template <class Set, std::size_t Row>
consteval std::size_t row_length() {
  page_writer counter;
  put_row(counter, coverage_of<Set>, Row);
  return counter.size;
}
template <class Set, std::size_t Row>
consteval auto row_text() {
  fixed_string<row_length<Set, Row>() + 1> text;
  page_writer writer{text.text};
  put_row(writer, coverage_of<Set>, Row);
  text.text[writer.size] = '\0';  // as exact_text does
  return text;
}

template <fixed_string... Row>
struct coverage_rows {
  static constexpr bool are_hidden = false;
};
template <class Rows> concept printed = Rows::are_hidden;
template <class Set, std::size_t... Row>
coverage_rows<row_text<Set, Row>()...> rows_of(const indices<Row...>&);

}  // namespace detail

/// Never satisfied: `static_assert(print_coverage<backends>)` makes the compiler print the table.
template <class Set>
concept print_coverage =
    detail::printed<decltype(detail::rows_of<Set>(detail::make_indices<coverage_of<Set>.rows()>{}))>;

}  // namespace collage::inline v0
