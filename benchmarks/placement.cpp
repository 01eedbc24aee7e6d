// What the exact search finds and costs, beside the searches that others use, and how it and fusion grow with the graph.
//
// usage: placement [FOLDER]      prints tables in Markdown; FOLDER has the published costs and placements (where it is not
//                                named: benchmarks/data/collage-costs, from the top of the repository)
// needs: place io
#include "../tools/collage/replay/data_files.hpp"
#include "../tools/collage/replay/modelled_problem.hpp"
#include "../tools/collage/replay/placement_file.hpp"
#include "../tools/collage/replay/published_costs.hpp"
#include "../tools/collage/replay/published_problem.hpp"

#ifdef COLLAGE_HAS_CBC
#include "../tests/support/integer_program.hpp"
#endif

#include <collage/error.hpp>
#include <collage/fuse/dataflow.hpp>
#include <collage/fuse/fuse.hpp>
#include <collage/graph/graph.hpp>
#include <collage/op/inference.hpp>
#include <collage/search/alternatives.hpp>
#include <collage/search/checker.hpp>
#include <collage/search/exact.hpp>
#include <collage/search/node_set.hpp>
#include <collage/search/objective.hpp>
#include <collage/search/placement.hpp>
#include <collage/search/problem.hpp>
#include <collage/search/published.hpp>
#include <collage/zoo/all.hpp>

#include <malloc.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <functional>
#include <numeric>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace program::replay {

/// Nothing is built in: the files are read from a folder.
std::span<const embedded_file> embedded_files() { return {}; }

}  // namespace program::replay

namespace {

namespace c = collage;
namespace replay = program::replay;
namespace search = collage::search;
using index_list = std::vector<std::uint32_t>;

/// Of the processor: nothing here waits or has several threads, and others may be at work on the machine.
double processor_ms() { return 1e3 * static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

/// Where searches are ended: they can take days.
constexpr std::size_t most_states = 1'300'000;

/// What a search answered, and its median time of five (of one, where it takes more than a second).
struct outcome {
  std::optional<search::placement> plan;
  double ms = 0;
};

outcome timed(const search::problem& p, const std::function<search::placement()>& call) {
  outcome found;
  std::vector<double> times;
  while (times.size() < 5 && (times.empty() || times.front() < 1000)) {
    const double begin = processor_ms();
    try {
      found.plan = call();
    } catch (const c::error& e) {
      if (e.kind() != c::error_kind::failure) throw;  // otherwise it met its limit
    }
    times.push_back(processor_ms() - begin);
  }
  std::ranges::sort(times);
  found.ms = times[times.size() / 2];
  if (found.plan)
    if (const auto wrong = search::violation(p, *found.plan))
      throw c::error(c::error_kind::failure, "a search returned an invalid placement: " + *wrong, "placement");
  return found;
}

// --- networks ---------------------------------------------------------------------------------------------------------

struct network {
  std::string name;
  search::problem problem;
  std::optional<double> published_ms;
};

std::vector<network> networks(const std::string& folder) {
  std::vector<network> list;
  const auto table = [&](const char* file) {
    return replay::read_published_costs(replay::published_file(folder, file), file);
  };
  const replay::published_costs desktop = table("operator-cost-desktop-b.json");
  const replay::published_costs rtx = table("operator-cost-rtx2070-3d.json");
  const struct {
    const char *name, *placement;
    std::array<const replay::published_costs*, 2> tables;
  } published[] = {{"bert (TASO's)", "bert", {&desktop, &rtx}},
                   {"nasnet-a", "nasneta", {&desktop, &rtx}},
                   {"resnext50", "resnext50_32x4d", {&desktop, &rtx}},
                   {"resnet50-3d", "resnet50_3d", {&rtx, &desktop}}};
  for (const auto& p : published) {
    const std::string file = std::string("placement-rtx2070-") + p.placement + ".gv";
    const replay::published_problem made(replay::read_placement(replay::published_file(folder, file), file), p.tables);
    list.push_back({p.name, made.problem(), made.published_ms()});
  }
  for (const char* name : {"bert-paper", "dcgan-paper", "nasnet-a-paper", "resnet50", "mobilenet-v2"}) {
    c::graph_builder builder;
    c::zoo::build(name, builder);
    const replay::modelled_problem made(builder.finish());
    list.push_back({std::string(name) + " *", made.problem(replay::model_of_backends()), std::nullopt});
  }
  return list;
}

/// The cheapest of all orders of the backends, and what one order takes.
outcome best_priority_list(const search::problem& p) {
  std::uint32_t backends = 0;
  for (const search::candidate& each : p.candidates) backends = std::max(backends, each.tag + 1);
  index_list order(backends), rank(p.candidates.size());
  std::iota(order.begin(), order.end(), 0U);
  outcome best;
  do {
    for (std::size_t i = 0; i < rank.size(); ++i) rank[i] = order[p.candidates[i].tag];
    search::placement plan = search::priority_list(p, rank);
    if (!best.plan || plan.cost_ms < best.plan->cost_ms) best.plan = std::move(plan);
  } while (std::ranges::next_permutation(order).found);
  best.ms = timed(p, [&] { return search::priority_list(p, rank); }).ms;
  return best;
}

/// The same with four forms for each value: every candidate takes the plain one, half of them each of the others at another
/// cost, and a conversion costs about as much as the cheapest quarter of the candidates at most.
search::problem with_forms(search::problem p) {
  std::mt19937 random(1);
  const auto real = [&](double low, double high) { return std::uniform_real_distribution<double>(low, high)(random); };
  std::vector<double> costs;
  for (const search::candidate& each : p.candidates) costs.push_back(each.cost_ms);
  std::ranges::sort(costs);
  constexpr std::uint32_t forms = 4;
  p.values = search::detail::values_of(p);
  std::vector<index_list> touched(p.nodes);
  for (std::uint32_t v = 0; v < p.values.size(); ++v) {
    search::value& at = p.values[v];
    at.is_output = at.readers.empty();
    at.forms = forms;
    at.convert_ms.clear();
    for (std::uint32_t i = 0; i < forms * forms; ++i)
      at.convert_ms.push_back(i % (forms + 1) == 0 ? 0 : costs[costs.size() / 4] * real(0.5, 1.5));
    if (at.producer != search::node_set::none) touched[at.producer].push_back(v);
    for (const std::uint32_t reader : at.readers) touched[reader].push_back(v);
  }
  std::vector<search::candidate> all;
  for (const search::candidate& each : p.candidates)
    for (std::uint32_t form = 0; form < forms; ++form) {
      if (form != 0 && random() % 2 == 0) continue;
      search::candidate other = each;
      other.cost_ms *= real(0.7, 1.3);
      other.borders.clear();
      index_list values;
      for (const std::uint32_t n : each.nodes) values.insert(values.end(), touched[n].begin(), touched[n].end());
      std::ranges::sort(values);
      const auto twins = std::ranges::unique(values);
      values.erase(twins.begin(), twins.end());
      for (const std::uint32_t v : values)
        if (form != 0) other.borders.push_back({v, form});
      all.push_back(std::move(other));
    }
  p.candidates = std::move(all);
  return p;
}

void print_networks(const std::string& folder) {
  std::string costs, times;
  char text[160];
  for (const network& n : networks(folder)) {
    const search::problem& p = n.problem;
    const outcome exact = timed(p, [&] { return search::exact(p); });
    const double optimum = exact.plan->cost_ms;
    std::snprintf(text, sizeof text, "| %s | %.3f%s |", n.name.c_str(), optimum,
                  exact.plan->optimal ? "" : " (unproven)");
    costs += text;
    const search::problem with_four = with_forms(p);
    const outcome four = timed(with_four, [&] { return search::exact(with_four); });
    std::snprintf(text, sizeof text, "| %s | %zu | %zu | %.3f | %.2f%s |", n.name.c_str(), p.nodes, p.candidates.size(),
                  exact.ms, four.ms, four.plan->optimal ? "" : " (unproven)");
    times += text;
    const auto add_cost = [&](std::optional<double> ms) {
      if (ms) {
        const double above = 100 * (*ms - optimum) / optimum;
        std::snprintf(text, sizeof text, " %.3f, %.*f %% |", *ms, above < 100 ? 1 : 0, above);
      }
      costs += ms ? text : " - |";
    };
    const auto add = [&](const outcome& found) {
      add_cost(found.plan ? std::optional(found.plan->cost_ms) : std::nullopt);
      std::snprintf(text, sizeof text, " %s%.3g |", found.plan ? "" : "ended after ", found.ms);
      times += text;
    };
    add_cost(n.published_ms);
    for (const double epsilon : {0.01, 0.0})
      add(timed(p, [&] { return search::algorithm_one(p, epsilon, {.states = most_states}); }));
    add(best_priority_list(p));
    add(timed(p, [&] { return search::greedy_by_size(p); }));
#ifdef COLLAGE_HAS_CBC
    add(timed(p, [&] { return search_testing::integer_program(p, {.time = std::chrono::seconds(60)}); }));
#else
    costs += " - |";
    times += " - |";
#endif
    costs += "\n";
    times += "\n";
    std::fprintf(stderr, "%s\n", n.name.c_str());
  }
  std::printf(
      "Cost in ms, and what it is above the optimum.\n\n"
      "| network | optimum | published | Algorithm 1, eps 0.01 | eps 0 | priority list | greedy | integer program |\n"
      "|---|---|---|---|---|---|---|---|\n%s\n",
      costs.c_str());
  std::printf(
      "Milliseconds that the searches took.\n\n"
      "| network | nodes | candidates | exact | four forms | Algorithm 1, eps 0.01 | eps 0 | priority list | greedy | "
      "integer program |\n|---|---|---|---|---|---|---|---|---|---|\n%s\n",
      times.c_str());
}

// --- growth -----------------------------------------------------------------------------------------------------------

/// A made-up network: which nodes each node reads (0xffffffff: the input of the network), and its kind.
struct made_graph {
  static constexpr std::uint32_t input = search::node_set::none;
  std::vector<index_list> operands;
  std::vector<c::fusion_kind> kinds;

  std::uint32_t add(c::fusion_kind kind, index_list reads) {
    operands.push_back(std::move(reads));
    kinds.push_back(kind);
    return static_cast<std::uint32_t>(kinds.size() - 1);
  }
  std::uint32_t anchor(std::uint32_t x) { return add(c::fusion_kind::anchor, {x}); }
  std::uint32_t unary(std::uint32_t x) { return add(c::fusion_kind::elementwise, {x}); }
  std::uint32_t binary(std::uint32_t x, std::uint32_t y) { return add(c::fusion_kind::broadcast, {x, y}); }
  std::uint32_t opaque(std::uint32_t x) { return add(c::fusion_kind::opaque, {x}); }
  std::size_t size() const { return kinds.size(); }
};

/// Layers of attention and a network of two products behind it; three products read one value.
made_graph transformer(std::size_t nodes) {
  made_graph g;
  std::uint32_t x = g.unary(made_graph::input);
  while (g.size() < nodes) {
    std::uint32_t read[3];
    for (std::uint32_t& r : read) r = g.anchor(x);
    for (std::uint32_t& r : read) r = g.unary(r);  // bias
    const std::uint32_t weights = g.opaque(g.unary(g.add(c::fusion_kind::anchor, {read[0], read[1]})));
    const std::uint32_t mixed = g.add(c::fusion_kind::anchor, {weights, read[2]});
    x = g.opaque(g.binary(g.unary(g.anchor(mixed)), x));
    x = g.opaque(g.binary(g.unary(g.anchor(g.unary(g.unary(g.anchor(x))))), x));
  }
  return g;
}

/// Cells in the manner of NASNet-A: each reads the two before it; five sums of two branches; one concatenation.
made_graph cells(std::size_t nodes) {
  made_graph g;
  std::uint32_t before = g.unary(made_graph::input), last = g.anchor(before);
  const auto separable = [&g](std::uint32_t x) { return g.unary(g.unary(g.anchor(g.anchor(g.unary(x))))); };
  while (g.size() < nodes) {
    index_list sums;
    for (std::uint32_t i = 0; i < 5; ++i) {
      const std::uint32_t left = separable(i % 2 == 0 ? last : before);
      const std::uint32_t right = i < 3 ? separable(before) : g.opaque(last);
      sums.push_back(g.binary(left, right));
    }
    before = std::exchange(last, g.add(c::fusion_kind::injective, sums));
  }
  return g;
}

/// Chains that part into two to four, which part once more into two, and meet in sums.
made_graph series_parallel(std::size_t nodes) {
  made_graph g;
  std::mt19937 random(1);
  const auto chain = [&](std::uint32_t x) {
    for (std::uint32_t length = 1 + static_cast<std::uint32_t>(random()) % 3; length > 0; --length)
      x = random() % 3 == 0 ? g.anchor(x) : g.unary(x);
    return x;
  };
  const std::function<std::uint32_t(std::uint32_t, std::uint32_t)> part = [&](std::uint32_t x, std::uint32_t depth) {
    const std::uint32_t ways = depth == 0 ? 2 + static_cast<std::uint32_t>(random()) % 3 : 2;
    std::optional<std::uint32_t> sum;
    for (std::uint32_t way = 0; way < ways; ++way) {
      std::uint32_t y = chain(x);
      if (depth == 0 && random() % 2 == 0) y = part(y, 1);
      sum = sum ? g.binary(*sum, y) : y;
    }
    return *sum;
  };
  std::uint32_t x = g.unary(made_graph::input);
  while (g.size() < nodes) x = chain(part(x, 0));
  return g;
}

/// The most values that are alive at one time when nodes are computed in their order.
std::size_t frontier(const made_graph& g) {
  index_list last(g.size());
  for (std::uint32_t n = 0; n < g.size(); ++n)
    for (const std::uint32_t from : g.operands[n])
      if (from != made_graph::input) last[from] = n;
  std::vector<std::size_t> dying(g.size() + 1);
  std::size_t alive = 0, most = 0;
  for (std::uint32_t n = 0; n < g.size(); ++n) {
    if (last[n] > n) ++alive, ++dying[last[n]];
    most = std::max(most, alive);
    alive -= dying[n];
  }
  return most;
}

/// Candidates by three backends with random costs: every node alone; anchors with what follows them, chains of up to four
/// elementwise nodes; both operands of a sum with it; a node that is read by several with its first reader, so that both
/// results leave; anchors that read the same value. With four forms, each has one of its own or is of several.
search::problem problem_of(const made_graph& g, std::uint32_t forms, double conversions) {
  search::problem p;
  p.nodes = g.size();
  std::mt19937 random(2);
  const auto real = [&](double low, double high) { return std::uniform_real_distribution<double>(low, high)(random); };
  std::vector<index_list> readers(g.size());
  index_list of_input;
  for (std::uint32_t n = 0; n < g.size(); ++n)
    for (const std::uint32_t from : g.operands[n]) {
      if (from == made_graph::input) {
        of_input.push_back(n);
        continue;
      }
      p.edges.emplace_back(from, n);
      readers[from].push_back(n);
    }
  if (forms > 1) {
    for (std::uint32_t n = 0; n <= g.size(); ++n) {
      const bool given = n == g.size();
      search::value v{.producer = given ? search::node_set::none : n, .readers = given ? of_input : readers[n]};
      v.is_output = v.readers.empty();
      v.forms = forms;
      for (std::uint32_t i = 0; i < forms * forms; ++i)
        v.convert_ms.push_back(i % (forms + 1) == 0 ? 0 : conversions * real(0.1, 0.3));
      p.values.push_back(std::move(v));
    }
  }
  std::vector<double> alone;
  for (const c::fusion_kind kind : g.kinds)
    alone.push_back(kind == c::fusion_kind::anchor ? real(0.5, 3) : real(0.1, 0.3));
  const auto add = [&](std::uint32_t backend, const search::node_set& nodes) {
    // The dearest node, and a fifth of the others: what is fused is spared its traffic.
    double sum = 0, dearest = 0;
    for (const std::uint32_t n : nodes) {
      sum += alone[n];
      dearest = std::max(dearest, alone[n]);
    }
    // Each backend knows the common form, the first two one of their own as well, the third all.
    for (std::uint32_t form = 0; form < forms; ++form) {
      if (backend < 2 && form != 0 && form != backend + 1) continue;
      search::candidate each{
          .nodes = nodes, .cost_ms = real(0.7, 1.3) * (dearest + 0.2 * (sum - dearest)), .tag = backend};
      if (form != 0) {
        index_list touched;
        for (const std::uint32_t n : nodes) {
          touched.push_back(n);
          for (const std::uint32_t from : g.operands[n])
            touched.push_back(from == made_graph::input ? static_cast<std::uint32_t>(g.size()) : from);
        }
        std::ranges::sort(touched);
        const auto twins = std::ranges::unique(touched);
        touched.erase(twins.begin(), twins.end());
        for (const std::uint32_t v : touched) each.borders.push_back({v, form});
      }
      p.candidates.push_back(std::move(each));
    }
  };
  const auto is_light = [&](std::uint32_t n) { return g.kinds[n] <= c::fusion_kind::broadcast; };
  for (std::uint32_t n = 0; n < g.size(); ++n) {
    const bool anchor = g.kinds[n] == c::fusion_kind::anchor;
    for (std::uint32_t backend = 0; backend < 3; ++backend)
      if (backend != 1 || anchor) add(backend, {n});
    search::node_set group{n};
    for (std::uint32_t at = n, length = 2; length <= 4 && (anchor || is_light(n)) && readers[at].size() == 1;
         ++length) {
      at = readers[at].front();
      if (!is_light(at)) break;
      group.insert(at);
      if (anchor) add(0, group);
      if (anchor && length < 4) add(1, group);
      if (!anchor || length == 2) add(2, group);
    }
    if (g.kinds[n] == c::fusion_kind::broadcast) {
      const std::uint32_t x = g.operands[n][0], y = g.operands[n][1];
      if (readers[x].size() == 1 && readers[y].size() == 1 && is_light(x) && is_light(y)) add(2, {x, y, n});
    }
    // No path leaves and comes back where all that the last reads comes before the first.
    const auto reads_before = [&](std::uint32_t node, std::uint32_t first) {
      return std::ranges::all_of(g.operands[node],
                                 [&](std::uint32_t x) { return x == made_graph::input || x <= first; });
    };
    if (readers[n].size() < 2) continue;
    if (is_light(readers[n].front()) && reads_before(readers[n].front(), n)) add(2, {n, readers[n].front()});
    search::node_set siblings;
    for (const std::uint32_t reader : readers[n])
      if (g.kinds[reader] == c::fusion_kind::anchor && reads_before(reader, n)) {
        siblings.insert(reader);
        if (siblings.size() > 1 && siblings.size() < 4) add(0, siblings);
      }
  }
  return p;
}

c::fuse::dataflow flow_of(const made_graph& g) {
  c::fuse::flow_builder builder;
  const c::fuse::value_facts facts{1U << 20U, 0};
  const std::uint32_t input = builder.given(facts), weight = builder.given(facts, true);
  index_list value;
  std::vector<bool> is_read(g.size());
  for (std::uint32_t n = 0; n < g.size(); ++n) {
    index_list reads;
    for (const std::uint32_t from : g.operands[n]) {
      reads.push_back(from == made_graph::input ? input : value[from]);
      if (from != made_graph::input) is_read[from] = true;
    }
    if (g.kinds[n] == c::fusion_kind::anchor && reads.size() == 1) reads.push_back(weight);
    value.push_back(builder.node(g.kinds[n], reads, std::span(&facts, 1)));
  }
  for (std::uint32_t n = 0; n < g.size(); ++n)
    if (!is_read[n]) builder.output(value[n]);
  return builder.finish();
}

/// The most memory that the process had since `reset_peak`, in MB.
double peak_megabytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmHWM:")) return std::stod(line.substr(6)) / 1024;
  return 0;
}
void reset_peak() {
  malloc_trim(0);
  std::ofstream("/proc/self/clear_refs") << "5";
}

struct grown {
  double ms = 0, peak = 0;
  search::placement plan;
};

grown grow(const search::problem& p) {
  std::vector<double> times;
  grown found;
  while (times.size() < 3 && (times.empty() || times.front() < 3000)) {
    reset_peak();
    const double begin = processor_ms();
    found.plan = search::exact(p, {.states = most_states});
    times.push_back(processor_ms() - begin);
    found.peak = std::max(found.peak, peak_megabytes());
  }
  if (const auto wrong = search::violation(p, found.plan))
    throw c::error(c::error_kind::failure, "the search returned an invalid placement: " + *wrong, "placement");
  std::ranges::sort(times);
  found.ms = times[times.size() / 2];
  return found;
}

void print_growth() {
  std::printf(
      "At most %zu states; a conversion costs so many times what an elementwise node does.\n\n"
      "| graph | nodes | frontier | forms | conversions | candidates | states | transitions | ms | ratio | "
      "peak MB | gap |\n|---|---|---|---|---|---|---|---|---|---|---|---|\n",
      most_states);
  const std::pair<const char*, made_graph (*)(std::size_t)> kinds[] = {
      {"series-parallel", series_parallel}, {"NASNet-like cells", cells}, {"transformer stack", transformer}};
  const std::pair<std::uint32_t, double> forms_and_conversions[] = {{1, 0.0}, {4, 0.1}, {4, 0.3}, {4, 1.0}};
  for (const auto& [name, make] : kinds)
    for (const auto& [forms, conversions] : forms_and_conversions) {
      double small = 0;
      for (const std::size_t nodes : {std::size_t{1000}, std::size_t{10'000}}) {
        const made_graph g = make(nodes);
        const search::problem p = problem_of(g, forms, conversions);
        const grown found = grow(p);
        std::printf("| %s | %zu | %zu | %u | %s | %zu | %zu | %zu | %.1f |", name, g.size(), frontier(g), forms,
                    forms == 1 ? "" : std::to_string(conversions).substr(0, 3).c_str(), p.candidates.size(),
                    found.plan.states, found.plan.transitions, found.ms);
        if (nodes == 1000 || !found.plan.optimal) std::printf(" |");
        else std::printf(" %.1f |", found.ms / small * 1e4 / static_cast<double>(g.size()));
        std::printf(" %.0f | %.2g %% |\n", found.peak, 100 * found.plan.gap());
        small = found.ms * 1e3 / static_cast<double>(g.size());
        std::fflush(stdout);
      }
    }
  std::printf("\n| graph | nodes | kernels | merges judged | ms of fusing | ratio |\n|---|---|---|---|---|---|\n");
  for (const auto& [name, make] : kinds) {
    double small = 0;
    for (const std::size_t nodes : {std::size_t{1000}, std::size_t{10'000}}) {
      const made_graph g = make(nodes);
      const c::fuse::dataflow flow = flow_of(g);
      std::vector<double> times;
      c::fuse::fused found;
      for (int repeat = 0; repeat < 3; ++repeat) {
        const double begin = processor_ms();
        found = c::fuse::fuse_all(flow);
        times.push_back(processor_ms() - begin);
      }
      std::ranges::sort(times);
      std::printf("| %s | %zu | %zu | %zu | %.2f |", name, g.size(), static_cast<std::size_t>(found.kernels),
                  static_cast<std::size_t>(found.judged), times[1]);
      if (nodes == 1000) std::printf(" |\n");
      else std::printf(" %.1f |\n", times[1] / small * 1e4 / static_cast<double>(g.size()));
      small = times[1] * 1e3 / static_cast<double>(g.size());
    }
  }
}

/// 32 chains of 8 side by side, numbered level by level: an order in which every chain is open at once.
void print_wide() {
  constexpr std::uint32_t chains = 32, length = 8;
  std::mt19937 random(3);
  const auto real = [&](double low, double high) { return std::uniform_real_distribution<double>(low, high)(random); };
  search::problem p;
  p.nodes = chains * length;
  for (std::uint32_t node = 0; node < p.nodes; ++node) {
    p.candidates.push_back({.nodes = {node}, .cost_ms = real(1, 2)});
    if (node + chains >= p.nodes) continue;
    p.edges.emplace_back(node, node + chains);
    p.candidates.push_back({.nodes = {node, node + chains}, .cost_ms = real(1, 4)});
  }
  std::printf("\n| limit | states | ms | cost | lower bound | gap | proven |\n|---|---|---|---|---|---|---|\n");
  const auto print = [&](const char* name, const search::limits& l) {
    const auto begin = std::chrono::steady_clock::now();
    const search::placement plan = search::exact(p, l);
    const std::chrono::duration<double, std::milli> milliseconds = std::chrono::steady_clock::now() - begin;
    std::printf("| %s | %zu | %.1f | %.3f | %.3f | %.2f %% | %s |\n", name, plan.states, milliseconds.count(),
                plan.cost_ms, plan.lower_bound_ms, 100 * plan.gap(), plan.optimal ? "yes" : "no");
  };
  print("no time", {.time = std::chrono::nanoseconds(0)});
  print("20,000 states", {.states = 20'000});
  print("100 ms", {.time = std::chrono::milliseconds(100)});
  print("1 s", {.time = std::chrono::seconds(1)});
  print("100 MB", {.bytes = std::size_t{100} << 20U});
}

}  // namespace

int main(int count, char** arguments) {
  try {
    print_networks(count > 1 ? arguments[1] : "benchmarks/data/collage-costs");
    print_growth();
    print_wide();
  } catch (const c::error& e) {
    std::fprintf(stderr, "placement: %s\n", e.what());
    return 1;
  }
}
