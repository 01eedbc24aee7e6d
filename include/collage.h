/*
 * collage.h: the C interface of collage, for the dynamic engine with every backend that the library was built with.
 *
 *   network  the computation: read from an ONNX file, or built in
 *   plan     the kernels for the parts of one network: placed now by measuring, or read from a file
 *   engine   a plan built into kernels; immutable
 *   context  one run of an engine at a time: its arena, and the memory of its inputs and outputs, bound once
 *
 *   collage_network* network = NULL;
 *   collage_plan* plan = NULL;
 *   collage_engine* engine = NULL;
 *   collage_context* context = NULL;
 *   if (collage_network_from_file("model.onnx", NULL, &network) != COLLAGE_OK ||
 *       collage_plan_place(network, NULL, &plan) != COLLAGE_OK ||
 *       collage_engine_create(plan, NULL, &engine) != COLLAGE_OK ||
 *       collage_context_create(engine, NULL, &context) != COLLAGE_OK ||
 *       collage_context_bind_input(context, 0, COLLAGE_DTYPE_F32, image, sizeof image) != COLLAGE_OK ||
 *       collage_context_bind_output(context, 0, COLLAGE_DTYPE_F32, scores, sizeof scores) != COLLAGE_OK ||
 *       collage_context_run(context) != COLLAGE_OK)
 *     fprintf(stderr, "%s\n", collage_last_error());
 *
 * Errors. A function that can fail returns a status, and collage_last_error() then has the sentence about it. A call
 * that fails writes nothing through its pointers. No exception leaves the library. Memory of the caller is checked as
 * far as its size and a null pointer show. An address that is not valid is not detected.
 *
 * Ownership. The caller that makes a handle releases it, once and by the function of its kind; releasing NULL does
 * nothing. Handles may be released in any order: parts that another handle still needs stay alive inside. An engine
 * needs neither its plan nor its network any more. Releasing both early frees the weights that the engine's kernels
 * have packed. Texts and names belong to the handle that returned them, and live as long as the handle.
 *
 * Threads. Networks, plans and engines do not change once they are made: any number of threads may use one at the same
 * time. A context runs in one thread at a time, which may be another one each time. Any number of contexts, of one
 * engine or several, run side by side. A handle must not be released during a call that uses it.
 *
 * Tensors are dense, row-major and on the host. Their extents are fixed when the network is loaded; collage_session.h
 * has networks whose shapes change from run to run.
 *
 * Structs. Every struct that may grow begins with struct_size, which the caller sets to sizeof of the struct. All other
 * members of options may be zero; each says what zero means. A library that is older than its caller refuses members
 * that it does not know unless they are zero. A newer library only fills or reads the members that the caller has.
 */
#ifndef COLLAGE_H
#define COLLAGE_H

#include <stddef.h>
#include <stdint.h>

#if defined(__cplusplus)
#define COLLAGE_NOEXCEPT noexcept
extern "C" {
#else
#define COLLAGE_NOEXCEPT
#endif

#if defined(__GNUC__)
#define COLLAGE_API __attribute__((visibility("default")))
#else
#define COLLAGE_API
#endif

/* ---------------------------------------------------------------------------------------------- versions and errors */

/* The version of this interface. It increases with every change that a program compiled before the change would notice.
 * New functions and new members of structs leave it as it is. A program that loads the library by hand compares it with
 * collage_abi_version(). */
#define COLLAGE_ABI_VERSION 1
COLLAGE_API uint32_t collage_abi_version(void) COLLAGE_NOEXCEPT;

/* The library's version, such as "0.1.0". */
COLLAGE_API const char* collage_version(void) COLLAGE_NOEXCEPT;

typedef enum collage_status {
  COLLAGE_OK = 0,
  COLLAGE_FAILURE = 1,  /* the machine, another library or this one failed: memory, files, a kernel */
  COLLAGE_MISUSE = 2,   /* the caller's mistake, or a request that is not supported */
  COLLAGE_CANCELLED = 3 /* the caller ended the call: by the limits of a run, or by COLLAGE_PROGRESS_CANCEL */
} collage_status;

/* The sentence about the last call in this thread that did not return COLLAGE_OK: the fault, its place and the remedy.
 * Empty if no call has failed yet. It is valid until the next call that fails in this thread. */
COLLAGE_API const char* collage_last_error(void) COLLAGE_NOEXCEPT;

typedef enum collage_log_level {
  COLLAGE_LOG_NOTE = 0,   /* what was done, and which kernels cannot be used */
  COLLAGE_LOG_WARNING = 1 /* something works less well than it could */
} collage_log_level;

/* Gets one sentence of the log. `text` is valid until the function returns. Calls come from the threads that call the
 * library, one at a time. The function must not call the library. */
typedef void (*collage_log_function)(void* data, int32_t level, const char* text);

/* Sets the function that gets the log of all threads; NULL for none, as at first. When this returns, the function
 * before is not called any more. */
COLLAGE_API void collage_set_log(collage_log_function function, void* data) COLLAGE_NOEXCEPT;

/* Describes the library and the machine as a JSON object:
 *
 *   {"version", "abi", "processor", "available_threads", "waiting_policy", "default_store", "zoo": [{"name", "about"}],
 *    "onnx", "backends": [{"name", "available", "version", "details", "reason"}]}
 *
 * "waiting_policy" is how threads wait for work: "brief", "default", "active", "passive" or "spin N"; see
 * collage_set_waiting. "default_store" is null without a home folder. "onnx" says whether files can be read. The text lives
 * as long as the library is loaded. */
COLLAGE_API collage_status collage_system_json(const char** json) COLLAGE_NOEXCEPT;

/* How idle threads of OpenMP wait for work, in the whole process. "brief": they look for work for some microseconds, then
 * sleep. "default": for some milliseconds, which takes processors from other programs and from other threads of this one.
 * Without a call, placing and engines choose "brief". OMP_WAIT_POLICY and GOMP_SPINCOUNT go before both. A libgomp that is
 * loaded together with this library waits briefly from then on, and "default" changes nothing. */
COLLAGE_API collage_status collage_set_waiting(const char* policy) COLLAGE_NOEXCEPT;

/* ---------------------------------------------------------------------------------------------------- element types */

/* The numbers are stable; 0 is no element type. float16 and bfloat16 are 16 bits each, bool is one byte of 0 or 1. An element
 * from I4 on takes one byte too, of which the low bits hold the number. */
/* clang-format off */
typedef enum collage_dtype {
  COLLAGE_DTYPE_ANY = 0, COLLAGE_DTYPE_F32 = 1, COLLAGE_DTYPE_F64 = 2, COLLAGE_DTYPE_F16 = 3, COLLAGE_DTYPE_BF16 = 4,
  COLLAGE_DTYPE_I8 = 5, COLLAGE_DTYPE_I16 = 6, COLLAGE_DTYPE_I32 = 7, COLLAGE_DTYPE_I64 = 8,
  COLLAGE_DTYPE_U8 = 9, COLLAGE_DTYPE_U16 = 10, COLLAGE_DTYPE_U32 = 11, COLLAGE_DTYPE_U64 = 12, COLLAGE_DTYPE_BOOL = 13,
  COLLAGE_DTYPE_I4 = 14, COLLAGE_DTYPE_U4 = 15, COLLAGE_DTYPE_I2 = 16, COLLAGE_DTYPE_U2 = 17,
  COLLAGE_DTYPE_F8E4M3FN = 18, COLLAGE_DTYPE_F8E4M3FNUZ = 19, COLLAGE_DTYPE_F8E5M2 = 20, COLLAGE_DTYPE_F8E5M2FNUZ = 21,
  COLLAGE_DTYPE_F8E8M0 = 22, COLLAGE_DTYPE_F4E2M1 = 23
} collage_dtype;
/* clang-format on */

/* Bytes of one element, and its name, such as "float32"; 0 and "" for a number that is not an element type. */
COLLAGE_API size_t collage_dtype_size(int32_t dtype) COLLAGE_NOEXCEPT;
COLLAGE_API const char* collage_dtype_name(int32_t dtype) COLLAGE_NOEXCEPT;

/* --------------------------------------------------------------------------------------------------------- networks */

typedef struct collage_network collage_network;

#define COLLAGE_MAX_RANK 8

/* An input or output of a network. */
typedef struct collage_port {
  size_t struct_size; /* set by the caller */
  const char* name;
  int32_t dtype;                     /* a collage_dtype */
  uint32_t rank;                     /* 0 is a scalar */
  int64_t extents[COLLAGE_MAX_RANK]; /* outermost first; extents from `rank` on are 0 */
  size_t bytes;                      /* of all elements; memory to be bound has exactly this size */
} collage_port;

/* The shape of an input whose extents the file leaves open. This struct does not grow. */
typedef struct collage_input_shape {
  const char* input;
  const int64_t* extents; /* `rank` extents, none negative; may be NULL for a scalar */
  size_t rank;            /* at most COLLAGE_MAX_RANK */
} collage_input_shape;

/* The contents of an input that becomes a constant, so that shapes may depend on it. They are copied. This struct does
 * not grow. */
typedef struct collage_input_value {
  const char* input;
  int32_t dtype; /* a collage_dtype; must be the input's */
  uint32_t rank;
  const int64_t* extents; /* `rank` extents; may be NULL for a scalar */
  const void* data;
  size_t bytes; /* of data: the size of all elements */
} collage_input_value;

typedef struct collage_network_options {
  size_t struct_size;
  const collage_input_shape* shapes;
  size_t shape_count;
  const collage_input_value* values;
  size_t value_count;
  /* Not 0: removes the rounding of a quantised file (collage_precision.h). Sessions do not take it. 64 bits: no padding. */
  int64_t requantise;
} collage_network_options;

/* Reads an ONNX model, makes its shapes concrete and simplifies it. `options` may be NULL. It is an error if the file
 * leaves shapes open that `options` does not give; the sentence names all of them. */
COLLAGE_API collage_status collage_network_from_file(const char* path, const collage_network_options* options,
                                                     collage_network** network) COLLAGE_NOEXCEPT;

/* The same from the bytes of such a file, which are not needed afterwards. Weights in files beside the model are not
 * found. During the call the model is in memory twice. */
COLLAGE_API collage_status collage_network_from_memory(const void* model, size_t bytes,
                                                       const collage_network_options* options,
                                                       collage_network** network) COLLAGE_NOEXCEPT;

/* Builds a network of the zoo, such as "resnet50". A rule makes its weights, the same everywhere. */
COLLAGE_API collage_status collage_network_from_zoo(const char* name, collage_network** network) COLLAGE_NOEXCEPT;

COLLAGE_API void collage_network_release(collage_network* network) COLLAGE_NOEXCEPT;

COLLAGE_API collage_status collage_network_input_count(const collage_network* network, size_t* count) COLLAGE_NOEXCEPT;
COLLAGE_API collage_status collage_network_output_count(const collage_network* network, size_t* count) COLLAGE_NOEXCEPT;
/* Inputs and outputs are in the order of the file. `port->struct_size` must be set. */
COLLAGE_API collage_status collage_network_input(const collage_network* network, size_t index,
                                                 collage_port* port) COLLAGE_NOEXCEPT;
COLLAGE_API collage_status collage_network_output(const collage_network* network, size_t index,
                                                  collage_port* port) COLLAGE_NOEXCEPT;

/* Equal for equal networks, whatever their weights and names are. A plan fits the networks with its fingerprint. */
COLLAGE_API collage_status collage_network_fingerprint(const collage_network* network,
                                                       uint64_t* fingerprint) COLLAGE_NOEXCEPT;

/* A summary as a JSON object:
 *
 *   {"name", "fingerprint" (16 hexadecimal digits), "nodes", "parameters", "constant_bytes", "flops",
 *    "inputs": [{"name", "type", "shape"}], "outputs", "opset", "producer", "metadata": {...}, "notes": [...]}
 *
 * The last four come from a file: opset is 0 for a network of the zoo. Notes are sentences that a user should read. */
COLLAGE_API collage_status collage_network_json(const collage_network* network, const char** json) COLLAGE_NOEXCEPT;

/* ------------------------------------------------------------------------------------------------------------ plans */

typedef struct collage_plan collage_plan;

/* The state of placing a network. */
typedef struct collage_progress {
  size_t struct_size; /* set by the library: members past it do not exist */
  const char* stage; /* "listing", "measuring", "searching", "comparing", "regions", "waiting", "precision"; may grow */
  const char* what;  /* the group that is measured, or the placement that runs end to end */
  uint64_t done;
  uint64_t remaining; /* with the current one; some may be skipped, and others added when they are needed */
  double remaining_s; /* an estimate; 0 while nothing is known */
  double best_ms;     /* of the best placement so far; 0 while there is none */
} collage_progress;

typedef enum collage_progress_result {
  COLLAGE_PROGRESS_CONTINUE = 0,
  COLLAGE_PROGRESS_STOP = 1,  /* ends measuring soon: what is under way is completed; so does any other number */
  COLLAGE_PROGRESS_CANCEL = 2 /* abandons what is under way */
} collage_progress_result;

/* Called in the thread that places, before each piece of work and again during it. `now` and its texts are valid until
 * the function returns. Its result is a collage_progress_result. After STOP or CANCEL it is not called any more, and the
 * plan is the best placement with the costs measured so far. After CANCEL some operator may have no measured kernel yet.
 * Then there is no plan, and placing returns COLLAGE_CANCELLED. The function must not throw, and must not place. */
typedef int (*collage_progress_function)(void* data, const collage_progress* now);

typedef enum collage_place_how {
  COLLAGE_PLACE_MEASURE = 0,  /* measures, searches exactly, compares end to end with every baseline */
  COLLAGE_PLACE_PRIORITY = 1, /* nothing is timed: the first backend that takes a node gets it, large patterns first */
  COLLAGE_PLACE_ESTIMATE = 2  /* nothing is timed: the cheapest placement by the store's costs, also of other shapes */
} collage_place_how;

typedef enum collage_rule_action {
  COLLAGE_RULE_PIN = 0,    /* only by this backend */
  COLLAGE_RULE_EXCLUDE = 1 /* never by this backend */
} collage_rule_action;

/* A placement constraint: the backend that must or must not run some nodes. This struct does not grow. */
typedef struct collage_place_rule {
  int32_t action;   /* a collage_rule_action */
  const char* what; /* the name of a node or of an operator; otherwise of a pattern of the backend */
  const char* backend;
} collage_place_rule;

/* Which kernels may compute by other algorithms than the operator's definition. */
typedef enum collage_algorithms {
  COLLAGE_ALGORITHMS_ACCURATE = 0, /* those that err at most twice as much as the definition */
  COLLAGE_ALGORITHMS_DIRECT = 1,   /* none */
  COLLAGE_ALGORITHMS_ANY = 2       /* those that agree with the reference, as every kernel must */
} collage_algorithms;

typedef struct collage_place_options {
  size_t struct_size;
  int32_t threads;              /* of the engine; 0: as many as the process may use */
  int32_t how;                  /* a collage_place_how */
  const char* backends;         /* names separated by commas, such as "onednn,eigen"; NULL: all that are available */
  const char* store;            /* the file of measured costs; "none": no file; NULL: the user's own */
  double budget_s;              /* for placing as a whole; 0: 20; negative: no limit */
  double compare_s;             /* for end-to-end runs; 0: 3 */
  uint64_t seed;                /* of the random inputs that kernels are checked and timed with; 0: 1 */
  const collage_plan* previous; /* an earlier plan of this network, returned if it is faster; may be NULL */
  const collage_place_rule* rules;
  size_t rule_count;
  int32_t recheck;  /* not 0: repeats end-to-end runs whose results the store has */
  int32_t complete; /* not 0: measures every candidate, not only those that can be part of the best placement */
  collage_progress_function progress; /* may be NULL */
  void* progress_data;
  double regions_s; /* for the search over regions that a library compiles as a whole; 0: 30; below 0: none */
  /* Not 0: refuses kernels that do not pass NaN and infinity on as the reference does. Needs measuring. */
  int32_t keep_non_finite;
  int64_t algorithms; /* a collage_algorithms; 64 bits, so that it is no padding of older versions */
  /* The most memory for the weights of the plan. At most one of both is given. */
  uint64_t memory_bytes;                             /* 0: by the ratio */
  double memory_ratio;                               /* of the weights' own size; 0: 1.5 */
  const struct collage_precision_options* precision; /* collage_precision.h; NULL: float32 */
  double autotune_s; /* for searching whole spaces of kernel configurations; 0: no such search */
} collage_place_options;

/* Places a network. `options` may be NULL. Kernels are measured in workers. If main calls collage_worker, they are this
 * program started again. Otherwise they are collage-worker, which is installed with the library, or the executable that
 * the environment variable COLLAGE_WORKER names. Without one, kernels are measured in this process, and one that
 * crashes ends it. "where" in collage_plan_json says which it was. One call at a time measures; the others wait. */
COLLAGE_API collage_status collage_plan_place(const collage_network* network, const collage_place_options* options,
                                              collage_plan** plan) COLLAGE_NOEXCEPT;

/* For programs whose workers are the same program started again. The first thing that main does is
 * `if (collage_worker(argc, argv)) return 0;`. It returns 0 in the program that the user started. In a worker it
 * returns 1, after the measurements. */
COLLAGE_API int collage_worker(int argc, char** argv) COLLAGE_NOEXCEPT;

typedef struct collage_plan_load_options {
  size_t struct_size;
  int32_t threads;               /* that the plan must be for; 0: any number */
  int32_t accept_version_change; /* not 0: a library may have another version than the plan was made with */
} collage_plan_load_options;

/* Reads a plan file (collage_plan_save, `collage tune`). `options` may be NULL. A plan is refused if it does not fit
 * the network, the available backends, their versions, the processor, the waiting policy or `options`. */
COLLAGE_API collage_status collage_plan_load(const collage_network* network, const char* path,
                                             const collage_plan_load_options* options,
                                             collage_plan** plan) COLLAGE_NOEXCEPT;

/* Writes a plan file in one step: a failure leaves an existing file unchanged. */
COLLAGE_API collage_status collage_plan_save(const collage_plan* plan, const char* path) COLLAGE_NOEXCEPT;

COLLAGE_API void collage_plan_release(collage_plan* plan) COLLAGE_NOEXCEPT;

/* A summary as a JSON object:
 *
 *   {"network", "fingerprint", "threads", "precision", "error": {"most", "predicted", "measured", "upper", "samples"},
 *    "processor", "waiting", "origin", "cost_ms", "lower_bound_ms", "optimal", "memory": {"weights", "network", "bound"},
 *    "backends": [{"name", "version", "details", "groups", "cost_ms"}], "runs": [...], "placing"}
 *
 * "runs" is as in the plan file, and so is "memory", the bytes of weights; it is null for older plans. "error" is as
 * collage_plan_get_error says (collage_precision.h), and null if the plan rounds nothing.
 * "placing" is null for a plan from a file, and otherwise
 *
 *   {"candidates", "distinct", "measured", "from_store", "skipped", "refused", "checked", "unchecked", "conversions",
 *    "interrupted", "seconds", "waited_s",
 *    "holdups": {"periods", "throttled", "throttled_part", "throttled_s", "waited_s", "preempted", "advice"},
 *    "where", "regions": {"tried", "ratio", "saturated", "by_generation"}, "store", "unstored",
 *    "why_unrounded", "refusals": [{"backend", "pattern", "reason", "where", "places"}]}
 *
 * "distinct" is the sum of the four numbers after it. "checked" and "unchecked" are kernels that were used without being
 * measured, with and without a comparison with the reference. The first "where" says in words where kernels were measured.
 * "holdups" says how the system kept the process from its processors meanwhile: by a quota of processor time, or by running
 * others there. "advice" is a text for people, or empty. "store" is the file, or null. "unstored" says why measurements are not
 * in the store, or is null. "why_unrounded" says why the plan rounds nothing although it may, or is null. */
COLLAGE_API collage_status collage_plan_json(const collage_plan* plan, const char** json) COLLAGE_NOEXCEPT;

/* ---------------------------------------------------------------------------------------------------------- engines */

typedef struct collage_engine collage_engine;

typedef struct collage_engine_options {
  size_t struct_size;
  /* Not 0: each weight of the network is released as soon as the last kernel has packed it. The weights and their
   * packed forms are then never all in memory at once. Afterwards the network and its plans only have names, types and
   * shapes, and no other engine or plan can be made from them. No other call may use them at the same time. */
  int32_t release_weights;
} collage_engine_options;

/* Builds the kernels of a plan. Engines over one network handle share packed weights. `options` may be NULL. */
COLLAGE_API collage_status collage_engine_create(const collage_plan* plan, const collage_engine_options* options,
                                                 collage_engine** engine) COLLAGE_NOEXCEPT;

COLLAGE_API void collage_engine_release(collage_engine* engine) COLLAGE_NOEXCEPT;

typedef struct collage_engine_info {
  size_t struct_size;     /* set by the caller */
  size_t inputs, outputs; /* their numbers */
  size_t steps;
  int32_t threads;            /* of a run */
  const char* waiting_policy; /* of the thread pool, as in collage_system_json */
  size_t arena_bytes;         /* of one context, for intermediate values and workspaces */
  size_t arena_lower_bound;   /* no arena can be smaller */
} collage_engine_info;

COLLAGE_API collage_status collage_engine_get_info(const collage_engine* engine,
                                                   collage_engine_info* info) COLLAGE_NOEXCEPT;

COLLAGE_API collage_status collage_engine_input(const collage_engine* engine, size_t index,
                                                collage_port* port) COLLAGE_NOEXCEPT;
COLLAGE_API collage_status collage_engine_output(const collage_engine* engine, size_t index,
                                                 collage_port* port) COLLAGE_NOEXCEPT;

/* One step of a run: one kernel. */
typedef struct collage_step {
  size_t struct_size; /* set by the caller */
  const char* backend;
  const char* pattern;
  const char* kernel;     /* the implementation, such as "brg:avx512_core 1x1" */
  const char* label;      /* the nodes that it runs, such as "conv_0+relu_1"; for a conversion, the value */
  size_t nodes;           /* their number; 0 for a conversion */
  size_t workspace_bytes; /* scratch memory, part of the arena */
  double planned_ms;      /* the planned cost; 0 if nothing was measured */
} collage_step;

/* Steps are in the order in which they run. */
COLLAGE_API collage_status collage_engine_step(const collage_engine* engine, size_t index,
                                               collage_step* step) COLLAGE_NOEXCEPT;

/* --------------------------------------------------------------------------------------------------------- contexts */

typedef struct collage_context collage_context;

typedef struct collage_context_options {
  size_t struct_size;
  void* arena;        /* the caller's memory, aligned to 64 bytes, which outlives the context; NULL: its own */
  size_t arena_bytes; /* at least collage_engine_info.arena_bytes */
} collage_context_options;

/* `options` may be NULL. The context keeps the engine alive. */
COLLAGE_API collage_status collage_context_create(const collage_engine* engine, const collage_context_options* options,
                                                  collage_context** context) COLLAGE_NOEXCEPT;

COLLAGE_API void collage_context_release(collage_context* context) COLLAGE_NOEXCEPT;

/* Binds the caller's memory to an input or output, for all runs until it is bound anew: runs read inputs and write
 * outputs there. `bytes` must be that of the port. `dtype` must be its element type, or COLLAGE_DTYPE_ANY, which fits
 * every type. The memory is aligned to the element type, and stays in place while it is bound. Outputs overlap with
 * nothing else that is bound. Memory that is aligned to 64 bytes is the fastest. */
COLLAGE_API collage_status collage_context_bind_input(collage_context* context, size_t index, int32_t dtype,
                                                      const void* data, size_t bytes) COLLAGE_NOEXCEPT;
COLLAGE_API collage_status collage_context_bind_output(collage_context* context, size_t index, int32_t dtype,
                                                       void* data, size_t bytes) COLLAGE_NOEXCEPT;

/* Binds memory of the context instead, and returns its address. It has the port's size, is aligned to 64 bytes, and is
 * zero at first. Each call returns the same address, which is valid as long as the context lives. An output without
 * memory gets such memory when the context first runs. */
COLLAGE_API collage_status collage_context_input(collage_context* context, size_t index, void** data) COLLAGE_NOEXCEPT;
COLLAGE_API collage_status collage_context_output(collage_context* context, size_t index, void** data) COLLAGE_NOEXCEPT;

/* Runs the network once, and returns when all outputs are written. Every input must be bound. After a failure the
 * contents of the outputs are of no use, and the context can run again. */
COLLAGE_API collage_status collage_context_run(collage_context* context) COLLAGE_NOEXCEPT;

/* Limits of one run. They are checked before each step, also within branches and loops. */
typedef struct collage_run_limits {
  size_t struct_size;
  double seconds;                     /* from the beginning of the run; 0: no limit; below 0: a limit that has passed */
  const volatile unsigned char* stop; /* another thread writes 1 there to end the run; may be NULL */
} collage_run_limits;

/* The same within limits. `limits` may be NULL. A step that has begun is completed. If a limit is reached while steps
 * are left, this returns COLLAGE_CANCELLED. The outputs are then of no use, and the context can run again. */
COLLAGE_API collage_status collage_context_run_limited(collage_context* context,
                                                       const collage_run_limits* limits) COLLAGE_NOEXCEPT;

/* The same as collage_context_run, and writes the milliseconds of each step; `count` is the number of steps. */
COLLAGE_API collage_status collage_context_run_profiled(collage_context* context, double* step_ms,
                                                        size_t count) COLLAGE_NOEXCEPT;

#if defined(__cplusplus)
} /* extern "C" */
#endif

#endif /* COLLAGE_H */
