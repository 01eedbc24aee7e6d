#include "xgboost_library.hpp"

#include <collage/error.hpp>

#ifdef COLLAGE_XGBOOST_FILE
#include <dlfcn.h>
#include <xgboost/c_api.h>

#include <cmath>
#include <type_traits>
#endif

namespace collage::inline v0::tune::xgboost {

#ifdef COLLAGE_XGBOOST_FILE
namespace {

struct library {
  std::string reason;
#define COLLAGE_XGBOOST_FUNCTION(name) decltype(&::name) name = nullptr
  COLLAGE_XGBOOST_FUNCTION(XGBoostVersion);
  COLLAGE_XGBOOST_FUNCTION(XGBGetLastError);
  COLLAGE_XGBOOST_FUNCTION(XGDMatrixCreateFromMat);
  COLLAGE_XGBOOST_FUNCTION(XGDMatrixSetFloatInfo);
  COLLAGE_XGBOOST_FUNCTION(XGDMatrixFree);
  COLLAGE_XGBOOST_FUNCTION(XGBoosterCreate);
  COLLAGE_XGBOOST_FUNCTION(XGBoosterFree);
  COLLAGE_XGBOOST_FUNCTION(XGBoosterSetParam);
  COLLAGE_XGBOOST_FUNCTION(XGBoosterUpdateOneIter);
  COLLAGE_XGBOOST_FUNCTION(XGBoosterPredictFromDMatrix);
  COLLAGE_XGBOOST_FUNCTION(XGBoosterSaveModelToBuffer);
  COLLAGE_XGBOOST_FUNCTION(XGBoosterLoadModelFromBuffer);
#undef COLLAGE_XGBOOST_FUNCTION

  library() {
    void* handle = dlopen(COLLAGE_XGBOOST_FILE, RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) handle = dlopen("libxgboost.so.0", RTLD_NOW | RTLD_LOCAL);  // not where the build found it
    if (handle == nullptr) {
      reason = "XGBoost could not be opened as " COLLAGE_XGBOOST_FILE ": install libxgboost0";
      return;
    }
    const auto find = [&](const char* name, auto& function) {
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(handle, name));
      if (function == nullptr && reason.empty())
        reason = std::string(COLLAGE_XGBOOST_FILE " has no ") + name + ": install XGBoost 1.7 or newer";
    };
    find("XGBoostVersion", XGBoostVersion);
    find("XGBGetLastError", XGBGetLastError);
    find("XGDMatrixCreateFromMat", XGDMatrixCreateFromMat);
    find("XGDMatrixSetFloatInfo", XGDMatrixSetFloatInfo);
    find("XGDMatrixFree", XGDMatrixFree);
    find("XGBoosterCreate", XGBoosterCreate);
    find("XGBoosterFree", XGBoosterFree);
    find("XGBoosterSetParam", XGBoosterSetParam);
    find("XGBoosterUpdateOneIter", XGBoosterUpdateOneIter);
    find("XGBoosterPredictFromDMatrix", XGBoosterPredictFromDMatrix);
    find("XGBoosterSaveModelToBuffer", XGBoosterSaveModelToBuffer);
    find("XGBoosterLoadModelFromBuffer", XGBoosterLoadModelFromBuffer);
    if (!reason.empty()) return;
    int major = 0, minor = 0, patch = 0;
    XGBoostVersion(&major, &minor, &patch);
    if (major < 1 || (major == 1 && minor < 7))
      reason = COLLAGE_XGBOOST_FILE " is XGBoost " + std::to_string(major) + '.' + std::to_string(minor) +
               ", and cost models need 1.7 or newer";
  }

  void check(int status, const char* what) const {
    if (status != 0) throw error(error_kind::failure, text_ref(XGBGetLastError()), what);
  }
};

/// Throws if the library cannot be used.
const library& opened() {
  static const library once;
  if (!once.reason.empty()) throw error(error_kind::environment, once.reason, "cost models");
  return once;
}

struct matrix {
  DMatrixHandle handle = nullptr;
  matrix(std::span<const float> rows, std::size_t width) {
    opened().check(opened().XGDMatrixCreateFromMat(rows.data(), rows.size() / width, width, NAN, &handle),
                   "rows of a cost model");
  }
  matrix(const matrix&) = delete;
  matrix& operator=(const matrix&) = delete;
  ~matrix() { opened().XGDMatrixFree(handle); }
};

}  // namespace

std::string refusal() {
  try {
    opened();
    return {};
  } catch (const error& fault) { return fault.what(); }
}

void trees::closer::operator()(void* booster) const { opened().XGBoosterFree(booster); }

trees trees::train(std::span<const float> rows, std::size_t width, std::span<const float> labels,
                   std::span<const setting> settings, int count) {
  const library& xgb = opened();
  const matrix made(rows, width);
  xgb.check(xgb.XGDMatrixSetFloatInfo(made.handle, "label", labels.data(), labels.size()), "labels of a cost model");
  xgb.check(xgb.XGDMatrixSetFloatInfo(made.handle, "weight", labels.data(), labels.size()), "weights of a cost model");
  trees grown;
  BoosterHandle booster = nullptr;
  xgb.check(xgb.XGBoosterCreate(&made.handle, 1, &booster), "a cost model");
  grown.booster_.reset(booster);
  for (const auto& [name, value] : settings)
    xgb.check(xgb.XGBoosterSetParam(booster, name, value.c_str()), "a setting of a cost model");
  for (int i = 0; i < count; ++i)
    xgb.check(xgb.XGBoosterUpdateOneIter(booster, i, made.handle), "the training of a cost model");
  return grown;
}

trees trees::read(std::string_view bytes) {
  const library& xgb = opened();
  trees found;
  BoosterHandle booster = nullptr;
  xgb.check(xgb.XGBoosterCreate(nullptr, 0, &booster), "a cost model");
  found.booster_.reset(booster);
  xgb.check(xgb.XGBoosterLoadModelFromBuffer(booster, bytes.data(), bytes.size()), "the trees of a cost model");
  xgb.check(xgb.XGBoosterSetParam(booster, "nthread", "1"), "a setting of a cost model");
  return found;
}

std::vector<float> trees::predict(std::span<const float> rows, std::size_t width) const {
  const library& xgb = opened();
  const matrix made(rows, width);
  bst_ulong const* shape = nullptr;
  bst_ulong dimensions = 0;
  const float* results = nullptr;
  constexpr const char* plain =
      R"({"type": 0, "training": false, "iteration_begin": 0, "iteration_end": 0, "strict_shape": false})";
  xgb.check(xgb.XGBoosterPredictFromDMatrix(booster_.get(), made.handle, plain, &shape, &dimensions, &results),
            "the prediction of a cost model");
  return {results, results + rows.size() / width};
}

std::string trees::bytes() const {
  const library& xgb = opened();
  bst_ulong size = 0;
  const char* written = nullptr;
  xgb.check(xgb.XGBoosterSaveModelToBuffer(booster_.get(), R"({"format": "ubj"})", &size, &written),
            "the bytes of a cost model");
  return {written, size};
}

#else  // a build without XGBoost

std::string refusal() { return "cost models need XGBoost, which this build was made without: install libxgboost-dev"; }

namespace {

[[noreturn]] void refuse() { throw error(error_kind::environment, refusal(), "cost models"); }

}  // namespace

void trees::closer::operator()(void*) const {}
trees trees::train(std::span<const float>, std::size_t, std::span<const float>, std::span<const setting>, int) {
  refuse();
}
trees trees::read(std::string_view) { refuse(); }
std::vector<float> trees::predict(std::span<const float>, std::size_t) const { refuse(); }
std::string trees::bytes() const { refuse(); }

#endif

}  // namespace collage::inline v0::tune::xgboost
