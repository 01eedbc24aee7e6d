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

namespace collage::inline v0::detail {

/// The samples of a file or folder, as for --data of the program, in the order of the files' names.
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
  sample_files(const graph& network, const std::string& path);

  std::uint64_t count() const { return count_; }
  /// Reads a sample, from 0 to count() - 1, into memory for the inputs. Errors: a file that cannot be read; NaN or infinity in it, with
  /// the number of the sample in the file, from 1.
  void read_at(std::uint64_t which, std::span<const tensor_view> inputs);
  /// Reads the next sample. Returns false after the last one. Errors: as of `read_at`.
  bool read(std::span<const tensor> inputs);

 private:
  struct set {
    std::vector<std::string> files;     // by input
    std::vector<std::uint64_t> counts;  // samples, by file
    std::uint64_t first = 0, count = 0;
  };
  void add_folder(const std::string& folder);
  void add_set(std::vector<std::string> files);
  void open(std::size_t which);
  void read_input(std::size_t input, std::uint64_t sample, const tensor_view& to);

  const graph& network_;
  std::vector<std::string> names_;  // of the files, by input, without ".npy"
  std::vector<set> sets_;
  std::uint64_t count_ = 0;
  std::uint64_t next_ = 0;
  // The set whose files are open, and where the numbers begin in each.
  std::size_t open_ = static_cast<std::size_t>(-1);
  std::vector<open_file> files_;
  std::vector<std::int64_t> begins_;
};

}  // namespace collage::inline v0::detail
