// The published files: those that were built into the program, or those of a folder.
#pragma once

#include <collage/error.hpp>
#include <collage/io/file.hpp>

#include <span>
#include <string>

namespace program::replay {

/// A file inside the program, in pieces: compilers need not take longer literals.
struct embedded_file {
  const char* name;
  std::span<const char* const> pieces;
};

/// All of them. The build makes this function from benchmarks/data/collage-costs (embed.cmake).
std::span<const embedded_file> embedded_files();

/// A published file by its name: from `folder`, or the built-in one where no folder is named. Throws `collage::error`
/// where it cannot be read.
inline std::string published_file(const std::string& folder, const std::string& name) {
  if (!folder.empty()) return collage::read_file(folder + (folder.back() == '/' ? "" : "/") + name);
  for (const embedded_file& file : embedded_files()) {
    if (name != file.name) continue;
    std::string text;
    for (const char* piece : file.pieces) text += piece;
    return text;
  }
  throw collage::error(collage::error_kind::failure, "it was not built into this program", name,
                       "name the folder of the published files with --data");
}

}  // namespace program::replay
