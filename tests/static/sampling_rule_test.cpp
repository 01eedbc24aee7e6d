// Shape rules of resampling, quantisation and determinants. That they compile with extents and attributes at the ends of
// their range shows that nothing in them overflows.
#include "infer.hpp"

namespace {

using namespace collage_test;

constexpr std::int64_t u = c::unknown, huge = INT64_MAX, least = INT64_MIN;
constexpr auto scaled = op::resize_coordinates::asymmetric;
constexpr auto cropped = op::resize_coordinates::tf_crop_and_resize;

static_assert(infer(op::resize, {{1, 8}}, {.sizes = {1, 4}, .mode = op::resize_mode::cubic}).is({1, 4}));
static_assert(infer(op::resize, {{10}}, {.sizes = {6}, .coordinates = scaled, .scales = {1, {0.65}}}).is({6}));
static_assert(infer(op::resize, {{10}}, {.sizes = {9}, .scales = {1, {0.65}}}).refused());
static_assert(infer(op::resize, {{10}}, {.sizes = {0}, .scales = {1, {-1}}}).refused());
static_assert(infer(op::resize, {{10}}, {.sizes = {0}, .scales = {1, {1e300}}}).refused());
static_assert(infer(op::resize, {{10}}, {.sizes = {0}, .scales = {1, {__builtin_nan("")}}}).refused());
static_assert(infer(op::resize, {{10}}, {.sizes = {huge}}).refused());
static_assert(infer(op::resize, {{huge}}, {.sizes = {1}}).refused());
static_assert(infer(op::resize, {{1, 1, 1}}, {.sizes = c::shape::filled(3, 1 << 30)}).refused());
static_assert(infer(op::resize, {{4}}, {.sizes = {2}, .coordinates = cropped}).refused());
static_assert(infer(op::resize, {{4}},
                    {.sizes = {2}, .coordinates = cropped, .region_begin = {1, {0}}, .region_end = {1, {1}}})
                  .is({2}));
static_assert(infer(op::resize, {{}}).is({}));

static_assert(infer(op::grid_sample, {{2, 3, 8, 8}, {2, 5, 6, 2}}).is({2, 3, 5, 6}));
static_assert(infer(op::grid_sample, {{u, 3, 8}, {2, 5, 1}}).is({2, 3, 5}));
static_assert(infer(op::grid_sample, {{2, 3, 8, 8}, {2, 5, 6, 3}}).refused_at(1));
static_assert(infer(op::grid_sample, {{2, 3, 8, 8}, {1, 5, 6, 2}}).refused_at(1));
static_assert(infer(op::grid_sample, {{2, 3, 0, 8}, {2, 5, 6, 2}}).refused_at(0));
static_assert(infer(op::grid_sample, {{2, 3}, {2, 3}}).refused_at(0));
static_assert(infer(op::grid_sample, {{1, huge, 8}, {1, huge, 1}}).refused());

constexpr c::tensor_type image{c::dtype::f32, {1, 3, 8, 8}}, regions{c::dtype::f32, {5, 4}},
    numbers{c::dtype::i64, {5}};
static_assert(infer_types(op::roi_align, {image, regions, numbers}, {.height = 2, .width = 3}).is({5, 3, 2, 3}));
static_assert(infer_types(op::roi_align, {image, regions, {c::dtype::i64, {4}}}).refused_at(2));
static_assert(infer_types(op::roi_align, {image, regions, numbers}, {.height = huge}).refused());
static_assert(infer_types(op::roi_align, {image, regions, numbers}, {.samples = least}).refused());
static_assert(infer_types(op::roi_align, {image, image, numbers}).refused_at(1));

static_assert(infer(op::col2im, {{1, 8, 6}}, {.image = {3, 4}, .window = {2, 2}}).is({1, 2, 3, 4}));
static_assert(infer(op::col2im, {{1, 8, 5}}, {.image = {3, 4}, .window = {2, 2}}).refused());
static_assert(infer(op::col2im, {{1, 9, 6}}, {.image = {3, 4}, .window = {2, 2}}).refused());
static_assert(infer(op::col2im, {{1, 8, 6}}, {.image = {huge, 4}, .window = {2, 2}}).refused());
static_assert(infer(op::col2im, {{1, 8, 6}}, {.image = {3, 4}, .window = {2, least}}).refused());
static_assert(infer(op::col2im, {{1, 8, 6}}, {.image = c::shape::filled(8, 1)}).refused());
static_assert(infer(op::col2im, {{1, 8, 6}}).refused());

static_assert(infer(op::deform_conv, {{1, 2, 4, 4}, {6, 2, 3, 3}, {1, 18, 2, 2}, {1, 9, 2, 2}}).is({1, 6, 2, 2}));
static_assert(infer(op::deform_conv, {{1, 2, 4, 4}, {6, 2, 3, 3}, {1, 9, 2, 2}}).refused_at(2));
static_assert(infer(op::deform_conv, {{1, 2, 4, 4}, {6, 2, 3, 3}, {1, 18, 2, 2}, {1, 8, 2, 2}}).refused_at(3));
static_assert(infer(op::deform_conv, {{1, 2, 4, 4}, {6, 2, 3, 3}, {1, 18, 2, 2}}, {.offset_groups = huge}).refused());
static_assert(infer(op::deform_conv, {{1, 2, 4, 4}, {6, 2, 3, 3}, {1, 18, 2, 2}}, {.groups = least}).refused());
static_assert(infer(op::deform_conv, {{1, 2, 4, 4}, {6, 2, huge, 3}, {1, 18, 2, 2}}).refused());

static_assert(infer(op::quantize_linear, {{2, 3}, {}}).is({2, 3}));
static_assert(infer(op::quantize_linear, {{2, 3}, {}}).out.type == c::dtype::u8);
static_assert(infer(op::quantize_linear, {{2, 3}, {3}}, {.axis = -1}).is({2, 3}));
static_assert(infer(op::quantize_linear, {{2, 5}, {2, 3}}, {.axis = 1, .block = 2}).is({2, 5}));
static_assert(infer(op::quantize_linear, {{2, 5}, {2, 1}}, {.axis = 1, .block = huge}).is({2, 5}));
static_assert(infer(op::quantize_linear, {{2, 5}, {2, 3}}, {.axis = 1, .block = least}).refused());
static_assert(infer(op::quantize_linear, {{2, 5}, {5}}, {.axis = huge}).refused());
static_assert(infer(op::quantize_linear, {{2, 5}, {5}}, {.axis = least}).refused());
static_assert(infer(op::quantize_linear, {{2, 5}, {}, {}}).refused_at(2), "a zero point of float32");
static_assert(infer_types(op::dequantize_linear, {{c::dtype::i8, {2, 3}}, {c::dtype::f16, {}}}).out.type ==
              c::dtype::f16);
static_assert(infer(op::dequantize_linear, {{2, 3}, {}}).refused_at(0));

static_assert(infer(op::quantize_linear, {{2, 3}, {}}, {.type = c::dtype::i4}).out.type == c::dtype::i4);
static_assert(infer(op::quantize_linear, {{2, 3}, {}}, {.type = c::dtype::f4e2m1}).out.type == c::dtype::f4e2m1);
static_assert(infer(op::quantize_linear, {{2, 3}, {}}, {.type = c::dtype::f8e8m0}).refused());
static_assert(infer_types(op::quantize_linear, {{c::dtype::f8e5m2, {2}}, {c::dtype::f32, {}}}).refused_at(0));
static_assert(infer_types(op::dequantize_linear, {{c::dtype::f8e5m2, {2}}, {c::dtype::f32, {}}}).is({2}));
static_assert(infer_types(op::dequantize_linear, {{c::dtype::i8, {2}}, {c::dtype::f8e5m2, {}}}).refused_at(1));
static_assert(c::to_words(op::quantize_attributes{}).size == 3 &&
              c::to_words(op::quantize_attributes{.type = c::dtype::f8e5m2}).size == 4);

static_assert(infer(op::determinant, {{5, 3, 3}}).is({5}));
static_assert(infer(op::determinant, {{0, 0}}).is({}));
static_assert(infer(op::determinant, {{5, 3, 4}}).refused());
static_assert(infer(op::determinant, {{5}}).refused());

}  // namespace
