// Errors of values among the entries of a store, as `collage store` shows them.
#pragma once

#include <collage/io/json.hpp>
#include <collage/measure/store.hpp>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace program {

/// Entries of the store's costs: those of kernels, and errors of values.
struct listed_costs {
  std::vector<collage::stored_entry> costs, errors;
};
listed_costs divided(std::vector<collage::stored_entry> all);

/// Errors that are not finite are null.
collage::json errors_to_json(const std::vector<collage::stored_entry>& errors);
/// A table of them. Texts of an imported store must be plain already.
std::string table_of_errors(const std::vector<collage::stored_entry>& errors);
/// Everything about one of them: names of lines and their words.
std::vector<std::pair<const char*, std::string>> lines_of_error(const collage::stored_entry& error);

/// When an entry was measured, from seconds since 1970: by a format of strftime, and as a day.
std::string time_of(std::int64_t when_s, const char* format);
std::string day_of(std::int64_t when_s);

}  // namespace program
