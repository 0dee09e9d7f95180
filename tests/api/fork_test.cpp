// B97: a child of fork() has its parent's contexts in its memory, and neither their threads nor a driver that works.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "tests/api/api_fixture.h"

namespace gemvjit::test {
namespace {

// Runs `body` in a child; what it returns, or what ended it.
template <typename Body>
std::string in_child(const Body& body) {
  int ends[2];
  if (::pipe(ends) != 0) return "no pipe";
  const pid_t child = ::fork();
  if (child == 0) {
    const std::string said = body();
    [[maybe_unused]] const auto written = ::write(ends[1], said.data(), said.size());
    ::_exit(0);
  }
  ::close(ends[1]);
  std::string said;
  char buffer[4096];
  for (ssize_t got; (got = ::read(ends[0], buffer, sizeof buffer)) > 0;) said.append(buffer, static_cast<size_t>(got));
  ::close(ends[0]);
  int status = -1;
  ::waitpid(child, &status, 0);
  return status == 0 ? said : said + "; the child ended with " + std::to_string(status);
}

std::string name_of(gemvjit_status status) { return std::string(gemvjit_status_name(status)) + " "; }

class ForkTest : public ApiTest {
 protected:
  // As gemvjit_create would make it, so that gemvjit_destroy may end it.
  gemvjit_context* open_owned() { return new gemvjit_context{make()}; }
};

TEST_F(ForkTest, AChildCannotUseTheParentsContextAndTheParentCan) {
  gemvjit_context* const context = open_owned();
  const gemvjit_problem layer = problem(GEMVJIT_NVFP4_GEMV, 1024, 1024);
  ASSERT_EQ(warm(context, {layer}), GEMVJIT_OK);
  const gemvjit_nvfp4_gemv_args args = nvfp4_args(1, 1024, 1024);
  recording.forget_calls();
  const std::string said = in_child([&] {
    std::string answers = name_of(gemvjit_nvfp4_gemv(context, &args, nullptr));
    answers += name_of(gemvjit_warmup(context, &layer, 1, nullptr));
    answers += name_of(gemvjit_check(context, &layer, 1, nullptr, nullptr));
    answers += name_of(gemvjit_ready(context, &layer, 1, nullptr));
    answers += name_of(gemvjit_seal(context));
    const bool says_why = std::string(gemvjit_last_error()).find("fork") != std::string::npos;
    answers += says_why ? "and why " : "without a reason ";
    std::int32_t nt = -1;
    answers += name_of(gemvjit_pick_nt(context, &layer, 1, &nt));  // reads tables only
    answers += name_of(gemvjit_destroy(context));
    return answers + std::to_string(recording.calls().size()) + " driver calls";
  });
  EXPECT_EQ(said,
            "GEMVJIT_FORKED GEMVJIT_FORKED GEMVJIT_FORKED GEMVJIT_FORKED GEMVJIT_FORKED and why GEMVJIT_OK GEMVJIT_OK "
            "0 driver calls");
  EXPECT_EQ(gemvjit_nvfp4_gemv(context, &args, nullptr), GEMVJIT_OK);
  EXPECT_EQ(recording.libraries_loaded(), 3u);
  EXPECT_EQ(gemvjit_destroy(context), GEMVJIT_OK);
  EXPECT_EQ(recording.libraries_loaded(), 0u);
}

// A grandchild's context is a grandchild's; a child's own context is of use in the child.
TEST_F(ForkTest, AContextMadeInTheChildWorksThere) {
  gemvjit_context* const parents = open_owned();
  const std::string said = in_child([&] {
    options.device = device_none;
    gemvjit_context* const own = open_owned();
    gemvjit_problem layer = problem(GEMVJIT_NVFP4_GEMV, 2048, 512);
    layer.arch = "sm_90a";
    const std::string answers = name_of(warm(own, {layer})) + name_of(warm(parents, {layer}));
    return answers + in_child([&] { return name_of(warm(own, {layer})); });
  });
  EXPECT_EQ(said, "GEMVJIT_OK GEMVJIT_FORKED GEMVJIT_FORKED ");
  EXPECT_EQ(gemvjit_destroy(parents), GEMVJIT_OK);
}

// While a thread of the parent builds: the child has that build in its memory, and no thread that will ever end it.
TEST_F(ForkTest, ABuildUnderWayInTheParentIsNotWaitedFor) {
  timing.stale_after = timing.heartbeat = std::chrono::milliseconds(50);  // between processes they wait a little
  options.device = device_none;
  std::atomic<bool> building{false}, let_go{false};
  const pid_t parent = ::getpid();
  compilers.while_compiling = [&] {
    if (::getpid() != parent) return;
    building = true;
    while (!let_go) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  };
  gemvjit_context* const parents = open_owned();
  gemvjit_problem layer = problem(GEMVJIT_NVFP4_GEMV, 2048, 512);
  layer.arch = "sm_90a";
  layer.nt = 1;
  std::jthread builder([&] { EXPECT_EQ(gemvjit_warmup(parents, &layer, 1, nullptr), GEMVJIT_OK); });
  while (!building) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  timing.wait_limit = std::chrono::milliseconds(200);
  const std::string said = in_child([&] {
    ::alarm(60);
    gemvjit_context* const own = open_owned();
    return name_of(gemvjit_warmup(own, &layer, 1, nullptr));
  });
  EXPECT_EQ(said, "GEMVJIT_OK ");
  let_go = true;
  builder.join();
  EXPECT_EQ(gemvjit_destroy(parents), GEMVJIT_OK);
}

// Where the parent had started CUDA the driver answers so to everything that a child asks.
TEST_F(ForkTest, ADeviceCannotBeHadInTheChildAndTheErrorSaysWhy) {
  gemvjit_context* const parents = open_owned();
  const std::string said = in_child([&]() -> std::string {
    recording.errors["cuDeviceGetCount"] = CUDA_ERROR_NOT_INITIALIZED;
    const auto context = Context::create(options, dependencies());
    return context ? "a context" : context.status().message();
  });
  EXPECT_NE(said.find("fork"), std::string::npos) << said;
  EXPECT_EQ(gemvjit_destroy(parents), GEMVJIT_OK);
}

}  // namespace
}  // namespace gemvjit::test
