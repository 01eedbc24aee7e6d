// Escaping: no text becomes markup, and invisible characters are shown.
#include <gtest/gtest.h>
#include <report/markup.hpp>

#include <string>

namespace report_markup_test {
namespace {

namespace r = collage::report;

TEST(report_markup, characters_of_html_are_replaced) {
  EXPECT_EQ(r::escaped("</script><img src=x onerror=\"a('b')\">&`"),
            "&lt;/script&gt;&lt;img src=x onerror=&quot;a(&#39;b&#39;)&quot;&gt;&amp;&#96;");
}

TEST(report_markup, invisible_characters_are_shown) {
  EXPECT_EQ(r::shown(std::string("a\0b\n\x1b\x7f", 6)), "a\\u0000b\\u000a\\u001b\\u007f");
  EXPECT_EQ(r::shown("a\u2028b\u2029c\u202Ed\u2066e\uFEFF\u200B"), "a\\u2028b\\u2029c\\u202ed\\u2066e\\ufeff\\u200b");
  EXPECT_EQ(r::shown("\u0085"), "\\u0085");
  EXPECT_EQ(r::shown("caf\u00e9 \u7f51\u7edc \U0001F600"), "caf\u00e9 \u7f51\u7edc \U0001F600");
}

TEST(report_markup, bytes_that_are_no_characters_are_replaced) {
  EXPECT_EQ(r::shown("a\xff"
                     "b"),
            "a\uFFFDb");
  EXPECT_EQ(r::shown("\xc0\xaf"), "\uFFFD\uFFFD");            // an overlong slash
  EXPECT_EQ(r::shown("\xed\xa0\x80"), "\uFFFD\uFFFD\uFFFD");  // half of a surrogate pair
  EXPECT_EQ(r::shown("end\xe2\x82"), "end\uFFFD\uFFFD");      // cut off
}

TEST(report_markup, json_has_no_character_of_html) {
  EXPECT_EQ(r::json_for_script("{\"</script>&\": 1}"), "{\"\\u003c/script\\u003e\\u0026\": 1}");
}

TEST(report_markup, long_texts_are_shortened) {
  EXPECT_EQ(r::shortened("conv_0", 200, 12), "conv_0");
  const std::string cut = r::shortened(std::string(500, 'x'), 100, 12);
  EXPECT_TRUE(cut.ends_with("\u2026"));
  EXPECT_LE(r::width_of(cut, 12), 101);
  EXPECT_GT(cut.size(), 8U);
}

TEST(report_markup, names_from_right_to_left_are_isolated) {
  const std::string hebrew = "\u05d0\u05d1";
  const auto name = [](const std::string& text) { return r::html().name(text).str(); };
  EXPECT_EQ(name("conv_0 <1>"), "conv_0 &lt;1&gt;");
  EXPECT_EQ(name(hebrew + "<"), "<bdi>" + hebrew + "&lt;</bdi>");
  EXPECT_EQ(name("\u7f51\u7edc"), "\u7f51\u7edc");
  EXPECT_EQ(name("a\u0639"), "<bdi>a\u0639</bdi>");
  EXPECT_EQ(r::html().plain_name(hebrew).str(), "\u2068" + hebrew + "\u2069");
  EXPECT_EQ(r::html().plain_name("\u2069" + hebrew).str(), "\u2068\\u2069" + hebrew + "\u2069");
}

TEST(report_markup, lines_are_shortened_one_by_one) {
  r::html page;
  page.lines("first\n" + std::string(5000, 'x') + "\nlast");
  EXPECT_LT(page.str().size(), 2000U);
  EXPECT_TRUE(page.str().starts_with("first\nxxx"));
  EXPECT_TRUE(page.str().ends_with("\u2026\nlast"));
}

TEST(report_markup, lengths_have_one_decimal_at_most) {
  r::html page;
  page.length(12).raw(" ").length(0.26).raw(" ").length(-0.01).raw(" ").length(1e6);
  EXPECT_EQ(page.str(), "12 0.3 0 1000000");
}

}  // namespace
}  // namespace report_markup_test
