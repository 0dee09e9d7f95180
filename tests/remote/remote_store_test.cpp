#include "src/remote/remote_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/entries.h"
#include "tests/support/fake_http_server.h"
#include "tests/support/signing_fixture.h"
#include "tests/support/temp_dir.h"

namespace gemvjit::test {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

class RemoteStoreTest : public testing::Test {
 protected:
  RemoteStoreTest() {
    options.url = FakeHttpServer::address;
    options.write = true;
  }
  RemoteStore& store() {
    if (!store_) {
      const auto log =
          Log::create(LogLevel::warning, [this](LogLevel, std::string_view text) { warnings.emplace_back(text); });
      store_ = std::make_unique<RemoteStore>(options, server.transport(), signatures, log, [this] { return now; });
    }
    return *store_;
  }
  // The payload's path of an entry that is there.
  static std::string payload_path(const Entry& there) {
    const Bytes bytes = encode_entry(there);
    return "/cas/" + to_hex(Sha256::of(bytes.data(), bytes.size()));
  }
  Deadline later() { return now + milliseconds(30'000); }

  FakeHttpServer server;
  RemoteOptions options;
  std::shared_ptr<const Signatures> signatures;
  std::vector<std::string> warnings;
  std::chrono::steady_clock::time_point now{milliseconds(1'000'000)};
  const Entry entry = sample_entry();

 private:
  std::unique_ptr<RemoteStore> store_;
};

TEST_F(RemoteStoreTest, WhatWasPutIsGotPayloadFirstManifestLast) {
  ASSERT_TRUE(store().put(entry, Replace::unusable_only));
  const std::string manifest = "/ac/" + kernel_name(entry.id), payload = payload_path(entry);
  EXPECT_EQ(server.asked(), (std::vector<std::string>{"GET " + manifest, "PUT " + payload, "PUT " + manifest}));
  server.forget();
  const auto got = store().get(entry.id);
  ASSERT_TRUE(got);
  EXPECT_EQ(encode_entry(*got), encode_entry(entry));
  EXPECT_EQ(server.asked(), (std::vector<std::string>{"GET " + manifest, "GET " + payload}));
  EXPECT_EQ(store().path_of(entry.id), FakeHttpServer::address + manifest);
  EXPECT_EQ(store().stats().hits, 1u);
  EXPECT_EQ(store().stats().puts, 1u);
  EXPECT_TRUE(warnings.empty());
}

TEST_F(RemoteStoreTest, NotThereIsAMissAndNoFailure) {
  EXPECT_FALSE(store().get(entry.id));
  EXPECT_EQ(store().look(entry.id).status().code(), StatusCode::not_found);
  EXPECT_EQ(store().remote_stats().misses, 1u);
  EXPECT_EQ(store().remote_stats().failures, 0u);
  EXPECT_TRUE(warnings.empty());
  // Nor is a payload that the server has let go of.
  ASSERT_TRUE(store().put(entry, Replace::any));
  server.remove(payload_path(entry));
  EXPECT_EQ(store().fetch(entry.id, nullptr, later()).status().code(), StatusCode::not_found);
  EXPECT_EQ(store().remote_stats().failures, 0u);
}

TEST_F(RemoteStoreTest, TheFirstWriterStaysUnlessItIsToGive) {
  ASSERT_TRUE(store().put(entry, Replace::unusable_only));
  Entry mine = entry;
  mine.created_unix_seconds += 1;
  ASSERT_TRUE(store().put(mine, Replace::unusable_only));
  EXPECT_EQ(store().get(entry.id)->created_unix_seconds, entry.created_unix_seconds);
  ASSERT_TRUE(store().put(mine, Replace::any));
  EXPECT_EQ(store().get(entry.id)->created_unix_seconds, mine.created_unix_seconds);
}

TEST_F(RemoteStoreTest, WhatTheServerRemovedIsPutAgain) {
  ASSERT_TRUE(store().put(entry, Replace::unusable_only));
  server.remove(payload_path(entry));
  ASSERT_TRUE(store().put(entry, Replace::unusable_only));
  EXPECT_TRUE(store().get(entry.id));
  server.forget();
  ASSERT_TRUE(store().put(entry, Replace::unusable_only));
  EXPECT_EQ(server.count("PUT"), 0u);
}

TEST_F(RemoteStoreTest, OtherBytesAreDamagedWhateverTheyAre) {
  ASSERT_TRUE(store().put(entry, Replace::any));
  const std::string path = payload_path(entry);
  const Bytes whole = server.files().at(path);
  Bytes flipped = whole;
  flipped[whole.size() / 2] ^= 1;
  Bytes shorter(whole.begin(), whole.end() - 1);
  for (const Bytes& bytes : {flipped, shorter, Bytes{}, encode_entry(sample_entry({.n = 128}))}) {
    server.put(path, bytes);
    const auto got = store().fetch(entry.id, nullptr, later());
    EXPECT_EQ(got.status().code(), StatusCode::entry_damaged);
    EXPECT_THAT(got.status().message(), HasSubstr(path));
  }
  // Longer than the manifest says: no more is taken.
  Bytes longer = whole;
  longer.push_back(0);
  server.put(path, longer);
  EXPECT_EQ(store().fetch(entry.id, nullptr, later()).status().code(), StatusCode::io_error);
  EXPECT_EQ(store().remote_stats().hits, 0u);
  EXPECT_EQ(warnings.size(), 1u);  // the rest at level debug
}

TEST_F(RemoteStoreTest, AnotherKernelsEntryIsNotServed) {
  const Entry other = sample_entry({.n = 128});
  ASSERT_TRUE(store().put(other, Replace::any));
  // The manifest of the one says the payload of the other: once under its own path, once under the wanted one.
  ManifestFile file{manifest_path(other.id), {}, encode_entry(other).size()};
  ASSERT_TRUE(from_hex(payload_path(other).substr(5), file.sha256));
  server.put("/ac/" + kernel_name(entry.id), encode_manifest({{file}}));
  EXPECT_EQ(store().fetch(entry.id, nullptr, later()).status().code(), StatusCode::entry_damaged);
  file.path = manifest_path(entry.id);
  server.put("/ac/" + kernel_name(entry.id), encode_manifest({{file}}));
  const auto got = store().fetch(entry.id, nullptr, later());
  EXPECT_EQ(got.status().code(), StatusCode::entry_damaged);
  EXPECT_THAT(got.status().message(), HasSubstr("another kernel"));
  // And with the plan's word for where it is.
  EXPECT_EQ(store().fetch(entry.id, &file, later()).status().code(), StatusCode::entry_damaged);
}

TEST_F(RemoteStoreTest, AManifestThatIsNoneIsDamaged) {
  const std::string page = "<html>It works!</html>";
  server.put("/ac/" + kernel_name(entry.id), Bytes(page.begin(), page.end()));
  EXPECT_EQ(store().fetch(entry.id, nullptr, later()).status().code(), StatusCode::entry_damaged);
  // Such a one is replaced.
  ASSERT_TRUE(store().put(entry, Replace::unusable_only));
  EXPECT_TRUE(store().get(entry.id));
}

TEST_F(RemoteStoreTest, AFailureIsToldWithTheStatusAndCounted) {
  for (const long status : {500L, 503L, 429L, 401L, 403L, 302L, 400L}) {
    server.set_fault(FakeHttpServer::always(status));
    RemoteStore fresh(options, server.transport(), nullptr, Log::silent(), [this] { return now; });
    const auto got = fresh.fetch(entry.id, nullptr, later());
    EXPECT_EQ(got.status().code(), StatusCode::io_error) << status;
    EXPECT_THAT(got.status().message(), HasSubstr(std::to_string(status)));
    EXPECT_EQ(fresh.remote_stats().failures, 1u);
    EXPECT_FALSE(fresh.put(entry, Replace::any));
    EXPECT_EQ(fresh.remote_stats().upload_failures, 1u);
  }
}

TEST_F(RemoteStoreTest, ThreeFailuresAndTheServerIsLeftAloneForAMinute) {
  server.set_fault(FakeHttpServer::no_answer());
  for (int i = 0; i < 10; ++i) EXPECT_FALSE(store().get(entry.id));
  EXPECT_EQ(server.asked().size(), 3u);
  EXPECT_TRUE(store().is_left_alone());
  EXPECT_EQ(store().fetch(entry.id, nullptr, later()).status().code(), StatusCode::cancelled);
  now += milliseconds(options.probe_after_ms);
  server.set_fault(nullptr);
  EXPECT_EQ(store().fetch(entry.id, nullptr, later()).status().code(), StatusCode::not_found);
  EXPECT_FALSE(store().is_left_alone());
}

TEST_F(RemoteStoreTest, MissesAndRefusalsOfWhatWasAskedDoNotOpenTheBreaker) {
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(store().get(entry.id));
  server.set_fault(FakeHttpServer::always(400));
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(store().get(entry.id));
  EXPECT_FALSE(store().is_left_alone());
  EXPECT_EQ(server.asked().size(), 10u);
}

TEST_F(RemoteStoreTest, NothingIsAskedPastTheDeadlineAndNoRequestWaitsBeyondIt) {
  EXPECT_EQ(store().fetch(entry.id, nullptr, now).status().code(), StatusCode::cancelled);
  EXPECT_TRUE(server.asked().empty());
  std::vector<int> timeouts;
  server.set_fault([&](const HttpRequest& request) -> std::optional<Result<HttpResponse>> {
    timeouts.push_back(request.timeout_ms);
    return std::nullopt;
  });
  (void)store().fetch(entry.id, nullptr, now + milliseconds(1'234));
  (void)store().fetch(entry.id, nullptr, now + milliseconds(60'000));
  EXPECT_EQ(timeouts, (std::vector<int>{1'234, options.request_ms}));
}

TEST_F(RemoteStoreTest, AManifestThatNobodyWouldReadIsNotWritten) {
  Manifest manifest;
  manifest.files.assign(manifest_file_limit, {manifest_path(entry.id), {}, 1});
  ASSERT_TRUE(store().write_set(set_name("x"), manifest, later()));
  EXPECT_TRUE(store().read_manifest(set_name("x"), later()));
  manifest.files.push_back(manifest.files.front());
  EXPECT_EQ(store().write_set(set_name("y"), manifest, later()).code(), StatusCode::unsupported);
  EXPECT_EQ(server.count("PUT"), 2u);
}

TEST_F(RemoteStoreTest, WithoutAWordForItNothingIsWritten) {
  options.write = false;
  EXPECT_EQ(store().put(entry, Replace::any).code(), StatusCode::unsupported);
  EXPECT_TRUE(server.asked().empty());
}

TEST_F(RemoteStoreTest, ItCanNeitherBeListedNorEmptied) {
  EXPECT_EQ(store().list().status().code(), StatusCode::unsupported);
  EXPECT_EQ(store().remove(entry.id).code(), StatusCode::unsupported);
}

TEST_F(RemoteStoreTest, TheDoctorsTriesLeaveNoKernelBehind) {
  EXPECT_TRUE(store().ping(later()));
  EXPECT_TRUE(server.files().empty());
  EXPECT_TRUE(store().try_write(later()));
  EXPECT_EQ(server.files().size(), 2u);
  EXPECT_TRUE(store().try_write(later()));
  EXPECT_EQ(server.files().size(), 2u);
  server.set_fault([](const HttpRequest& request) -> std::optional<Result<HttpResponse>> {
    if (request.method != HttpMethod::get || request.url.find("/cas/") == std::string::npos) return std::nullopt;
    return Result<HttpResponse>(HttpResponse{200, {1, 2, 3}});
  });
  EXPECT_EQ(store().try_write(later()).code(), StatusCode::entry_damaged);
  server.set_fault(FakeHttpServer::always(500));
  EXPECT_FALSE(store().ping(later()));
}

class SignedRemoteTest : public RemoteStoreTest {
 protected:
  void SetUp() override {
    auto loaded = Ed25519::open(default_libcrypto);
    if (!loaded) GTEST_SKIP() << loaded.status().message();
    files.emplace(dir, **loaded);
    wanted.trust_dirs = {files->trust};
  }
  Entry signed_by(int seed) {
    SignatureOptions with_key;
    with_key.signing_key = dir.path(std::to_string(seed) + ".key");
    return *Signatures(with_key, Log::silent()).sign(entry);
  }
  StatusCode answer_for(const Entry& there, const SignatureOptions& of_node) {
    RemoteStore writer(options, server.transport(), nullptr, Log::silent());
    EXPECT_TRUE(writer.put(there, Replace::any));
    const auto of_reader = std::make_shared<const Signatures>(of_node, Log::silent());
    RemoteStore reader(options, server.transport(), of_reader, Log::silent());
    return reader.fetch(there.id, nullptr, std::chrono::steady_clock::now() + milliseconds(60'000)).status().code();
  }
  TempDir dir;
  std::optional<SigningFiles> files;
  SignatureOptions wanted;
};

TEST_F(SignedRemoteTest, UnderBundlesAndAllATrustedKeyMustHaveSigned) {
  for (const auto policy : {SignaturePolicy::bundles, SignaturePolicy::all}) {
    wanted.policy = policy;
    EXPECT_EQ(answer_for(entry, wanted), StatusCode::unsupported);
    EXPECT_EQ(answer_for(signed_by(3), wanted), StatusCode::unsupported);  // a key that is trusted nowhere
    EXPECT_EQ(answer_for(signed_by(1), wanted), StatusCode::ok);
  }
  wanted.policy = SignaturePolicy::off;
  EXPECT_EQ(answer_for(entry, wanted), StatusCode::ok);
  EXPECT_EQ(answer_for(signed_by(3), wanted), StatusCode::ok);
}

TEST_F(SignedRemoteTest, AWrongSignatureIsRefusedUnderEveryPolicy) {
  Entry forged = signed_by(1);
  forged.cubin.bytes[0] ^= 1;  // and encoded anew: the checksum is right
  for (const auto policy : {SignaturePolicy::off, SignaturePolicy::bundles, SignaturePolicy::all}) {
    wanted.policy = policy;
    EXPECT_EQ(answer_for(forged, wanted), StatusCode::unsupported);
  }
}

TEST_F(SignedRemoteTest, WhoSignsTakesNothingFromThereThatNobodyTrustedSigned) {
  wanted.policy = SignaturePolicy::off;
  wanted.signing_key = dir.path("1.key");
  EXPECT_EQ(answer_for(entry, wanted), StatusCode::unsupported);
  EXPECT_EQ(answer_for(signed_by(2), wanted), StatusCode::ok);
}

}  // namespace
}  // namespace gemvjit::test
