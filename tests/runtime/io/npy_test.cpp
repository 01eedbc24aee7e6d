// .npy files: what we write, what we read, and what we refuse.
#include <gtest/gtest.h>

#include <collage/error.hpp>
#include <collage/io/npy.hpp>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <random>
#include <string>

#include "support/files.hpp"
#include "support/messages.hpp"
#include "support/random_numbers.hpp"

namespace io_npy_test {

namespace c = collage;
using collage_test::bytes_of;
using namespace std::string_literals;

class npy : public testing::Test {
 protected:
  const std::filesystem::path& folder() const { return files_.folder(); }
  std::string path(const std::string& name) const { return files_.path(name); }
  std::string file(const std::string& bytes, const std::string& name = "a.npy") const {
    return files_.write(bytes, name);
  }
  template <class Call>
  static std::string refusal(const std::string& path, const Call& call) {
    return collage_test::sentence_about(path, call, 2);
  }
  static std::string load_refusal(const std::string& path) {
    return refusal(path, [&] { (void)c::load_npy(path); });
  }
  std::string content_refusal(const std::string& bytes) const { return load_refusal(file(bytes)); }

 private:
  const collage_test::temporary_folder files_;
};

/// A file of version 1.0 with this dictionary and these elements.
std::string with_header(const std::string& dictionary, const std::string& elements) {
  const std::string header = dictionary + "\n";
  return "\x93NUMPY\x01\x00"s + static_cast<char>(header.size() & 0xFF) + static_cast<char>(header.size() >> 8) +
         header + elements;
}
std::string typed(const std::string& descr, const std::string& shape, const std::string& elements) {
  return with_header("{'descr': '" + descr + "', 'fortran_order': False, 'shape': " + shape + ", }", elements);
}

c::tensor counting(const c::tensor_type& type) {
  c::tensor t(type);
  for (std::size_t i = 0; i < t.bytes(); ++i)
    t.data()[i] = static_cast<std::byte>(type.type == c::dtype::boolean ? i % 2 : 37 * i + 5);
  return t;
}
void expect_equal(const c::tensor& a, const c::tensor& b) {
  ASSERT_EQ(a.type(), b.type());
  if (a.bytes() == 0) return;
  EXPECT_EQ(std::memcmp(a.data(), b.data(), a.bytes()), 0);
}

TEST_F(npy, every_element_type_comes_back) {
  for (const c::dtype type : c::detail::coded_dtypes) {
    const c::tensor t = counting({type, {2, 3, 5}});
    c::save_npy(path("t.npy"), t);
    expect_equal(c::load_npy(path("t.npy")), t);
  }
}

TEST_F(npy, small_types_come_back_where_their_type_is_known) {
  for (const c::dtype type : {c::dtype::i4, c::dtype::u2, c::dtype::f8e5m2, c::dtype::f8e8m0, c::dtype::f4e2m1}) {
    const c::tensor t = counting({type, {2, 3}});
    c::save_npy(path("t.npy"), t);
    expect_equal(c::load_npy(path("t.npy"), t.type(), "x"), t);
    EXPECT_EQ(load_refusal(path("t.npy")),
              "its elements are raw bytes ('|V1'), which do not say whether they are float8e4m3fn or of another type; "
              "give the file for an input of such a type, or save numbers, as with array.astype('float32')");
    EXPECT_NE(refusal(path("t.npy"), [&] { (void)c::load_npy(path("t.npy"), {c::dtype::u8, {2, 3}}, "x"); })
                  .find("raw bytes"),
              std::string::npos);
  }
  const std::string name = file(typed("<f1", "(2,)", "\x3C\xC0"));
  EXPECT_EQ(c::load_npy(name, {c::dtype::f8e5m2, {2}}, "x").type().type, c::dtype::f8e5m2);
  EXPECT_NE(refusal(name, [&] { (void)c::load_npy(name, {c::dtype::f8e4m3fn, {2}}, "x"); }).find("'<f1'"),
            std::string::npos);
  const std::string bytes = file(typed("|u1", "(2,)", "\x3C\xC0"));
  EXPECT_NE(refusal(bytes, [&] { (void)c::load_npy(bytes, {c::dtype::f8e4m3fn, {2}}, "x"); })
                .find("has shape 2 uint8, but the network's input `x` needs shape 2 float8e4m3fn"),
            std::string::npos);
}

TEST_F(npy, every_rank_comes_back) {
  for (const c::shape& dims :
       {c::shape{}, c::shape{7}, c::shape{1, 3}, c::shape{0}, c::shape{2, 0, 3}, c::shape{1, 2, 1, 2, 1, 2, 1, 2}}) {
    const c::tensor t = counting({c::dtype::f32, dims});
    c::save_npy(path("t.npy"), t);
    expect_equal(c::load_npy(path("t.npy")), t);
  }
}

TEST_F(npy, the_bytes_are_numpy_s) {
  c::tensor t({c::dtype::f32, {1, 3}});
  t.as<float>()[0] = 1.0F;
  t.as<float>()[2] = -2.5F;
  c::save_npy(path("t.npy"), t);
  const std::string dictionary = "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 3), }";
  const std::string header =
      dictionary + std::string(117 - dictionary.size(), ' ') + "\n";  // 10 + 118 is a multiple of 64
  EXPECT_EQ(bytes_of(path("t.npy")),
            "\x93NUMPY\x01\x00\x76\x00"s + header + "\x00\x00\x80\x3F\x00\x00\x00\x00\x00\x00\x20\xC0"s);
}

TEST_F(npy, codes_of_the_element_types) {
  const auto dictionary = [&](c::dtype type, const c::shape& dims) {
    c::save_npy(path("t.npy"), c::tensor({type, dims}));
    const std::string bytes = bytes_of(path("t.npy"));
    EXPECT_EQ((10 + static_cast<unsigned char>(bytes[8]) + 256 * static_cast<unsigned char>(bytes[9])) % 64, 0);
    return bytes.substr(10, bytes.find('}') - 9);
  };
  EXPECT_EQ(dictionary(c::dtype::boolean, {}), "{'descr': '|b1', 'fortran_order': False, 'shape': (), }");
  EXPECT_EQ(dictionary(c::dtype::i8, {4}), "{'descr': '|i1', 'fortran_order': False, 'shape': (4,), }");
  EXPECT_EQ(dictionary(c::dtype::u64, {4, 1}), "{'descr': '<u8', 'fortran_order': False, 'shape': (4, 1), }");
  EXPECT_EQ(dictionary(c::dtype::f16, {0}), "{'descr': '<f2', 'fortran_order': False, 'shape': (0,), }");
  EXPECT_EQ(dictionary(c::dtype::bf16, {1}), "{'descr': '<V2', 'fortran_order': False, 'shape': (1,), }");
  EXPECT_EQ(dictionary(c::dtype::f8e4m3fn, {2}), "{'descr': '|V1', 'fortran_order': False, 'shape': (2,), }");
}

TEST_F(npy, reads_what_others_write) {
  // Another order of keys, other quotes, no comma at the end, spaces.
  const std::string four = "\x01\x00\x00\x00"s;
  EXPECT_EQ(c::load_npy(file(with_header("{\"shape\":(1,),'fortran_order' : False ,'descr':'<i4'}   ", four))).type(),
            (c::tensor_type{c::dtype::i32, {1}}));
  EXPECT_EQ(c::load_npy(file(typed("|V2", "(2,)", four))).type().type, c::dtype::bf16);
  EXPECT_EQ(c::load_npy(file(typed("<u1", "(4,)", four))).type().type, c::dtype::u8);
  // Version 2.0 has four bytes of length.
  const std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }\n";
  EXPECT_EQ(c::load_npy(file("\x93NUMPY\x02\x00"s + static_cast<char>(header.size()) + "\x00\x00\x00"s + header + four))
                .type(),
            (c::tensor_type{c::dtype::f32, {1}}));
}

TEST_F(npy, refuses_other_files) {
  EXPECT_EQ(content_refusal(""), "is not an .npy file; write one with numpy.save");
  EXPECT_EQ(content_refusal("PK\x03\x04 and so on, as in .npz files"),
            "is not an .npy file; write one with numpy.save");
  EXPECT_EQ(content_refusal("\x93NUMPY\x03\x00\x00\x00\x00\x00"s),
            "is an .npy file of version 3.0, but only versions 1.0 and 2.0 can be read");
  EXPECT_EQ(load_refusal(path("missing.npy")), "there is no such file");
  EXPECT_EQ(load_refusal(folder().string()), "is a folder, not an .npy file");
  EXPECT_EQ(load_refusal("/dev/null"), "is not a regular file");
}

TEST_F(npy, refuses_what_it_cannot_hold) {
  const std::string eight(8, 'x');
  EXPECT_EQ(content_refusal(typed(">f4", "(2,)", eight)),
            "its numbers are big-endian ('>f4'); save it with array.astype('<f4')");
  EXPECT_EQ(content_refusal(with_header("{'descr': '<f4', 'fortran_order': True, 'shape': (1, 2), }", eight)),
            "it is stored in Fortran order; save it with numpy.ascontiguousarray(array)");
  EXPECT_EQ(content_refusal(typed("|O", "(1,)", eight)),
            "its elements are Python objects ('|O'); save numbers, as with array.astype('float32')");
  EXPECT_EQ(content_refusal(typed("<c8", "(1,)", eight)),
            "its elements are complex numbers ('<c8'); save numbers, as with array.astype('float32')");
  EXPECT_EQ(content_refusal(typed("<U2", "(1,)", eight)),
            "its elements are texts ('<U2'); save numbers, as with array.astype('float32')");
  EXPECT_EQ(content_refusal(typed("<f16", "(1,)", eight)),
            "its elements are of an unknown type ('<f16'); save numbers, as with array.astype('float32')");
  EXPECT_EQ(content_refusal(
                with_header("{'descr': [('a', '<f4'), ('b', '<f4')], 'fortran_order': False, 'shape': (1,), }", eight)),
            "its elements are records, but a tensor holds numbers; save one field of them");
  EXPECT_EQ(content_refusal(typed("|i1", "(1, 1, 1, 1, 2, 2, 2, 1, 1)", eight)), "it has more than 8 dimensions");
}

TEST_F(npy, refuses_headers_that_lie) {
  const std::string eight(8, 'x');
  EXPECT_EQ(content_refusal(typed("<f4", "(1, 3)", eight)),
            "is cut short: shape 1x3 float32 takes 12 bytes, and 8 follow its header");
  EXPECT_EQ(content_refusal(typed("<f4", "(1,)", eight)),
            "is too long: shape 1 float32 takes 4 bytes, and 8 follow its header");
  EXPECT_EQ(content_refusal(typed("<f4", "(1000000, 1000000, 1000)", eight)),
            "its shape 1000000x1000000x1000 is too large");
  EXPECT_EQ(content_refusal(typed("<f4", "(99999999999999999999, 0)", eight)), "its shape is too large");
  EXPECT_EQ(content_refusal(typed("<f4", "(-2,)", eight)), "its shape has a negative extent");
  EXPECT_EQ(content_refusal("\x93NUMPY\x01\x00\xFF\xFF"s + eight), "is cut short within its header");
  EXPECT_EQ(content_refusal("\x93NUMPY\x02\x00\xFF\xFF"s), "is cut short within its header");
  EXPECT_EQ(content_refusal("\x93NUMPY\x02\x00\x00\x00\x02\x00"s + std::string(0x20000, ' ')),
            "its header claims 131072 bytes, which no shape needs");
}

TEST_F(npy, refuses_headers_that_are_malformed) {
  const auto malformed = [&](const std::string& dictionary, const std::string& why) {
    EXPECT_EQ(content_refusal(with_header(dictionary, "")), "its .npy header cannot be read: " + why) << dictionary;
  };
  malformed("", "a '{' is missing at byte 1");
  malformed("{'descr': '<f4', 'fortran_order': False}", "'descr', 'fortran_order' or 'shape' is missing");
  malformed("{'descr': '<f4', 'descr': '<f4'}", "the key 'descr' occurs twice");
  malformed("{'colour': 'red'}", "it has the unknown key 'colour'");
  malformed("{'a\x01key of many bytes indeed': 1}", "it has the unknown key 'a.key of many bytes inde...'");
  malformed("{'descr' '<f4'}", "a ':' is missing at byte 9");
  malformed("{'descr': '<f4' 'shape': ()}", "a ',' is missing at byte 16");
  malformed("{'descr': <f4}", "a quoted text is missing at byte 10");
  malformed("{'descr': '<f4}", "a text has no closing quote");
  malformed("{'fortran_order': 0}", "'fortran_order' is neither True nor False");
  malformed("{'shape': (3)}", "its shape is a number and not a list");
  malformed("{'shape': 3}", "a '(' is missing at byte 10");
  malformed("{'shape': (1 2)}", "its shape has no comma between two extents");
  malformed("{'shape': (1, x)}", "its shape has an extent that is no number");
  malformed("{'shape': (03,)}", "its shape has an extent that is no number");
  malformed("{'descr': '<f4', 'fortran_order': False, 'shape': ()} None", "something follows its closing brace");
}

TEST_F(npy, the_network_s_wish_is_in_the_message) {
  const std::string three = file(typed("<f8", "(1, 3)", std::string(24, '\0')));
  const auto wants = [&](const c::tensor_type& expected) {
    return refusal(three, [&] { (void)c::load_npy(three, expected, "input"); });
  };
  EXPECT_EQ(wants({c::dtype::f32, {1, 64, 56, 56}}),
            "has shape 1x3 float64, but the network's input `input` needs shape 1x64x56x56 float32");
  EXPECT_EQ(wants({c::dtype::f32, {1, 3}}),
            "has shape 1x3 float64, but the network's input `input` needs shape 1x3 float32; save it with "
            "array.astype('float32')");
  EXPECT_EQ(wants({c::dtype::f64, {3, 1}}),
            "has shape 1x3 float64, but the network's input `input` needs shape 3x1 float64; save it with "
            "array.reshape((3, 1))");
  EXPECT_EQ(wants({c::dtype::f64, {}}),
            "has shape 1x3 float64, but the network's input `input` needs shape () float64");

  EXPECT_EQ(c::load_npy(three, {c::dtype::f64, {1, 3}}, "input").bytes(), 24U);
  EXPECT_EQ(c::load_npy(three, {c::dtype::f64, {c::unknown, 3}}, "input").type().dims, (c::shape{1, 3}));
}

TEST_F(npy, a_file_appears_whole_or_not_at_all) {
  const c::tensor t = counting({c::dtype::f32, {4}});
  const std::string old = file("old contents", "t.npy");
  c::save_npy(old, t);
  expect_equal(c::load_npy(old), t);
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder())) files += entry.is_regular_file() ? 1U : 0U;
  EXPECT_EQ(files, 1U) << "only the array is left";

  // What somebody else left behind is not touched.
  const std::string other = file("of another process", "t.npy.part");
  c::save_npy(old, t);
  EXPECT_EQ(bytes_of(other), "of another process");
}

TEST_F(npy, refuses_what_it_cannot_write) {
  const c::tensor t = counting({c::dtype::f32, {4}});
  const auto save_refusal = [&](const std::string& to) { return refusal(to, [&] { c::save_npy(to, t); }); };
  const std::string remedy = "; choose a file in an existing folder in which you may create files";
  EXPECT_EQ(save_refusal(path("no such folder/t.npy")), "cannot be written: No such file or directory" + remedy);
  EXPECT_EQ(save_refusal(folder().string()), "cannot be written: it is a folder" + remedy);
  EXPECT_EQ(save_refusal(file("", "plain") + "/t.npy"), "cannot be written: Not a directory" + remedy);
  if (std::filesystem::exists("/dev/full")) {
    EXPECT_EQ(collage_test::sentence_about(
                  "/dev/full", [&] { c::save_npy("/dev/full", t); }, 1),
              "cannot be written: No space left on device; free some space, or name a file on a device that has more");
    EXPECT_TRUE(std::filesystem::is_character_file("/dev/full"));
  }

  c::tensor_view strange = t;
  strange.stored = c::layout("blocked by 8");
  EXPECT_EQ(refusal(path("t.npy"), [&] { c::save_npy(path("t.npy"), strange); }),
            "cannot be written from the form blocked by 8");
}

TEST_F(npy, a_link_stays_a_link) {
  const c::tensor t = counting({c::dtype::f32, {4}});
  const std::string target = file("old", "target.npy");
  std::filesystem::create_symlink(target, folder() / "link.npy");
  c::save_npy(path("link.npy"), t);
  EXPECT_TRUE(std::filesystem::is_symlink(folder() / "link.npy"));
  expect_equal(c::load_npy(target), t);
}

TEST_F(npy, corrupted_files_are_read_or_refused) {
  const std::uint64_t seed = collage_test::seed_or(20240607);
  SCOPED_TRACE("COLLAGE_SEED=" + std::to_string(seed));
  std::mt19937_64 random(seed);
  c::save_npy(path("good.npy"), counting({c::dtype::i16, {3, 4}}));
  const std::string good = bytes_of(path("good.npy"));
  const std::string alphabet = "{}()[]'\":, 0123456789-TrueFals<>|fiuVbOc\n\x00\xFF\x93"s;
  int refused = 0;
  for (int round = 0; round < 600; ++round) {
    std::string bad = good;
    // Mostly in the header: there is little to go wrong with elements.
    for (std::uint64_t changes = 1 + random() % 4; changes > 0 && !bad.empty(); --changes) {
      const std::size_t at = random() % (random() % 4 == 0 ? bad.size() : std::min<std::size_t>(bad.size(), 70));
      switch (random() % 5) {
        case 0: bad[at] = static_cast<char>(random()); break;
        case 1: bad[at] = alphabet[random() % alphabet.size()]; break;
        case 2: bad.erase(at, 1 + random() % 8); break;
        case 3: bad.insert(at, 1, alphabet[random() % alphabet.size()]); break;
        default: bad.resize(at); break;
      }
    }
    const std::string bad_file = file(bad);
    try {
      const c::tensor read = c::load_npy(bad_file);
      ASSERT_LE(read.bytes(), bad.size());
    } catch (const c::error& e) {
      ++refused;
      ASSERT_TRUE(std::string(e.what()).starts_with(bad_file + ": ")) << e.what();
      ASSERT_EQ(e.kind(), c::error_kind::invalid_argument);
    }
  }
  EXPECT_GT(refused, 400) << "and yet most of them are wrong";
}

}  // namespace io_npy_test
