#include "tests/faults/scenarios.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "cache/layout.h"
#include "tests/faults/fault_shim.h"

namespace gemvjit::test {
namespace {

constexpr std::int64_t shape = 64;

void put_whole(const std::string& root, const Entry& entry) {
  EXPECT_TRUE(make_dir_store(root, Log::silent())->put(entry));
}

void put_damaged(const std::string& root) {
  put_whole(root, fault_entry(shape, 1));
  std::filesystem::resize_file(entry_path(root, fault_entry(shape, 1).id), 60);
}

void put_foreign(const std::string& root) {
  put_whole(root, fault_entry(shape, 1));
  const Bytes other = encode_entry(fault_entry(72, 1));
  std::ofstream(entry_path(root, fault_entry(shape, 1).id), std::ios::binary)
      .write(reinterpret_cast<const char*>(other.data()), static_cast<std::streamsize>(other.size()));
}

std::vector<FaultScenario> make_scenarios() {
  const auto one = [](const std::string& root) { put_whole(root, fault_entry(shape, 1)); };
  const auto one_elsewhere = [](const std::string& root) { put_whole(root, fault_entry(72, 1)); };
  const Entry first = fault_entry(shape, 1);
  const Entry second = fault_entry(shape, 2);
  const Entry other_compiler = fault_entry(shape, 2, "NVRTC 12.9");
  const Replace keep = Replace::unusable_only;
  return {
      {"put into nothing", [](const std::string&) {}, true, first, keep, 0, 1},
      {"put beside another", one_elsewhere, true, first, keep, 0, 1},
      {"put the same again", one, true, first, keep, 1, 1},
      {"put other code", one, true, second, keep, 1, 1},
      {"put another compiler's", one, true, other_compiler, keep, 1, 1},
      {"replace", one, true, second, Replace::any, 1, 2},
      {"put over damage", put_damaged, true, second, keep, 0, 2},
      {"put over a foreign entry", put_foreign, true, second, keep, 0, 2},
      {"get", one, false, first, keep, 1, 1},
      {"get nothing", one_elsewhere, false, first, keep, 0, 0},
      {"get damage", put_damaged, false, first, keep, 0, 0},
      {"get a foreign entry", put_foreign, false, first, keep, 0, 0},
  };
}

}  // namespace

const std::vector<FaultScenario>& fault_scenarios() {
  fault_shim_skip_fsync(1);
  static const std::vector<FaultScenario> scenarios = make_scenarios();
  return scenarios;
}

std::uint8_t usable_content(const std::string& root) {
  const auto found = make_dir_store(root, Log::silent())->get(fault_entry(shape, 1).id);
  if (!found) return 0;
  EXPECT_TRUE(is_fault_entry(*found));
  return found->cubin.bytes.at(0);
}

void expect_no_third_state(const std::string& root, bool allow_temporaries) {
  namespace fs = std::filesystem;
  if (!fs::exists(root)) return;
  for (const fs::directory_entry& item : fs::recursive_directory_iterator(root)) {
    if (item.is_directory()) continue;
    const std::string name = item.path().filename();
    if (item.path().parent_path() == quarantine_directory(root)) continue;
    if (allow_temporaries && is_temporary_file_name(name)) continue;
    EXPECT_TRUE(is_entry_file_name(name)) << "left behind: " << item.path();
  }
}

}  // namespace gemvjit::test

// Thousands of small files are made and removed here; on a disk that takes minutes of waiting. Where the machine has a
// folder in memory and nobody asked for another, the tests' folders go there.
namespace {
[[maybe_unused]] const bool folders_in_memory = [] {
  const char* memory = "/dev/shm";
  return access(memory, W_OK | X_OK) == 0 && setenv("TMPDIR", memory, 0) == 0;
}();
}  // namespace
