/*
 * collage_session.h: networks whose shapes change from run to run. It belongs to collage.h, whose conventions hold here: errors,
 * ownership, threads and structs that grow.
 *
 *   session          a model that was read once, and an engine for each combination of shapes that was met
 *   session context  one run of a session at a time: its memory, the outputs of its runs, and its states
 *   growing context  the same with caches that grow, such as keys and values of attention
 *
 *   collage_session* session = NULL;
 *   collage_session_context* context = NULL;
 *   collage_tensor scores;
 *   const collage_tensor image = {COLLAGE_DTYPE_F32, 4, {1, 3, 48, width}, pixels, bytes};
 *   if (collage_session_from_file("model.onnx", NULL, &session) != COLLAGE_OK ||
 *       collage_session_context_create(session, &context) != COLLAGE_OK ||
 *       collage_session_context_run(context, &image, 1, NULL) != COLLAGE_OK ||
 *       collage_session_context_output(context, 0, NULL, &scores) != COLLAGE_OK)
 *     fprintf(stderr, "%s\n", collage_last_error());
 *
 *   session tuning   a thread that measures kernels for the engines of a session while it runs, and replaces them
 *
 * Threads. Any number of threads may use a session. A context runs in one thread at a time. While one context makes an engine for
 * new shapes, only those that need the same shapes wait for it.
 */
#ifndef COLLAGE_SESSION_H
#define COLLAGE_SESSION_H

#include <collage.h>

#if defined(__cplusplus)
extern "C" {
#endif

/* --------------------------------------------------------------------------------------------------------- sessions */

typedef struct collage_session collage_session;

/* An output of each run that is an input of the next: a state, which has the name of the input. This struct does not grow. */
typedef struct collage_carried {
  const char* output;
  const char* input;
} collage_carried;

typedef struct collage_session_options {
  size_t struct_size;
  /* How each new combination of shapes is placed; NULL: COLLAGE_PLACE_ESTIMATE, and zero for all other members. Here `previous`
   * must be NULL. Without measuring, kernels that the store does not know at a shape are compared with the reference for at most
   * 50 ms. `progress` is called in the threads that run, maybe in several at the same time, as long as the session lives. */
  const collage_place_options* placing;
  const collage_network_options* loading; /* inputs whose shape or contents are fixed; NULL: none */
  uint64_t most_engines; /* that are kept; beyond it, those that ran longest ago are given back; 0: 64 */
  uint64_t most_bytes;   /* of packed weights; beyond it, each new engine makes one be given back; 0: any number */
  const collage_carried* carried; /* the states */
  size_t carried_count;
} collage_session_options;

/* Reads an ONNX model, whose shapes may be open. `options` may be NULL. The store's costs are read now, and only once. */
COLLAGE_API collage_status collage_session_from_file(const char* path, const collage_session_options* options,
                                                     collage_session** session) COLLAGE_NOEXCEPT;

/* The same from the bytes of such a file, which are not needed afterwards. Weights in files beside the model are not found. */
COLLAGE_API collage_status collage_session_from_memory(const void* model, size_t bytes,
                                                       const collage_session_options* options,
                                                       collage_session** session) COLLAGE_NOEXCEPT;

COLLAGE_API void collage_session_release(collage_session* session) COLLAGE_NOEXCEPT;

/* Numbers of a session. Those of engines may change with every run. */
typedef struct collage_session_info {
  size_t struct_size;     /* set by the caller */
  size_t inputs, outputs; /* what a run takes, and what it returns */
  size_t states;          /* inputs that are carried, which a run does not take */
  uint64_t engines;       /* alive now */
  uint64_t made;          /* engines made since the beginning */
  uint64_t given_back;    /* engines given back to stay within the limits */
  uint64_t packed_bytes;  /* of packed weights alive now */
  double making_ms;       /* the time of making the engine that was made last */
} collage_session_info;

COLLAGE_API collage_status collage_session_get_info(const collage_session* session,
                                                    collage_session_info* info) COLLAGE_NOEXCEPT;

/* An input or output whose extents may be open. Texts live as long as the session. */
typedef struct collage_open_port {
  size_t struct_size; /* set by the caller */
  const char* name;
  int32_t dtype;                         /* a collage_dtype */
  int32_t rank;                          /* -1: any */
  int64_t extents[COLLAGE_MAX_RANK];     /* -1: open; extents from `rank` on are 0 */
  const char* symbols[COLLAGE_MAX_RANK]; /* names of open extents; "" where there is none */
} collage_open_port;

/* The inputs that a run takes, all outputs, and the inputs that are carried, in the order of `carried`. */
COLLAGE_API collage_status collage_session_input(const collage_session* session, size_t index,
                                                 collage_open_port* port) COLLAGE_NOEXCEPT;
COLLAGE_API collage_status collage_session_output(const collage_session* session, size_t index,
                                                  collage_open_port* port) COLLAGE_NOEXCEPT;
COLLAGE_API collage_status collage_session_state(const collage_session* session, size_t index,
                                                 collage_open_port* port) COLLAGE_NOEXCEPT;

/* A summary as a JSON object:
 *
 *   {"model", "inputs": [{"name", "type", "shape"}], "outputs", "states", "opset", "producer", "metadata": {...}, "notes": [...]}
 *
 * An open extent is its symbol, or null. A shape is null if any rank is allowed. Notes are sentences that a user should read. */
COLLAGE_API collage_status collage_session_json(const collage_session* session, const char** json) COLLAGE_NOEXCEPT;

/* ------------------------------------------------------------------------------------------- tuning in the background */

/* A session makes its engines within milliseconds, by estimated costs. A tuning measures kernels for those engines that took most
 * time so far, one after another, and replaces each. It does so in a thread, and worker processes, of idle priority: on Linux they run only
 * while processors would do nothing otherwise. It waits for further engines when all are tuned. Runs go on meanwhile. Other calls that
 * measure end the tuning of the engine that is under way, with the best plan so far. */
typedef struct collage_session_tuning collage_session_tuning;

/* Begins. `placing` may be NULL. Its `how` must be COLLAGE_PLACE_MEASURE, and `previous` and `precision` NULL. `budget_s` is for
 * each engine. `progress` is called in a thread of the tuning. It may end or cancel the tuning of one engine, and must not release
 * the tuning. The session may be released before its tuning. */
COLLAGE_API collage_status collage_session_tuning_start(const collage_session* session,
                                                        const collage_place_options* placing,
                                                        collage_session_tuning** tuning) COLLAGE_NOEXCEPT;

/* Ends what is under way, and waits for it: for as long as one call of a kernel takes. */
COLLAGE_API void collage_session_tuning_release(collage_session_tuning* tuning) COLLAGE_NOEXCEPT;

typedef struct collage_session_tuning_info {
  size_t struct_size; /* set by the caller */
  uint64_t improved;  /* engines that were replaced */
  uint64_t failed;    /* engines whose tuning failed; they stay as they are */
  char tuning
      [256]; /* the inputs of the engine that is tuned now, as "x float32[1x3x48x320]", cut off if it is long; "": none is */
  char failure[768]; /* why the last one failed; "": none did */
} collage_session_tuning_info;

COLLAGE_API collage_status collage_session_tuning_get_info(const collage_session_tuning* tuning,
                                                           collage_session_tuning_info* info) COLLAGE_NOEXCEPT;

/* --------------------------------------------------------------------------------------------------------- contexts */

typedef struct collage_session_context collage_session_context;

COLLAGE_API collage_status collage_session_context_create(const collage_session* session,
                                                          collage_session_context** context) COLLAGE_NOEXCEPT;

COLLAGE_API void collage_session_context_release(collage_session_context* context) COLLAGE_NOEXCEPT;

/* A tensor in memory, dense and row-major. This struct does not grow. */
typedef struct collage_tensor {
  int32_t dtype; /* a collage_dtype */
  uint32_t rank; /* 0 is a scalar */
  int64_t extents[COLLAGE_MAX_RANK];
  const void* data; /* aligned to the element type */
  size_t bytes;     /* of all elements */
} collage_tensor;

/* Runs the network. `inputs` are those of collage_session_input, in their order, and `count` is their number. They may be outputs of
 * the run before. `limits` may be NULL. The first run at new shapes makes an engine, which `limits` do not end. After a failure, and
 * after COLLAGE_CANCELLED, the states and the outputs are those before the run, and the context can run again. */
COLLAGE_API collage_status collage_session_context_run(collage_session_context* context, const collage_tensor* inputs,
                                                       size_t count, const collage_run_limits* limits) COLLAGE_NOEXCEPT;

/* The same into the caller's memory, so that nothing is copied: `outputs` are all those of collage_session_output, in their order. Each
 * has the type and shape that it has at these inputs, and its `data` is written. An output that is carried may have NULL for `data`;
 * with memory, it is copied there. Outputs overlap with nothing else. After success, collage_session_context_output has no outputs until
 * the next collage_session_context_run. After a failure, the contents of `outputs` are of no use. An output of another type or shape is
 * an error at the end of the run, and the states are then those before it. */
COLLAGE_API collage_status collage_session_context_run_into(collage_session_context* context,
                                                            const collage_tensor* inputs, size_t count,
                                                            const collage_tensor* outputs, size_t output_count,
                                                            const collage_run_limits* limits) COLLAGE_NOEXCEPT;

/* An output of the last run. Its memory belongs to the context, and is valid until the run after the next. The name lives as long as
 * the session; `name` may be NULL. */
COLLAGE_API collage_status collage_session_context_output(const collage_session_context* context, size_t index,
                                                          const char** name, collage_tensor* output) COLLAGE_NOEXCEPT;

/* ----------------------------------------------------------------------------------------------------------- states */

/* A state is zeros of its start shape at first. Unless collage_session_context_start gives a shape, an open extent of it is the one
 * that an input of the run has for the same symbol. Otherwise it is 0, if the output that is carried has another symbol there, as
 * lengths that grow from run to run have. If neither holds, the run is refused. */

/* Makes a state zeros of this shape, now and at each reset. `extents` may be NULL for a scalar. */
COLLAGE_API collage_status collage_session_context_start(collage_session_context* context, const char* state,
                                                         const int64_t* extents, size_t rank) COLLAGE_NOEXCEPT;

/* Copies `contents` to a state. They may be another state or an output. */
COLLAGE_API collage_status collage_session_context_set_state(collage_session_context* context, const char* state,
                                                             const collage_tensor* contents) COLLAGE_NOEXCEPT;

/* The contents of a state, valid until the next call that runs or changes states. It is an error if the state has no shape yet. */
COLLAGE_API collage_status collage_session_context_state(const collage_session_context* context, const char* state,
                                                         collage_tensor* contents) COLLAGE_NOEXCEPT;

/* Brings all states back to their start. */
COLLAGE_API collage_status collage_session_context_reset(collage_session_context* context) COLLAGE_NOEXCEPT;

/* ------------------------------------------------------------------------------------------------ caches that grow */

/* Runs of a session with caches that grow with every run, such as the keys and values of attention. A session would make an engine for
 * each length. A growing context keeps caches in memory of a larger extent, their capacity, and runs the network at that extent. Elements
 * past the length are zeros, and masks say that they do not count. Whether that is right depends on the network. */
typedef struct collage_growing_context collage_growing_context;

/* An input, and the output that has its elements with new ones behind them in one dimension. This struct does not grow. */
typedef struct collage_cache {
  const char* input;
  const char* output;
  uint32_t dimension;
  uint32_t rank; /* of `extents`; 0: they are those that the model declares, or of other inputs with the same symbols */
  const int64_t* extents; /* of the input; that in `dimension` does not count */
} collage_cache;

/* An input with an extent that counts the elements of the caches and the new ones, as a mask of attention. The padding stands between
 * both. This struct does not grow. */
typedef struct collage_cache_mask {
  const char* input;
  uint32_t dimension;
  double value; /* "does not count"; must be exact in an element type of integers */
} collage_cache_mask;

typedef struct collage_growing_options {
  size_t struct_size;
  const collage_cache* caches; /* all have the same length */
  size_t cache_count;
  const int64_t* capacities; /* extents that lengths are rounded up to, none negative; 0 is for the first run */
  size_t capacity_count;
  const collage_cache_mask* masks;
  size_t mask_count;
} collage_growing_options;

/* The session must carry no states. Other contexts may use it at the same time. */
COLLAGE_API collage_status collage_growing_context_create(const collage_session* session,
                                                          const collage_growing_options* options,
                                                          collage_growing_context** context) COLLAGE_NOEXCEPT;

COLLAGE_API void collage_growing_context_release(collage_growing_context* context) COLLAGE_NOEXCEPT;

typedef struct collage_growing_info {
  size_t struct_size;     /* set by the caller */
  size_t inputs, outputs; /* of a run: those of the session without the caches */
  int64_t length;         /* elements of each cache */
  int64_t capacity;       /* the extent that the next run gives them */
} collage_growing_info;

COLLAGE_API collage_status collage_growing_context_get_info(const collage_growing_context* context,
                                                            collage_growing_info* info) COLLAGE_NOEXCEPT;
COLLAGE_API collage_status collage_growing_context_input(const collage_growing_context* context, size_t index,
                                                         collage_open_port* port) COLLAGE_NOEXCEPT;

/* Runs the network, and adds the new elements to the caches. `inputs` are those of collage_growing_context_input. `limits` may be NULL.
 * After a failure the caches are as before. It is an error if they would be longer than the largest capacity. */
COLLAGE_API collage_status collage_growing_context_run(collage_growing_context* context, const collage_tensor* inputs,
                                                       size_t count, const collage_run_limits* limits) COLLAGE_NOEXCEPT;

/* An output of the last run, valid until the run after the next. It is an error if the last run failed. `name` may be NULL. */
COLLAGE_API collage_status collage_growing_context_output(const collage_growing_context* context, size_t index,
                                                          const char** name, collage_tensor* output) COLLAGE_NOEXCEPT;

/* A copy of a cache at its length, by the name of its input. It is valid until this cache is copied again. */
COLLAGE_API collage_status collage_growing_context_cache(collage_growing_context* context, const char* input,
                                                         collage_tensor* contents) COLLAGE_NOEXCEPT;

/* Replaces all caches, in the order of the options, by copies of these, which have one length. */
COLLAGE_API collage_status collage_growing_context_restore(collage_growing_context* context,
                                                           const collage_tensor* caches, size_t count) COLLAGE_NOEXCEPT;

/* Keeps the first `length` elements of the caches. */
COLLAGE_API collage_status collage_growing_context_shorten(collage_growing_context* context,
                                                           int64_t length) COLLAGE_NOEXCEPT;

/* Empties the caches: a new sequence begins. */
COLLAGE_API collage_status collage_growing_context_reset(collage_growing_context* context) COLLAGE_NOEXCEPT;

#if defined(__cplusplus)
} /* extern "C" */
#endif

#endif /* COLLAGE_SESSION_H */
