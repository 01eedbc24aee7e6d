/*
 * collage_precision.h: plans whose kernels store and multiply values in fewer bits than float32 has. It belongs to collage.h, whose
 * conventions hold here: errors, ownership, threads and structs that grow.
 *
 *   collage_plan* plan = NULL;
 *   const collage_precision_options lower = {.struct_size = sizeof lower, .precision = "bf16", .error = 0.01, .files = "images"};
 *   const collage_place_options how = {.struct_size = sizeof how, .precision = &lower};
 *   collage_plan_error error = {.struct_size = sizeof error};
 *   if (collage_plan_place(network, &how, &plan) != COLLAGE_OK || collage_plan_get_error(plan, &error) != COLLAGE_OK)
 *     fprintf(stderr, "%s\n", collage_last_error());
 *
 * Errors of plans. They are the root mean square of the differences from the outputs in float32, divided by the root mean square of
 * those outputs. If there are several, the one that errs most counts. The fastest plan within the error that the caller allows is
 * confirmed on samples that were held back. Without such a plan, the result is the fastest plan in float32, and why_unrounded says so.
 *
 * Quantised files. By default, plans round as the file says. `requantise` of collage_network_options removes the rounding whose scale and
 * zero point are known. A plan then chooses anew what is rounded, by the ranges of the file. Without collage_precision_options, it rounds
 * nothing of that. It is an error if the file has no such rounding. Plans of a network that was read so fit no network that was not.
 */
#ifndef COLLAGE_PRECISION_H
#define COLLAGE_PRECISION_H

#include <collage.h>

#if defined(__cplusplus)
extern "C" {
#endif

typedef enum collage_sample_result {
  COLLAGE_SAMPLE_END = 0,     /* there is no such sample */
  COLLAGE_SAMPLE_WRITTEN = 1, /* the sample is written */
  COLLAGE_SAMPLE_CANCEL = 2   /* ends placing, which returns COLLAGE_CANCELLED; so does any other number */
} collage_sample_result;

/* Writes sample `which`, counted from 0, to memory for the inputs of the network. `inputs` has `count` addresses in the order of
 * collage_network_input, of dense memory of the size in collage_port. The result is a collage_sample_result. Called in the thread that
 * places, in any order, and several times for a sample: the same number always means the same contents. NaN and infinity are errors.
 * The function must not throw, and must not place. */
typedef int (*collage_sample_function)(void* data, size_t which, void* const* inputs, size_t count);

/* The member `precision` of collage_place_options. Lower precision needs COLLAGE_PLACE_MEASURE, and excludes keep_non_finite. Sessions
 * do not take it. Samples are inputs of the network as it will meet them, by a function or from files. At least three are needed. At
 * most 128 are used, spread evenly over all. */
typedef struct collage_precision_options {
  size_t struct_size;
  const char* precision; /* which element types values may have: "bf16", "int8" or "any"; "fp32" needs no samples */
  double error;          /* the largest that is allowed, above 0 and at most 1; 0: 0.01, which is 1 % */
  collage_sample_function sample; /* NULL: from `files` */
  void* sample_data;
  uint64_t
      sample_count;  /* samples that `sample` can write; 0: those before its first COLLAGE_SAMPLE_END, at most 128 */
  const char* files; /* a folder or a file of samples, as `collage tune --data` takes it; NULL: from `sample` */
  /* Parts that stay in float32 nevertheless: names of nodes, in which `*` stands for any characters, or operators as "kind:softmax".
   * Chains of operators are "kind:matmul+softmax". */
  const char* const* keep;
  size_t keep_count;
} collage_precision_options;

/* How far the outputs of a plan err because its kernels round values. */
typedef struct collage_plan_error {
  size_t struct_size;        /* set by the caller */
  uint64_t samples;          /* that were held back to confirm the plan; 0: it rounds nothing, and all errors are 0 */
  double allowed;            /* by the caller */
  double predicted;          /* by the errors of single values; 0 if these need not be known */
  double measured;           /* on the samples that were held back */
  double upper;              /* the upper end of its confidence interval, at most `allowed` */
  const char* why_unrounded; /* why it rounds nothing although it may; "" if it does, or may not, or is from a file */
} collage_plan_error;

/* The text lives as long as the plan. */
COLLAGE_API collage_status collage_plan_get_error(const collage_plan* plan, collage_plan_error* error) COLLAGE_NOEXCEPT;

#if defined(__cplusplus)
} /* extern "C" */
#endif

#endif /* COLLAGE_PRECISION_H */
