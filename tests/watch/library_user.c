/* A program that uses the shared library as an engine in C does, up to a point that it is told:
 *
 *   library_user LIBRARY version   open it and ask for its version
 *   library_user LIBRARY create    also make a context and ask it everything that needs no kernel
 *   library_user LIBRARY warm      also warm and launch one kernel, of dequantize_rows of 64 x 64
 *
 * Exit code 0, or the line at which something was not as it should be. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "gemvjit/gemvjit.h"

#define EXPECT(condition)                                                                   \
  do {                                                                                      \
    if (!(condition)) {                                                                     \
      fprintf(stderr, "line %d: %s; last error: %s\n", __LINE__, #condition, last_error()); \
      return 1;                                                                             \
    }                                                                                       \
  } while (0)

static void* library;
static const char* (*last_error)(void);

/* ISO C knows no conversion of an object pointer to that of a function. */
static void find(const char* name, void* function) {
  void* const found = dlsym(library, name);
  memcpy(function, &found, sizeof found);
}

int main(int count, char** words) {
  const char* (*version)(void);
  gemvjit_status (*options_init)(gemvjit_options*);
  gemvjit_status (*create)(const gemvjit_options*, gemvjit_context**);
  gemvjit_status (*destroy)(gemvjit_context*);
  gemvjit_status (*problem_init)(gemvjit_problem*, gemvjit_family, int64_t, int64_t);
  gemvjit_status (*supported)(const gemvjit_context*, const gemvjit_problem*, char*, size_t);
  gemvjit_status (*plan)(gemvjit_context*, const gemvjit_problem*, size_t, gemvjit_kernel_callback, void*);
  gemvjit_status (*check)(gemvjit_context*, const gemvjit_problem*, size_t, gemvjit_kernel_callback, void*);
  gemvjit_status (*warmup)(gemvjit_context*, const gemvjit_problem*, size_t, const gemvjit_warmup_options*);
  gemvjit_status (*stats)(const gemvjit_context*, gemvjit_stats_data*);
  gemvjit_status (*dequantize)(gemvjit_context*, const gemvjit_dequantize_rows_args*, struct CUstream_st*);
  gemvjit_options options;
  gemvjit_context* context = NULL;
  gemvjit_problem problem;
  gemvjit_stats_data counters;
  gemvjit_dequantize_rows_args args;

  if (count != 3) return 64;
  library = dlopen(words[1], RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) {
    fprintf(stderr, "%s\n", dlerror());
    return 2;
  }
  find("gemvjit_last_error", &last_error);
  find("gemvjit_version", &version);
  EXPECT(strlen(version()) >= 5);
  if (strcmp(words[2], "version") == 0) return 0;

  find("gemvjit_options_init", &options_init);
  find("gemvjit_create", &create);
  find("gemvjit_destroy", &destroy);
  find("gemvjit_problem_init", &problem_init);
  find("gemvjit_supported", &supported);
  find("gemvjit_plan", &plan);
  find("gemvjit_check", &check);
  find("gemvjit_stats", &stats);
  EXPECT(options_init(&options) == GEMVJIT_OK);
  options.device = 0;
  EXPECT(create(&options, &context) == GEMVJIT_OK);
  EXPECT(problem_init(&problem, GEMVJIT_DEQUANTIZE_ROWS, 64, 64) == GEMVJIT_OK);
  EXPECT(supported(context, &problem, NULL, 0) == GEMVJIT_OK);
  EXPECT(plan(context, &problem, 1, NULL, NULL) == GEMVJIT_OK);
  memset(&counters, 0, sizeof counters);
  counters.struct_size = sizeof counters;
  if (strcmp(words[2], "create") == 0) {
    EXPECT(check(context, &problem, 1, NULL, NULL) == GEMVJIT_NOT_READY);
  } else {
    find("gemvjit_warmup", &warmup);
    find("gemvjit_dequantize_rows", &dequantize);
    EXPECT(check(context, &problem, 1, NULL, NULL) == GEMVJIT_OK);
    EXPECT(warmup(context, &problem, 1, NULL) == GEMVJIT_OK);
    memset(&args, 0, sizeof args);
    args.struct_size = sizeof args;
    args.n = args.k = 64;
    args.pdl = 1;
    args.weight = args.weight_scale = (const void*)0x10000;
    args.out = (void*)0x20000;
    args.scale_layout = GEMVJIT_SCALE_128X4_SWIZZLED;
    EXPECT(dequantize(context, &args, NULL) == GEMVJIT_OK);
    EXPECT(stats(context, &counters) == GEMVJIT_OK);
    EXPECT(counters.launches == 1 && counters.compiles == 0 && counters.cache_hits == 1);
  }
  EXPECT(destroy(context) == GEMVJIT_OK);
  return 0;
}
