// A process whose files may not grow (RLIMIT_FSIZE) and that has SIGXFSZ's default, which is to die: kernels come from
// memory, whatever could not be written, and the signal never arrives.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

#include "cache/bundle.h"
#include "src/runtime/warmup.h"
#include "tests/runtime/runtime_fixture.h"
#include "tests/support/processes.h"

namespace gemvjit::test {
namespace {

class FileSizeLimit : public RuntimeTest {
 protected:
  FileSizeLimit() {
    options.device = device_none;
    options.dump_dir = dir.path("dump");
    options.log_level = LogLevel::debug;  // all sources are dumped
    compilers.text = std::string(20'000, 'c');
  }

  // 0 if the kernels were delivered, `written` or not.
  int warm(bool written) {
    const auto context = make();
    if (!context) return 10;
    WarmupOptions warmup;
    const std::vector<ProblemRequest> requests{on(nvfp4(64, 1024, 1), "sm_90a"), on(nvfp4(128, 1024, 1), "sm_90a")};
    if (!warm_up(*context, requests, warmup).overall) return 11;
    const Counters& counters = context->counters();
    if (counters.compiles != 2) return 12;
    return (counters.cache_write_failures == 0) == written ? 0 : 13;
  }
};

TEST_F(FileSizeLimit, WithoutALimitAllIsWritten) {
  expect_exit(start_process([&] { return warm(true); }));
}

TEST_F(FileSizeLimit, KernelsAreDeliveredFromMemory) {
  for (const rlim_t bytes : {0, 1, 64, 4096, 20'000}) {
    SCOPED_TRACE(bytes);
    expect_exit(start_process([&] {
      const rlimit limit{bytes, bytes};
      if (::signal(SIGXFSZ, SIG_DFL) == SIG_ERR || ::setrlimit(RLIMIT_FSIZE, &limit) != 0) return 1;
      return warm(false);
    }));
  }
}

TEST_F(FileSizeLimit, ABundleThatDoesNotFitIsAnError) {
  Entry entry;
  entry.id.key = {64, 1024, 1, 0, {90, 'a'}};
  entry.cubin.bytes.assign(20'000, 'c');
  entry.cubin.entry_name = "nvfp4_gemv";
  expect_exit(start_process([&] {
    const rlimit limit{4096, 4096};
    if (::signal(SIGXFSZ, SIG_DFL) == SIG_ERR || ::setrlimit(RLIMIT_FSIZE, &limit) != 0) return 1;
    const auto written = write_bundle(dir.path("out.gjb"), {&entry});
    return !written && written.status().code() == StatusCode::io_error ? 0 : 2;
  }));
}

}  // namespace
}  // namespace gemvjit::test
