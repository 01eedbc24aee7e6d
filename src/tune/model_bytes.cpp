// Cost models as bytes: lines that say what the model is for, then the trees as XGBoost writes them. The first line has a hash
// over everything else.
#include "booster.hpp"

#include <collage/detail/hash.hpp>
#include <collage/error.hpp>
#include <collage/io/file.hpp>

#include <charconv>
#include <cstdio>
#include <filesystem>
#include <system_error>

namespace collage::inline v0::tune {
namespace {

constexpr std::string_view first_words = "collage-model 1 ";

std::string hexadecimal(std::uint64_t number) {
  char digits[17];
  std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(number));
  return digits;
}

std::string words_of(const model_subject& subject) {
  return "space " + subject.space + "\nfamily " + subject.family + "\nmachine " + subject.machine + "\nfeatures " +
         hexadecimal(subject.features) + ' ' + std::to_string(subject.feature_count) + '\n';
}

/// Takes the first line off.
std::string_view take_line(std::string_view& rest) {
  const std::string_view line = rest.substr(0, rest.find('\n'));
  rest.remove_prefix(std::min(rest.size(), line.size() + 1));
  return line;
}

}  // namespace

std::string cost_model::bytes() const {
  const std::string body = words_of(subject_) + "samples " + std::to_string(samples_) + '\n' + trees_;
  return std::string(first_words) + hexadecimal(detail::hash(body.data(), body.size())) + '\n' + body;
}

cost_model::reading cost_model::read(std::string_view bytes, const model_subject& expected) {
  const auto ignored = [](std::string why) { return reading{{}, "a cost model was ignored: " + std::move(why)}; };
  std::string_view rest = bytes;
  const std::string_view first = take_line(rest);
  if (!first.starts_with(first_words)) return ignored("it is no model, or one of another version");
  if (first.substr(first_words.size()) != hexadecimal(detail::hash(rest.data(), rest.size())))
    return ignored("it is damaged or cut short");
  const std::string words = words_of(expected);
  if (!rest.starts_with(words)) return ignored("it is for another space, family, machine, or other features");
  rest.remove_prefix(words.size());
  std::string_view count = take_line(rest);
  std::size_t samples = 0;
  count.remove_prefix(std::min(count.size(), std::string_view("samples ").size()));
  std::from_chars(count.data(), count.data() + count.size(), samples);
  if (const std::string why = refusal(); !why.empty()) return ignored(why);
  try {
    auto made = std::make_shared<const booster>(xgboost::trees::read(rest));
    return {cost_model(expected, samples, std::string(rest), std::move(made)), {}};
  } catch (const error&) { return ignored("this XGBoost cannot read its trees"); }
}

std::string cost_model::file_beside(std::string_view store, const model_subject& subject) {
  const std::string words = words_of(subject);
  return std::string(store) + ".models/" + hexadecimal(detail::hash(words.data(), words.size())) + ".model";
}

void cost_model::save(const std::string& file) const {
  const std::filesystem::path folder = std::filesystem::path(file).parent_path();
  std::error_code fault;
  if (!folder.empty()) std::filesystem::create_directories(folder, fault);
  if (fault)
    throw error(error_kind::environment, "the folder of cost models cannot be made: " + fault.message(),
                folder.string(), "check the path of the store");
  write_file(file, bytes());
}

cost_model::reading cost_model::load(const std::string& file, const model_subject& expected) {
  std::error_code fault;
  if (!std::filesystem::exists(file, fault)) return {};
  try {
    reading found = read(read_file(file), expected);
    if (!found.ignored.empty()) found.ignored = file + ": " + found.ignored;
    return found;
  } catch (const error& why) { return {{}, std::string("a cost model was ignored: ") + why.what()}; }
}

}  // namespace collage::inline v0::tune
