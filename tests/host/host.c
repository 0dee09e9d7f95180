/* A host of the library that ends in odd ways, or has rights that its user has not. Opens the library by dlopen.
 *
 *     host LIBRARY WHAT [milliseconds]
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gemvjit/gemvjit.h"

enum { kernels = 24, status = 7 };

static void* library;
static gemvjit_context* context;
static const char* callback_ends;

static void* entry(const char* name) {
  void* found = dlsym(library, name);
  if (found == NULL) _exit(90);
  return found;
}
#define CALL(name) ((__typeof__(&name))entry(#name))

static void open_library(const char* path) {
  library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) {
    fprintf(stderr, "%s\n", dlerror());
    _exit(91);
  }
}

static void create(void) {
  gemvjit_options options;
  CALL(gemvjit_options_init)(&options);
  options.device = GEMVJIT_DEVICE_NONE;
  options.compile_threads = 2;
  if (CALL(gemvjit_create)(&options, &context) == GEMVJIT_OK) return;
  fprintf(stderr, "%s\n", CALL(gemvjit_last_error)());
  _exit(92);
}

static int on_kernel(void* user, const gemvjit_kernel_info* kernel) {
  (void)user, (void)kernel;
  if (callback_ends != NULL) exit(status);
  return 0;
}

static gemvjit_status warm(int count) {
  gemvjit_problem problems[kernels];
  gemvjit_warmup_options options;
  memset(&options, 0, sizeof options);
  options.struct_size = sizeof options;
  options.on_kernel = on_kernel;
  for (int i = 0; i < count; ++i) {
    CALL(gemvjit_problem_init)(&problems[i], GEMVJIT_DEQUANTIZE_ROWS, 64 * (i + 1), 64);
    problems[i].pdl = 0;
    problems[i].allow_untuned = 1;
    problems[i].arch = "sm_90a";
  }
  return CALL(gemvjit_warmup)(context, problems, (size_t)count, &options);
}

static void* warm_all(void* unused) {
  warm(kernels);
  return unused;
}

static void* leave(void* unused) {
  (void)unused;
  exit(status);
}

static void in_background(void* (*work)(void*)) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, work, NULL) != 0) _exit(93);
  pthread_detach(thread);
}

int main(int argc, char** argv) {
  if (argc < 3) return 94;
  const char* what = argv[2];
  const int milliseconds = argc > 3 ? atoi(argv[3]) : 0;
  open_library(argv[1]);
  create();
  if (strcmp(what, "warm") == 0) { /* all there is, and what became of it */
    const gemvjit_status warmed = warm(2);
    printf("secure=%lu cache=%s %s\n", getauxval(AT_SECURE), CALL(gemvjit_cache_dir)(context),
           CALL(gemvjit_status_name)(warmed));
    if (warmed != GEMVJIT_OK) printf("%s\n", CALL(gemvjit_last_error)());
    CALL(gemvjit_destroy)(context);
    return warmed == GEMVJIT_OK ? 0 : 1;
  }
  if (strcmp(what, "dlclose") == 0) { /* with uploads under way, and the context still there */
    if (warm(2) != GEMVJIT_OK) return 95;
    if (dlclose(library) != 0) return 96;
    puts("closed");
    fflush(stdout);
    open_library(argv[1]); /* again: it is the same, and knows the context */
    return CALL(gemvjit_destroy)(context) == GEMVJIT_OK ? status : 97;
  }
  if (strcmp(what, "system") == 0) { /* what a child of this process has open while uploads are under way */
    if (warm(8) != GEMVJIT_OK) return 95;
    usleep(1000 * (useconds_t)milliseconds);
    return system("ls -l /proc/self/fd | grep -v '^total' | grep -v '/proc/' | sed 's/.* \\([0-9]* -> .*\\)/\\1/'");
  }
  if (strcmp(what, "callback") == 0) { /* exit() from within a callback */
    callback_ends = what;
    warm(kernels);
    return 98;
  }
  in_background(warm_all);
  usleep(1000 * (useconds_t)milliseconds);
  if (strcmp(what, "exit") == 0) exit(status);
  if (strcmp(what, "return") == 0) return status;
  if (strcmp(what, "quick_exit") == 0) quick_exit(status);
  if (strcmp(what, "two") == 0) { /* two threads call exit() */
    in_background(leave);
    exit(status);
  }
  if (strcmp(what, "fork") == 0) { /* a child that has none of the threads ends by exit() */
    const pid_t child = fork();
    int ended = 0;
    if (child == 0) exit(0);
    if (waitpid(child, &ended, 0) != child || ended != 0) _exit(99);
    exit(status);
  }
  return 100;
}
