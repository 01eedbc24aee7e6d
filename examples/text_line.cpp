// Reads the text in a picture with PP-OCR's trained models: text_line [--models FOLDER] [--save FILE.png] [PICTURE]
//
// One model finds the places with text, another reads each place. Without a picture the program draws one. Lines must be
// upright: turned text is found, but its box is not turned with it.
// needs: onnx stb
#include "picture/picture.hpp"
#include "trained_model.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace {

namespace c = collage;
using example::picture;
using example::rectangle;

constexpr const char* usage = "text_line [--models FOLDER] [--save FILE.png] [PICTURE]";

// The detector works at a scale at which no side is longer. Sides are rounded up to few sizes, because each size needs an
// engine. They must be multiples of 32, because the detector's layers halve them five times.
constexpr double longest_side = 960;
constexpr int detector_step = 160;
// A place counts if the detector is this sure of a pixel, and of the box on average.
constexpr float sure_of_pixel = 0.3F;
constexpr double sure_of_box = 0.5;
// The detector marks the middle of a line. Each side of its box moves out by this factor times area over perimeter.
constexpr double growth = 1.6;
// The reader takes lines of this height; widths are rounded up as well.
constexpr int line_height = 48, width_step = 320, widest = 4 * width_step;

/// Rounds an extent up. Scaling may leave it a hair above a multiple; it then counts as that multiple.
int round_up(double extent, int step) { return std::max(1, static_cast<int>(std::ceil(extent / step - 1e-6))) * step; }

/// The boxes around connected pixels that are likely to be text, in the map's pixels.
std::vector<rectangle> boxes_of(std::span<const float> likely, int width, int height) {
  std::vector<rectangle> found;
  std::vector<bool> seen(likely.size());
  for (std::size_t start = 0; start < likely.size(); ++start) {
    if (seen[start] || likely[start] <= sure_of_pixel) continue;
    int left = width, top = height, right = 0, bottom = 0;
    std::vector<std::size_t> open = {start};
    seen[start] = true;
    while (!open.empty()) {
      const int x = static_cast<int>(open.back()) % width, y = static_cast<int>(open.back()) / width;
      open.pop_back();
      left = std::min(left, x), right = std::max(right, x + 1);
      top = std::min(top, y), bottom = std::max(bottom, y + 1);
      for (int v = std::max(y - 1, 0); v <= std::min(y + 1, height - 1); ++v)
        for (int u = std::max(x - 1, 0); u <= std::min(x + 1, width - 1); ++u) {
          const auto next = static_cast<std::size_t>(v * width + u);
          if (seen[next] || likely[next] <= sure_of_pixel) continue;
          seen[next] = true;
          open.push_back(next);
        }
    }
    const rectangle box = {double(left), double(top), double(right), double(bottom)};
    double sum = 0;
    for (int y = top; y < bottom; ++y)
      for (int x = left; x < right; ++x) sum += likely[static_cast<std::size_t>(y * width + x)];
    if (std::min(box.width(), box.height()) < 3 || sum < sure_of_box * box.width() * box.height()) continue;
    const double margin = growth * box.width() * box.height() / (2 * (box.width() + box.height()));
    found.push_back({box.left - margin, box.top - margin, box.right + margin, box.bottom + margin});
  }
  return found;
}

/// The places of text in reading order: from the top, and within a line from the left.
std::vector<rectangle> find_text(const picture& p, const std::string& model_file) {
  const double scale = std::min(1.0, longest_side / std::max(p.width, p.height));
  const int width = round_up(p.width * scale, detector_step), height = round_up(p.height * scale, detector_step);
  const c::tensor image({c::dtype::f32, {1, 3, height, width}});
  const example::trained_model detector = example::prepare(model_file, {{"x", image.type().dims}});
  const c::tensor likely({c::dtype::f32, {1, 1, height, width}});
  example::to_planes(p, {0, 0, width / scale, height / scale}, width, height, width, image.as<float>().data());
  detector.engine.context().run({image}, {likely});

  std::vector<rectangle> found = boxes_of(likely.as<const float>(), width, height);
  for (rectangle& r : found)
    r = {std::clamp(r.left / scale, 0.0, p.width - 1.0), std::clamp(r.top / scale, 0.0, p.height - 1.0),
         std::clamp(r.right / scale, 1.0, double(p.width)), std::clamp(r.bottom / scale, 1.0, double(p.height))};
  std::sort(found.begin(), found.end(), [](const rectangle& a, const rectangle& b) { return a.top < b.top; });
  for (auto line = found.begin(); line != found.end();) {
    const double middle = (line->top + line->bottom) / 2;
    const auto next = std::find_if(line, found.end(), [&](const rectangle& r) { return r.top > middle; });
    std::sort(line, next, [](const rectangle& a, const rectangle& b) { return a.left < b.left; });
    line = next;
  }
  return found;
}

/// The text of a line, and the reader's average certainty of its characters.
struct reading {
  std::string text;
  double score = 0;
};

/// Reads lines. The model returns, for every few columns, a probability for each character of its alphabet.
class line_reader {
 public:
  explicit line_reader(std::string model_file) : model_file_(std::move(model_file)) {}

  reading read(const picture& p, const rectangle& place) {
    const int wanted = static_cast<int>(std::ceil(line_height * place.width() / place.height()));
    const int columns = std::clamp(wanted, 1, widest), width = round_up(columns, width_step);
    auto at = widths_.find(width);
    if (at == widths_.end()) at = widths_.emplace(width, one_width(model_file_, width)).first;
    one_width& w = at->second;

    std::fill(w.image.as<float>().begin(), w.image.as<float>().end(), 0.0F);
    example::to_planes(p, place, columns, line_height, width, w.image.as<float>().data());
    w.context.run({w.image}, {w.probable});
    return decode(w);
  }

 private:
  /// An engine for lines of one width, because engines have fixed shapes.
  struct one_width {
    example::trained_model model;
    c::dynamic_context context;
    c::tensor image, probable;
    std::vector<std::string> alphabet;

    one_width(const std::string& file, int width)
        : model(example::prepare(file, {{"x", {1, 3, line_height, width}}})),
          context(model.engine.context()),
          image(model.engine.inputs()[0].type),
          probable(model.engine.outputs()[0].type),
          alphabet(alphabet_of(model.report, file)) {
      const c::shape& dims = probable.type().dims;
      if (dims.size() != 3 || dims[2] != static_cast<std::int64_t>(alphabet.size()))
        throw c::error(c::error_kind::invalid_argument, "its alphabet does not fit its output", file);
    }
  };

  /// The model's file holds its alphabet, a character per line. An empty entry comes before the characters, and a space after
  /// them.
  static std::vector<std::string> alphabet_of(const c::onnx::load_report& report, const std::string& file) {
    std::vector<std::string> alphabet = {""};
    for (const auto& [key, text] : report.metadata) {
      if (key != "character") continue;
      for (std::size_t from = 0; from <= text.size();) {
        const std::size_t to = std::min(text.find('\n', from), text.size());
        alphabet.push_back(text.substr(from, to - from));
        from = to + 1;
      }
      alphabet.push_back(" ");
      return alphabet;
    }
    throw c::error(c::error_kind::invalid_argument, "it does not say which characters it reads", file);
  }

  /// Takes the most probable character of each step. A character that is repeated without a break counts once.
  static reading decode(const one_width& w) {
    reading line;
    std::size_t last = 0, count = 0;
    const std::size_t characters = w.alphabet.size();
    for (auto all = w.probable.as<const float>(); !all.empty(); all = all.subspan(characters)) {
      const auto step = all.first(characters);
      const auto best = static_cast<std::size_t>(std::max_element(step.begin(), step.end()) - step.begin());
      if (best != 0 && best != last) line.text += w.alphabet[best], line.score += step[best], ++count;
      last = best;
    }
    if (count != 0) line.score /= double(count);
    return line;
  }

  std::string model_file_;
  std::map<int, one_width> widths_;
};

picture draw_picture() {
  picture p(416, 288, 250);
  example::draw_text(p, "COLLAGE", 40, 32, 8);
  example::draw_text(p, "READS TEXT", 40, 128, 5);
  example::draw_text(p, "2 + 2 = 4", 40, 208, 6);
  return p;
}

int run(int argc, char** argv) {
  const example::command_line line(argc, argv, usage, {"--models", "--save"});
  if (line.words.size() > 1) throw c::error(c::error_kind::invalid_argument, usage, "usage");
  const std::string models = line.option("--models", COLLAGE_EXAMPLE_MODELS) + "/rapidocr";
  picture p = line.words.empty() ? draw_picture() : example::read_picture(line.words[0]);

  const std::vector<rectangle> places = find_text(p, models + "/PP-OCRv6_det_small.onnx");
  line_reader reader(models + "/PP-OCRv6_rec_small.onnx");
  for (const rectangle& place : places) {
    const reading found = reader.read(p, place);
    if (found.text.empty()) continue;
    std::printf("%4.0f %4.0f %4.0f %4.0f  %3.0f %%  %s\n", place.left, place.top, place.right, place.bottom,
                100 * found.score, found.text.c_str());
  }
  if (places.empty()) std::printf("no text\n");
  if (const std::string file = line.option("--save", ""); !file.empty()) {
    for (const rectangle& place : places) example::draw_box(p, place);
    example::write_png(p, file);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return example::guarded("text_line", [&] { return run(argc, argv); });
}
