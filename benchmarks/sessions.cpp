// How much a session costs over static engines: a known shape, the first run at a new shape, and memory (docs/changing-shapes.md).
//
// usage: sessions [--threads N] [--shapes N] [--seed N] [--store FILE] FILE.onnx NAME=DIMS...     prints a table in Markdown
//   DIMS   the input's extents, as in 1x3x48x16..640: where two are given, each shape has a random one between them;
//          16..640/8 stands for multiples of 8. All inputs with open extents must be named. Equal ranges get equal extents.
// needs: place io onnx onednn openblas eigen stacked portable
#include <collage/error.hpp>
#include <collage/io/onnx/model_source.hpp>
#include <collage/measure/statistics.hpp>
#include <collage/place/session.hpp>
#include <collage/run/buffers.hpp>
#include <collage/run/session.hpp>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "placing.hpp"

namespace {

namespace c = collage;
using benchmarks::all_backends;

double now_us() {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// The process's resident memory in MB, of which the system says the pages.
double resident_mb() {
  std::ifstream from("/proc/self/statm");
  double size = 0, resident = 0;
  from >> size >> resident;
  return resident * 4096 / 1e6;
}

std::int64_t whole_number(const std::string& text) {
  std::int64_t n = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (problem != std::errc{} || end != text.data() + text.size() || n < 0)
    throw c::error(c::error_kind::invalid_argument, "is not a whole number", text);
  return n;
}

/// An input whose shapes are random.
struct ranged_input {
  std::string name;
  std::vector<std::string> extents;

  explicit ranged_input(const std::string& text) : name(text.substr(0, text.rfind('='))) {
    if (name == text) throw c::error(c::error_kind::invalid_argument, "is not NAME=DIMS", text);
    for (std::size_t at = name.size() + 1; at <= text.size();) {
      const std::size_t end = std::min(text.find('x', at), text.size());
      extents.push_back(text.substr(at, end - at));
      at = end + 1;
    }
  }
  c::shape dims(std::map<std::string, std::int64_t>& drawn, std::mt19937_64& random) const {
    c::shape made;
    for (const std::string& e : extents) {
      const std::size_t dots = e.find("..");
      if (dots == std::string::npos) {
        made.push_back(whole_number(e));
        continue;
      }
      if (drawn.count(e) == 0) {
        const std::size_t slash = std::min(e.find('/'), e.size());
        const std::int64_t step = slash == e.size() ? 1 : whole_number(e.substr(slash + 1));
        const std::int64_t low = whole_number(e.substr(0, dots)),
                           high = whole_number(e.substr(dots + 2, slash - dots - 2));
        drawn[e] = std::uniform_int_distribution<std::int64_t>((low + step - 1) / step, high / step)(random) * step;
      }
      made.push_back(drawn[e]);
    }
    return made;
  }
};

/// Inputs of one combination of shapes.
struct drawn_inputs {
  std::vector<c::tensor> contents;
  std::vector<c::const_tensor_view> views;
  std::vector<c::shape> dims;

  drawn_inputs(const c::session& session, const std::vector<ranged_input>& ranges, std::mt19937_64& random) {
    std::map<std::string, std::int64_t> drawn;
    for (const c::open_port& p : session.inputs()) {
      c::shape own = p.dims;
      for (const ranged_input& r : ranges)
        if (r.name == p.name) own = r.dims(drawn, random);
      dims.push_back(own);
      contents.emplace_back(c::tensor_type{p.type, own});
      c::fill_random(contents.back(), random);
    }
    for (const c::tensor& t : contents) views.emplace_back(t);
  }
};

/// The median of the time of a session's run over that of a static engine's run at the same shapes, in microseconds.
double overhead_us(const std::string& file, const c::session& session, const drawn_inputs& in,
                   const c::place_options& how) {
  c::onnx::load_options options;
  for (std::size_t i = 0; i < in.dims.size(); ++i) options.shapes.push_back({session.inputs()[i].name, in.dims[i]});
  c::graph network = c::onnx::load(file, options);
  c::fill_constants(network);
  network = c::optimise(network);
  const c::dynamic_engine engine = c::engine<all_backends>(network, c::place<all_backends>(network, how));
  c::dynamic_context alone = engine.context();
  c::session_context shared = session.context();
  c::run_buffers memory(network);
  (void)shared.run(in.views);
  std::vector<double> differences;
  for (int i = 0; i < 400; ++i) {
    const double start = now_us();
    alone.run(in.views, memory.outputs);
    const double between = now_us();
    shared.run(in.views, memory.outputs);
    differences.push_back(now_us() - between - (between - start));
  }
  return c::summarise(std::move(differences)).median_ms;
}

int measure(int count, const char* const* words) {
  benchmarks::command_line line(count, words);
  c::place_options how = c::session_placing();
  how.threads = static_cast<int>(line.number("--threads", 1));
  how.store = line.text("--store", "");
  const auto shapes = static_cast<int>(line.number("--shapes", 100));
  std::mt19937_64 random(static_cast<std::uint64_t>(line.number("--seed", 1)));
  const std::vector<std::string> rest = line.rest();
  if (rest.empty()) throw c::error(c::error_kind::invalid_argument, "no file is given", "sessions");
  std::vector<ranged_input> ranges;
  for (std::size_t i = 1; i < rest.size(); ++i) ranges.emplace_back(rest[i]);

  const auto source = std::make_shared<const c::onnx::model_source>(rest[0]);
  const c::session session = c::make_session<all_backends>(source, how);
  c::session_context context = session.context();
  std::vector<double> first_ms;
  double one_mb = 0;
  for (int i = 0; i < shapes; ++i) {
    const drawn_inputs in(session, ranges, random);
    const std::size_t made = session.state().made;
    (void)context.run(in.views);
    if (session.state().made != made) first_ms.push_back(session.state().making_ms);
    if (i == 0) one_mb = resident_mb();
  }
  const double all_mb = resident_mb();
  const drawn_inputs in(session, ranges, random);
  const double over_us = overhead_us(rest[0], session, in, how);
  const double most = *std::max_element(first_ms.begin(), first_ms.end());
  const std::size_t engines = first_ms.size();
  std::printf(
      "| new shapes | making an engine, ms: median | most | known shape, µs more | MB after one | after all |\n");
  std::printf("|--:|--:|--:|--:|--:|--:|\n| %zu | %.1f | %.1f | %.2f | %.0f | %.0f |\n", engines,
              c::summarise(std::move(first_ms)).median_ms, most, over_us, one_mb, all_mb);
  return 0;
}

}  // namespace

int main(int count, char** words) { return benchmarks::run("sessions", measure, count, words); }
