// Networks whose shapes are known late: where a session (run/session.hpp) gets its networks from.
//
// A source makes networks in stages. All shapes of a stage are known once its inputs are. The first stage has the inputs of the whole.
// A later one has values that the stage before it computed. Most sources have one stage.
#pragma once

#include <collage/graph/graph.hpp>
#include <collage/run/tensor.hpp>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace collage::inline v0 {

/// An input or output of a network whose extents may be open.
struct open_port {
  std::string name;
  dtype type = dtype::f32;
  bool has_rank = true;  ///< false: any number of dimensions
  shape dims = {};       ///< open extents are `unknown`
  std::vector<std::string> symbols =
      {};  ///< by dimension: the name of an open extent; empty where it has none or is known
};

/// A value from which a stage starts.
struct given_value {
  std::string name;
  const_tensor_view contents;  ///< dense, in the host's memory
};

/// An operator between two stages. The shapes of its results depend on the contents of its operands.
struct late_operator {
  std::string label;                  ///< "NonZero node_7", for messages
  std::vector<std::string> operands;  ///< names of values; constants are left out
  std::vector<std::string> results;   ///< names of the values that it computes
};

/// A part of a network whose shapes are all known.
struct network_stage {
  graph network;  ///< inputs and outputs have the names of their values
  /// Given values whose contents this stage was made for. With other contents it does not fit.
  std::vector<std::string> decided_by;
  std::vector<late_operator> late;     ///< computed after the network has run
  std::vector<std::string> passed_on;  ///< what the next stage starts from; empty for the last stage
  std::vector<std::string> results;    ///< outputs of the whole that are known after this stage
  bool is_last = true;
  std::shared_ptr<const void> memory;  ///< what the source keeps for the next stage
};

/// Makes stages. Several threads may call one source.
class network_source {
 public:
  network_source() = default;
  network_source(const network_source&) = delete;
  network_source& operator=(const network_source&) = delete;
  virtual ~network_source() = default;

  virtual std::span<const open_port> inputs() const = 0;
  virtual std::span<const open_port> outputs() const = 0;
  /// The first stage, if `before` is null, or the stage after it. `given` has a value for each of `inputs()`, or of the values that
  /// `before` passes on, in their order. Constants of the same contents should share their bytes from stage to stage. Errors:
  /// inputs that do not fit; all that is not supported.
  virtual network_stage make(const network_stage* before, std::span<const given_value> given) const = 0;
  /// The results of a late operator of a stage, in their order. No late operator reads another's results. Here and in `make`,
  /// the network of an earlier stage may be empty: the caller keeps what else it has.
  virtual std::vector<tensor> compute(const network_stage& stage, std::size_t late,
                                      std::span<const const_tensor_view> operands) const = 0;
};

}  // namespace collage::inline v0
