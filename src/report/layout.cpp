// The layered layout: ranks, bends, orders, coordinates.
#include "layout.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <utility>

namespace collage::inline v0::report {
namespace {

constexpr std::uint32_t none = 0xFFFFFFFF;

/// A box, or a bend of a net in a rank that it passes.
struct vertex {
  double width = 0, height = 0;
  double x = 0;  // of the centre
  std::uint32_t rank = 0;
  bool is_bend = false;
  std::vector<std::uint32_t> above, below;  // neighbours in the ranks beside its own
};

class layout {
 public:
  layout(const layered_graph& graph, const layered_gaps& gaps) : graph_(graph), gaps_(gaps) {
    for (const layered_net& net : graph.nets)
      for (const std::uint32_t reader : net.to)
        if (reader <= net.from || reader >= graph.boxes.size())
          throw std::invalid_argument("lay_out: a net does not lead to a higher number");
    rank_boxes();
    add_bends();
    fill_ranks();
    order_ranks();
    find_columns();
  }

  layered_drawing drawing() const {
    layered_drawing made;
    made.crossings = crossings_;
    made.is_straight = is_straight_;
    double left = std::numeric_limits<double>::infinity(), right = 0;
    for (const vertex& v : vertices_) left = std::min(left, v.x - v.width / 2);
    if (vertices_.empty()) left = 0;
    std::vector<double> top(ranks_.size() + 1, gaps_.margin), bottom(ranks_.size(), 0);
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      double height = 0;
      for (const std::uint32_t v : ranks_[r]) height = std::max(height, vertices_[v].height);
      bottom[r] = top[r] + height;
      top[r + 1] = bottom[r] + gaps_.between_ranks;
    }
    const auto x_of = [&](std::uint32_t v) { return vertices_[v].x - left + gaps_.margin; };
    for (std::size_t b = 0; b < graph_.boxes.size(); ++b) {
      const vertex& v = vertices_[b];
      const double x = x_of(static_cast<std::uint32_t>(b)) - v.width / 2;
      made.boxes.push_back({x, top[v.rank], v.rank});
      right = std::max(right, x + v.width);
    }
    for (std::size_t b = graph_.boxes.size(); b < vertices_.size(); ++b)
      right = std::max(right, x_of(static_cast<std::uint32_t>(b)));
    made.width = right + gaps_.margin;
    made.height = ranks_.empty() ? 2 * gaps_.margin : bottom.back() + gaps_.margin;
    add_ways(made, top, bottom, x_of);
    return made;
  }

 private:
  struct segment {
    std::uint32_t from = 0, to = 0;  // vertices in neighbouring ranks
  };

  void rank_boxes() {
    vertices_.resize(graph_.boxes.size());
    std::vector<std::uint32_t> in(vertices_.size(), 0), out(vertices_.size(), 0);
    std::vector<std::vector<std::uint32_t>> nets_of(vertices_.size());
    for (std::uint32_t n = 0; n < graph_.nets.size(); ++n) {
      nets_of[graph_.nets[n].from].push_back(n);
      if (!graph_.nets[n].to.empty()) ++out[graph_.nets[n].from];
      for (const std::uint32_t reader : graph_.nets[n].to) ++in[reader];
    }
    for (std::uint32_t b = 0; b < vertices_.size(); ++b) {
      vertices_[b].width = graph_.boxes[b].width;
      vertices_[b].height = graph_.boxes[b].height;
      for (const std::uint32_t n : nets_of[b])
        for (const std::uint32_t reader : graph_.nets[n].to)
          vertices_[reader].rank = std::max(vertices_[reader].rank, vertices_[b].rank + 1);
    }
    // A box that more nets leave than enter goes down to its first reader: fewer ways are long.
    for (auto b = static_cast<std::uint32_t>(vertices_.size()); b-- > 0;) {
      if (out[b] == 0 || in[b] >= out[b]) continue;
      std::uint32_t first = none;
      for (const std::uint32_t n : nets_of[b])
        for (const std::uint32_t reader : graph_.nets[n].to) first = std::min(first, vertices_[reader].rank);
      vertices_[b].rank = first - 1;
    }
  }

  std::uint32_t last_rank_of(const layered_net& net) const {
    std::uint32_t last = 0;
    for (const std::uint32_t reader : net.to) last = std::max(last, vertices_[reader].rank);
    return last;
  }

  void add_bends() {
    is_straight_.assign(graph_.nets.size(), false);
    std::size_t bends = 0;
    std::vector<std::pair<std::uint32_t, std::uint32_t>> lengths;  // and nets
    for (std::uint32_t n = 0; n < graph_.nets.size(); ++n) {
      const layered_net& net = graph_.nets[n];
      if (net.to.empty()) continue;
      lengths.emplace_back(last_rank_of(net) - vertices_[net.from].rank - 1, n);
      bends += lengths.back().first;
    }
    std::ranges::stable_sort(lengths, std::ranges::greater{}, &std::pair<std::uint32_t, std::uint32_t>::first);
    for (const auto& [length, n] : lengths) {
      if (bends <= gaps_.most_bends) break;
      is_straight_[n] = true;
      bends -= length;
    }
    segments_.resize(graph_.nets.size());
    for (std::uint32_t n = 0; n < graph_.nets.size(); ++n)
      if (!is_straight_[n] && !graph_.nets[n].to.empty()) add_bends_of(n);
  }

  /// One bend in each rank until the last reader; each reader is reached from the rank above its own.
  void add_bends_of(std::uint32_t n) {
    const layered_net& net = graph_.nets[n];
    std::vector<std::uint32_t> trunk{net.from};
    const std::uint32_t first = vertices_[net.from].rank;
    for (std::uint32_t r = first + 1; r < last_rank_of(net); ++r) {
      vertex bend;
      bend.width = 2;
      bend.rank = r;
      bend.is_bend = true;
      vertices_.push_back(std::move(bend));
      trunk.push_back(static_cast<std::uint32_t>(vertices_.size() - 1));
      connect(n, trunk[trunk.size() - 2], trunk.back());
    }
    for (const std::uint32_t reader : net.to) connect(n, trunk[vertices_[reader].rank - first - 1], reader);
  }
  void connect(std::uint32_t net, std::uint32_t from, std::uint32_t to) {
    segments_[net].push_back({from, to});
    vertices_[from].below.push_back(to);
    vertices_[to].above.push_back(from);
  }

  void fill_ranks() {
    for (std::uint32_t v = 0; v < vertices_.size(); ++v) {
      if (vertices_[v].rank >= ranks_.size()) ranks_.resize(vertices_[v].rank + 1);
      ranks_[vertices_[v].rank].push_back(v);
    }
    position_.resize(vertices_.size());
    for (const auto& rank : ranks_) note_positions(rank);
  }
  void note_positions(const std::vector<std::uint32_t>& rank) {
    for (std::uint32_t i = 0; i < rank.size(); ++i) position_[rank[i]] = i;
  }

  /// Crossings between all neighbouring ranks: inversions, counted by a tree of sums.
  std::size_t count_crossings() const {
    std::size_t crossings = 0;
    std::vector<std::uint32_t> below;
    std::vector<std::size_t> sums;
    for (std::size_t r = 0; r + 1 < ranks_.size(); ++r) {
      sums.assign(ranks_[r + 1].size() + 1, 0);
      std::size_t seen = 0;
      for (const std::uint32_t v : ranks_[r]) {
        below.clear();
        for (const std::uint32_t w : vertices_[v].below) below.push_back(position_[w]);
        for (const std::uint32_t p : below) {
          std::size_t before = 0;  // ways that end at this place or left of it
          for (std::size_t i = p + 1; i != 0; i &= i - 1) before += sums[i];
          crossings += seen - before;
        }
        for (const std::uint32_t p : below) {
          for (std::size_t i = p + 1; i < sums.size(); i += i & (~i + 1)) ++sums[i];
          ++seen;
        }
      }
    }
    return crossings;
  }

  /// Sorts a rank by the mean position of the neighbours above or below. A vertex without any stays where it is.
  void sort_rank(std::vector<std::uint32_t>& rank, bool by_above) {
    std::vector<std::pair<double, std::uint32_t>> sorted;
    for (const std::uint32_t v : rank) {
      const auto& beside = by_above ? vertices_[v].above : vertices_[v].below;
      double sum = 0;
      for (const std::uint32_t w : beside) sum += position_[w];
      sorted.emplace_back(beside.empty() ? position_[v] : sum / static_cast<double>(beside.size()), v);
    }
    std::ranges::stable_sort(sorted, {}, &std::pair<double, std::uint32_t>::first);
    for (std::size_t i = 0; i < rank.size(); ++i) rank[i] = sorted[i].second;
    note_positions(rank);
  }

  void order_ranks() {
    crossings_ = count_crossings();
    auto best = ranks_;
    constexpr int most_sweeps = 24, most_in_vain = 6;
    for (int sweep = 0, in_vain = 0; sweep < most_sweeps && in_vain < most_in_vain && crossings_ != 0; ++sweep) {
      if (sweep % 2 == 0)
        for (std::size_t r = 1; r < ranks_.size(); ++r) sort_rank(ranks_[r], true);
      else
        for (std::size_t r = ranks_.size() - 1; r-- > 0;) sort_rank(ranks_[r], false);
      const std::size_t now = count_crossings();
      ++in_vain;
      if (now >= crossings_) continue;
      crossings_ = now;
      best = ranks_;
      in_vain = 0;
    }
    ranks_ = std::move(best);
    for (const auto& rank : ranks_) note_positions(rank);
  }

  double distance(std::uint32_t left, std::uint32_t right) const {
    const vertex &a = vertices_[left], &b = vertices_[right];
    return (a.width + b.width) / 2 + (a.is_bend || b.is_bend ? gaps_.between_ways : gaps_.between_boxes);
  }

  /// Long ways are to be straight, so their inner pieces pull most; then boxes that follow each other.
  static double pull(const vertex& above, const vertex& below) {
    if (above.is_bend || below.is_bend) return above.is_bend && below.is_bend ? 8 : 1;
    return above.below.size() == 1 || below.above.size() == 1 ? 4 : 1.5;
  }

  /// Moves a rank to the places nearest to those that its neighbours want, in least squares and without overlaps. With the
  /// distances subtracted, the places must not decrease: an isotonic regression, by pooling adjacent violators.
  void move_rank(const std::vector<std::uint32_t>& rank, bool by_above, bool by_below) {
    struct pool {
      double sum = 0, weight = 0;
      std::size_t count = 0;
      double mean() const { return sum / weight; }
    };
    std::vector<pool> pools;
    std::vector<double> offset(rank.size(), 0);
    for (std::size_t i = 0; i < rank.size(); ++i) {
      if (i != 0) offset[i] = offset[i - 1] + distance(rank[i - 1], rank[i]);
      const vertex& v = vertices_[rank[i]];
      double sum = 0, weight = 0;
      const auto add = [&](std::uint32_t w, double p) {
        sum += p * vertices_[w].x;
        weight += p;
      };
      if (by_above)
        for (const std::uint32_t w : v.above) add(w, pull(vertices_[w], v));
      if (by_below)
        for (const std::uint32_t w : v.below) add(w, pull(v, vertices_[w]));
      if (weight == 0) sum = v.x * (weight = 0.05);
      pools.push_back({sum - weight * offset[i], weight, 1});
      while (pools.size() > 1 && pools[pools.size() - 2].mean() > pools.back().mean()) {
        const pool last = pools.back();
        pools.pop_back();
        pools.back().sum += last.sum;
        pools.back().weight += last.weight;
        pools.back().count += last.count;
      }
    }
    std::size_t at = 0;
    for (const pool& p : pools)
      for (std::size_t i = 0; i < p.count; ++i, ++at) vertices_[rank[at]].x = p.mean() + offset[at];
  }

  void find_columns() {
    for (const auto& rank : ranks_) {
      double at = 0;
      for (std::size_t i = 0; i < rank.size(); ++i) {
        if (i != 0) at += distance(rank[i - 1], rank[i]);
        vertices_[rank[i]].x = at;
      }
      for (const std::uint32_t v : rank) vertices_[v].x -= at / 2;
    }
    constexpr int sweeps = 24;
    for (int sweep = 0; sweep < sweeps; ++sweep) {
      const bool is_late = sweep >= sweeps - 8;  // the last sweeps heed both sides
      for (std::size_t r = 1; r < ranks_.size(); ++r) move_rank(ranks_[r], true, is_late);
      for (std::size_t r = ranks_.size(); r-- > 0;) move_rank(ranks_[r], is_late, true);
    }
    for (int pass = 0; pass < 2; ++pass)
      for (std::size_t r = 1; r < ranks_.size(); ++r) align_rank(ranks_[r]);
  }

  /// Moves each vertex right below the neighbour above that pulls most, if that is near and nothing is in between. Least squares
  /// leave slants that are small, and look like mistakes.
  void align_rank(const std::vector<std::uint32_t>& rank) {
    constexpr double near = 48;
    for (std::size_t i = 0; i < rank.size(); ++i) {
      vertex& v = vertices_[rank[i]];
      const vertex* best = nullptr;
      double most = 0;
      for (const std::uint32_t w : v.above)
        if (const double p = pull(vertices_[w], v); p > most) most = p, best = &vertices_[w];
      if (best == nullptr || std::abs(best->x - v.x) > near) continue;
      double x = best->x;
      if (i != 0) x = std::max(x, vertices_[rank[i - 1]].x + distance(rank[i - 1], rank[i]));
      if (i + 1 != rank.size()) x = std::min(x, vertices_[rank[i + 1]].x - distance(rank[i], rank[i + 1]));
      if (std::abs(best->x - x) < std::abs(best->x - v.x)) v.x = x;
    }
  }

  /// Where the ways end at the top of a box: beside each other, in the order in which they come.
  std::vector<double> ends_of(std::uint32_t box) const {
    const vertex& v = vertices_[box];
    std::vector<std::uint32_t> order(v.above.size());
    std::iota(order.begin(), order.end(), 0U);
    std::ranges::stable_sort(order, {}, [&](std::uint32_t i) { return vertices_[v.above[i]].x; });
    const double step = std::min(14.0, 0.7 * v.width / static_cast<double>(std::max<std::size_t>(order.size(), 1)));
    std::vector<double> ends(order.size());
    for (std::size_t i = 0; i < order.size(); ++i)
      ends[order[i]] = step * (static_cast<double>(i) - static_cast<double>(order.size() - 1) / 2);
    return ends;
  }

  template <class X>
  void add_ways(layered_drawing& made, const std::vector<double>& top, const std::vector<double>& bottom,
                X x_of) const {
    std::vector<std::vector<double>> ends(graph_.boxes.size());
    std::vector<std::size_t> next(graph_.boxes.size(), 0);  // segments were connected in the order of the nets
    for (std::uint32_t b = 0; b < graph_.boxes.size(); ++b) ends[b] = ends_of(b);
    made.ways.resize(graph_.nets.size());
    for (std::size_t n = 0; n < graph_.nets.size(); ++n) {
      std::vector<layered_piece>& way = made.ways[n];
      const auto leave = [&](std::uint32_t v) {
        return vertices_[v].is_bend ? bottom[vertices_[v].rank] : top[vertices_[v].rank] + vertices_[v].height;
      };
      for (const segment& s : segments_[n]) {
        const bool is_bend = vertices_[s.to].is_bend;
        const double x = x_of(s.to), end = is_bend ? x : x + ends[s.to][next[s.to]++], y = top[vertices_[s.to].rank];
        const double start = leave(s.from), below = bottom[vertices_[s.from].rank];
        if (start < below) way.push_back({x_of(s.from), start, x_of(s.from), below});  // past taller boxes of the rank
        way.push_back({x_of(s.from), below, end, y});
        if (is_bend) way.push_back({x, y, x, bottom[vertices_[s.to].rank]});
      }
      if (!is_straight_[n]) continue;
      for (const std::uint32_t reader : graph_.nets[n].to)
        way.push_back(
            {x_of(graph_.nets[n].from), leave(graph_.nets[n].from), x_of(reader), top[vertices_[reader].rank]});
    }
  }

  const layered_graph& graph_;
  const layered_gaps gaps_;
  std::vector<vertex> vertices_;  // the boxes first
  std::vector<std::vector<segment>> segments_;
  std::vector<bool> is_straight_;
  std::vector<std::vector<std::uint32_t>> ranks_;
  std::vector<std::uint32_t> position_;  // of each vertex in its rank
  std::size_t crossings_ = 0;
};

}  // namespace

layered_drawing lay_out(const layered_graph& graph, const layered_gaps& gaps) { return layout(graph, gaps).drawing(); }

}  // namespace collage::inline v0::report
