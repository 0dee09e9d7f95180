/* The public header as C99: compiled with -pedantic -Werror, first and alone, twice for its guard. */
#include "gemvjit/gemvjit.h"
#include "gemvjit/gemvjit.h"

/* Uses of everything that a macro or an initializer could break. */
gemvjit_status gemvjit_header_c99(struct CUstream_st* stream) {
  gemvjit_options options;
  gemvjit_problem problem = {sizeof(gemvjit_problem), GEMVJIT_NVFP4_GEMV, 0, 4096, 4096, 0, 1, 1, 0, 0, "sm_90a"};
  gemvjit_warmup_options warmup = {sizeof(gemvjit_warmup_options), NULL, NULL, NULL, NULL, 0, 0};
  gemvjit_nvfp4_gemv_args args = {0};
  gemvjit_stats_data stats = {0};
  gemvjit_context* context = NULL;
  gemvjit_status status = gemvjit_options_init(&options);
  if (status == GEMVJIT_OK) status = gemvjit_create(&options, &context);
  if (status == GEMVJIT_OK) status = gemvjit_warmup(context, &problem, 1, &warmup);
  args.struct_size = sizeof args;
  args.scale_layout = GEMVJIT_SCALE_128X4_SWIZZLED;
  args.global_scale_kind = GEMVJIT_GLOBAL_SCALE_MULTIPLIER;
  if (status == GEMVJIT_OK) status = gemvjit_nvfp4_gemv(context, &args, stream);
  stats.struct_size = sizeof stats;
  if (status == GEMVJIT_OK) status = gemvjit_stats(context, &stats);
  return status != GEMVJIT_OK ? status : gemvjit_destroy(context);
}
