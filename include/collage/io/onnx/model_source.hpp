// ONNX models as sources of networks, for sessions (run/session.hpp): the model is read once, and lowered for each combination of
// shapes.
#pragma once

#include <collage/io/onnx.hpp>
#include <collage/io/onnx/model.hpp>
#include <collage/run/network_source.hpp>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

namespace collage::inline v0::onnx {

/// A model in memory. It copies the contents of `options.values`; `kinds` and `rules` must outlive it. Inputs that `options` bind to a value are no inputs of the source, and shapes that it gives are fixed.
///
/// Values may decide shapes, such as the target of a reshape. A stage is made for their contents if they follow from small inputs.
/// Those have at most 1,024 elements if they are integers, and 64 otherwise. In other cases, the stage ends before the operator that
/// needs the value. A stage also ends before operators whose results have shapes that depend on data: Compress,
/// NonMaxSuppression, NonZero, Unique.
class model_source final : public network_source {
 public:
  /// Throws for kinds without a name in ONNX and for what `load` refuses before it knows shapes. These include unknown
  /// operators, but not those in branches, loops and functions, where shapes may decide what runs.
  explicit model_source(model read, const load_options& options = {});
  explicit model_source(const std::string& file, const load_options& options = {});
  ~model_source() override;

  std::span<const open_port> inputs() const override { return inputs_; }
  std::span<const open_port> outputs() const override { return outputs_; }
  network_stage make(const network_stage* before, std::span<const given_value> given) const override;
  std::vector<tensor> compute(const network_stage& stage, std::size_t late,
                              std::span<const const_tensor_view> operands) const override;
  /// Shapes of all inputs at which the model can be made. Open extents are usual ones: 1 for a batch, 224 for the sides of an image,
  /// 128 for a length. Others are tried if these do not work. Contents may decide what works. Those in `known` count, and zeros for
  /// other inputs. Throws the error of the first try if none works.
  std::vector<shape> example_shapes(std::span<const given_value> known = {}) const;
  /// Facts about the model that are not in the network.
  const load_report& about() const { return about_; }

 private:
  mutable model model_;  // weights with a generator get their contents when the first stage is made
  mutable std::once_flag filled_;
  load_options options_;
  std::vector<std::shared_ptr<const std::byte>> bound_;  // the contents of options_.values
  std::vector<open_port> inputs_, outputs_;
  load_report about_;
};

}  // namespace collage::inline v0::onnx
