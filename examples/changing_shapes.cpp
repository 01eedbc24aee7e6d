// Runs a trained model at several shapes, with an engine for each: changing_shapes [--models FOLDER] [WIDTH...]
// needs: onnx
#include "trained_model.hpp"

#include <charconv>
#include <collage/io/onnx/model_source.hpp>
#include <collage/place/session.hpp>
#include <cstdint>
#include <memory>

namespace {

namespace c = collage;

/// A width in pixels.
std::int64_t read_width(const std::string& text) {
  std::int64_t width = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), width);
  if (problem != std::errc{} || end != text.data() + text.size() || width < 8 || width > 4096)
    throw c::error(c::error_kind::invalid_argument, "is not a width", text, "give whole numbers from 8 to 4096");
  return width;
}

/// The milliseconds that a call takes.
template <class Call>
double time_of(const Call& call) {
  const auto start = std::chrono::steady_clock::now();
  call();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

int run(int argc, char** argv) {
  const example::command_line line(argc, argv, "changing_shapes [--models FOLDER] [WIDTH...]", {"--models"});
  std::vector<std::int64_t> widths;
  for (const std::string& word : line.words) widths.push_back(read_width(word));
  if (widths.empty()) widths = {48, 160, 320, 160};
  const std::string file =
      line.option("--models", COLLAGE_EXAMPLE_MODELS) + "/rapidocr/ch_ppocr_mobile_v2.0_cls_mobile.onnx";

  // The model is read once. Nothing is said about its shapes.
  const auto source = std::make_shared<c::onnx::model_source>(example::existing(file));
  const c::session session = c::make_session<example::backends>(source);
  c::session_context context = session.context();

  for (const std::int64_t width : widths) {
    const c::tensor image({c::dtype::f32, {1, 3, 48, width}});
    // The first run at a shape makes an engine for it. Later runs are runs of that engine.
    const double first_ms = time_of([&] { (void)context.run({image}); });
    const double again_ms = time_of([&] { (void)context.run({image}); });
    const c::session_output scores = context.run({image})[0];
    std::printf("width %lld: first run %.3f ms, second %.3f ms, %s is %.4f and %.4f\n", static_cast<long long>(width),
                first_ms, again_ms, scores.name.c_str(), double(scores.contents.as<float>()[0]),
                double(scores.contents.as<float>()[1]));
  }
  std::printf("%zu engines share %.1f MB of weights\n", session.state().engines,
              double(session.state().packed_bytes) / 1e6);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return example::guarded("changing_shapes", [&] { return run(argc, argv); });
}
