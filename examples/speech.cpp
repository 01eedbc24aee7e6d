// Marks speech in a WAV file, with Silero's trained model: speech [--models FOLDER] FILE.wav
//
// The model hears 32 ms at a time. Each run passes its state on to the next.
// needs: onnx
#include "trained_model.hpp"
#include "wav.hpp"

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

namespace c = collage;

constexpr const char* usage = "speech [--models FOLDER] FILE.wav";

// The model was trained with this rate, this many new samples in each run, and this many old samples before them.
constexpr unsigned rate = 16000;
constexpr std::size_t step = 512, memory = 64;

// Speech begins where it is likely, and ends after it has been unlikely for long enough. Durations are in samples.
constexpr float likely = 0.5F, unlikely = 0.35F;
constexpr std::size_t least_speech = rate * 250 / 1000, least_silence = rate * 100 / 1000, margin = rate * 30 / 1000;

struct segment {
  std::size_t begin = 0, end = 0;  ///< in samples
};

/// The probability of speech in each step.
std::vector<float> listen(const std::vector<float>& sound, const std::string& model_file) {
  const c::tensor heard({c::dtype::f32, {1, memory + step}}), probable({c::dtype::f32, {1, 1}});
  c::tensor state({c::dtype::f32, {2, 1, 128}}), next_state(state.type());
  const c::tensor sampling_rate({c::dtype::i64, {}});
  sampling_rate.as<std::int64_t>()[0] = rate;
  // The rate decides what the model computes. As a constant it is evaluated while the model is loaded.
  const example::trained_model model = example::prepare(
      model_file, {{"input", heard.type().dims}, {"state", state.type().dims}}, {{"sr", sampling_rate}});
  c::dynamic_context context = model.engine.context();

  std::vector<float> answers;
  const auto input = heard.as<float>();
  for (std::size_t at = 0; at < sound.size(); at += step) {
    std::copy(input.end() - memory, input.end(), input.begin());
    std::fill(input.begin() + memory, input.end(), 0.0F);
    std::copy_n(sound.begin() + static_cast<std::ptrdiff_t>(at), std::min(step, sound.size() - at),
                input.begin() + memory);
    context.run({heard, state}, {probable, next_state});
    std::swap(state, next_state);
    answers.push_back(probable.as<float>()[0]);
  }
  return answers;
}

/// Turns probabilities into segments. Short ones are dropped; the others grow by a margin, but never into one another.
std::vector<segment> segments_of(const std::vector<float>& answers, std::size_t length) {
  std::vector<segment> found;
  const auto keep = [&](std::size_t begin, std::size_t end) {
    if (end - begin > least_speech) found.push_back({begin, end});
  };
  bool speaks = false, pauses = false;
  std::size_t begin = 0, pause = 0;
  for (std::size_t i = 0; i < answers.size(); ++i) {
    const std::size_t at = i * step;
    if (answers[i] >= likely) {
      pauses = false;
      if (!speaks) begin = at;
      speaks = true;
    } else if (speaks && answers[i] < unlikely) {
      if (!pauses) pause = at;
      pauses = true;
      if (at - pause < least_silence) continue;
      keep(begin, pause);
      speaks = pauses = false;
    }
  }
  if (speaks) keep(begin, length);

  if (found.empty()) return found;
  found.front().begin -= std::min(margin, found.front().begin);
  found.back().end += std::min(margin, length - found.back().end);
  for (std::size_t i = 0; i + 1 < found.size(); ++i) {
    const std::size_t grows = std::min(margin, (found[i + 1].begin - found[i].end) / 2);
    found[i].end += grows;
    found[i + 1].begin -= grows;
  }
  return found;
}

/// Prints a character per step, higher for more probable speech.
void print_bar(const std::vector<float>& answers) {
  constexpr std::string_view heights = " .:-=+*#";
  constexpr std::size_t columns = 100;
  for (std::size_t from = 0; from < answers.size(); from += columns) {
    std::printf("%7.2f s |", double(from * step) / rate);
    for (std::size_t i = from; i < std::min(from + columns, answers.size()); ++i)
      std::putchar(
          heights[std::min<std::size_t>(static_cast<std::size_t>(answers[i] * heights.size()), heights.size() - 1)]);
    std::printf("|\n");
  }
}

int run(int argc, char** argv) {
  const example::command_line line(argc, argv, usage, {"--models"});
  if (line.words.size() != 1) throw c::error(c::error_kind::invalid_argument, usage, "usage");
  const std::vector<float> sound = example::read_wav(line.words[0], rate);
  const std::vector<float> answers =
      listen(sound, line.option("--models", COLLAGE_EXAMPLE_MODELS) + "/silero-vad/silero_vad_16k_op15.onnx");

  print_bar(answers);
  const std::vector<segment> found = segments_of(answers, sound.size());
  for (const segment& s : found)
    std::printf("speech from %.2f to %.2f s\n", double(s.begin) / rate, double(s.end) / rate);
  if (found.empty()) std::printf("no speech\n");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return example::guarded("speech", [&] { return run(argc, argv); });
}
