// XGBoost, opened when it is first needed. Its C interface reports errors by numbers and keeps what it returns, so that all is
// copied here.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace collage::inline v0::tune::xgboost {

/// Why the library cannot be used, in one sentence; empty if it can.
std::string refusal();

/// A setting, by XGBoost's name.
using setting = std::pair<const char*, std::string>;

/// Boosted trees. The functions are for one thread at a time.
class trees {
 public:
  /// Trains so many trees on rows of `width` features. Error (failure): the library refused, with its reason.
  static trees train(std::span<const float> rows, std::size_t width, std::span<const float> labels,
                     std::span<const setting> settings, int count);
  /// Reads what `bytes` wrote. Error (failure): it cannot.
  static trees read(std::string_view bytes);

  std::vector<float> predict(std::span<const float> rows, std::size_t width) const;
  std::string bytes() const;

 private:
  struct closer {
    void operator()(void* booster) const;
  };
  std::unique_ptr<void, closer> booster_;
};

}  // namespace collage::inline v0::tune::xgboost
