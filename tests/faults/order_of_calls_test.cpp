// B44: what is looked at and used is one and the same: an entry's file is opened without following a link, examined and
// read by that descriptor, verified, and only then do the driver's functions see it, as bytes in memory.
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "cache/bundle.h"
#include "src/base/sha256.h"
#include "src/runtime/warmup.h"
#include "tests/faults/fault_shim.h"
#include "tests/runtime/runtime_fixture.h"

namespace gemvjit::test {
namespace {

class OrderOfCalls : public RuntimeTest {
 protected:
  OrderOfCalls() {
    options.compile_threads = 1;
    recording.on_load = [this](const void* image) {
      fault_shim_note("driver");
      loaded.emplace_back(static_cast<const char*>(image), text.size());
      return CUDA_SUCCESS;
    };
  }
  // Puts the one kernel into the cache, and returns the path of its file.
  std::string fill() {
    const auto context = make();
    const auto built = context->resolver().ensure_cached(kernel(*context));
    EXPECT_TRUE(built);
    text = "cubin of " + kernel(*context).front().text();
    return built ? built->path : "";
  }
  static std::vector<KernelKey> kernel(const Context& context) {
    return item(context, nvfp4(1024, 1024, 1)).candidates;
  }
  // The calls below `folder` and the driver's while a new context makes the kernel ready.
  std::vector<std::string> calls_of_load(const std::string& folder, bool& compiled) {
    const auto context = make();
    fault_shim_arm(folder.c_str(), 0, fault_none, 0, 0);
    const auto ready = context->resolver().resolve(kernel(*context), nullptr);
    (void)fault_shim_disarm();
    EXPECT_TRUE(ready) << ready.status().text();
    compiled = ready && ready->compiled;
    std::vector<std::string> calls;
    for (int i = 0; fault_shim_trace(i) != nullptr; ++i) calls.emplace_back(fault_shim_trace(i));
    return calls;
  }
  static std::string joined(const std::vector<std::string>& calls) {
    std::string all;
    for (const std::string& call : calls) all += call + "\n";
    return all;
  }

  std::string text;                 // of the whole entry's cubin
  std::vector<std::string> loaded;  // what the driver was given
};

TEST_F(OrderOfCalls, AnEntryIsOpenedExaminedReadAndThenLoadedFromMemory) {
  const std::string path = fill();
  bool compiled = true;
  const auto calls = calls_of_load(path, compiled);
  EXPECT_FALSE(compiled);
  std::vector<std::string> of_file;  // without what only asks for the name's existence
  for (const std::string& call : calls) {
    if (call != "stat" && call != "lstat") of_file.push_back(call);
  }
  EXPECT_EQ(of_file, (std::vector<std::string>{"open O_NOFOLLOW", "fstat", "read", "read", "close",  // the entry
                                               "open O_NOFOLLOW", "fstat", "futimens", "close",      // its use stamped
                                               "driver"}))
      << joined(calls);
  ASSERT_EQ(loaded.size(), 1u);
  EXPECT_EQ(loaded[0], text) << "just the bytes that were verified";
}

// What was read is what is loaded, whatever happens to the file in between; and bytes that do not verify are not
// loaded.
TEST_F(OrderOfCalls, WhatDoesNotVerifyNeverReachesTheDriver) {
  const std::string path = fill();
  const std::string whole = read_text(path);
  for (std::size_t i = whole.find("cubin of "); i < whole.size(); i += 37) {
    std::string changed = whole;
    changed[i] = static_cast<char>(changed[i] ^ 0x10);
    std::ofstream(path, std::ios::binary | std::ios::trunc) << changed;
    loaded.clear();
    bool compiled = false;
    const auto calls = calls_of_load(path, compiled);
    EXPECT_TRUE(compiled) << "byte " << i;
    ASSERT_EQ(loaded.size(), 1u);
    EXPECT_EQ(loaded[0], text) << "what was compiled anew";
    EXPECT_EQ(calls.back(), "driver") << joined(calls);
  }
}

// A link in the place of an entry is not followed, even to a whole entry.
TEST_F(OrderOfCalls, ALinkIsNotFollowed) {
  const std::string path = fill();
  std::filesystem::rename(path, dir.path("moved.entry"));
  std::filesystem::create_symlink(dir.path("moved.entry"), path);
  bool compiled = false;
  (void)calls_of_load(path, compiled);
  EXPECT_TRUE(compiled);
}

TEST_F(OrderOfCalls, ABundleIsReadAndVerifiedBeforeTheDriverSeesAnything) {
  const std::string path = fill();
  const auto listed = make_dir_store(options.cache_dir, Log::silent())->list();
  ASSERT_EQ(listed->size(), 1u);
  const std::string bundle = dir.path("kernels.gjb");
  ASSERT_TRUE(write_bundle(bundle, {&*listed->front().entry}));
  options.cache_dir = dir.path("empty");
  options.cache_ro = {bundle};
  bool compiled = true;
  const auto calls = calls_of_load(bundle, compiled);
  EXPECT_FALSE(compiled);
  const auto first = std::find(calls.begin(), calls.end(), "open O_NOFOLLOW");
  ASSERT_NE(first, calls.end()) << joined(calls);
  EXPECT_EQ(std::count(calls.begin(), calls.end(), "open"), 0) << joined(calls);
  EXPECT_EQ(calls.back(), "driver") << joined(calls);
  EXPECT_EQ(std::count(calls.begin(), calls.end(), "driver"), 1);
  ASSERT_EQ(loaded.size(), 1u);
  EXPECT_EQ(loaded[0], text);
}

// The driver has no function here that takes a path.
TEST_F(OrderOfCalls, TheDriversTableHasNoFunctionThatLoadsAFile) {
  const std::string table = read_text(GEMVJIT_SOURCE_DIR "/src/cuda/driver_symbols.inc");
  EXPECT_NE(table.find("X(cuLibraryLoadData"), std::string::npos);
  for (const char* loads_a_file : {"FromFile", "X(cuModuleLoad", "X(cuLinkAddFile"}) {
    EXPECT_EQ(table.find(loads_a_file), std::string::npos) << loads_a_file;
  }
}

}  // namespace
}  // namespace gemvjit::test
