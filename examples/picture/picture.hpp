// Pictures: read, written, resampled, and drawn on with a few letters of our own.
#pragma once

#include <stb/stb_image.h>
#include <stb/stb_image_write.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <collage/error.hpp>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace example {

namespace c = collage;

/// Red, green and blue bytes of each pixel, line by line from the top.
struct picture {
  int width = 0, height = 0;
  std::vector<std::uint8_t> rgb;

  picture(int w, int h, std::uint8_t grey) : width(w), height(h) {
    rgb.assign(static_cast<std::size_t>(w) * static_cast<std::size_t>(h) * 3, grey);
  }
  std::uint8_t* at(int x, int y) {
    return &rgb[(static_cast<std::size_t>(y) * static_cast<std::size_t>(width) + static_cast<std::size_t>(x)) * 3];
  }
  const std::uint8_t* at(int x, int y) const { return const_cast<picture*>(this)->at(x, y); }
};

/// A part of a picture, in pixels and fractions of them.
struct rectangle {
  double left = 0, top = 0, right = 0, bottom = 0;
  double width() const { return right - left; }
  double height() const { return bottom - top; }
};

inline picture read_picture(const std::string& file) {
  picture p(0, 0, 0);
  std::uint8_t* const pixels = stbi_load(file.c_str(), &p.width, &p.height, nullptr, 3);
  if (pixels == nullptr)
    throw c::error(c::error_kind::invalid_argument,
                   std::string("cannot be read as a PNG or JPEG picture: ") + stbi_failure_reason(), file);
  p.rgb.assign(pixels, pixels + static_cast<std::size_t>(p.width) * static_cast<std::size_t>(p.height) * 3);
  stbi_image_free(pixels);
  return p;
}

inline void write_png(const picture& p, const std::string& file) {
  if (stbi_write_png(file.c_str(), p.width, p.height, 3, p.rgb.data(), p.width * 3) == 0)
    throw c::error(c::error_kind::environment, "cannot be written", file, "name a file in a folder that exists");
}

/// Writes a part of a picture in the form that the networks here were trained on: a plane for blue, for green and for red. A
/// plane has `rows` lines of `stride` elements, from -1 for black to 1 for white. The part fills the first `columns` of each
/// line. Beyond the picture its border continues. Enlarging interpolates between pixels; shrinking averages them.
inline void to_planes(const picture& p, const rectangle& part, int columns, int rows, int stride, float* planes) {
  const double x_step = part.width() / columns, y_step = part.height() / rows;
  const int nx = std::max(1, static_cast<int>(std::ceil(x_step))),
            ny = std::max(1, static_cast<int>(std::ceil(y_step)));
  struct tap {
    int low, high;
    double part;
  };
  const auto taps = [](double from, double step, int count, int extent) {
    std::vector<tap> list;
    for (int i = 0; i < count; ++i) {
      const double at = std::clamp(from + (i + 0.5) * step - 0.5, 0.0, extent - 1.0);
      const int low = static_cast<int>(at);
      list.push_back({low, std::min(low + 1, extent - 1), at - low});
    }
    return list;
  };
  const std::vector<tap> xs = taps(part.left, x_step / nx, columns * nx, p.width);
  const std::vector<tap> ys = taps(part.top, y_step / ny, rows * ny, p.height);
  for (int y = 0; y < rows; ++y)
    for (int x = 0; x < columns; ++x) {
      std::array<double, 3> sum = {};
      for (int j = 0; j < ny; ++j)
        for (int i = 0; i < nx; ++i) {
          const tap h = xs[static_cast<std::size_t>(x * nx + i)], v = ys[static_cast<std::size_t>(y * ny + j)];
          const std::uint8_t *a = p.at(h.low, v.low), *b = p.at(h.high, v.low);
          const std::uint8_t *d = p.at(h.low, v.high), *e = p.at(h.high, v.high);
          for (std::size_t k = 0; k < 3; ++k)
            sum[k] +=
                (1 - v.part) * ((1 - h.part) * a[k] + h.part * b[k]) + v.part * ((1 - h.part) * d[k] + h.part * e[k]);
        }
      for (std::size_t k = 0; k < 3; ++k) {
        const std::size_t plane = 2 - k;
        const std::size_t at =
            (plane * static_cast<std::size_t>(rows) + static_cast<std::size_t>(y)) * static_cast<std::size_t>(stride) +
            static_cast<std::size_t>(x);
        planes[at] = static_cast<float>(sum[k] / (nx * ny) / 127.5 - 1);
      }
    }
}

/// Draws the outline of a part in red.
inline void draw_box(picture& p, const rectangle& part) {
  const auto clamp = [](double at, int extent) { return std::clamp(static_cast<int>(std::lround(at)), 0, extent - 1); };
  const int left = clamp(part.left, p.width), right = clamp(part.right, p.width);
  const int top = clamp(part.top, p.height), bottom = clamp(part.bottom, p.height);
  for (int y = top; y <= bottom; ++y)
    for (int x = left; x <= right; ++x)
      if (y == top || y == bottom || x == left || x == right) {
        std::uint8_t* const pixel = p.at(x, y);
        pixel[0] = 220, pixel[1] = pixel[2] = 0;
      }
}

/// Letters of five by seven dots: one number per line from the top. The highest of its five bits is the left dot.
inline const std::map<char, std::array<unsigned, 7>> letters = {
    {'A', {14, 17, 17, 31, 17, 17, 17}}, {'C', {14, 17, 16, 16, 16, 17, 14}},
    {'D', {30, 17, 17, 17, 17, 17, 30}}, {'E', {31, 16, 16, 30, 16, 16, 31}},
    {'G', {14, 17, 16, 23, 17, 17, 14}}, {'L', {16, 16, 16, 16, 16, 16, 31}},
    {'O', {14, 17, 17, 17, 17, 17, 14}}, {'R', {30, 17, 17, 30, 20, 18, 17}},
    {'S', {15, 16, 16, 14, 1, 1, 30}},   {'T', {31, 4, 4, 4, 4, 4, 4}},
    {'X', {17, 17, 10, 4, 10, 17, 17}},  {'2', {14, 17, 1, 6, 8, 16, 31}},
    {'4', {2, 6, 10, 18, 31, 2, 2}},     {'+', {0, 4, 4, 31, 4, 4, 0}},
    {'=', {0, 0, 31, 0, 31, 0, 0}},      {' ', {}}};

/// Draws text in dark grey; a dot has `size` pixels. Dots are rounded, because networks know printed letters, not squares.
inline void draw_text(picture& p, std::string_view text, int left, int top, int size) {
  const auto dot = [&](int x, int y) -> double {
    if (x < 0 || y < 0 || y >= 7 || x % 6 == 5 || x / 6 >= static_cast<int>(text.size())) return 0;
    const std::array<unsigned, 7>& lines = letters.at(text[static_cast<std::size_t>(x) / 6]);
    return lines[static_cast<std::size_t>(y)] >> (4 - x % 6) & 1U;
  };
  for (int y = -size; y < 8 * size; ++y)
    for (int x = -size; x < 6 * size * static_cast<int>(text.size()); ++x) {
      if (left + x < 0 || left + x >= p.width || top + y < 0 || top + y >= p.height) continue;
      const double u = (x + 0.5) / size - 0.5, v = (y + 0.5) / size - 0.5;
      const int i = static_cast<int>(std::floor(u)), j = static_cast<int>(std::floor(v));
      const double between = (1 - (v - j)) * ((1 - (u - i)) * dot(i, j) + (u - i) * dot(i + 1, j)) +
                             (v - j) * ((1 - (u - i)) * dot(i, j + 1) + (u - i) * dot(i + 1, j + 1));
      const double ink = std::clamp((between - 0.4) * 0.7 * size + 0.5, 0.0, 1.0);
      for (int k = 0; k < 3; ++k) {
        std::uint8_t& channel = p.at(left + x, top + y)[k];
        channel = static_cast<std::uint8_t>(std::lround(channel + ink * (30 - channel)));
      }
    }
}

}  // namespace example
