// Signatures of entries and bundles: who is believed, what each policy refuses, and every way in which a signature may
// be bent: flipped, cut, moved to another entry, of another key, with another index.
#include "cache/signatures.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "cache/bundle.h"
#include "cache/entry_files.h"
#include "cache/layered_store.h"
#include "cache/layout.h"
#include "cache/root_safety.h"
#include "cache/signed_store.h"
#include "tests/support/signing_fixture.h"

namespace gemvjit {
namespace {

using test::read_text;
using test::SigningFiles;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

Entry make_entry(std::int64_t n, std::uint8_t answer = 1) {
  Entry entry;
  entry.id.key = {n, 4096, 1, 0x2022, {90, 'a'}};
  entry.id.digest.fill(static_cast<std::uint8_t>(n));
  entry.created_unix_seconds = 1700000000;
  entry.cubin.bytes.assign(200, answer);
  entry.cubin.entry_name = "bf16_gemv";
  entry.cubin.compiler_version = "NVRTC 13.0";
  return entry;
}

class SignaturesTest : public testing::Test {
 protected:
  void SetUp() override {
    const auto opened = Ed25519::open();
    if (!opened) GTEST_SKIP() << opened.status().message();
    files_ = std::make_unique<SigningFiles>(dir_, **opened);
  }
  // With the private key of a seed, or 0 for none.
  std::shared_ptr<const Signatures> signatures(SignaturePolicy policy, int seed = 0) {
    SignatureOptions options;
    options.policy = policy;
    options.trust_dirs = {files_->trust};
    if (seed != 0) options.signing_key = dir_.path(std::to_string(seed) + ".key");
    return std::make_shared<const Signatures>(options, log());
  }
  Log log() {
    return Log::create(LogLevel::warning, [this](LogLevel, std::string_view text) { warnings_.emplace_back(text); });
  }
  Entry signed_entry(std::int64_t n, int seed, std::uint8_t answer = 1) {
    const auto made = signatures(SignaturePolicy::off, seed)->sign(make_entry(n, answer));
    EXPECT_TRUE(made) << made.status().message();
    return made ? *made : make_entry(n);
  }
  std::unique_ptr<CubinStore> open(const std::shared_ptr<const Signatures>& with,
                                   std::vector<std::string> layers = {}) {
    return make_layered_store(make_signed_store(make_dir_store(local_, log()), with, log()), std::move(layers), log(),
                              with);
  }
  void put_plain(const Entry& entry) const { ASSERT_TRUE(make_dir_store(local_, Log::silent())->put(entry)); }
  std::string bundle(const std::string& name, const std::vector<Entry>& entries, int seed) {
    std::vector<const Entry*> pointers;
    for (const Entry& entry : entries) pointers.push_back(&entry);
    SignMessage sign;
    if (seed != 0) {
      sign = [with = signatures(SignaturePolicy::off, seed)](const Bytes& message) { return with->sign(message); };
    }
    const auto written = write_bundle(dir_.path(name), pointers, sign);
    EXPECT_TRUE(written) << written.status().message();
    return dir_.path(name);
  }
  // What examine() says of the bytes as an entry, or damaged.
  static std::string state(const Signatures& with, const Bytes& bytes) {
    const auto entry = decode_entry(bytes);
    return entry ? signature_state_name(with.examine(*entry).state) : "damaged";
  }

  test::TempDir dir_;
  std::string local_ = dir_.path("cache");
  std::unique_ptr<SigningFiles> files_;
  std::vector<std::string> warnings_;
};

TEST_F(SignaturesTest, ASignatureFollowsTheEntryWhichStaysAsItWas) {
  const Entry entry = signed_entry(64, 1);
  const Bytes plain = encode_entry(make_entry(64)), bytes = encode_entry(entry);
  ASSERT_EQ(bytes.size(), plain.size() + signature_block_bytes);
  EXPECT_TRUE(std::equal(plain.begin(), plain.end(), bytes.begin()));
  const auto decoded = decode_entry(bytes);
  ASSERT_TRUE(decoded) << decoded.status().message();
  EXPECT_EQ(decoded->signature, entry.signature);
  EXPECT_EQ(encode_entry(*decoded), bytes);
  EXPECT_EQ(decoded->cubin.bytes, make_entry(64).cubin.bytes);

  const auto with = signatures(SignaturePolicy::all);
  const SignatureFacts facts = with->examine(entry);
  EXPECT_EQ(facts.state, SignatureState::trusted);
  EXPECT_EQ(facts.key_id, files_->pairs[0].id);
  EXPECT_EQ(facts.key_file, files_->trust + "/one.pub");
  EXPECT_TRUE(with->check(entry));
  EXPECT_TRUE(with->check(signed_entry(64, 2)));
  EXPECT_EQ(with->examine(signed_entry(64, 3)).state, SignatureState::unknown_key);
  EXPECT_FALSE(with->check(signed_entry(64, 3)));
  EXPECT_EQ(with->examine(make_entry(64)).state, SignatureState::none);
  EXPECT_FALSE(with->check(make_entry(64)));
  EXPECT_TRUE(signatures(SignaturePolicy::bundles)->check(make_entry(64)));
  EXPECT_TRUE(signatures(SignaturePolicy::off)->check(make_entry(64)));
}

TEST_F(SignaturesTest, APayloadThatLooksLikeASignatureIsNone) {
  Entry entry = make_entry(64);
  append_signature_block(entry.cubin.bytes, SignatureBlock{});
  const auto decoded = decode_entry(encode_entry(entry));
  ASSERT_TRUE(decoded) << decoded.status().message();
  EXPECT_FALSE(decoded->signature);
  EXPECT_EQ(decoded->cubin.bytes, entry.cubin.bytes);
}

TEST_F(SignaturesTest, EveryFlippedBitAndEveryCutOfASignedEntryIsNoticed) {
  const auto with = signatures(SignaturePolicy::all);
  const Bytes whole = encode_entry(signed_entry(64, 1));
  ASSERT_EQ(state(*with, whole), "trusted");
  for (std::size_t bit = 0; bit < 8 * whole.size(); ++bit) {
    Bytes bytes = whole;
    bytes[bit / 8] = static_cast<std::uint8_t>(bytes[bit / 8] ^ (1u << (bit % 8)));
    const std::string found = state(*with, bytes);
    EXPECT_TRUE(found == "damaged" || found == "bad") << bit << " " << found;
  }
  const std::size_t plain = whole.size() - signature_block_bytes;
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_EQ(state(*with, Bytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size))),
              size == plain ? "none" : "damaged")
        << size;
  }
  Bytes longer = whole;
  longer.push_back(0);
  EXPECT_EQ(state(*with, longer), "damaged");
}

TEST_F(SignaturesTest, ASignatureHoldsForItsEntryAlone) {
  const auto with = signatures(SignaturePolicy::all);
  const Entry good = signed_entry(64, 1);
  const auto moved_to = [&](auto change) {
    Entry other = good;
    change(other);
    // Encoded anew: the checksum fits, so that only the signature can tell.
    const auto decoded = decode_entry(encode_entry(other));
    EXPECT_TRUE(decoded);
    return decoded ? with->examine(*decoded).state : SignatureState::none;
  };
  EXPECT_EQ(moved_to([](Entry&) {}), SignatureState::trusted);
  EXPECT_EQ(moved_to([](Entry& entry) { entry.id.key.n = 128; }), SignatureState::bad);
  EXPECT_EQ(moved_to([](Entry& entry) { entry.id.key.flags ^= 1; }), SignatureState::bad);
  EXPECT_EQ(moved_to([](Entry& entry) { entry.id.key.arch.sm = 100; }), SignatureState::bad);
  EXPECT_EQ(moved_to([](Entry& entry) { entry.id.digest[31] ^= 1; }), SignatureState::bad);
  EXPECT_EQ(moved_to([](Entry& entry) { entry.cubin.bytes[0] ^= 1; }), SignatureState::bad);
  EXPECT_EQ(moved_to([](Entry& entry) { entry.cubin.entry_name = "other"; }), SignatureState::bad);
  EXPECT_EQ(moved_to([](Entry& entry) { entry.cubin.waits_for_predecessor = true; }), SignatureState::bad);
  EXPECT_EQ(moved_to([](Entry& entry) { ++entry.created_unix_seconds; }), SignatureState::bad);
  // Another trusted key's name on this key's signature.
  EXPECT_EQ(moved_to([&](Entry& entry) { entry.signature->public_key = signed_entry(64, 2).signature->public_key; }),
            SignatureState::bad);
  // A bundle's signature, or one of the bare content, is none of an entry.
  const auto signer = signatures(SignaturePolicy::off, 1);
  EXPECT_EQ(moved_to([&](Entry& entry) { entry.signature = *signer->sign(encode_unsigned_entry(entry)); }),
            SignatureState::bad);
}

TEST_F(SignaturesTest, UnderAllAnEntryWithoutATrustedSignatureIsAMissThatStaysWhereItIs) {
  put_plain(make_entry(64));
  put_plain(signed_entry(65, 3));
  put_plain(signed_entry(66, 1));
  Entry forged = signed_entry(67, 1);
  forged.cubin.bytes[0] ^= 1;
  put_plain(forged);
  // A whole entry under another one's name is damage, signed or not.
  const std::string foreign = entry_path(local_, make_entry(68).id);
  std::filesystem::create_directories(std::filesystem::path(foreign).parent_path());
  std::filesystem::copy_file(entry_path(local_, make_entry(66).id), foreign);

  const auto store = open(signatures(SignaturePolicy::all));
  for (const std::int64_t n : {64, 65, 67, 68}) EXPECT_FALSE(store->get(make_entry(n).id)) << n;
  EXPECT_TRUE(store->get(make_entry(66).id));
  for (const std::int64_t n : {64, 65, 66, 67}) {
    EXPECT_TRUE(std::filesystem::exists(entry_path(local_, make_entry(n).id))) << n;
  }
  EXPECT_FALSE(std::filesystem::exists(foreign));  // quarantined
  const StoreStats stats = store->stats();
  EXPECT_EQ(stats.untrusted, 3u);
  EXPECT_EQ(stats.hits, 1u);
  EXPECT_EQ(stats.misses, 4u);
  EXPECT_EQ(stats.damaged, 1u);
  EXPECT_EQ(stats.quarantined, 1u);
  EXPECT_THAT(warnings_, Contains(HasSubstr("not signed, and cache_signatures is all")));
  EXPECT_THAT(warnings_, Contains(HasSubstr("signed by " + files_->pairs[2].id + ", a key that is in no trust")));
  EXPECT_THAT(warnings_, Contains(HasSubstr("is wrong")));
  const std::size_t count = warnings_.size();
  EXPECT_FALSE(store->get(make_entry(64).id));
  EXPECT_THAT(warnings_, SizeIs(count));  // said once

  for (const SignaturePolicy policy : {SignaturePolicy::off, SignaturePolicy::bundles}) {
    for (const std::int64_t n : {64, 65, 66, 67}) EXPECT_TRUE(open(signatures(policy))->get(make_entry(n).id)) << n;
  }
}

TEST_F(SignaturesTest, UnderAllAPutReplacesWhatIsNotTrustedAndNothingElse) {
  put_plain(make_entry(64, 1));
  put_plain(make_entry(65, 2));  // other code of the same compiler: planted, for all we know
  put_plain(signed_entry(66, 2, 2));
  const std::string kept = read_text(entry_path(local_, make_entry(66).id));
  const auto store = open(signatures(SignaturePolicy::all, 1));
  for (const std::int64_t n : {64, 65, 66, 67}) EXPECT_TRUE(store->put(make_entry(n, 1))) << n;
  for (const std::int64_t n : {64, 65, 67}) {
    const auto entry = store->get(make_entry(n).id);
    ASSERT_TRUE(entry) << n;
    EXPECT_EQ(entry->cubin.bytes[0], 1);
    EXPECT_EQ(signatures(SignaturePolicy::all)->examine(*entry).key_id, files_->pairs[0].id);
  }
  EXPECT_EQ(read_text(entry_path(local_, make_entry(66).id)), kept);
  EXPECT_EQ(store->stats().determinism_alarms, 1u);
  EXPECT_TRUE(store->put(make_entry(67, 1)));
  EXPECT_EQ(store->stats().puts_unchanged, 1u);
}

TEST_F(SignaturesTest, UnderAllWithoutAKeyWhatIsBuiltStaysInMemory) {
  const auto store = open(signatures(SignaturePolicy::all));
  const Status put = store->put(make_entry(64));
  EXPECT_EQ(put.code(), StatusCode::cache_not_writable);
  EXPECT_THAT(put.message(), HasSubstr("no signing key"));
  EXPECT_TRUE(store->get(make_entry(64).id));
  EXPECT_FALSE(std::filesystem::exists(entry_path(local_, make_entry(64).id)));
  EXPECT_EQ(store->stats().put_failures, 1u);
  EXPECT_EQ(store->stats().hits, 1u);
  EXPECT_THAT(warnings_, SizeIs(1));
  EXPECT_TRUE(store->put(signed_entry(65, 1)));  // somebody we trust has signed it already
  EXPECT_TRUE(std::filesystem::exists(entry_path(local_, make_entry(65).id)));
}

TEST_F(SignaturesTest, AKeySignsUnderEachPolicyAndLeavesOthersSignatures) {
  const auto store = open(signatures(SignaturePolicy::off, 1));
  EXPECT_TRUE(store->put(make_entry(64)));
  EXPECT_TRUE(store->put(signed_entry(65, 3)));
  const auto with = signatures(SignaturePolicy::all);
  EXPECT_EQ(with->examine(*load_entry_file(local_, make_entry(64).id)).key_id, files_->pairs[0].id);
  EXPECT_EQ(with->examine(*load_entry_file(local_, make_entry(65).id)).key_id, files_->pairs[2].id);
}

TEST_F(SignaturesTest, ASigningKeyThatIsNotTrustedIsWarnedOf) {
  const auto store = open(signatures(SignaturePolicy::all, 3));
  EXPECT_TRUE(store->put(make_entry(64)));
  EXPECT_FALSE(store->get(make_entry(64).id));
  EXPECT_THAT(warnings_, Contains(HasSubstr("signing key " + files_->pairs[2].id + " is in no trust directory")));
}

TEST_F(SignaturesTest, BundlesWithoutATrustedSignatureAreRefusedWhenTheyAreOpened) {
  const std::string plain = bundle("plain.gjb", {make_entry(64)}, 0), stranger = bundle("3.gjb", {make_entry(65)}, 3),
                    good = bundle("1.gjb", {make_entry(66)}, 1);
  // What a signature adds is behind the bundle, which stays as it was.
  const std::string unsigned_bytes = read_text(bundle("same.gjb", {make_entry(66)}, 0));
  EXPECT_EQ(read_text(good).substr(0, unsigned_bytes.size()), unsigned_bytes);
  EXPECT_EQ(read_text(good).size(), unsigned_bytes.size() + signature_block_bytes);

  put_plain(make_entry(67));
  const auto store = open(signatures(SignaturePolicy::bundles), {plain, stranger, good});
  EXPECT_FALSE(store->get(make_entry(64).id));
  EXPECT_FALSE(store->get(make_entry(65).id));
  EXPECT_TRUE(store->get(make_entry(66).id));
  EXPECT_TRUE(store->get(make_entry(67).id));  // the writable layer is not asked
  EXPECT_THAT(warnings_, SizeIs(2));
  EXPECT_THAT(warnings_, Contains(HasSubstr("plain.gjb: not signed, and cache_signatures is bundles")));
  EXPECT_THAT(warnings_, Contains(HasSubstr("3.gjb: signed by " + files_->pairs[2].id)));

  const auto off = open(signatures(SignaturePolicy::off), {plain, stranger, good});
  for (const std::int64_t n : {64, 65, 66, 67}) EXPECT_TRUE(off->get(make_entry(n).id)) << n;
}

TEST_F(SignaturesTest, UnderAllTheEntriesOfLayersAreAskedToo) {
  make_dir_store(dir_.path("folder"), Log::silent())->put(make_entry(64)).is_ok();
  EXPECT_TRUE(make_dir_store(dir_.path("folder"), Log::silent())->put(signed_entry(65, 2)));
  const std::string file = bundle("1.gjb", {make_entry(66), signed_entry(67, 1)}, 1);
  const auto store = open(signatures(SignaturePolicy::all), {dir_.path("folder"), file});
  EXPECT_FALSE(store->get(make_entry(64).id));
  EXPECT_TRUE(store->get(make_entry(65).id));
  EXPECT_FALSE(store->get(make_entry(66).id));
  EXPECT_TRUE(store->get(make_entry(67).id));
  EXPECT_EQ(store->stats().untrusted, 2u);
  EXPECT_EQ(store->stats().damaged, 0u);
}

TEST_F(SignaturesTest, EveryFlippedBitOfASignedBundlesEndAndEverySwappedIndexIsNoticed) {
  const std::string path = bundle("1.gjb", {signed_entry(64, 1), signed_entry(65, 1)}, 1);
  const std::string whole = read_text(path);
  const auto with = signatures(SignaturePolicy::bundles);
  const auto usable = [&](const std::string& content) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << content;
    const auto opened = Bundle::open(path);
    return opened && with->check(**opened);
  };
  ASSERT_TRUE(usable(whole));
  // Index, footer and signature; the entries are compared with the index when they are read.
  const Bundle::Item last = (*Bundle::open(path))->items().back();
  const std::uint64_t begin = last.offset + last.size;
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  const auto write_byte = [&](std::uint64_t at, int byte) {
    file.seekp(static_cast<std::streamoff>(at));
    file.put(static_cast<char>(byte));
    file.flush();
  };
  for (std::uint64_t bit = 8 * begin; bit < 8 * whole.size(); ++bit) {
    write_byte(bit / 8, whole[bit / 8] ^ (1 << (bit % 8)));
    const auto opened = Bundle::open(path);
    EXPECT_FALSE(opened && with->check(**opened)) << bit;
    write_byte(bit / 8, whole[bit / 8]);
  }
  file.close();
  ASSERT_EQ(read_text(path), whole);
  for (std::size_t size = whole.size(); size > begin; --size) {
    ASSERT_EQ(::truncate(path.c_str(), static_cast<off_t>(size - 1)), 0);
    const auto opened = Bundle::open(path);
    EXPECT_FALSE(opened && with->check(**opened)) << size - 1;
  }
  // A bundle of other kernels, right in itself, with this one's signature behind it.
  const std::string block = whole.substr(whole.size() - signature_block_bytes);
  EXPECT_FALSE(usable(read_text(bundle("other.gjb", {signed_entry(64, 1), signed_entry(65, 1, 2)}, 0)) + block));
  EXPECT_FALSE(usable(read_text(bundle("fewer.gjb", {signed_entry(64, 1)}, 0)) + block));
  EXPECT_TRUE(usable(read_text(bundle("same.gjb", {signed_entry(64, 1), signed_entry(65, 1)}, 0)) + block));
}

TEST_F(SignaturesTest, WithoutLibcryptoNothingIsTrustedAndOneWarningSaysWhy) {
  const std::string good = bundle("1.gjb", {signed_entry(64, 1)}, 1);
  put_plain(signed_entry(65, 1));
  SignatureOptions options{SignaturePolicy::all, {files_->trust}, dir_.path("1.key"), "libcrypto-none.so.3"};
  const auto store = open(std::make_shared<const Signatures>(options, log()), {good});
  EXPECT_FALSE(store->get(make_entry(64).id));
  EXPECT_FALSE(store->get(make_entry(65).id));
  EXPECT_FALSE(store->put(make_entry(66)));
  EXPECT_TRUE(store->get(make_entry(66).id));  // from memory
  EXPECT_THAT(warnings_, Contains(HasSubstr("libcrypto-none.so.3 cannot be opened")));
  EXPECT_THAT(warnings_, Contains(HasSubstr("which cannot be checked")));

  options.policy = SignaturePolicy::off;  // nothing is asked for: entries are written without
  const auto off = open(std::make_shared<const Signatures>(options, log()), {good});
  EXPECT_TRUE(off->get(make_entry(64).id));
  EXPECT_TRUE(off->put(make_entry(67)));
  EXPECT_FALSE(load_entry_file(local_, make_entry(67).id)->signature);
}

TEST_F(SignaturesTest, TrustDirectoriesAndKeysThatOthersMayWriteAreRefused) {
  const Entry entry = signed_entry(64, 1);
  const auto trusted = [&] { return signatures(SignaturePolicy::all)->check(entry).is_ok(); };
  EXPECT_TRUE(trusted());
  for (const mode_t mode : {0777, 01777, 0775}) {
    ::chmod(files_->trust.c_str(), mode);
    EXPECT_FALSE(trusted()) << std::oct << mode;
    EXPECT_THAT(warnings_, Contains(HasSubstr(files_->trust + " is not used")));
  }
  ::chmod(files_->trust.c_str(), 0755);
  for (const mode_t mode : {0666, 0664}) {
    ::chmod((files_->trust + "/one.pub").c_str(), mode);
    EXPECT_FALSE(trusted());
    EXPECT_THAT(warnings_, Contains(HasSubstr("one.pub is not used")));
  }
  ::chmod((files_->trust + "/one.pub").c_str(), 0644);
  EXPECT_TRUE(trusted());
  if (::geteuid() == 0) {
    EXPECT_EQ(::chown(files_->trust.c_str(), 61234, 61234), 0);
    EXPECT_FALSE(trusted());
    EXPECT_EQ(::chown(files_->trust.c_str(), 0, 0), 0);
  }
  // A file of another kind or without a key costs its own key only; other names are passed over.
  dir_.write("trust/zero.pub", "no key");
  dir_.write("trust/readme.txt", "no key either");
  warnings_.clear();
  EXPECT_TRUE(trusted());
  EXPECT_THAT(warnings_, Contains(HasSubstr("zero.pub")));
  EXPECT_THAT(warnings_, Not(Contains(HasSubstr("readme"))));
  std::filesystem::remove_all(files_->trust);
  warnings_.clear();
  EXPECT_FALSE(trusted());
  EXPECT_THAT(warnings_, IsEmpty());  // a folder that is not there has no keys
}

// One whose file has a second key might be thought to be trusted for both; anybody can sign for one of small order.
TEST_F(SignaturesTest, KeyFilesThatSayMoreOrLessThanTheySeemAreRefusedWithALineEach) {
  const Entry by_one = signed_entry(64, 1), by_two = signed_entry(64, 2);
  const std::string both = read_text(files_->trust + "/two.pub") + read_text(files_->trust + "/one.pub");
  dir_.write("trust/one.pub", both);
  Bytes neutral(32, 0);
  neutral[0] = 1;
  test::write_key(dir_, "trust/weak.pub", test::public_pem(neutral), 0644);
  const auto strict = signatures(SignaturePolicy::all);
  EXPECT_FALSE(strict->check(by_one));
  EXPECT_TRUE(strict->check(by_two)) << "by its own file";
  EXPECT_THAT(warnings_, Contains(HasSubstr("one.pub: it holds more than one key")).Times(1));
  EXPECT_THAT(warnings_, Contains(HasSubstr("weak.pub: it is a point of small order")).Times(1));

  // The signature that anybody can make for it.
  Entry forged = make_entry(64);
  forged.signature = SignatureBlock{};
  forged.signature->public_key[0] = 1;
  forged.signature->signature[0] = 1;
  EXPECT_FALSE(strict->check(forged));
}

TEST_F(SignaturesTest, APrivateKeyThatOthersMayReadIsRefused) {
  for (const mode_t mode : {0640, 0604, 0660, 0610}) {
    ::chmod(dir_.path("1.key").c_str(), mode);
    const auto made = signatures(SignaturePolicy::off, 1)->sign(make_entry(64));
    ASSERT_FALSE(made) << std::oct << mode;
    EXPECT_THAT(made.status().message(), HasSubstr("chmod 600"));
    EXPECT_THAT(made.status().message(), HasSubstr("1.key"));
  }
  ::chmod(dir_.path("1.key").c_str(), 0400);
  EXPECT_TRUE(signatures(SignaturePolicy::off, 1)->sign(make_entry(64)));
  const auto none = signatures(SignaturePolicy::off, 4)->sign(make_entry(64));
  ASSERT_FALSE(none);
  EXPECT_EQ(none.status().code(), StatusCode::io_error);
}

TEST(TrustDirs, FollowXdgAndThenHome) {
  EXPECT_EQ(default_trust_dirs("/x", "/h"), (std::vector<std::string>{"/x/gemvjit/trust", "/etc/gemvjit/trust"}));
  EXPECT_EQ(default_trust_dirs("x", "/h"),
            (std::vector<std::string>{"/h/.config/gemvjit/trust", "/etc/gemvjit/trust"}));
  EXPECT_EQ(default_trust_dirs("", ""), (std::vector<std::string>{"/etc/gemvjit/trust"}));
}

}  // namespace
}  // namespace gemvjit
