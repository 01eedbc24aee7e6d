// Samples from .npy files, read one at a time: the files may be larger than the memory.
#pragma once

#include <collage/graph/graph.hpp>
#include <collage/io/npy.hpp>
#include <collage/run/tensor.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace program {

/// The samples of a file or folder for --data, in the order of the files' names.
///
/// - A network with one input takes a file, or a folder of .npy files with any names.
/// - A network with several inputs takes a folder that has a file NAME.npy for each input, with _ for / in names.
/// - A folder without .npy files has folders of these kinds.
///
/// A file with the shape of its input is one sample. A file with several has one more dimension in front, or a multiple of the first
/// extent. A file with one sample serves for all samples of the other files in its folder.
class sample_files {
 public:
  /// Checks all headers. Errors: no sample; no file for an input; a file for no input; files of other types, shapes or numbers of samples.
  sample_files(const collage::graph& network, const std::string& path);

  std::uint64_t count() const { return count_; }
  /// Reads the next sample into the inputs. Returns false after the last one. Errors: a file that cannot be read; NaN or infinity in it,
  /// with the number of the sample in the file, from 1.
  bool read(std::span<const collage::tensor> inputs);

 private:
  struct set {
    std::vector<std::string> files;     // by input
    std::vector<std::uint64_t> counts;  // samples, by file
    std::uint64_t count = 0;
  };
  void add_folder(const std::string& folder);
  void add_set(std::vector<std::string> files);
  void open(const set& from);
  void read_input(std::size_t input, const collage::tensor& to);

  const collage::graph& network_;
  std::vector<std::string> names_;  // of the files, by input, without ".npy"
  std::vector<set> sets_;
  std::uint64_t count_ = 0;
  // The place in the files.
  std::size_t set_ = 0;
  std::uint64_t next_ = 0;  // in the set
  std::vector<collage::detail::open_file> files_;
};

}  // namespace program
