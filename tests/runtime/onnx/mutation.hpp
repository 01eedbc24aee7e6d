// Spoils ONNX files at random: their bytes, or the fields of the message that they hold.
#pragma once

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "writer.hpp"

namespace collage_test {

/// Makes files that are almost right. One seed is one sequence of files.
class mutator {
 public:
  explicit mutator(std::uint64_t seed) : random_(seed) {}

  /// A spoilt copy of a model. `other` is a model that pieces may be taken from.
  std::string spoilt(const proto::ModelProto& model, const proto::ModelProto& other) {
    std::string bytes;
    if (pick(3) != 0) {
      proto::ModelProto copy = model;
      for (std::size_t times = 1 + pick(3); times-- != 0;) spoil_fields(copy);
      bytes = copy.SerializeAsString();
      if (pick(8) != 0) return bytes;
    } else {
      bytes = model.SerializeAsString();
    }
    const std::string donor = other.SerializeAsString();
    for (std::size_t times = 1 + pick(4); times-- != 0;) spoil_bytes(bytes, donor);
    return bytes;
  }

  /// A number in [0, count). Unlike the standard distributions the same on every platform.
  std::size_t pick(std::size_t count) { return static_cast<std::size_t>(random_() % count); }

 private:
  void spoil_bytes(std::string& bytes, const std::string& donor) {
    if (bytes.empty()) return;
    const std::size_t at = pick(bytes.size());
    const std::size_t length = 1 + pick(std::min<std::size_t>(bytes.size() - at, 1 + pick(64)));
    switch (pick(8)) {
      case 0: bytes[at] = static_cast<char>(bytes[at] ^ (1 << pick(8))); break;
      case 1: bytes[at] = static_cast<char>(pick(256)); break;
      case 2: bytes[at] = "\x00\x01\x7F\x80\xFF"[pick(5)]; break;
      case 3: bytes.resize(at); break;
      case 4: bytes.insert(pick(bytes.size()), bytes.substr(at, length)); break;
      case 5: bytes.erase(at, length); break;
      case 6: {
        const std::string moved = bytes.substr(at, length);
        bytes.erase(at, length);
        bytes.insert(pick(bytes.size() + 1), moved);
        break;
      }
      default: bytes.replace(at, length, donor.substr(pick(donor.size()), length)); break;
    }
  }

  /// One value somewhere in a message.
  struct place {
    google::protobuf::Message* message;
    const google::protobuf::FieldDescriptor* field;
    int index;  ///< of a list
  };

  static void collect(google::protobuf::Message& message, std::vector<place>& places, std::vector<std::string>& texts) {
    const google::protobuf::Reflection& reflection = *message.GetReflection();
    std::vector<const google::protobuf::FieldDescriptor*> fields;
    reflection.ListFields(message, &fields);
    for (const auto* field : fields) {
      const bool is_message = field->cpp_type() == google::protobuf::FieldDescriptor::CPPTYPE_MESSAGE;
      const bool is_text = field->cpp_type() == google::protobuf::FieldDescriptor::CPPTYPE_STRING;
      // A list of weights is one place, so that they do not take most mutations.
      const int count = field->is_repeated() ? reflection.FieldSize(message, field) : 1;
      for (int i = 0; i < std::min(count, 64); ++i) {
        places.push_back({&message, field, i});
        if (is_text)
          texts.push_back(field->is_repeated() ? reflection.GetRepeatedString(message, field, i)
                                               : reflection.GetString(message, field));
        if (is_message)
          collect(field->is_repeated() ? *reflection.MutableRepeatedMessage(&message, field, i)
                                       : *reflection.MutableMessage(&message, field),
                  places, texts);
      }
    }
  }

  void spoil_fields(proto::ModelProto& model) {
    std::vector<place> places;
    std::vector<std::string> texts;
    collect(model, places, texts);
    // Most fields are names, and most of what can go wrong is in numbers.
    if (pick(2) == 0)
      std::erase_if(places, [](const place& p) {
        return p.field->type() == google::protobuf::FieldDescriptor::TYPE_STRING || p.field->message_type() != nullptr;
      });
    if (places.empty()) return;
    const place p = places[pick(places.size())];
    const google::protobuf::Reflection& reflection = *p.message->GetReflection();
    if (p.field->is_repeated() && pick(4) == 0) {
      const int last = reflection.FieldSize(*p.message, p.field) - 1;
      if (pick(2) == 0) reflection.SwapElements(p.message, p.field, p.index, last);
      else reflection.RemoveLast(p.message, p.field);
    } else if (pick(16) == 0) {
      reflection.ClearField(p.message, p.field);
    } else {
      set(p, reflection, texts);
    }
  }

  void set(const place& p, const google::protobuf::Reflection& reflection, const std::vector<std::string>& texts) {
    const auto put = [&](auto one, auto in_list, auto add, const auto& v) {
      if (!p.field->is_repeated()) (reflection.*one)(p.message, p.field, v);
      else if (pick(4) == 0) (reflection.*add)(p.message, p.field, v);
      else (reflection.*in_list)(p.message, p.field, p.index, v);
    };
    using r = google::protobuf::Reflection;
    using descriptor = google::protobuf::FieldDescriptor;
    switch (p.field->cpp_type()) {
      case descriptor::CPPTYPE_INT32:
        put(&r::SetInt32, &r::SetRepeatedInt32, &r::AddInt32, static_cast<std::int32_t>(integer()));
        break;
      case descriptor::CPPTYPE_INT64: put(&r::SetInt64, &r::SetRepeatedInt64, &r::AddInt64, integer()); break;
      case descriptor::CPPTYPE_UINT64:
        put(&r::SetUInt64, &r::SetRepeatedUInt64, &r::AddUInt64, static_cast<std::uint64_t>(integer()));
        break;
      case descriptor::CPPTYPE_FLOAT:
        put(&r::SetFloat, &r::SetRepeatedFloat, &r::AddFloat, static_cast<float>(real()));
        break;
      case descriptor::CPPTYPE_DOUBLE: put(&r::SetDouble, &r::SetRepeatedDouble, &r::AddDouble, real()); break;
      case descriptor::CPPTYPE_STRING:
        if (p.field->type() == descriptor::TYPE_BYTES && !p.field->is_repeated() && pick(4) != 0)
          reflection.SetString(p.message, p.field, data(reflection.GetString(*p.message, p.field)));
        else put(&r::SetString, &r::SetRepeatedString, &r::AddString, text(texts));
        break;
      case descriptor::CPPTYPE_ENUM: {
        const int count = p.field->enum_type()->value_count();
        const auto* value = p.field->enum_type()->value(static_cast<int>(pick(static_cast<std::size_t>(count))));
        if (!p.field->is_repeated()) reflection.SetEnum(p.message, p.field, value);
        break;
      }
      case descriptor::CPPTYPE_MESSAGE:
        // Twice the same, or another of the same kind's contents.
        if (p.field->is_repeated())
          reflection.AddMessage(p.message, p.field)
              ->CopyFrom(reflection.GetRepeatedMessage(*p.message, p.field, p.index));
        break;
      default: break;
    }
  }

  std::int64_t integer() {
    constexpr std::int64_t extremes[] = {0,
                                         1,
                                         -1,
                                         2,
                                         3,
                                         7,
                                         8,
                                         9,
                                         16,
                                         64,
                                         255,
                                         1000,
                                         65535,
                                         1 << 20,
                                         1LL << 31,
                                         (1LL << 31) - 1,
                                         -(1LL << 31),
                                         1LL << 32,
                                         1LL << 40,
                                         1LL << 61,
                                         1LL << 62,
                                         std::numeric_limits<std::int64_t>::max(),
                                         std::numeric_limits<std::int64_t>::min(),
                                         std::numeric_limits<std::int64_t>::min() + 1};
    if (pick(2) == 0) return static_cast<std::int64_t>(pick(24)) - 8;
    return pick(16) == 0 ? static_cast<std::int64_t>(random_()) : extremes[pick(std::size(extremes))];
  }
  double real() {
    constexpr double extremes[] = {0,
                                   -0.0,
                                   1,
                                   -1,
                                   0.5,
                                   1e-40,
                                   1e30,
                                   -1e30,
                                   1e19,
                                   1e9,
                                   3.5e9,
                                   -3.5e9,
                                   1e300,
                                   std::numeric_limits<double>::infinity(),
                                   std::numeric_limits<double>::quiet_NaN()};
    return extremes[pick(std::size(extremes))];
  }
  std::string text(const std::vector<std::string>& texts) {
    std::string made = texts.empty() ? "x" : texts[pick(texts.size())];
    switch (pick(8)) {
      case 0: return {};
      case 1: return made + std::string(1 + pick(16), '\0');
      case 2: return std::string(pick(2000), 'n');
      case 3: return "a\nb\t\x1B[31m\xFF";
      case 4:
        for (char& c : made)
          if (pick(4) == 0) c = static_cast<char>(pick(256));
        return made;
      default: return made;
    }
  }

  /// Weights, shapes or indices, of which one is changed.
  std::string data(std::string bytes) {
    const std::size_t width = std::size_t{1} << pick(4);
    if (bytes.size() < width) return bytes;
    const std::int64_t element = integer();
    std::memcpy(bytes.data() + pick(bytes.size() / width) * width, &element, width);
    return bytes;
  }

  std::mt19937_64 random_;
};

}  // namespace collage_test
