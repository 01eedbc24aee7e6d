// Cost models: boosted trees that predict how fast a configuration is, from its features. One model serves one family.
//
// XGBoost from 1.7 on makes them, which is opened when the first model is needed. Without it there is no model, and the closed form
// of the space ranks alone: `order_of` in tune/rank.hpp.
#pragma once

#include <collage/detail/hash.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace collage::inline v0::tune {

/// Measured points of one or several tasks.
struct training_set {
  std::size_t features = 0;        ///< of each point
  std::vector<float> rows;         ///< the features, point after point
  std::vector<float> throughputs;  ///< the task's shortest time divided by the point's, from 0 to 1

  std::size_t size() const { return throughputs.size(); }
  /// A time of infinity, for a point that failed, is a throughput of 0.
  /// Error (invalid_argument): another number of features, a feature that is not finite, or a time that is no positive number.
  void add(std::span<const float> of_point, double time, double shortest);
};

/// The subject of a model. One whose space, version or features differ predicts nothing.
struct model_subject {
  std::string space;           ///< "winograd-tiles1": name and version
  std::string family;          ///< "conv"
  std::string machine;         ///< the kind of processor
  std::uint64_t features = 0;  ///< a hash of the features' names: `features_hash`
  std::size_t feature_count = 0;
  friend bool operator==(const model_subject&, const model_subject&) = default;
};

/// A hash of the names, in their order. Backends that describe spaces need no model, and do not link what makes them.
constexpr std::uint64_t features_hash(std::span<const char* const> names) {
  std::uint64_t hash = detail::fnv_basis;
  for (const char* name : names) hash = detail::combine(hash, detail::hash(name));
  return hash;
}

struct model_options {
  int trees = 60;
  int depth = 6;
  double rate = 0.15;  ///< the share of a tree's prediction that is added
  std::uint32_t seed = 43;
};

/// A trained model. It is a value without handles of the library: its bytes. The same samples and options give the same bytes.
class cost_model {
 public:
  /// Why no model can be made here, in one sentence; empty if they can.
  static std::string refusal();

  /// Trains on one thread. Error (environment): see `refusal`; (invalid_argument): no samples; (failure): XGBoost failed.
  static cost_model train(const model_subject& subject, const training_set& samples, const model_options& options = {});

  /// The predicted throughput of each row. Larger is faster. `rows` has the features of point after point.
  /// Error (invalid_argument): `rows` is no whole number of points.
  std::vector<float> predict(std::span<const float> rows) const;

  const model_subject& subject() const { return subject_; }
  /// The number of samples that it was trained on.
  std::size_t samples() const { return samples_; }

  /// The model with its subject, its version and a hash, for a file or a store.
  std::string bytes() const;
  struct reading;
  /// Reads them. Damaged, cut or foreign bytes are no error: they give no model, and one sentence.
  static reading read(std::string_view bytes, const model_subject& expected);

  /// The file of a model beside a store: "costs.db.models/HASH.model". The folder need not exist.
  static std::string file_beside(std::string_view store, const model_subject& subject);
  /// Writes `bytes` as a whole or not at all. Error (environment): the file system refuses.
  void save(const std::string& file) const;
  /// `read` of a file's contents. A missing file gives no model and no sentence.
  static reading load(const std::string& file, const model_subject& expected);

 private:
  struct booster;
  cost_model(model_subject subject, std::size_t samples, std::string trees, std::shared_ptr<const booster> made);

  model_subject subject_;
  std::size_t samples_ = 0;
  std::string trees_;                    ///< as XGBoost writes them
  std::shared_ptr<const booster> made_;  ///< the same, ready to predict
};

struct cost_model::reading {
  std::optional<cost_model> model;
  std::string ignored;  ///< why there is none, in one sentence
};

}  // namespace collage::inline v0::tune
