/* Lower precision through the C interface: precision_test MODEL FOLDER. The model is the wide one of make_model.py. */
#include "check.h"

#include <collage_precision.h>
#include <collage_session.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

enum { ROWS = 64, COLUMNS = 512, NUMBERS = ROWS * COLUMNS };

static char store[4096], folder[4096];

/* What the function for samples does. */
struct source {
  size_t count; /* samples that there are */
  size_t bad;   /* the sample with `wrong` in it, if that is not 0 */
  float wrong;
  size_t gone_at; /* the call from which on there are none; 0: never */
  size_t end_at;  /* the call that ends placing; 0: none */
  size_t calls;
  size_t largest; /* the largest number that was asked for */
};
static int write_sample(void* data, size_t which, void* const* inputs, size_t count) {
  struct source* from = data;
  CHECK(count == 1);
  if (++from->calls == from->end_at) return COLLAGE_SAMPLE_CANCEL;
  if (from->gone_at != 0 && from->calls >= from->gone_at) return COLLAGE_SAMPLE_END;
  if (which > from->largest) from->largest = which;
  if (which >= from->count) return COLLAGE_SAMPLE_END;
  float* to = inputs[0];
  for (size_t i = 0; i < NUMBERS; ++i) to[i] = (float)((i * 37 + which * 101) % 1013) / 506 - 1;
  if (from->wrong != 0 && which == from->bad) to[5] = from->wrong;
  return COLLAGE_SAMPLE_WRITTEN;
}

static collage_precision_options from_function(struct source* source, uint64_t count) {
  return (collage_precision_options){.struct_size = sizeof(collage_precision_options),
                                     .precision = "bf16",
                                     .error = 0.02,
                                     .sample = write_sample,
                                     .sample_data = source,
                                     .sample_count = count};
}

static collage_place_options by(const collage_precision_options* lower) {
  return (collage_place_options){.struct_size = sizeof(collage_place_options),
                                 .threads = 1,
                                 .backends = "onednn,portable",
                                 .store = store,
                                 .compare_s = 0.05,
                                 .precision = lower};
}

static collage_status place(const collage_network* network, const collage_precision_options* lower,
                            collage_plan** plan) {
  const collage_place_options how = by(lower);
  return collage_plan_place(network, &how, plan);
}

/* The plan is within the error and says so, or is in float32 and says why. Returns whether it rounds. */
static bool keeps_its_word(const collage_plan* plan, double allowed, size_t held_back) {
  collage_plan_error error = {.struct_size = sizeof error};
  const char* json = "";
  if (!DONE(collage_plan_get_error(plan, &error)) || !DONE(collage_plan_json(plan, &json))) return false;
  if (error.samples != 0) {
    CHECK(error.allowed == allowed && error.samples == held_back);
    CHECK(error.measured > 0 && error.measured <= error.upper && error.upper <= allowed && error.predicted >= 0);
    CHECK(*error.why_unrounded == '\0');
    CHECK(strstr(json, "\"precision\": \"bf16, error at most 2 %\"") != NULL);
    CHECK(strstr(json, "\"samples\": ") != NULL && strstr(json, "\"why_unrounded\": null") != NULL);
    return true;
  }
  CHECK(error.allowed == 0 && error.predicted == 0 && error.measured == 0 && error.upper == 0);
  CHECK(*error.why_unrounded != '\0' && strstr(json, error.why_unrounded) != NULL);
  CHECK(strstr(json, "\"precision\": \"fp32\"") != NULL && strstr(json, "\"error\": null") != NULL);
  return false;
}

/* The error that was measured is that of the plan's outputs. */
static void errs_as_it_says(const collage_plan* rounded, const collage_network* network) {
  const collage_place_options exact = {.struct_size = sizeof exact, .how = COLLAGE_PLACE_PRIORITY, .threads = 1};
  collage_plan* plans[2] = {NULL, NULL};
  static float x[NUMBERS], y[2][NUMBERS];
  struct source source = {.count = 12};
  void* inputs[] = {x};
  CHECK(write_sample(&source, 1, inputs, 1) == COLLAGE_SAMPLE_WRITTEN);
  DONE(collage_plan_place(network, &exact, &plans[0]));
  double differences = 0, squares = 0;
  for (int k = 0; k < 2; ++k) {
    collage_engine* engine = NULL;
    collage_context* context = NULL;
    DONE(collage_engine_create(k == 0 ? plans[0] : rounded, NULL, &engine));
    DONE(collage_context_create(engine, NULL, &context));
    DONE(collage_context_bind_input(context, 0, COLLAGE_DTYPE_F32, x, sizeof x));
    DONE(collage_context_bind_output(context, 0, COLLAGE_DTYPE_F32, y[k], sizeof y[k]));
    DONE(collage_context_run(context));
    collage_context_release(context);
    collage_engine_release(engine);
  }
  for (size_t i = 0; i < NUMBERS; ++i) {
    differences += (double)(y[1][i] - y[0][i]) * (y[1][i] - y[0][i]);
    squares += (double)y[0][i] * y[0][i];
  }
  collage_plan_error error = {.struct_size = sizeof error};
  DONE(collage_plan_get_error(rounded, &error));
  const double found = sqrt(differences / squares);
  CHECK(found > error.measured / 2 && found < error.measured * 2);
  collage_plan_release(plans[0]);
}

static void by_function(const collage_network* network) {
  struct source source = {.count = 1000};
  collage_precision_options lower = from_function(&source, 1000);
  collage_plan* plan = NULL;
  if (!DONE(place(network, &lower, &plan))) return;
  const bool rounds = keeps_its_word(plan, 0.02, 32);
  CHECK(source.largest > 900 && source.largest < 1000); /* spread over all */
  if (rounds) errs_as_it_says(plan, network);
  else printf("lower precision does not pay here, so plans that round were not tried\n");
  collage_plan_release(plan);

  source = (struct source){.count = 12};
  lower.sample_count = 0; /* up to the first that does not exist */
  if (!DONE(place(network, &lower, &plan))) return;
  keeps_its_word(plan, 0.02, 6);
  CHECK(source.largest == 12);
  collage_plan_release(plan);
}

/* Where all products are kept, none of them rounds. */
static void kept(const collage_network* network) {
  struct source source = {.count = 12};
  collage_precision_options lower = from_function(&source, 12);
  const char* const keep[] = {"kind:matmul", "kind:*"};
  lower.keep = keep;
  lower.keep_count = 1;
  collage_plan* plan = NULL;
  collage_plan_error error = {.struct_size = sizeof error};
  const char* json = "";
  if (!DONE(place(network, &lower, &plan))) return;
  if (DONE(collage_plan_get_error(plan, &error)) && DONE(collage_plan_json(plan, &json))) {
    if (error.samples != 0)
      CHECK(strstr(json, "\"precision\": \"bf16, error at most 2 %, kept in fp32: kind:matmul\"") != NULL);
    CHECK(strstr(json, "kept in fp32") != NULL || error.samples == 0);
  }
  collage_plan_release(plan);
  plan = NULL;
  lower.keep_count = 2; /* kinds have no patterns */
  MISUSED(place(network, &lower, &plan), "keep kind:*: the network has no operator '*'");

  /* A program of before has a shorter struct, and keeps nothing. */
  lower.struct_size = offsetof(collage_precision_options, keep);
  if (DONE(place(network, &lower, &plan))) keeps_its_word(plan, 0.02, 6);
  collage_plan_release(plan);
}

static void by_files(const collage_network* network) {
  char path[5000];
  snprintf(path, sizeof path, "%s/x.npy", folder);
  FILE* file = fopen(path, "wb");
  if (!CHECK(file != NULL)) return;
  fprintf(file, "\x93NUMPY%c%c%c%c%-117s\n", 1, 0, 118, 0,
          "{'descr': '<f4', 'fortran_order': False, 'shape': (4, 64, 512), }");
  static float x[NUMBERS];
  void* inputs[] = {x};
  struct source source = {.count = 4};
  for (size_t i = 0; i < 4; ++i) {
    CHECK(write_sample(&source, i, inputs, 1) == COLLAGE_SAMPLE_WRITTEN);
    CHECK(fwrite(x, sizeof x, 1, file) == 1);
  }
  fclose(file);
  collage_precision_options lower = {.struct_size = sizeof lower, .precision = "bf16", .error = 0.02, .files = folder};
  collage_plan* plan = NULL;
  if (DONE(place(network, &lower, &plan))) keeps_its_word(plan, 0.02, 2);
  collage_plan_release(plan);
  lower.files = "/nowhere";
  MISUSED(place(network, &lower, &plan), "/nowhere: there is no such file or folder; check the path");
}

static void misused(const collage_network* network, const char* model) {
  struct source source = {.count = 12};
  collage_plan* plan = NULL;
  collage_precision_options lower = from_function(&source, 12);
  lower.precision = "bf17";
  MISUSED(place(network, &lower, &plan), "precision is 'bf17', which is unknown; give one of fp32, bf16, ");
  lower.precision = NULL;
  MISUSED(place(network, &lower, &plan), "precision is NULL");
  lower.precision = "bf16";
  const double wrong[] = {-0.01, 1.5, NAN, INFINITY};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; ++i) {
    lower.error = wrong[i];
    MISUSED(place(network, &lower, &plan), "give a number above 0 and at most 1, such as 0.01 for 1 %");
  }
  lower.error = 0;
  lower.files = ".";
  MISUSED(place(network, &lower, &plan), "and sample and files are both given");
  lower.files = NULL;
  lower.sample = NULL;
  MISUSED(place(network, &lower, &plan), "precision is bf16, and there are no samples; give at least three");
  lower.sample = write_sample;
  collage_place_options how = by(&lower);
  how.how = COLLAGE_PLACE_PRIORITY;
  MISUSED(collage_plan_place(network, &how, &plan), "and only measuring shows whether it pays");
  how = by(&lower);
  how.keep_non_finite = 1;
  MISUSED(collage_plan_place(network, &how, &plan), "need not keep NaN and infinity");
  const char* const keep[] = {"kind:softmux", NULL};
  lower.keep = keep;
  lower.keep_count = 2;
  MISUSED(place(network, &lower, &plan), "a name in keep is NULL");
  lower.keep_count = 1;
  MISUSED(place(network, &lower, &plan),
          "keep kind:softmux: the network has no operator 'softmux'; the nearest operators are ");
  lower.keep = NULL;
  MISUSED(place(network, &lower, &plan), "keep");
  lower.keep_count = 0;
  lower.struct_size = 8;
  MISUSED(place(network, &lower, &plan), "collage_precision_options has struct_size 8");
  lower.struct_size = sizeof lower;
  CHECK(source.calls == 0 && plan == NULL);

  const collage_place_options placing = by(&lower);
  const collage_session_options session_options = {.struct_size = sizeof session_options, .placing = &placing};
  collage_session* session = NULL;
  MISUSED(collage_session_from_file(model, &session_options, &session), "and a session places networks whose shapes");
  const int64_t rows[] = {64, 512};
  const collage_input_shape fixed = {"x", rows, 2};
  const collage_network_options anew = {
      .struct_size = sizeof anew, .shapes = &fixed, .shape_count = 1, .requantise = 1};
  const collage_session_options anew_options = {.struct_size = sizeof anew_options, .loading = &anew};
  MISUSED(collage_session_from_file(model, &anew_options, &session), "loading.requantise is set, and sessions do not");
  collage_network* free_of_rounding = NULL;
  MISUSED(collage_network_from_file(model, &anew, &free_of_rounding), "no value is quantised to 8 bits by one known");
  /* A program of before has a shorter struct: what is behind it says nothing. */
  collage_network_options of_before = anew;
  of_before.struct_size = offsetof(collage_network_options, requantise);
  DONE(collage_network_from_file(model, &of_before, &free_of_rounding));
  collage_network_release(free_of_rounding);

  lower.precision = "fp32"; /* which needs no samples */
  lower.sample = NULL;
  how = by(&lower);
  how.how = COLLAGE_PLACE_PRIORITY;
  DONE(collage_plan_place(network, &how, &plan));
  collage_plan_error error = {.struct_size = 4};
  MISUSED(collage_plan_get_error(plan, &error), "collage_plan_error has struct_size 4");
  MISUSED(collage_plan_get_error(plan, NULL), "collage_plan_error is NULL");
  MISUSED(collage_plan_get_error(NULL, &error), "plan is NULL");
  error.struct_size = sizeof error;
  DONE(collage_plan_get_error(plan, &error));
  CHECK(error.samples == 0 && *error.why_unrounded == '\0');
  collage_plan_release(plan);
}

static void with_bad_samples(const collage_network* network) {
  collage_plan* plan = NULL;
  struct source source = {.count = 2};
  collage_precision_options lower = from_function(&source, 0);
  MISUSED(place(network, &lower, &plan), "there are 2 samples, and the error of lower precision needs at least 3");
  source = (struct source){.count = 0};
  MISUSED(place(network, &lower, &plan), "there are 0 samples");
  source = (struct source){.count = 12, .bad = 7, .wrong = NAN};
  MISUSED(place(network, &lower, &plan),
          "sample 7: has NaN at element 5 of input x; give samples whose numbers are finite");
  source = (struct source){.count = 12, .bad = 3, .wrong = INFINITY};
  lower.sample_count = 12;
  MISUSED(place(network, &lower, &plan), "sample 3: is infinite at element 5 of input x");
  source = (struct source){.count = 9};
  MISUSED(place(network, &lower, &plan), "does not exist, although an earlier call or sample_count said so");
  source = (struct source){.count = 12, .gone_at = 13}; /* after all were read once */
  MISUSED(place(network, &lower, &plan), "does not exist, although an earlier call or sample_count said so");
  CHECK(plan == NULL);
}

struct end {
  const char* at; /* the work at which placing is ended */
  int result;
  int calls; /* in this stage */
  bool is_reached;
};
static int end_in_precision(void* data, const collage_progress* now) {
  struct end* end = data;
  if (strcmp(now->stage, "precision") != 0) return COLLAGE_PROGRESS_CONTINUE;
  ++end->calls;
  CHECK(*now->what != '\0');
  if (strstr(now->what, end->at) == NULL) return COLLAGE_PROGRESS_CONTINUE;
  end->is_reached = true;
  return end->result;
}

static void ended(const collage_network* network) {
  collage_plan* plan = NULL;
  for (size_t at = 1; at < 20; at += 9) {
    struct source source = {.count = 12, .end_at = at};
    collage_precision_options lower = from_function(&source, at == 1 ? 0 : 12);
    const collage_status status = place(network, &lower, &plan);
    if (status == COLLAGE_OK && at > 1 && source.calls < at) { /* a plan that rounds nothing needs few samples */
      printf("lower precision does not pay here, so few samples were needed\n");
      collage_plan_release(plan);
      plan = NULL;
      continue;
    }
    CHECK(status == COLLAGE_CANCELLED && plan == NULL && source.calls == at);
    CHECK(strstr(collage_last_error(), "the caller's function ended placing") != NULL);
  }
  struct source source = {.count = 12};
  const collage_precision_options lower = from_function(&source, 12);
  struct end end = {.at = "confirming", .result = COLLAGE_PROGRESS_CANCEL};
  collage_place_options how = by(&lower);
  how.progress = end_in_precision;
  how.progress_data = &end;
  if (!DONE(collage_plan_place(network, &how, &plan))) return;
  CHECK(end.calls > 0);
  collage_plan_error error = {.struct_size = sizeof error};
  if (end.is_reached && DONE(collage_plan_get_error(plan, &error))) /* the store has all costs by now */
    CHECK(error.samples == 0 && strstr(error.why_unrounded, "the caller ended placing before") != NULL);
  collage_plan_release(plan);
  plan = NULL;
  end = (struct end){.at = "reading samples", .result = COLLAGE_PROGRESS_CANCEL};
  how.store = "none";
  CHECK(collage_plan_place(network, &how, &plan) == COLLAGE_CANCELLED && plan == NULL && end.calls == 1);
  how.store = store;
  end = (struct end){.at = "confirming", .result = COLLAGE_PROGRESS_STOP};
  if (DONE(collage_plan_place(network, &how, &plan))) keeps_its_word(plan, 0.02, 6);
  collage_plan_release(plan);
}

/* An error that the fastest plan exceeds: errors of single values are measured, unless the caller ends it. */
static void with_a_tight_bound(const collage_network* network) {
  struct source source = {.count = 12};
  collage_precision_options lower = from_function(&source, 12);
  lower.error = 0.006;
  /* At last the errors are measured, and kept in the store. */
  const int results[] = {COLLAGE_PROGRESS_CANCEL, COLLAGE_PROGRESS_STOP, COLLAGE_PROGRESS_CONTINUE};
  for (int i = 0; i < 3; ++i) {
    struct end end = {.at = "measuring the errors of values", .result = results[i]};
    collage_place_options how = by(&lower);
    how.progress = end_in_precision;
    how.progress_data = &end;
    collage_plan* plan = NULL;
    collage_plan_error error = {.struct_size = sizeof error};
    if (!DONE(collage_plan_place(network, &how, &plan)) || !DONE(collage_plan_get_error(plan, &error))) continue;
    CHECK(error.upper <= 0.006 && (error.samples != 0) == (*error.why_unrounded == '\0'));
    if (end.is_reached && i == 2 && error.samples != 0) CHECK(error.predicted > 0 && error.predicted < 0.006);
    if (end.is_reached && i != 2)
      CHECK(error.samples == 0 &&
            strstr(error.why_unrounded, "the caller ended placing before a plan was confirmed") != NULL);
    if (!end.is_reached) printf("nothing exceeds a tight bound here, so errors of values were not measured\n");
    collage_plan_release(plan);
  }
}

int main(int argc, char** argv) {
  if (collage_worker(argc, argv)) return 0;
  if (argc != 3) return 2;
  snprintf(store, sizeof store, "%s.db", argv[2]);
  snprintf(folder, sizeof folder, "%s", argv[2]);
  remove(store);
  const int64_t extents[] = {ROWS, COLUMNS};
  const collage_input_shape shape = {"x", extents, 2};
  const collage_network_options options = {.struct_size = sizeof options, .shapes = &shape, .shape_count = 1};
  collage_network* network = NULL;
  if (DONE(collage_network_from_file(argv[1], &options, &network))) {
    misused(network, argv[1]);
    by_function(network);
    by_files(network);
    kept(network);
    with_bad_samples(network);
    ended(network);
    with_a_tight_bound(network);
  }
  collage_network_release(network);
  remove(store);
  if (failures == 0) printf("lower precision through the C interface does as it says\n");
  return failures == 0 ? 0 : 1;
}
