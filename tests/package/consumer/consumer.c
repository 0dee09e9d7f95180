/* An engine in C99, without a device: plans the kernels of one layer. Prints the library's version and their number. */
#include <gemvjit/gemvjit.h>
#include <stdio.h>

static int count(void* user, const gemvjit_kernel_info* kernel) {
  (void)kernel;
  ++*(int*)user;
  return 0;
}

int main(void) {
  gemvjit_options options;
  gemvjit_problem problem;
  gemvjit_context* context = NULL;
  int kernels = 0;
  gemvjit_status status = gemvjit_options_init(&options);
  options.device = GEMVJIT_DEVICE_NONE;
  options.cache_dir = "";
  if (status == GEMVJIT_OK) status = gemvjit_create(&options, &context);
  if (status == GEMVJIT_OK) status = gemvjit_problem_init(&problem, GEMVJIT_NVFP4_GEMV, 4096, 4096);
  if (status == GEMVJIT_OK) {
    problem.arch = "sm_90a";
    problem.allow_untuned = 1;
    status = gemvjit_plan(context, &problem, 1, count, &kernels);
  }
  if (status == GEMVJIT_OK) status = gemvjit_destroy(context);
  if (status != GEMVJIT_OK) {
    fprintf(stderr, "%s: %s\n", gemvjit_status_name(status), gemvjit_last_error());
    return 1;
  }
  printf("%s %d\n", gemvjit_version(), kernels);
  return 0;
}
