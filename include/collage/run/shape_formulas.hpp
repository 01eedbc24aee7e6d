// How the shapes of a network's values depend on the extents that its inputs leave open.
//
// A source makes networks for known extents only. So formulas are found by making it at several extents: those of simple forms that hold
// at all of them. Declarations. The definitions are in src/engine/shape_formulas.cpp (the target collage::engine).
#pragma once

#include <collage/run/network_source.hpp>
#include <collage/shape.hpp>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace collage::inline v0 {

/// The shape of a value.
struct shape_formula {
  std::string value = {};  ///< its name
  /// By dimension: "64", "N", "2 N", "floor((W + 1) / 2) + 3", "N T", "past + N". "?" where no such formula holds.
  std::vector<std::string> extents = {};
  std::vector<std::string> depends_on = {};  ///< open extents that some dimension depends on
};

struct shape_formulas {
  /// The open extents of the inputs: names that the file gives, or "x[3]" for dimension 3 of input x.
  std::vector<std::string> open = {};
  std::vector<shape_formula> values = {};  ///< by value of the network of the first stage
  /// Open extents on which it depends which operators the network has. Formulas hold for its usual operators.
  std::vector<std::string> decides_operators = {};
  /// Open extents at no other value of which a network could be made. Formulas hold for the usual one.
  std::vector<std::string> only_usual = {};
};

/// The formulas for the network of the first stage that a source makes at `dims`, the shapes of all inputs. Contents count as zeros.
/// Some twelve larger extents of each are tried, up to 64 more, and those at which no network can be made are left out. Extents that cannot
/// vary alone vary together, as those of a batch that each input names otherwise. After `seconds`, no more are tried. A formula needs
/// four networks that differ in its extent. Nothing is made if no input is open. Errors: shapes of another number, or that are not
/// known; those of making the network at `dims`.
shape_formulas shape_formulas_of(const network_source& source, std::span<const shape> dims, double seconds = 5);

}  // namespace collage::inline v0
