// What a process does with a cache, told by words, for tests that put it under the fault shim or kill it:
//
//   cache_actor ROOT put N CONTENT [COMPILER]      put an entry of shape N whose payload is CONTENT repeated
//   cache_actor ROOT replace N CONTENT [COMPILER]  the same, over whatever is there
//   cache_actor ROOT get N                         exit code 0 and the payload's first byte on stdout, or 2 for a miss
//   cache_actor ROOT churn ROUNDS [MOST]           put and get; MOST (0) puts may fail, how many did is said on stderr
//
// Exit codes: 0 done, 1 the put failed (and the caller's entry is as it was), or too many did, 2 a miss, 3 wrong bytes,
// 64 usage.
#include <cstdio>
#include <cstdlib>
#include <string>

#include "tests/faults/faults_support.h"

namespace gemvjit {
namespace {

int put(CubinStore& store, const Entry& entry, Replace replace) {
  const Bytes before = encode_entry(entry);
  const Status status = store.put(entry, replace);
  if (encode_entry(entry) != before) return 3;
  return status ? 0 : 1;
}

int get(CubinStore& store, std::int64_t n) {
  const auto found = store.get(test::fault_entry(n, 0).id);
  if (!found) return 2;
  if (!test::is_fault_entry(*found)) return 3;
  std::printf("%d\n", found->cubin.bytes[0]);
  return 0;
}

int churn(CubinStore& store, long rounds, long most_failed) {
  long failed = 0;
  for (long round = 0; round < rounds; ++round) {
    const std::int64_t n = 8 * (1 + round % 4);
    const int result = put(store, test::fault_entry(n, 1), Replace::unusable_only);
    if (result == 3) return 3;
    if (result != 0) ++failed;
    const auto found = store.get(test::fault_entry(n, 1).id);
    if (found && !test::is_fault_entry(*found)) return 3;
  }
  const StoreStats stats = store.stats();
  if (failed > 0) std::fprintf(stderr, "%ld of %ld puts failed\n", failed, rounds);
  if (stats.put_failures != static_cast<std::uint64_t>(failed)) return 3;  // the counter is what callers have
  return failed > most_failed ? 1 : 0;
}

int act(int count, char** words) {
  if (count < 4) return 64;
  const std::string verb = words[2];
  // Temporaries of any age are swept, so that what a killed process left must be gone after the next one; but not those
  // of others who are at work now.
  DirStoreOptions options;
  if (verb != "churn") options.stale_after_seconds = -1;
  const auto store = make_dir_store(words[1], Log::silent(), options);
  const long number = std::atol(words[3]);
  if (verb == "get") return get(*store, number);
  if (verb == "churn") return churn(*store, number, count > 4 ? std::atol(words[4]) : 0);
  if ((verb != "put" && verb != "replace") || count < 5) return 64;
  const Entry entry =
      test::fault_entry(number, static_cast<std::uint8_t>(std::atoi(words[4])), count > 5 ? words[5] : "NVRTC 13.0");
  return put(*store, entry, verb == "replace" ? Replace::any : Replace::unusable_only);
}

}  // namespace
}  // namespace gemvjit

int main(int count, char** words) { return gemvjit::act(count, words); }
