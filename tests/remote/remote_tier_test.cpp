#include "src/remote/remote_tier.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <cstdlib>
#include <map>
#include <thread>

#include "tests/support/entries.h"
#include "tests/support/fake_http_server.h"

namespace gemvjit::test {
namespace {

class RemoteTierTest : public testing::Test {
 protected:
  RemoteTierTest() {
    options.url = FakeHttpServer::address;
    options.write = true;
    for (std::int64_t n = 64; n < 64 * 11; n += 64) entries.push_back(sample_entry({.n = n}));
    for (const Entry& entry : entries) ids.push_back(entry.id);
  }
  std::unique_ptr<RemoteTier> tier_of(CubinStore& node) {
    auto store = std::make_unique<RemoteStore>(options, server.transport(), nullptr, Log::silent());
    return std::make_unique<RemoteTier>(std::move(store), node, Log::silent());
  }
  // All entries there, with the plan's manifest.
  void fill_server() {
    const auto other = make_memory_store();
    for (const Entry& entry : entries) ASSERT_TRUE(other->put(entry));
    const auto tier = tier_of(*other);
    tier->publish(ids, ids);
    ASSERT_TRUE(tier->flush(60'000));
    server.forget();
  }

  FakeHttpServer server;
  RemoteOptions options;
  std::vector<Entry> entries;
  std::vector<EntryId> ids;
  std::unique_ptr<CubinStore> local = make_memory_store();
};

TEST_F(RemoteTierTest, AnEmptyNodeAsksForThePlanOnceAndThenForThePayloads) {
  fill_server();
  const auto tier = tier_of(*local);
  EXPECT_EQ(tier->missing(ids).size(), ids.size());
  EXPECT_TRUE(tier->fetch(ids, ids, nullptr).empty());
  EXPECT_EQ(server.asked().front(), "GET /ac/" + plan_name(ids));
  EXPECT_EQ(server.count("GET /ac/"), 1u);
  EXPECT_EQ(server.count("GET /cas/"), ids.size());
  EXPECT_EQ(server.asked().size(), ids.size() + 1);
  for (const Entry& entry : entries) EXPECT_EQ(encode_entry(*local->get(entry.id)), encode_entry(entry));
  EXPECT_TRUE(tier->missing(ids).empty());
  EXPECT_EQ(tier->stats().hits, ids.size());
}

TEST_F(RemoteTierTest, WithoutThePlansManifestEachKernelsIsAskedFor) {
  fill_server();
  const std::vector<EntryId> some(ids.begin(), ids.begin() + 4);
  const auto tier = tier_of(*local);
  EXPECT_TRUE(tier->fetch(some, some, nullptr).empty());
  EXPECT_EQ(server.count("GET /ac/"), 2u + some.size());  // the plan's manifest, its list
  EXPECT_EQ(server.count("GET /cas/"), some.size());
}

TEST_F(RemoteTierTest, AServerThatGivesNoManifestOfWhatItLacksGivesTheRestAndIsMended) {
  fill_server();
  const auto payload = [](const Entry& entry) {
    const Bytes bytes = encode_entry(entry);
    return "/cas/" + to_hex(Sha256::of(bytes.data(), bytes.size()));
  };
  server.remove(payload(entries[2]));
  server.set_fault([this](const HttpRequest& request) -> std::optional<Result<HttpResponse>> {
    const std::size_t at = request.url.find("/ac/");
    const std::map<std::string, Bytes> files = server.files();
    const auto file = at == std::string::npos ? files.end() : files.find(request.url.substr(at));
    if (request.method == HttpMethod::put || file == files.end()) return std::nullopt;
    if (file->first == "/ac/" + list_name(plan_name(ids))) return std::nullopt;  // which names no files to it
    const auto manifest = decode_manifest(file->second);
    EXPECT_TRUE(manifest);
    const bool is_whole = std::all_of(manifest->files.begin(), manifest->files.end(), [&](const ManifestFile& one) {
      return files.contains("/cas/" + to_hex(one.sha256));
    });
    if (is_whole) return std::nullopt;
    return Result<HttpResponse>(HttpResponse{404, {}});
  });
  const auto tier = tier_of(*local);
  EXPECT_EQ(tier->fetch(ids, ids, nullptr), std::vector<EntryId>{ids[2]});
  EXPECT_EQ(tier->stats().misses, 1u);
  EXPECT_EQ(tier->stats().failures, 0u);
  ASSERT_TRUE(local->put(entries[2]));
  tier->publish(ids, {ids[2]});
  ASSERT_TRUE(tier->flush(60'000));
  server.forget();
  const auto other = make_memory_store();
  EXPECT_TRUE(tier_of(*other)->fetch(ids, ids, nullptr).empty());
  EXPECT_EQ(server.asked().size(), 1 + ids.size());
}

TEST_F(RemoteTierTest, WhatAnotherProcessBroughtMeanwhileIsNotAskedFor) {
  fill_server();
  server.set_fault([this](const HttpRequest&) -> std::optional<Result<HttpResponse>> {
    for (const Entry& entry : entries) EXPECT_TRUE(local->put(entry));  // while the plan's manifest is asked for
    return Result<HttpResponse>(Status(StatusCode::io_error, "dead"));
  });
  const auto tier = tier_of(*local);
  EXPECT_TRUE(tier->fetch(ids, ids, nullptr).empty());
  EXPECT_EQ(server.asked().size(), 1u);
  EXPECT_EQ(tier->stats().failures, 0u);
}

TEST_F(RemoteTierTest, OnlyWhatIsMissingIsFetchedAndOnlyWhatIsThereCanBe) {
  fill_server();
  server.remove("/ac/" + plan_name(ids));
  server.remove("/ac/" + list_name(plan_name(ids)));
  server.remove("/ac/" + kernel_name(ids[3]));
  for (std::size_t i = 5; i < ids.size(); ++i) ASSERT_TRUE(local->put(entries[i]));
  const auto tier = tier_of(*local);
  const std::vector<EntryId> wanted = tier->missing(ids);
  EXPECT_EQ(wanted, std::vector<EntryId>(ids.begin(), ids.begin() + 5));
  EXPECT_EQ(tier->fetch(wanted, ids, nullptr), std::vector<EntryId>{ids[3]});
  EXPECT_EQ(server.count("GET /cas/"), 4u);
  EXPECT_EQ(tier->stats().misses, 1u);
  EXPECT_EQ(tier->stats().failures, 0u);
}

TEST_F(RemoteTierTest, ADamagedPayloadCostsItsKernelAlone) {
  fill_server();
  const Bytes whole = encode_entry(entries[2]);
  server.put("/cas/" + to_hex(Sha256::of(whole.data(), whole.size())), Bytes(whole.size(), 0));
  const auto tier = tier_of(*local);
  EXPECT_EQ(tier->fetch(ids, ids, nullptr), std::vector<EntryId>{ids[2]});
  EXPECT_FALSE(local->get(ids[2]));
  EXPECT_EQ(tier->stats().failures, 1u);
  // Built here then, and known to be of no use there, it takes the damaged one's place.
  ASSERT_TRUE(local->put(entries[2]));
  tier->publish(ids, {ids[2]});
  ASSERT_TRUE(tier->flush(60'000));
  const auto other_local = make_memory_store();
  EXPECT_TRUE(tier_of(*other_local)->fetch(ids, ids, nullptr).empty());
}

TEST_F(RemoteTierTest, NothingNewIsNotSentAgain) {
  fill_server();
  for (const Entry& entry : entries) ASSERT_TRUE(local->put(entry));
  const auto tier = tier_of(*local);
  tier->publish(ids, {});
  ASSERT_TRUE(tier->flush(60'000));
  EXPECT_EQ(server.asked(), std::vector<std::string>{"GET /ac/" + plan_name(ids)});
}

TEST_F(RemoteTierTest, APlanOfWhichSomeIsMissingHasNoManifest) {
  for (std::size_t i = 1; i < ids.size(); ++i) ASSERT_TRUE(local->put(entries[i]));  // the first could not be built
  const auto tier = tier_of(*local);
  tier->publish(ids, ids);
  ASSERT_TRUE(tier->flush(60'000));
  EXPECT_EQ(server.count("PUT /cas/"), ids.size() - 1);
  EXPECT_EQ(server.count("PUT /ac/" + plan_name(ids)), 0u);
}

TEST_F(RemoteTierTest, AReaderPublishesNothing) {
  options.write = false;
  ASSERT_TRUE(local->put(entries[0]));
  const auto tier = tier_of(*local);
  tier->publish(ids, ids);
  EXPECT_TRUE(tier->flush(0));
  EXPECT_TRUE(server.asked().empty());
}

TEST_F(RemoteTierTest, WhatCouldNotBeSentIsToldByFlush) {
  server.set_fault(FakeHttpServer::always(500));
  for (const Entry& entry : entries) ASSERT_TRUE(local->put(entry));
  const auto tier = tier_of(*local);
  tier->publish(ids, ids);
  EXPECT_EQ(tier->flush(60'000).code(), StatusCode::io_error);
  EXPECT_EQ(tier->stats().upload_failures, ids.size());
}

TEST_F(RemoteTierTest, APlansManifestThatCouldNotBeSentIsToldByFlush) {
  for (const Entry& entry : entries) ASSERT_TRUE(local->put(entry));
  server.set_fault([this](const HttpRequest& request) -> std::optional<Result<HttpResponse>> {
    const bool is_it = request.method == HttpMethod::put && request.url.ends_with("/ac/" + plan_name(ids));
    if (!is_it) return std::nullopt;
    return Result<HttpResponse>(HttpResponse{507, {}});
  });
  const auto tier = tier_of(*local);
  tier->publish(ids, ids);
  EXPECT_EQ(tier->flush(60'000).code(), StatusCode::io_error);
  EXPECT_EQ(tier->stats().uploads, ids.size());
}

TEST_F(RemoteTierTest, StoppedInBetweenTheRestIsLeft) {
  fill_server();
  options.connections = 1;
  const auto tier = tier_of(*local);
  const auto stop = [this] { return server.count("GET /cas/") >= 3; };
  EXPECT_EQ(tier->fetch(ids, ids, stop).size(), ids.size() - 3);
}

TEST_F(RemoteTierTest, TheBudgetOfAWarmupEndsTheFetching) {
  fill_server();
  options.connections = 1;
  std::chrono::steady_clock::time_point now{std::chrono::hours(1)};
  auto store = std::make_unique<RemoteStore>(options, server.transport(), nullptr, Log::silent(), [&] { return now; });
  RemoteTier tier(std::move(store), *local, Log::silent());
  server.set_fault([&](const HttpRequest&) -> std::optional<Result<HttpResponse>> {
    now += std::chrono::seconds(4);  // slow, though none is too slow
    return std::nullopt;
  });
  // The plan's manifest and seven payloads within 30 s; the last of these ends after 32.
  EXPECT_EQ(tier.fetch(ids, ids, nullptr), std::vector<EntryId>(ids.begin() + 7, ids.end()));
  EXPECT_EQ(server.asked().size(), 8u);
}

// Holds all requests back until it is opened.
class Gate {
 public:
  FakeHttpServer::Fault fault() {
    return [this](const HttpRequest&) -> std::optional<Result<HttpResponse>> {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return is_open_; });
      return std::nullopt;
    };
  }
  void open() {
    {
      const std::lock_guard lock(mutex_);
      is_open_ = true;
    }
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_open_ = false;
};

TEST_F(RemoteTierTest, PublishingWaitsForNobodyAndTheEndWaitsForIt) {
  Gate gate;
  server.set_fault(gate.fault());
  for (const Entry& entry : entries) ASSERT_TRUE(local->put(entry));
  auto tier = tier_of(*local);
  tier->publish(ids, ids);  // returns though the server does not answer
  EXPECT_EQ(tier->flush(0).code(), StatusCode::cancelled);
  std::thread opener([&] { gate.open(); });
  tier.reset();
  opener.join();
  EXPECT_EQ(server.count("PUT /cas/"), ids.size());
  EXPECT_EQ(server.count("PUT /ac/" + plan_name(ids)), 1u);
}

TEST_F(RemoteTierTest, MorePlansThanMayWaitAreLeftOutAndTold) {
  Gate gate;
  server.set_fault(gate.fault());
  for (const Entry& entry : entries) ASSERT_TRUE(local->put(entry));
  const auto tier = tier_of(*local);
  for (std::size_t i = 0; i < RemoteTier::most_jobs + 5; ++i) tier->publish({ids[0]}, {ids[0]});
  gate.open();
  EXPECT_EQ(tier->flush(60'000).code(), StatusCode::io_error);
  EXPECT_LE(server.count("PUT /cas/"), RemoteTier::most_jobs + 1);
}

// What a child process ends with, its exit handlers included.
template <typename Child>
int exit_code_of(const Child& child) {
  const pid_t pid = ::fork();
  if (pid == 0) child();
  int status = 0;
  ::waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST_F(RemoteTierTest, ExitWaitsForWhatIsBeingSent) {
  for (const Entry& entry : entries) ASSERT_TRUE(local->put(entry));
  int ends[2] = {-1, -1};
  ASSERT_EQ(::pipe(ends), 0);
  const int exit_code = exit_code_of([&] {
    server.set_fault([&](const HttpRequest& request) -> std::optional<Result<HttpResponse>> {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));  // so that the end is there first
      if (request.method == HttpMethod::put) (void)!::write(ends[1], "x", 1);
      return std::nullopt;
    });
    auto* const tier = tier_of(*local).release();  // never ended
    tier->publish(ids, ids);
    std::exit(7);
  });
  ::close(ends[1]);
  EXPECT_EQ(exit_code, 7);
  char buffer[64];
  // A payload and a manifest each, and the plan's, with its list.
  EXPECT_EQ(::read(ends[0], buffer, sizeof buffer), static_cast<ssize_t>(2 * ids.size() + 2));
  ::close(ends[0]);
}

TEST_F(RemoteTierTest, AChildOfForkEndsWithoutWaitingForItsParentsUploads) {
  Gate gate;
  server.set_fault(gate.fault());
  for (const Entry& entry : entries) ASSERT_TRUE(local->put(entry));
  const auto tier = tier_of(*local);
  tier->publish(ids, ids);
  EXPECT_EQ(exit_code_of([] { std::exit(7); }), 7);
  gate.open();
  EXPECT_TRUE(tier->flush(60'000));
}

}  // namespace
}  // namespace gemvjit::test
