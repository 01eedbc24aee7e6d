// A session in a process of its own, for benchmarks/shapes/run: it runs what lines on standard input say.
//
// usage: session_child DESCRIPTOR [--threads N] [--store FILE] [--backends A,B] [--most-engines N] [--most-bytes N] FILE.onnx
//   DESCRIPTOR   a pipe that gets one line of JSON for each line, and one when the session is ready
// The lines:
//   first SEED NAME=2x3 ...   random inputs of these shapes run twice: {"first_ms", "second_ms", "made", "making_ms"}
//   slice SECONDS             runs them so long: {"ms": [...]}, without runs that began in the first 50 ms; at least one
//   outputs FOLDER            writes the outputs of the last run: {"outputs": [{"name", "type", "shape", "file"}]}
//   memory                    {"resident_mb", "most_mb", "engines", "made", "given_back", "packed_mb"}
// An error is {"failed": "..."}, and ends the process. Contents of inputs are those of benchmarks/shapes/contents.py.
// needs: place io onnx onednn openblas eigen stacked portable
#include <sys/prctl.h>

#include <collage/dtype.hpp>
#include <collage/error.hpp>
#include <collage/every_backend.hpp>
#include <collage/io/onnx/model_source.hpp>
#include <collage/place/session.hpp>
#include <collage/run/session.hpp>
#include <collage/run/waiting.hpp>

#include <charconv>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <fstream>
#include <iostream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <system_error>
#include <type_traits>
#include <vector>

#include "placing.hpp"

namespace {

namespace c = collage;
using json = nlohmann::json;

constexpr double dropped_s = 0.05;     // at the start of a slice: caches hold what ran before
constexpr std::size_t least_runs = 1;  // that count in a slice, however long they take

double now_ms() {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

c::error wrong(const std::string& what, const std::string& where) {
  return {c::error_kind::invalid_argument, what, where};
}

template <class Number>
Number number_in(const std::string& text) {
  Number n{};
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (problem != std::errc{} || end != text.data() + text.size()) throw wrong("is not a number", text);
  return n;
}

/// A memory figure of this process in MB, as /proc/self/status calls it.
double status_mb(const std::string& field) {
  std::ifstream from("/proc/self/status");
  for (std::string line; std::getline(from, line);)
    if (line.starts_with(field + ":")) return std::stod(line.substr(field.size() + 1)) * 1024 / 1e6;
  throw c::error(c::error_kind::environment, "says nothing of " + field, "/proc/self/status");
}

/// The upper 24 bits of the numbers of SplitMix64.
class random_bits {
 public:
  explicit random_bits(std::uint64_t seed) : state_(seed) {}
  std::uint32_t next() {
    std::uint64_t z = state_ += 0x9E3779B97F4A7C15U;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
    return static_cast<std::uint32_t>((z ^ (z >> 31)) >> 40);
  }

 private:
  std::uint64_t state_;
};

/// Multiples of 2^-23 from -1 to 1; whole numbers from 0 to 7; both booleans.
void fill(const c::tensor& t, std::uint64_t seed) {
  random_bits random(seed);
  const auto each = [&]<class T>(T) {
    for (T& x : t.as<T>()) {
      const std::uint32_t bits = random.next();
      if constexpr (std::is_floating_point_v<T>) x = static_cast<T>(bits) / static_cast<T>(1 << 23) - 1;
      else x = static_cast<T>(bits >> 21);
    }
  };
  switch (t.type().type) {
    case c::dtype::f32: each(float{}); break;
    case c::dtype::f64: each(double{}); break;
    case c::dtype::i8: each(std::int8_t{}); break;
    case c::dtype::i32: each(std::int32_t{}); break;
    case c::dtype::i64: each(std::int64_t{}); break;
    case c::dtype::u8: each(std::uint8_t{}); break;
    case c::dtype::boolean:
      for (std::uint8_t& x : t.as<std::uint8_t>()) x = static_cast<std::uint8_t>(random.next() >> 23);
      break;
    default: throw wrong("has no random contents here", std::string("an input of ") + c::name_of(t.type().type));
  }
}

c::shape shape_in(const std::string& text) {
  c::shape dims;
  std::istringstream words(text);
  for (std::string extent; std::getline(words, extent, 'x');) dims.push_back(number_in<std::int64_t>(extent));
  return dims;
}

/// A session, and the inputs and outputs of its last run.
class child {
 public:
  child(const std::string& file, const c::place_options& how, const c::session_options& options)
      : session_(c::make_session<c::every_backend>(std::make_shared<const c::onnx::model_source>(file), how, options)) {
  }

  json obey(std::istringstream& line) {
    std::string word;
    line >> word;
    if (word == "first") return first(line);
    if (word == "slice") return slice(line);
    if (word == "outputs") return outputs(line);
    if (word == "memory") return memory();
    throw wrong("is no command", word);
  }

 private:
  void draw(std::istringstream& line) {
    std::uint64_t seed = 0;
    line >> seed;
    std::map<std::string, c::tensor> drawn;  // a seed for each, in the order of the line
    for (std::string word; line >> word;) {
      const std::size_t sign = word.rfind('=');
      if (sign == std::string::npos) throw wrong("is not NAME=DIMS", word);
      const std::string name = word.substr(0, sign);
      for (const c::open_port& p : session_.inputs()) {
        if (p.name != name) continue;
        c::tensor made(c::tensor_type{p.type, shape_in(word.substr(sign + 1))});
        fill(made, seed++);
        drawn.insert_or_assign(name, std::move(made));
      }
    }
    contents_.clear();
    views_.clear();
    for (const c::open_port& p : session_.inputs()) {
      if (drawn.count(p.name) == 0) throw wrong("has no shape", "input " + p.name);
      contents_.push_back(std::move(drawn[p.name]));
    }
    for (const c::tensor& t : contents_) views_.emplace_back(t);
  }

  double run_ms() {
    const double start = now_ms();
    results_ = context_.run(views_);
    return now_ms() - start;
  }

  json first(std::istringstream& line) {
    draw(line);
    const std::size_t before = session_.state().made;
    const double first_ms = run_ms();
    const c::session_state state = session_.state();
    const double second_ms = run_ms();
    return {{"first_ms", first_ms},
            {"second_ms", second_ms},
            {"made", state.made - before},
            {"making_ms", state.made == before ? 0 : state.making_ms}};
  }

  json slice(std::istringstream& line) {
    double seconds = 0;
    line >> seconds;
    const double start = now_ms();
    std::vector<double> times;
    for (double began = start; began < start + 1e3 * seconds || times.size() < least_runs; began = now_ms()) {
      const double took = run_ms();
      if (began >= start + 1e3 * dropped_s) times.push_back(took);
    }
    return {{"ms", times}};
  }

  json outputs(std::istringstream& line) const {
    std::string folder;
    line >> std::ws;
    std::getline(line, folder);
    json list = json::array();
    for (const c::session_output& out : results_) {
      const std::string file = folder + "/" + std::to_string(list.size()) + ".raw";
      std::ofstream to(file, std::ios::binary);
      to.write(static_cast<const char*>(out.contents.data), static_cast<std::streamsize>(out.contents.type.bytes()));
      if (!to.flush()) throw c::error(c::error_kind::environment, "cannot be written", file);
      std::vector<std::int64_t> dims(out.contents.type.dims.begin(), out.contents.type.dims.end());
      list.push_back(
          {{"name", out.name}, {"type", c::name_of(out.contents.type.type)}, {"shape", dims}, {"file", file}});
    }
    return {{"outputs", list}};
  }

  json memory() const {
    const c::session_state state = session_.state();
    return {{"resident_mb", status_mb("VmRSS")}, {"most_mb", status_mb("VmHWM")},
            {"engines", state.engines},          {"made", state.made},
            {"given_back", state.given_back},    {"packed_mb", static_cast<double>(state.packed_bytes) / 1e6}};
  }

  c::session session_;
  c::session_context context_{session_.context()};
  std::vector<c::tensor> contents_;
  std::vector<c::const_tensor_view> views_;
  std::span<const c::session_output> results_;
};

int serve(std::FILE* events, int count, const char* const* words) {
  const auto say = [&](const json& event) {
    std::fprintf(events, "%s\n", event.dump().c_str());
    std::fflush(events);
  };
  try {
    benchmarks::command_line line(count, words);
    const double bare_mb = status_mb("VmRSS");
    c::place_options how = c::session_placing();
    how.threads = static_cast<int>(line.number("--threads", 1));
    how.store = line.text("--store", "");
    std::istringstream backends(line.text("--backends", ""));
    for (std::string name; std::getline(backends, name, ',');) how.backends.push_back(name);
    c::session_options options;
    options.most_engines = line.number("--most-engines", options.most_engines);
    options.most_bytes = line.number("--most-bytes", options.most_bytes);
    if (line.rest().size() != 1) throw wrong("needs one file", "session_child");
    const double start = now_ms();
    child served(line.rest()[0], how, options);
    say({{"ready_ms", now_ms() - start}, {"bare_mb", bare_mb}});
    for (std::string text; std::getline(std::cin, text);) {
      std::istringstream command(text);
      say(served.obey(command));
    }
    return 0;
  } catch (const std::exception& problem) { say({{"failed", problem.what()}}); }
  return 1;
}

}  // namespace

int main(int count, char** words) {
  (void)prctl(PR_SET_PDEATHSIG, SIGKILL);  // stopped processes do not see that their pipe is closed
  const c::brief_waiting beside_others;    // as in the program, whose store serves
  if (count < 2) {
    std::fprintf(stderr, "session_child: needs a descriptor; see the first lines of its source\n");
    return 2;
  }
  std::FILE* events = fdopen(std::atoi(words[1]), "w");
  return events == nullptr ? 2 : serve(events, count - 1, words + 1);
}
