// Recognises the types of files by their contents, with Magika's trained model: file_type [--models FOLDER] FILE...
// needs: onnx
#include "trained_model.hpp"

#include <algorithm>
#include <array>
#include <collage/io/json.hpp>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

namespace {

namespace c = collage;

constexpr const char* usage = "file_type [--models FOLDER] FILE...";
constexpr const char* remedy = "take the files of one release of Magika's model";

c::json read_json(const std::string& file) try {
  return c::json::parse(c::read_file(example::existing(file)));
} catch (const c::json::exception&) { throw c::error(c::error_kind::invalid_argument, "is not JSON", file, remedy); }

/// White space as Python defines it: the model was trained with that.
bool is_space(char byte) { return std::string_view(" \t\n\v\f\r").find(byte) != std::string_view::npos; }

/// Whether the bytes are UTF-8: no overlong form, no half of a surrogate pair, nothing cut off.
bool is_utf8(std::string_view bytes) {
  for (std::size_t i = 0; i < bytes.size();) {
    const auto first = static_cast<unsigned char>(bytes[i++]);
    if (first < 0x80) continue;
    const int more = first >= 0xF0 ? 3 : first >= 0xE0 ? 2 : 1;
    if (first < 0xC2 || first > 0xF4) return false;
    std::uint32_t code = first & (0x3FU >> more);
    for (int k = 0; k < more; ++k, ++i) {
      if (i == bytes.size() || (static_cast<unsigned char>(bytes[i]) & 0xC0U) != 0x80U) return false;
      code = code << 6 | (static_cast<unsigned char>(bytes[i]) & 0x3FU);
    }
    constexpr std::array<std::uint32_t, 4> least = {0, 0x80, 0x800, 0x10000};
    if (code < least[static_cast<std::size_t>(more)] || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000))
      return false;
  }
  return true;
}

struct answer {
  std::string label;
  double score = 1;
};

/// The model with its configuration. It reads the first and the last bytes of a file, each as a number, and returns a
/// probability per content type.
class file_types {
 public:
  explicit file_types(const std::string& folder)
      : config_json_(read_json(folder + "/config.min.json")),
        known_json_(read_json(folder + "/content_types_kb.min.json")),
        config_(config_json_, folder + "/config.min.json", remedy),
        known_(known_json_, folder + "/content_types_kb.min.json", remedy),
        begin_(size_of("beg_size")),
        end_(size_of("end_size")),
        block_(size_of("block_size")),
        least_(size_of("min_file_size_for_dl")),
        padding_(static_cast<std::int32_t>(config_["padding_token"].natural(0, 1U << 20))),
        bytes_({c::dtype::i32, {1, begin_ + end_}}),
        scores_({c::dtype::f32, {1, static_cast<std::int64_t>(config_["target_labels_space"].size())}}),
        model_(example::prepare(folder + "/model.onnx", {{"bytes", bytes_.type().dims}})),
        context_(model_.engine.context()) {}

  /// The type of a file. A file of few bytes is only classified as text or not, which needs no model.
  answer of(const std::string& path) {
    if (std::filesystem::is_directory(path)) return {"directory"};
    std::ifstream file(path, std::ios::binary | std::ios::ate);
    const auto size = static_cast<std::int64_t>(file.tellg());
    if (!file || size < 0) throw c::error(c::error_kind::invalid_argument, "cannot be read", path, "check the path");
    if (size == 0) return {"empty"};
    const std::string first = read(file, path, 0, std::min(size, block_));
    const std::string last = read(file, path, size - std::min(size, block_), std::min(size, block_));

    const auto meaning =
        static_cast<std::int64_t>(first.end() - std::find_if_not(first.begin(), first.end(), is_space));
    if (size < least_ || meaning < least_) return {is_utf8(first) ? "txt" : "unknown"};
    set_bytes(first, last);
    context_.run({bytes_}, {scores_});
    return judge();
  }
  /// A sentence about a type with its MIME type. Types without a MIME type of their own get a general one.
  std::string about(const std::string& label) const {
    const c::json_place type = known_[label.c_str()];
    const bool has_mime_type = !known_json_[label]["mime_type"].is_null();
    const char* const general = type["is_text"].boolean() ? "text/plain" : "application/octet-stream";
    return type["description"].text() + ", " + (has_mime_type ? type["mime_type"].text() : general);
  }

 private:
  std::int64_t size_of(const char* what) const { return static_cast<std::int64_t>(config_[what].natural(1, 1U << 20)); }

  static std::string read(std::ifstream& file, const std::string& path, std::int64_t from, std::int64_t count) {
    std::string bytes(static_cast<std::size_t>(count), '\0');
    if (!file.seekg(from) || !file.read(bytes.data(), count))
      throw c::error(c::error_kind::environment, "could not be read to its end", path);
    return bytes;
  }

  /// The beginning without leading white space, padded at its end; the end without trailing white space, padded at its front.
  void set_bytes(std::string_view first, std::string_view last) {
    const auto number = [](char byte) { return static_cast<std::int32_t>(static_cast<unsigned char>(byte)); };
    const auto into = bytes_.as<std::int32_t>();
    std::fill(into.begin(), into.end(), padding_);
    while (!first.empty() && is_space(first.front())) first.remove_prefix(1);
    while (!last.empty() && is_space(last.back())) last.remove_suffix(1);
    first = first.substr(0, static_cast<std::size_t>(begin_));
    last = last.substr(last.size() - std::min(last.size(), static_cast<std::size_t>(end_)));
    std::transform(first.begin(), first.end(), into.begin(), number);
    std::transform(last.begin(), last.end(), into.end() - static_cast<std::ptrdiff_t>(last.size()), number);
  }

  /// The most probable type, or a general type if the model is less sure than the type's threshold.
  answer judge() const try {
    const auto scores = scores_.as<float>();
    const auto best = static_cast<std::size_t>(std::max_element(scores.begin(), scores.end()) - scores.begin());
    const std::string label = config_["target_labels_space"][best].text();
    const c::json &renamed = config_json_.at("overwrite_map"), &thresholds = config_json_.at("thresholds");
    const double enough = thresholds.value(label, config_["medium_confidence_threshold"].number());
    const std::string name = renamed.value(label, label);
    if (scores[best] >= enough) return {name, scores[best]};
    return {known_[name.c_str()]["is_text"].boolean() ? "txt" : "unknown", scores[best]};
  } catch (const c::json::exception&) {
    config_.wrong("lacks the thresholds or the overwrite_map that the model needs");
  }

  c::json config_json_, known_json_;
  c::json_place config_, known_;
  std::int64_t begin_, end_, block_, least_;
  std::int32_t padding_;
  c::tensor bytes_, scores_;
  example::trained_model model_;
  c::dynamic_context context_;
};

int run(int argc, char** argv) {
  const example::command_line line(argc, argv, usage, {"--models"});
  if (line.words.empty()) throw c::error(c::error_kind::invalid_argument, usage, "usage");
  file_types types(line.option("--models", COLLAGE_EXAMPLE_MODELS) + "/magika");

  std::size_t width = 0;
  for (const std::string& file : line.words) width = std::max(width, file.size());
  for (const std::string& file : line.words) {
    const answer a = types.of(file);
    std::printf("%-*s  %-10s %3.0f %%  %s\n", static_cast<int>(width), file.c_str(), a.label.c_str(), 100 * a.score,
                types.about(a.label).c_str());
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return example::guarded("file_type", [&] { return run(argc, argv); });
}
