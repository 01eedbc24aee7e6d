// A store of costs for one call, where the caller keeps none.
#pragma once

#include <stdlib.h>

#include <collage/place.hpp>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>

namespace collage::inline v0 {

namespace detail {
namespace {

/// A folder of its own for a store. It is removed with the object. Without a folder for temporary files, there is no store.
class scratch_store {
 public:
  scratch_store() {
    std::error_code failed;
    std::string name = (std::filesystem::temp_directory_path(failed) / "collage-XXXXXX").string();
    if (!failed && ::mkdtemp(name.data()) != nullptr) folder_ = std::move(name);
  }
  scratch_store(const scratch_store&) = delete;
  scratch_store& operator=(const scratch_store&) = delete;
  ~scratch_store() {
    std::error_code ignored;
    if (!folder_.empty()) std::filesystem::remove_all(folder_, ignored);
  }

  /// Lets options without a store use this one.
  void serve(place_options& options) const {
    if (folder_.empty()) return;
    options.store = folder_ + "/costs.db";
    options.store_is_optional = true;
  }

 private:
  std::string folder_;
};

}  // namespace
}  // namespace detail
}  // namespace collage::inline v0
