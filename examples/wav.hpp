// Reads sound from a WAV file: one channel of numbers in [-1, 1] at a given rate.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <collage/error.hpp>
#include <collage/io/file.hpp>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace example {

namespace c = collage;

/// The format of a WAV file, and its samples as stored.
struct wav_file {
  static constexpr unsigned pcm = 1, real = 3, extensible = 0xFFFE;
  unsigned format = 0, channels = 0, rate = 0, bits = 0;
  std::string_view samples;

  wav_file(std::string_view bytes, const std::string& file) {
    const auto wrong = [&](const std::string& what) {
      return c::error(c::error_kind::invalid_argument, what, file, "give a WAV file of PCM or float samples");
    };
    const auto number = [&](std::size_t at, std::size_t size) {
      unsigned n = 0;
      for (std::size_t i = 0; i < size; ++i) n |= static_cast<unsigned char>(bytes[at + i]) << (8 * i);
      return n;
    };
    if (bytes.size() < 12 || bytes.substr(0, 4) != "RIFF" || bytes.substr(8, 4) != "WAVE")
      throw wrong("is no WAV file");
    bool has_samples = false;
    for (std::size_t at = 12; at + 8 <= bytes.size() && !has_samples;) {
      const std::string_view name = bytes.substr(at, 4);
      // Programs that write to a pipe cannot know the size, so the file's own size limits it.
      const std::size_t size = std::min<std::size_t>(number(at + 4, 4), bytes.size() - at - 8);
      at += 8;
      if (name == "fmt " && size >= 16) {
        format = number(at, 2), channels = number(at + 2, 2), rate = number(at + 4, 4), bits = number(at + 14, 2);
        if (format == extensible && size >= 26) format = number(at + 24, 2);
      } else if (name == "data") {
        samples = bytes.substr(at, size);
        has_samples = true;
      }
      at += size + size % 2;
    }
    if (!has_samples || rate == 0) throw wrong("has no format or no samples");
    const bool known =
        format == pcm ? bits == 8 || bits == 16 || bits == 24 || bits == 32 : format == real && bits == 32;
    if (!known || channels == 0 || rate < 1000 || rate > 1000000)
      throw wrong("has samples of format " + std::to_string(format) + " and " + std::to_string(bits) + " bits at " +
                  std::to_string(rate) + " Hz");
  }
  std::size_t frames() const { return samples.size() / (bits / 8) / channels; }

  /// One sample. Integers are signed, except those of eight bits.
  double sample(std::size_t frame, unsigned channel) const {
    const std::size_t size = bits / 8, at = (frame * channels + channel) * size;
    std::uint32_t word = 0;  // the sample in the highest bits
    for (std::size_t i = 0; i < size; ++i)
      word |= std::uint32_t{static_cast<unsigned char>(samples[at + i])} << (32 - bits + 8 * i);
    if (format == real) return std::bit_cast<float>(word);
    if (bits == 8) word ^= 0x80000000U;
    return static_cast<std::int32_t>(word) / 2147483648.0;
  }
};

/// Reads a file, mixes its channels evenly, and resamples it. It interpolates between samples, and averages where the rate
/// falls. This is coarse, but enough for models that listen to speech.
inline std::vector<float> read_wav(const std::string& file, unsigned rate) {
  const std::string bytes = c::read_file(file);
  const wav_file wav(bytes, file);
  std::vector<double> mixed(wav.frames());
  for (std::size_t i = 0; i < mixed.size(); ++i) {
    for (unsigned channel = 0; channel < wav.channels; ++channel) mixed[i] += wav.sample(i, channel) / wav.channels;
    if (!std::isfinite(mixed[i]))
      throw c::error(c::error_kind::invalid_argument, "has samples that are no finite numbers", file);
  }

  const double step = double(wav.rate) / rate;
  const int taps = std::max(1, static_cast<int>(std::ceil(step)));
  std::vector<float> sound(static_cast<std::size_t>(static_cast<double>(mixed.size()) / step));
  for (std::size_t i = 0; i < sound.size(); ++i) {
    double sum = 0;
    for (int tap = 0; tap < taps; ++tap) {
      const double at = (static_cast<double>(i) + (tap + 0.5) / taps) * step - 0.5;
      const double held = std::clamp(at, 0.0, static_cast<double>(mixed.size() - 1));
      const auto low = static_cast<std::size_t>(held);
      const double part = held - static_cast<double>(low);
      sum += (1 - part) * mixed[low] + part * mixed[std::min(low + 1, mixed.size() - 1)];
    }
    sound[i] = static_cast<float>(sum / taps);
  }
  return sound;
}

}  // namespace example
