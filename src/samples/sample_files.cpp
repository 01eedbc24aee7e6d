#include "sample_files.hpp"

#include <collage/error.hpp>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

namespace collage::inline v0::detail {

namespace fs = std::filesystem;

namespace {

[[noreturn]] void refuse_sample(const std::string& what, const std::string& where, const std::string& remedy = {}) {
  throw error(error_kind::invalid_argument, what, where, remedy);
}

/// How many samples a file of a shape has for an input; nothing if the shape does not fit.
std::optional<std::uint64_t> samples_in(const shape& file, const shape& input) {
  const auto same_from = [&](std::size_t in_file, std::size_t in_input) {
    if (file.size() - in_file != input.size() - in_input) return false;
    for (std::size_t i = 0; in_file + i < file.size(); ++i)
      if (file[in_file + i] != input[in_input + i]) return false;
    return true;
  };
  if (file.size() == input.size() + 1 && same_from(1, 0)) return static_cast<std::uint64_t>(file[0]);
  if (file.size() != input.size()) return {};
  if (same_from(0, 0)) return 1;
  if (input.empty() || input[0] == 0 || !same_from(1, 1) || file[0] % input[0] != 0) return {};
  return static_cast<std::uint64_t>(file[0] / input[0]);
}

/// The entries of a folder in the order of their names: .npy files, and folders.
struct sample_listing {
  std::vector<std::string> files, folders;

  explicit sample_listing(const std::string& folder) {
    std::error_code failed;
    for (fs::directory_iterator at(folder, failed); !failed && at != fs::directory_iterator(); at.increment(failed)) {
      std::error_code ignored;
      if (at->is_directory(ignored)) folders.push_back(at->path().string());
      else if (at->path().extension() == ".npy") files.push_back(at->path().string());
    }
    if (failed) refuse_sample("cannot be read: " + failed.message(), folder, "check the folder");
    std::ranges::sort(files);
    std::ranges::sort(folders);
  }
};

}  // namespace

sample_files::sample_files(const graph& network, const std::string& path) : network_(network) {
  for (const std::uint32_t v : network.inputs()) {
    names_.push_back(network.value_name(v));
    std::ranges::replace(names_.back(), '/', '_');
  }
  std::error_code failed;
  const fs::file_status status = fs::status(path, failed);
  if (status.type() == fs::file_type::not_found)
    refuse_sample("there is no such file or folder", path, "check the path");
  if (failed) refuse_sample("cannot be read: " + failed.message(), path, "check the path");
  if (fs::is_directory(status)) {
    add_folder(path);
  } else {
    if (names_.size() != 1)
      refuse_sample("is one file, but the network has " + std::to_string(names_.size()) + " inputs", path,
                    "give a folder with a file NAME.npy for each input");
    add_set({path});
  }
  if (count_ == 0) refuse_sample("has no .npy files", path, "give a folder with samples");
}

void sample_files::add_folder(const std::string& folder) {
  const sample_listing found(folder);
  if (found.files.empty()) {
    for (const std::string& inside : found.folders) add_folder(inside);
    return;
  }
  if (names_.size() == 1) {
    for (const std::string& file : found.files) add_set({file});
    return;
  }
  std::vector<std::string> files(names_.size());
  for (const std::string& file : found.files) {
    const auto at = std::ranges::find(names_, fs::path(file).stem().string());
    if (at == names_.end())
      refuse_sample("is for no input of the network", file, "name it after an input, or remove it");
    files[static_cast<std::size_t>(at - names_.begin())] = file;
  }
  for (std::size_t i = 0; i < files.size(); ++i)
    if (files[i].empty())
      refuse_sample("has no file " + names_[i] + ".npy for input " + network_.value_name(network_.inputs()[i]), folder,
                    "add it, or make the input a constant with --bind");
  add_set(std::move(files));
}

void sample_files::add_set(std::vector<std::string> files) {
  set made{std::move(files), {}, count_, 1};
  for (std::size_t i = 0; i < made.files.size(); ++i) {
    const std::uint32_t v = network_.inputs()[i];
    const tensor_type& wanted = network_.type_of(v);
    const tensor_type found = open_npy(made.files[i], wanted.type).type;
    const std::optional<std::uint64_t> count = samples_in(found.dims, wanted.dims);
    if (found.type != wanted.type || !count)
      refuse_sample(
          "has " + npy_words(found) + ", but a sample of input " + network_.value_name(v) + " has " + npy_words(wanted),
          made.files[i],
          count ? std::string("save it with array.astype('") + name_of(wanted.type) + "')"
                : "give one sample, or several along a first dimension");
    if (*count == 0) refuse_sample("has no sample", made.files[i], "remove it");
    made.counts.push_back(*count);
    made.count = std::max(made.count, *count);
  }
  for (std::size_t i = 0; i < made.counts.size(); ++i)
    if (made.counts[i] != 1 && made.counts[i] != made.count)
      refuse_sample("has " + std::to_string(made.counts[i]) + " samples, but another file beside it has " +
                        std::to_string(made.count),
                    made.files[i], "give as many samples for each input");
  count_ += made.count;
  sets_.push_back(std::move(made));
}

void sample_files::open(std::size_t which) {
  files_.clear();
  begins_.clear();
  open_ = which;
  const set& from = sets_[which];
  for (std::size_t i = 0; i < from.files.size(); ++i) {
    files_.push_back(std::move(open_npy(from.files[i], network_.type_of(network_.inputs()[i]).type).from));
    begins_.push_back(ftello(files_.back().get()));
  }
}

void sample_files::read_at(std::uint64_t which, std::span<const tensor_view> inputs) {
  const auto after = std::ranges::upper_bound(sets_, which, {}, &set::first);
  const auto number = static_cast<std::size_t>(after - sets_.begin()) - 1;
  if (number != open_) open(number);
  const set& from = sets_[number];
  for (std::size_t i = 0; i < inputs.size(); ++i)
    read_input(i, from.counts[i] == 1 ? 0 : which - from.first, inputs[i]);
}

bool sample_files::read(std::span<const tensor> inputs) {
  if (next_ == count_) return false;
  read_at(next_++, std::vector<tensor_view>(inputs.begin(), inputs.end()));
  return true;
}

void sample_files::read_input(std::size_t input, std::uint64_t sample, const tensor_view& to) {
  const std::string& file = sets_[open_].files[input];
  const std::size_t bytes = to.type.bytes();
  std::FILE* const from = files_[input].get();
  if (bytes != 0 && (fseeko(from, begins_[input] + static_cast<std::int64_t>(sample * bytes), SEEK_SET) != 0 ||
                     std::fread(to.data, 1, bytes, from) != bytes))
    refuse_sample("cannot be read: it has become shorter", file);
  if (to.type.type != dtype::f32) return;
  const std::span<const float> list(static_cast<const float*>(to.data), bytes / sizeof(float));
  const auto bad = std::ranges::find_if(list, [](float x) { return !std::isfinite(x); });
  if (bad == list.end()) return;
  refuse_sample(std::string(std::isnan(*bad) ? "has NaN" : "is infinite") + " at element " +
                    std::to_string(bad - list.begin()) + " of sample " + std::to_string(sample + 1),
                file, "give samples whose numbers are finite");
}

}  // namespace collage::inline v0::detail
