// Steps: the sum type of everything that can run a part of a network. Plans and programs share it.
#pragma once

#include <collage/backend.hpp>
#include <string>
#include <variant>
#include <vector>

namespace collage::inline v0 {

struct placement;

/// A backend's kernel for a match of one of its patterns.
struct kernel_step {
  std::string backend;
  std::string pattern;
  std::string configuration = "0";  ///< which of the backend's ways to build it, as text (run/configuration.hpp)
  friend bool operator==(const kernel_step&, const kernel_step&) = default;
};

/// A backend's kernel for a group that its rule lists, or for a region of a backend that takes regions.
struct group_step {
  std::string backend;
  friend bool operator==(const group_step&, const group_step&) = default;
};

/// Nothing runs: one value lies in the memory of another (run/views.hpp). All values of the node are in this form.
struct view_step {
  std::string form = "plain";
  friend bool operator==(const view_step&, const view_step&) = default;
};

/// Control flow: the engine runs the node's sub-graphs, each by a placement of its own.
struct control_step {
  std::vector<placement> bodies;
};

/// A value is converted from one form into another.
struct conversion_step {
  std::string from, to;  ///< as to_text(form) spells them
  std::string backend;   ///< empty: no backend converts it
  std::string configuration = "0";
  friend bool operator==(const conversion_step&, const conversion_step&) = default;
};

/// An output that no kernel can write in the caller's memory is copied there. Plans have none: the engine adds them.
struct copy_step {
  friend bool operator==(const copy_step&, const copy_step&) = default;
};

using plan_step = std::variant<kernel_step, group_step, view_step, control_step, conversion_step, copy_step>;

/// The names under which reports list steps that no backend runs.
inline constexpr const char* view_runner = "view";
inline constexpr const char* control_runner = "control";

/// The backend of a step, for reports: view_runner or control_runner where no backend runs it.
inline std::string runner_of(const plan_step& step) {
  struct visitor {
    std::string operator()(const kernel_step& s) const { return s.backend; }
    std::string operator()(const group_step& s) const { return s.backend; }
    std::string operator()(const view_step&) const { return view_runner; }
    std::string operator()(const control_step&) const { return control_runner; }
    std::string operator()(const conversion_step& s) const { return s.backend; }
    std::string operator()(const copy_step&) const { return "copy"; }
  };
  return std::visit(visitor(), step);
}

}  // namespace collage::inline v0
