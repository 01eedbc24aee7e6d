// The forms of --shape: the shape of an input, a part of it, the extent of a symbol, and several values of an extent.
#pragma once

#include "options.hpp"

#if COLLAGE_HAS_ONNX

#include <collage/place/tune_shapes.hpp>
#include <collage/run/network_source.hpp>
#include <collage/shape.hpp>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace program {

/// NAME=REST as its two halves, for an option whose values are of the form `form`.
std::pair<std::string, std::string> split_setting(const std::string& text, const char* option, const char* form);

/// One --shape. An extent without values stays open.
struct shape_setting {
  std::string text;  ///< as given
  std::string name;  ///< of an input, or of an open extent
  std::vector<std::optional<collage::extent_values>> extents;

  /// The first extent with several values; null if there is none.
  const collage::extent_values* several() const;
  /// For an input, with `collage::unknown` where it stays open. Each extent has one value at most.
  collage::shape dims() const;
};

/// A setting in the text of an option. Throws for texts of another form.
shape_setting setting_of(const std::string& text, const char* option = "--shape");

/// The settings of the command line, as they are written. Throws for texts of another form, and for names that are given twice.
std::vector<shape_setting> shape_settings(const options& given);

/// Whether a setting may be about a symbol: only the model's inputs say so.
bool may_name_symbol(const shape_setting& s);

/// The command line's settings, applied to the inputs of a model.
class shape_space {
 public:
  /// Throws for names of no input and no open extent, and for shapes of another rank or with other fixed extents.
  shape_space(std::span<const shape_setting> settings, std::span<const collage::open_port> inputs);

  struct open_extent {
    std::string name;  ///< of the symbol; "x[3]" if it has none
    collage::extent_values values;
  };
  /// The extents with several values.
  const std::vector<open_extent>& open() const { return open_; }
  /// For --shape: each input of which something was set, as "x=1x3x?x224". `extents` has one for each of open().
  std::vector<std::string> settings(std::span<const std::int64_t> extents = {}) const;

 private:
  struct slot {
    std::int64_t extent = collage::unknown;
    std::size_t open = none;  ///< number in open_
    std::string symbol;
  };
  struct input {
    std::string name;
    bool is_set = false;
    std::vector<slot> dims;
  };
  static constexpr std::size_t none = ~std::size_t{0};

  void set_symbol(const shape_setting& s);
  void set_input(input& to, const collage::open_port& port, const shape_setting& s);
  void set(input& of, slot& to, const std::string& name, const collage::extent_values& values);

  std::vector<input> inputs_;
  std::vector<open_extent> open_;
};

}  // namespace program

#endif
