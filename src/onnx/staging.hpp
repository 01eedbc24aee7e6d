// A request for one stage of a network, and the importer's findings meanwhile.
#pragma once

#include <collage/io/onnx/model.hpp>
#include <collage/run/network_source.hpp>
#include <collage/shape.hpp>
#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace collage::inline v0::onnx {

/// A constant that an earlier stage computed from shapes and values that it was made for.
struct kept_constant_value {
  tensor_type type;
  std::shared_ptr<const std::byte> bytes;
};
using kept_values = std::map<std::string, kept_constant_value>;

/// Facts that a stage keeps for the stages after it.
struct stage_memory {
  kept_values constants;
  std::vector<const model_node*> late;  ///< in the order of network_stage::late
  std::set<std::string> delivered;      ///< outputs of the model that are known
  std::string contradictions;           ///< sentences about the inputs of the first stage
};

/// A request for one stage, and the findings of the walk.
struct staging {
  bool is_first = true;
  std::span<const given_value> given;
  kept_values constants;            ///< of the stages before
  std::set<std::string> delivered;  ///< outputs of the model that are known already
  std::set<std::string> decided;    ///< given values that become constants
  std::string contradictions;       ///< of the model's inputs

  // Found by the walk.
  std::vector<const model_node*> deferred;  ///< nodes that a later stage computes
  std::vector<const model_node*> late;      ///< nodes that are computed after this stage
  std::set<std::string> later;              ///< the names of their results

  const given_value* find(const std::string& name) const {
    for (const given_value& g : given)
      if (g.name == name) return &g;
    return nullptr;
  }
};

/// The contents in memory of their own.
std::shared_ptr<const std::byte> copy_of(const const_tensor_view& contents);

/// Thrown by a rule that needs the contents of a value that is not known in this stage.
struct late_contents {
  std::size_t operand;  ///< of the node being lowered; `all_operands` if any may decide it
  static constexpr std::size_t all_operands = static_cast<std::size_t>(-1);
};

/// Thrown to begin a stage again, after a given value was found to decide its form.
struct begin_again {};

}  // namespace collage::inline v0::onnx
