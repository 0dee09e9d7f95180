/* gemvjit: small-M (decode) linear layers on NVIDIA GPUs, compiled at warmup, launched without a stall.
 *
 *   out[M,N] = (x[M,K] @ dequant(W)[N,K]^T) * global_scale        0 <= M <= 32
 *
 * x and out are BF16, W is NVFP4 (E2M1 codes with E4M3 block scales, as ModelOpt exports them) or BF16. Products and
 * sums are exact to FP32 accumulation; the result is rounded once to BF16.
 *
 * THE TOUR
 *   1. gemvjit_options_init, gemvjit_create         a context: one device (or none), one cache, one tuning table
 *   2. gemvjit_warmup                               may block, compile, use the cache; call it before serving
 *   3. gemvjit_seal                                 from now on nothing compiles
 *   4. gemvjit_nvfp4_gemv, gemvjit_bf16_gemv, ...   launches: never compile, lock, allocate, log or touch a file
 *   5. gemvjit_destroy
 *
 * CONVENTIONS
 *   Status     Every function that can fail returns gemvjit_status. gemvjit_last_error() has the detail of the calling
 *              thread's last failure. On failure nothing was launched and no output argument was changed, unless said.
 *   Structs    begin with struct_size, set by the caller to sizeof(the struct) (the _init functions do that). A size
 *              that no version of this header had is INVALID_ARGUMENT. Set all other bytes to zero first.
 *   Strings    are UTF-8, zero-terminated, copied by the library; those it returns live as long as stated.
 *   Pointers   into device memory are marked [device]; all others are host pointers. The library allocates no device
 *              memory, ever.
 *   Threads    All functions may be called from any threads at once on one context, except gemvjit_destroy, which must
 *              be the last.
 *   fork()     A context belongs to the process that made it: in a child whatever could compile, load or launch is
 *              FORKED, and gemvjit_destroy frees memory alone. The driver does not work in a child forked after CUDA
 *              was started; a context without a device (NONE), made there, does, if no thread of the parent was warming
 *              up at the time: NVRTC's own locks would be held for ever.
 *   The end    exit() and a return from main() may come at any time, in any thread or callback, with contexts alive.
 *              What compiles is cancelled, uploads are waited for (30 s at most), then calls under way into NVRTC and
 *              such (10 s); else the process leaves by _exit() with its status. From then on nothing compiles
 *              (CANCELLED), no callback is called; all else works. Once a context was made, dlclose() unloads nothing.
 *   Signals    No disposition or mask of the host's is changed; calls go on after a signal. See docs/integrating.md.
 *   CUDA       No CUDA header is needed. A stream is the driver's CUstream (= cudaStream_t); null is the legacy default
 *              stream. libcuda and libnvrtc are opened on first use; a missing one is an ordinary error.
 */
#ifndef GEMVJIT_GEMVJIT_H
#define GEMVJIT_GEMVJIT_H

#include <stddef.h>
#include <stdint.h>

#define GEMVJIT_VERSION_MAJOR 0
#define GEMVJIT_VERSION_MINOR 1
#define GEMVJIT_VERSION_PATCH 0

#if defined(__GNUC__)
#define GEMVJIT_API __attribute__((visibility("default")))
#else
#define GEMVJIT_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* The driver's stream type, so that a CUstream or cudaStream_t can be passed without a cast. */
struct CUstream_st;

/* ------------------------------------------------------------------------------------------------- status ------- */
typedef enum gemvjit_status {
  GEMVJIT_OK = 0,
  GEMVJIT_INVALID_ARGUMENT = 1,  /* null pointer, unknown enum value, wrong struct_size, misspelt name */
  GEMVJIT_INVALID_SHAPE = 2,     /* N or K breaks a rule of the family; the message names the rule */
  GEMVJIT_INVALID_ALIGNMENT = 3, /* weight or scales not 16-byte aligned, x or out not 2-byte aligned */
  GEMVJIT_UNSUPPORTED = 4,       /* a valid request that this version or this target does not serve */
  GEMVJIT_M_NOT_COVERED = 5,     /* M > 32, or more tokens than any warmed kernel of the shape: use another path */
  GEMVJIT_UNTUNED = 6,           /* no measured configuration, and untuned ones were not allowed */
  GEMVJIT_NOT_READY = 7,         /* the kernel was not warmed; check: not in the cache; warmup: a stream captures */
  GEMVJIT_SEALED = 8,            /* would have to compile after gemvjit_seal */
  GEMVJIT_NO_DRIVER = 9,         /* libcuda or a device is missing */
  GEMVJIT_NO_COMPILER = 10,      /* libnvrtc is missing, too old, or does not know the target */
  GEMVJIT_COMPILE_FAILED = 11,
  GEMVJIT_CACHE_NOT_WRITABLE = 12,
  GEMVJIT_ENTRY_DAMAGED = 13, /* only from gemvjit_check; elsewhere a damaged entry is a miss */
  GEMVJIT_NOT_FOUND = 14,
  GEMVJIT_IO_ERROR = 15,
  GEMVJIT_CUDA_ERROR = 16,
  GEMVJIT_CANCELLED = 17,
  GEMVJIT_OUT_OF_MEMORY = 18, /* host memory */
  GEMVJIT_INTERNAL_ERROR = 19,
  GEMVJIT_FORKED = 20 /* a context of the parent process, used after fork(): make a new one */
} gemvjit_status;

/* "0.1.0". Static storage. */
GEMVJIT_API const char* gemvjit_version(void);
/* "GEMVJIT_NOT_READY"; "GEMVJIT_UNKNOWN_STATUS" for a value that is none. Static storage. */
GEMVJIT_API const char* gemvjit_status_name(gemvjit_status status);
/* What the calling thread's last failed call said: what was tried, on what, what to do. Empty before any failure;
 * a successful call leaves it as it was. Valid until the thread's next call into this library. */
GEMVJIT_API const char* gemvjit_last_error(void);

/* ------------------------------------------------------------------------------------------------ context ------- */
typedef struct gemvjit_context gemvjit_context;

/* Besides an ordinal. CURRENT: the current context's device, else device 0; none if there is no driver. NONE: never
 * open libcuda, for filling a cache. */
enum { GEMVJIT_DEVICE_CURRENT = -1, GEMVJIT_DEVICE_NONE = -2 };

typedef enum gemvjit_miss_policy {
  GEMVJIT_ON_MISS_FAIL = 0,   /* a launch that was not warmed is NOT_READY */
  GEMVJIT_ON_MISS_COMPILE = 1 /* it compiles (also an untuned shape), unless the stream captures or the context is
                                 sealed. Such a launch may take seconds. What failed once is not tried again. */
} gemvjit_miss_policy;

typedef enum gemvjit_log_level {
  GEMVJIT_LOG_DEFAULT = 0, /* GEMVJIT_LOG, else warnings and errors */
  GEMVJIT_LOG_DEBUG = 1,
  GEMVJIT_LOG_INFO = 2,
  GEMVJIT_LOG_WARNING = 3,
  GEMVJIT_LOG_ERROR = 4,
  GEMVJIT_LOG_OFF = 5
} gemvjit_log_level;

/* Called from any thread that uses the context, never from two at once, and never from a launch unless that compiles on
 * a miss. Must not call back into the library. `message` lives for the call. */
typedef void (*gemvjit_log_callback)(void* user, gemvjit_log_level level, const char* message);

/* What happened on the launch path, for whoever watches a service. */
typedef enum gemvjit_event_kind {
  GEMVJIT_EVENT_LAUNCH_MISS = 1 /* a launch found no kernel: NOT_READY, or M_NOT_COVERED for want of a larger nt */
} gemvjit_event_kind;

typedef struct gemvjit_event {
  size_t struct_size;
  int32_t kind;    /* gemvjit_event_kind */
  int32_t status;  /* gemvjit_status that the call returns */
  int32_t family;  /* gemvjit_family */
  int32_t sealed;  /* 1: after gemvjit_seal */
  int64_t m, n, k; /* as launched; m is 0 for a family without tokens */
  int32_t silu_mul, pdl, scale_segments;
} gemvjit_event;

/* Called in the launching thread, within the launch. Must not call back into the library, nor throw. */
typedef void (*gemvjit_event_callback)(void* user, const gemvjit_event* event);

typedef struct gemvjit_options {
  size_t struct_size;
  int32_t device;          /* ordinal, GEMVJIT_DEVICE_CURRENT (default) or GEMVJIT_DEVICE_NONE */
  int32_t on_miss;         /* gemvjit_miss_policy */
  const char* cache_dir;   /* NULL: GEMVJIT_CACHE_DIR, $XDG_CACHE_HOME/gemvjit, $HOME/.cache/gemvjit, else memory
                              only; "": memory only */
  const char* tuning_dir;  /* NULL: GEMVJIT_TUNING_DIR, else none; a folder whose <arch>.json replace built-in tables */
  const char* dump_dir;    /* NULL: GEMVJIT_DUMP_DIR, else none; sources of failed (and with log debug, all) compiles */
  int32_t compile_threads; /* 0: GEMVJIT_COMPILE_THREADS, else min(cores, 8, free memory / 0.5 GB) */
  int32_t log_level;       /* gemvjit_log_level */
  gemvjit_log_callback log_callback; /* NULL: stderr */
  void* log_user;
  gemvjit_event_callback event_callback; /* NULL: none; misses are counted all the same */
  void* event_user;
} gemvjit_options;

/* Set struct_size and all defaults. INVALID_ARGUMENT for NULL. */
GEMVJIT_API gemvjit_status gemvjit_options_init(gemvjit_options* options);

/* Make a context. `options` may be NULL (all defaults). The environment is read here and never again. Opens libcuda
 * unless the device is NONE; touches no cache directory and opens no NVRTC. With device CURRENT and no driver the
 * context has no device; with an ordinal that is NO_DRIVER. On success *out is owned by the caller.
 * On a device the context keeps the device's primary context retained until gemvjit_destroy. */
GEMVJIT_API gemvjit_status gemvjit_create(const gemvjit_options* options, gemvjit_context** out);

/* Unload all kernels and free the context. Never fails: NULL succeeds, and so does a context whose driver, device or
 * process is gone (an exit handler, a reset device, a child of fork()). No launch may be running in another thread's
 * call, work already on streams must have ended, and no graph that holds the kernels may be launched again. Streams may
 * be capturing: captures go on. */
GEMVJIT_API gemvjit_status gemvjit_destroy(gemvjit_context* context);

/* The device's compile target, "sm_90a"; NULL without a device. Lives as long as the context. */
GEMVJIT_API const char* gemvjit_device_arch(const gemvjit_context* context);
/* The cache directory in use; "" for memory only. Lives as long as the context. */
GEMVJIT_API const char* gemvjit_cache_dir(const gemvjit_context* context);
/* Hash over the tuning tables in use (64 hex digits), so that ranks can compare. Lives as long as the context. */
GEMVJIT_API const char* gemvjit_tuning_hash(const gemvjit_context* context);

/* From now on a compile is an error: a launch that was not warmed is NOT_READY whatever on_miss says, within 10 us and
 * with an event (gemvjit_options.event_callback), and a warmup that would compile gives SEALED for that kernel. Loading
 * from the cache in gemvjit_warmup stays allowed. For good. */
GEMVJIT_API gemvjit_status gemvjit_seal(gemvjit_context* context);

/* ------------------------------------------------------------------------------------------------ problems ------ */
typedef enum gemvjit_family {
  GEMVJIT_NVFP4_GEMV = 1,
  GEMVJIT_BF16_GEMV = 2,
  GEMVJIT_DEQUANTIZE_ROWS = 3,
  GEMVJIT_SWIZZLE_BLOCKSCALE = 4 /* gemvjit_swizzle_blockscale_device */
} gemvjit_family;

/* One linear layer, for warmup and questions. M plays no part in it. */
typedef struct gemvjit_problem {
  size_t struct_size;
  int32_t family;           /* gemvjit_family */
  int32_t nt;               /* 0: every nt (1, 2, 4); else just that one. Must be 0 but for the GEMVs */
  int64_t n;                /* weight rows = output features; with silu_mul gate and up together. Multiple of 8 (16 with
                               silu_mul; any but for the GEMVs), at most 2^31 */
  int64_t k;                /* reduction. Multiple of 16, of 8 for BF16; at most 2^27 */
  int32_t silu_mul;         /* 1: out[M,N/2] = silu(gate) * up */
  int32_t pdl;              /* 1: programmatic dependent launch allowed (used where the target has it and it wins) */
  int32_t allow_untuned;    /* 1: shapes without a measured configuration get a predicted one, or that of the nearest
                               measured shape, or a default one */
  int32_t scale_segments;   /* 1: launches name gemvjit_nvfp4_gemv_args.segments; a kernel of its own, of the same
                               configuration. NVFP4_GEMV only */
  int32_t cluster_fallback; /* 1: also keep in the cache what replaces kernels whose cluster a device cannot run (MIG,
                               MPS); a warmup on such a device does it by itself. Nothing more is loaded */
  const char* arch;         /* "sm_90a"; NULL: the context's device */
} gemvjit_problem;

/* Set struct_size, family, n, k; pdl 1; all else 0 or NULL. */
GEMVJIT_API gemvjit_status gemvjit_problem_init(gemvjit_problem* problem, gemvjit_family family, int64_t n, int64_t k);

/* Whether such a kernel can exist: OK, or INVALID_SHAPE / UNSUPPORTED with the reason in gemvjit_last_error() and, if
 * `reason` is not NULL, in that buffer of `reason_size` bytes (cut to fit, always terminated). Whether the shape is
 * tuned does not matter. NO_DRIVER if the problem names no arch and the context has no device. Opens nothing. */
GEMVJIT_API gemvjit_status gemvjit_supported(const gemvjit_context* context, const gemvjit_problem* problem,
                                             char* reason, size_t reason_size);

/* *nt = the smallest nt (1, 2, 4) that covers M and for which the GEMV was measured to be the fastest choice; with
 * problem->allow_untuned also where it was not measured. problem->nt is ignored. If there is none, *nt = 0 and the
 * status is OK: take another path. M < 1 or M > 32 gives *nt = 0. */
GEMVJIT_API gemvjit_status gemvjit_pick_nt(const gemvjit_context* context, const gemvjit_problem* problem, int64_t m,
                                           int32_t* nt);

/* *tuned = 1 if the shape has a measured configuration that beats the alternative, for some nt; else 0. */
GEMVJIT_API gemvjit_status gemvjit_tuned(const gemvjit_context* context, const gemvjit_problem* problem,
                                         int32_t* tuned);

/* Text for people: which kernel the problem gets for M, why (the class of match, the neighbour's shape, what was
 * measured, pdl), and what was rejected. Writes at most `size`
 * bytes with the terminator, and to *length (may be NULL) the length of the whole text. */
GEMVJIT_API gemvjit_status gemvjit_explain(const gemvjit_context* context, const gemvjit_problem* problem, int64_t m,
                                           char* text, size_t size, size_t* length);

/* Text for people: which NVRTC compiles here, its file, and the targets it knows. Opens NVRTC. NO_COMPILER, with every
 * file tried, if there is none. `text`, `size` and `length` as in gemvjit_explain. */
GEMVJIT_API gemvjit_status gemvjit_describe_compiler(gemvjit_context* context, char* text, size_t size, size_t* length);

/* ------------------------------------------------------------------------------------------------- warmup ------- */
typedef enum gemvjit_outcome {
  GEMVJIT_OUTCOME_COMPILED = 1, /* built now */
  GEMVJIT_OUTCOME_CACHED = 2,   /* found in the cache, or already loaded */
  GEMVJIT_OUTCOME_FAILED = 3,   /* see status */
  GEMVJIT_OUTCOME_MISSING = 4   /* only from gemvjit_check and gemvjit_plan: not in the cache */
} gemvjit_outcome;

/* One kernel of a warmup, check or plan. Pointers live for the callback. */
typedef struct gemvjit_kernel_info {
  size_t struct_size;
  const char* key;    /* "n4096-k4096-nt1-f...-sm_90a" */
  const char* digest; /* 64 hex digits: key, sources, options */
  const char* arch;
  const char* flags_text; /* the flags by name */
  const char* match;      /* where the configuration comes from: "exact": measured for this shape; "predicted":
                             derived for it, not measured; "nearest_shape": measured for a shape close to it;
                             "family_default": a default; "named": asked for by its key; "without_cluster": in
                             place of a kernel with a cluster, not measured */
  const char* path;       /* the cache file; "" for memory only */
  const char* error;      /* "" unless failed */
  int64_t n, k;
  uint64_t flags;
  int32_t family; /* gemvjit_family */
  int32_t nt;
  int32_t outcome;     /* gemvjit_outcome */
  int32_t status;      /* gemvjit_status */
  double milliseconds; /* time spent on it now */
  uint32_t compile_ms; /* time its build took, where it was built now; else as its entry has it, 0: not known */
  uint32_t registers, smem_bytes, spill_bytes; /* of the compiled code; smem static + dynamic, spill stores + loads */
  uint64_t cubin_bytes;
  size_t problem_index; /* the first problem that asked for it */
  size_t done, total;   /* kernels finished, this one included, and in all */
} gemvjit_kernel_info;

/* Called once for each distinct kernel that was asked for, from the threads that build, never from two at once; of one
 * whose cluster the device cannot run the info is that of the kernel in its place. Return 0 to go on; any other value
 * cancels: running compiles finish and are kept, nothing new starts. Must not call gemvjit_warmup or gemvjit_destroy on
 * the context, nor throw (an exception cancels, and is INTERNAL_ERROR; a binding keeps it and returns 1). */
typedef int (*gemvjit_kernel_callback)(void* user, const gemvjit_kernel_info* kernel);

/* How far a warmup goes. */
typedef enum gemvjit_warmup_level {
  GEMVJIT_LEVEL_RESOLVED = 0, /* ready to be launched: a launch loads nothing and waits for no running kernel */
  GEMVJIT_LEVEL_COMPILED = 1, /* in the cache; nothing is loaded. Always so for a foreign arch */
  GEMVJIT_LEVEL_LOADED = 2 /* the driver has the code; launches are NOT_READY until a warmup to RESOLVED. The driver's
                              default (CUDA_MODULE_LOADING=LAZY) then waits for no running kernel yet */
} gemvjit_warmup_level;

typedef struct gemvjit_warmup_options {
  size_t struct_size;
  gemvjit_kernel_callback on_kernel; /* NULL: none */
  void* user;
  const volatile int32_t* cancel; /* NULL, or a flag that another thread or a signal handler sets to non-zero */
  gemvjit_status* problem_status; /* NULL, or `count` values: the first failure of each problem's kernels, or OK */
  int32_t level;                  /* gemvjit_warmup_level */
  int32_t require_cache;          /* 1: a kernel that cannot be kept in the cache directory counts as failed
                                     (CACHE_NOT_WRITABLE) */
} gemvjit_warmup_options;

/* Make every kernel of the problems ready: in the cache, and, for the context's own device, loaded and resolved (in the
 * device's primary context, and in the current one if that is another of the device) so that its first launch there
 * loads nothing. Distinct kernels are built once, on several threads. Blocks; may take seconds a kernel. The only call
 * that asks a remote cache (option remote). Loading waits for kernels that run on the device: call it before serving,
 * not under a persistent kernel, and not while a stream captures: NOT_READY at once, for all problems, where the driver
 * tells of that, which it does for streams that are not non-blocking. `options` may be NULL. `count` is at most
 * 1000000, as for gemvjit_plan and gemvjit_check (INVALID_ARGUMENT). A problem that names its arch has kernels of its
 * own: one that names none takes whichever of the device's targets ("sm_90a", "sm_90") is at hand.
 *
 * Where a problem names no nt and does not allow untuned configurations, the nt values without a measured one are left
 * out; UNTUNED if that leaves none.
 *
 * OK if all are ready; else the first failure in the order of the problems (others still are attempted); CANCELLED if
 * cancelled. Problems are checked first: one that is malformed fails alone, and has no callback. */
GEMVJIT_API gemvjit_status gemvjit_warmup(gemvjit_context* context, const gemvjit_problem* problems, size_t count,
                                          const gemvjit_warmup_options* options);

/* Wait until what warmups gave to the remote cache (option remote_write) is sent, as happens in the background and, at
 * most 30 s long, at gemvjit_destroy and exit(). IO_ERROR if some could not be sent; CANCELLED if not done in time. */
GEMVJIT_API gemvjit_status gemvjit_flush(gemvjit_context* context, int32_t timeout_ms);

/* Whether launches of the problems, in the CUDA context that is current (none: the device's primary context), would
 * load nothing: OK if each number of tokens that a problem's nt covers (nt 0: those that a warmup of it would make
 * ready) finds a kernel that is resolved there; else NOT_READY with the first that is missing in gemvjit_last_error(),
 * and a status for each problem in problem_status (NULL, or `count` values). Answers at once, also while another thread
 * warms up; while a stream captures it fails at once, as gemvjit_warmup does. NO_DRIVER without a device. */
GEMVJIT_API gemvjit_status gemvjit_ready(gemvjit_context* context, const gemvjit_problem* problems, size_t count,
                                         gemvjit_status* problem_status);

/* Name the distinct kernels of the problems without looking into the cache (outcome MISSING for all). Opens nothing. A
 * malformed problem's status if there is one; CANCELLED if the callback says so. */
GEMVJIT_API gemvjit_status gemvjit_plan(gemvjit_context* context, const gemvjit_problem* problems, size_t count,
                                        gemvjit_kernel_callback on_kernel, void* user);

/* Look whether each distinct kernel is in the cache, whole; compiles and loads nothing, opens neither library.
 * OK if all are; NOT_READY if some are not (outcome MISSING, and status IO_ERROR instead of NOT_READY for one whose
 * file cannot be read or not be trusted); ENTRY_DAMAGED if one is damaged (outcome FAILED). Else as gemvjit_plan. */
GEMVJIT_API gemvjit_status gemvjit_check(gemvjit_context* context, const gemvjit_problem* problems, size_t count,
                                         gemvjit_kernel_callback on_kernel, void* user);

/* The three above for kernels that are named by their keys (gemvjit_kernel_info.key), as a plan holds them: just these,
 * whatever tuning tables are in use. A key that does not parse or that this version does not make is INVALID_ARGUMENT
 * or UNSUPPORTED and fails alone; problem_status and problem_index count keys. */
GEMVJIT_API gemvjit_status gemvjit_warmup_keys(gemvjit_context* context, const char* const* keys, size_t count,
                                               const gemvjit_warmup_options* options);
GEMVJIT_API gemvjit_status gemvjit_plan_keys(gemvjit_context* context, const char* const* keys, size_t count,
                                             gemvjit_kernel_callback on_kernel, void* user);
GEMVJIT_API gemvjit_status gemvjit_check_keys(gemvjit_context* context, const char* const* keys, size_t count,
                                              gemvjit_kernel_callback on_kernel, void* user);

/* ------------------------------------------------------------------------------------------------ launches ------ */
/* On success a launch is in the stream. It takes no lock, allocates nothing, reads no environment, opens no file, logs
 * nothing, and may be captured into a graph. The kernel must have been warmed for this context's device (NOT_READY
 * otherwise; see gemvjit_miss_policy), a CUDA context of that device must be current to the thread, and the stream must
 * be that device's: the driver takes a stream of another device without a word, and the launch goes wrong there.
 *
 * M = 0 succeeds without a launch, once the other arguments are found valid; x and out may then be null. M > 32 is
 * M_NOT_COVERED, and so is an M that no warmed nt of the shape covers. The smallest warmed nt that covers M is used; a
 * launch that allows PDL also takes a kernel that was warmed without it, one that forbids it never takes one that was
 * warmed with it. NO_DRIVER if the context has no device.
 *
 * READ AHEAD. A launch with pdl may begin while kernels before it still run: those of the unbroken run of PDL launches
 * just before it in the stream, whoever made them, and the kernel that this run began under. It reads weight,
 * weight_scale and global_scale at once: none of those kernels may write them, gemvjit_dequantize_rows included (pdl =
 * 0 waits for all). It reads x and writes out once the launch before it has completed (griddepcontrol.wait). That holds
 * for the kernels before that one only if every kernel in between waits so itself, as all of this library's do; a
 * kernel that it does not hold for must neither write x nor use out. */

typedef enum gemvjit_scale_layout {
  GEMVJIT_SCALE_128X4_SWIZZLED = 1, /* cuBLASLt's VEC16 layout; see gemvjit_swizzle_blockscale */
  GEMVJIT_SCALE_ROW_MAJOR = 2       /* as checkpoints store them: UNSUPPORTED in a launch; swizzle them once, when the
                                       weight is loaded, with gemvjit_swizzle_blockscale_device */
} gemvjit_scale_layout;

typedef enum gemvjit_global_scale_kind {
  GEMVJIT_GLOBAL_SCALE_MULTIPLIER = 1, /* ModelOpt's weight_scale_2 = amax / 2688 */
  GEMVJIT_GLOBAL_SCALE_DIVISOR = 2 /* compressed-tensors' weight_global_scale = 2688 / amax: UNSUPPORTED as yet */
} gemvjit_global_scale_kind;

/* The global scale of the rows from the previous segment's row_end (0 for the first) up to row_end. */
enum { GEMVJIT_MAX_SCALE_SEGMENTS = 8 };
typedef struct gemvjit_scale_segment {
  int64_t row_end;           /* a multiple of 8, above the one before; the last is n */
  const float* global_scale; /* [device] one float, 4-byte aligned; read ahead */
} gemvjit_scale_segment;

typedef struct gemvjit_nvfp4_gemv_args {
  size_t struct_size;
  int64_t m, n, k;          /* n counts weight rows: with silu_mul gate and up together, out then has n/2 columns */
  int64_t x_row_stride;     /* elements, >= k, at most 2^48 */
  const void* x;            /* [device] BF16 [m, k], inner stride 1, 2-byte aligned (16 bytes and a stride that is a
                               multiple of 8 are faster) */
  const void* weight;       /* [device] uint8 [n, k/2], 16-byte aligned; even k in the low nibble; read ahead */
  const void* weight_scale; /* [device] E4M3, roundup(n,128) * roundup(k/16,4) bytes, 16-byte aligned; padding bytes are
                               read but never matter; read ahead */
  const float* global_scale; /* [device] one float, 4-byte aligned; read ahead */
  void* out;                 /* [device] BF16 [m, n] or, with silu_mul, [m, n/2], contiguous, 2-byte aligned */
  int32_t scale_layout;      /* gemvjit_scale_layout, required: 0 is refused */
  int32_t global_scale_kind; /* gemvjit_global_scale_kind, required: 0 is refused */
  int32_t silu_mul;          /* 0 or 1, as warmed */
  int32_t pdl;               /* 1: overlap with the previous kernel allowed, see READ AHEAD; 0: never */
  /* For a merged weight (qkv, gate and up) whose parts have global scales of their own: up to 8 segments, read during
   * the call; global_scale is NULL then, and the kernel is one warmed with scale_segments. The result is bit for bit
   * that of the parts computed one by one with the same tile configuration. 0: none. A struct of an older header ends
   * before these two. */
  int64_t segment_count;
  const gemvjit_scale_segment* segments;
} gemvjit_nvfp4_gemv_args;

/* With pdl see READ AHEAD: weight, weight_scale and global_scale (those of the segments) must be at rest.
 * Source of the operation: vLLM / TensorRT-LLM call it a W4A16 NVFP4 linear layer. */
GEMVJIT_API gemvjit_status gemvjit_nvfp4_gemv(gemvjit_context* context, const gemvjit_nvfp4_gemv_args* args,
                                              struct CUstream_st* stream);

typedef struct gemvjit_bf16_gemv_args {
  size_t struct_size;
  int64_t m, n, k;
  int64_t x_row_stride; /* elements, >= k, at most 2^48 */
  const void* x;        /* [device] BF16 [m, k], inner stride 1, 2-byte aligned */
  const void* weight;   /* [device] BF16 [n, k] row-major, 16-byte aligned; read ahead */
  void* out;            /* [device] BF16 [m, n] or, with silu_mul, [m, n/2], contiguous, 2-byte aligned */
  int32_t silu_mul;
  int32_t pdl;
} gemvjit_bf16_gemv_args;

/* With pdl see READ AHEAD: weight must be at rest. */
GEMVJIT_API gemvjit_status gemvjit_bf16_gemv(gemvjit_context* context, const gemvjit_bf16_gemv_args* args,
                                             struct CUstream_st* stream);

typedef struct gemvjit_dequantize_rows_args {
  size_t struct_size;
  int64_t n, k;             /* rows of the weight, all of them */
  const void* weight;       /* [device] uint8 [n, k/2], 16-byte aligned; read ahead */
  const void* weight_scale; /* [device] as for gemvjit_nvfp4_gemv; read ahead */
  void* out;            /* [device] BF16 [n, k], 16-byte aligned; exact products, global scale not applied, -0 kept */
  int32_t scale_layout; /* gemvjit_scale_layout, required */
  int32_t pdl;
} gemvjit_dequantize_rows_args;

/* With pdl see READ AHEAD: weight and weight_scale must be at rest. */
GEMVJIT_API gemvjit_status gemvjit_dequantize_rows(gemvjit_context* context, const gemvjit_dequantize_rows_args* args,
                                                   struct CUstream_st* stream);

/* Bytes of the swizzled scales of an [n, k] weight: roundup(n,128) * roundup(k/16,4). 0 if n or k is not positive. */
GEMVJIT_API size_t gemvjit_swizzled_scale_bytes(int64_t n, int64_t k);

/* Host to host: row-major scales [n, k/16] to the 128x4 layout, padding written as zeros. `swizzled_size` must be
 * gemvjit_swizzled_scale_bytes(n, k); the buffers must not overlap. k a multiple of 16. */
GEMVJIT_API gemvjit_status gemvjit_swizzle_blockscale(const void* row_major, int64_t n, int64_t k, void* swizzled,
                                                      size_t swizzled_size);

typedef struct gemvjit_swizzle_blockscale_args {
  size_t struct_size;
  int64_t n, k;          /* of the weight */
  const void* row_major; /* [device] E4M3 [n, k/16], any alignment */
  void* swizzled; /* [device] gemvjit_swizzled_scale_bytes(n, k) bytes, 16-byte aligned, not overlapping row_major;
                     padding is written as zeros */
} gemvjit_swizzle_blockscale_args;

/* The same on the device, for loading: a launch as above, of a kernel of the family SWIZZLE_BLOCKSCALE, warmed for n
 * and k. Never with PDL, and what reads the scales ahead may follow it with pdl = 0 only, or after synchronizing. */
GEMVJIT_API gemvjit_status gemvjit_swizzle_blockscale_device(gemvjit_context* context,
                                                             const gemvjit_swizzle_blockscale_args* args,
                                                             struct CUstream_st* stream);

/* -------------------------------------------------------------------------------------------------- stats ------- */
/* A struct of an older header, which ends before one of the groups after the first, is filled as far as it goes. */
typedef struct gemvjit_stats_data {
  size_t struct_size;
  uint64_t launches;      /* of all threads */
  uint64_t launch_misses; /* launches refused with NOT_READY */
  uint64_t compiles, compile_failures;
  uint64_t cache_hits, cache_misses, cache_damaged, cache_writes, cache_write_failures;
  uint64_t kernels_loaded;
  uint64_t untuned_kernels; /* of those warmed, with a configuration that was not measured for the shape: the sum of
                               predicted_kernels, nearest_kernels and default_kernels */
  uint64_t compile_milliseconds;
  /* The GEMVs warmed, by gemvjit_kernel_info.match; a kernel counts each time that a warmup names it. */
  uint64_t exact_kernels, predicted_kernels, nearest_kernels, default_kernels;
  /* The cache and other processes. Builds that waited for another process's build of the same kernel; those of the
   * waits that ended because that one showed no progress; and compile failures taken over from it. */
  uint64_t build_waits, build_stale_waits, build_shared_failures;
  uint64_t cache_evictions;      /* entries removed by this context to stay below cache_max_bytes */
  uint64_t cache_thrashed;       /* entries written again within ten minutes of their eviction: the cap is too small */
  uint64_t cache_writes_refused; /* of cache_write_failures: no room below the cap, or too little free space */
  uint64_t cache_quarantined;    /* damaged files moved to the quarantine */
  uint64_t cache_determinism_alarms; /* a compile gave other code than the cache holds, by the same compiler */
  uint64_t cache_unreadable; /* of cache_damaged: files that could not be read at all (permission, disk error) */
  /* Problems of warmups for which there was no kernel: not served, or nothing measured where that was asked for. */
  uint64_t unserved_problems;
  /* Kernels whose cluster the device cannot run, served without; counted as those by match are, and not among them. */
  uint64_t cluster_fallbacks;
  /* The remote cache: kernels that a warmup got from it, that it had not, and that were not got for any other reason;
   * kernels published there (or found to be there), and that could not be. */
  uint64_t remote_hits, remote_misses, remote_failures, remote_uploads, remote_upload_failures;
} gemvjit_stats_data;

/* Fill `stats` (set struct_size first). Counters since gemvjit_create; each is exact, together they may be of slightly
 * different moments. */
GEMVJIT_API gemvjit_status gemvjit_stats(const gemvjit_context* context, gemvjit_stats_data* stats);

#ifdef __cplusplus
}
#endif
#endif
