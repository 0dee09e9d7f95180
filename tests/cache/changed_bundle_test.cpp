// A bundle that was changed after it was signed is refused under every policy: its entries and its index hold together,
// but they are not what was signed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cache/bundle.h"
#include "cache/layered_store.h"
#include "tests/support/entries.h"
#include "tests/support/signing_fixture.h"

namespace gemvjit {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class ChangedBundle : public testing::Test {
 protected:
  void SetUp() override {
    const auto opened = Ed25519::open();
    if (!opened) GTEST_SKIP() << opened.status().message();
    files_ = std::make_unique<test::SigningFiles>(dir_, **opened);
    // Another bundle under the signature of the first.
    const std::string first_signed = test::read_text(bundle("signed.gjb", first_, true));
    const std::string first_plain = test::read_text(bundle("first.gjb", first_, false));
    const std::string second_plain = test::read_text(bundle("second.gjb", second_, false));
    changed_ = dir_.write("changed.gjb", second_plain + first_signed.substr(first_plain.size()));
    ASSERT_TRUE(Bundle::open(changed_)) << "nothing else is wrong with it";
  }
  std::string bundle(const std::string& name, const Entry& entry, bool with_signature) {
    SignMessage sign;
    if (with_signature) {
      sign = [with = signatures(SignaturePolicy::off, "1.key")](const Bytes& message) { return with->sign(message); };
    }
    const std::vector<const Entry*> content = {&entry};
    EXPECT_TRUE(write_bundle(dir_.path(name), content, sign));
    return dir_.path(name);
  }
  std::shared_ptr<const Signatures> signatures(SignaturePolicy policy, const std::string& key = "",
                                               const std::string& libcrypto = default_libcrypto) {
    SignatureOptions options;
    options.policy = policy;
    options.trust_dirs = {files_->trust};
    if (!key.empty()) options.signing_key = dir_.path(key);
    options.libcrypto = libcrypto;
    return std::make_shared<const Signatures>(options, log());
  }
  Log log() {
    return Log::create(LogLevel::warning, [this](LogLevel, std::string_view text) { warnings_.emplace_back(text); });
  }
  std::unique_ptr<CubinStore> layer(const std::string& path, std::shared_ptr<const Signatures> with) {
    return make_layered_store(make_memory_store(), {path}, log(), std::move(with));
  }

  test::TempDir dir_;
  const Entry first_ = test::sample_entry({.n = 64}), second_ = test::sample_entry({.n = 128});
  std::unique_ptr<test::SigningFiles> files_;
  std::string changed_;
  std::vector<std::string> warnings_;
};

TEST_F(ChangedBundle, IsRefusedUnderEveryPolicy) {
  for (const SignaturePolicy policy : {SignaturePolicy::off, SignaturePolicy::bundles, SignaturePolicy::all}) {
    SCOPED_TRACE(signature_policy_name(policy));
    warnings_.clear();
    const auto store = layer(changed_, signatures(policy));
    EXPECT_FALSE(store->get(second_.id));
    EXPECT_FALSE(store->get(second_.id));
    EXPECT_THAT(warnings_, ElementsAre(AllOf(HasSubstr("changed.gjb: its signature"), HasSubstr("is wrong"))));
  }
}

TEST_F(ChangedBundle, WithoutOrWithARightSignatureItIsUsedWhereNoneIsAskedFor) {
  EXPECT_TRUE(layer(dir_.path("second.gjb"), signatures(SignaturePolicy::off))->get(second_.id));
  EXPECT_TRUE(layer(dir_.path("signed.gjb"), signatures(SignaturePolicy::off))->get(first_.id));
  EXPECT_THAT(warnings_, IsEmpty());
}

// Where nothing can be checked and nothing is asked for, a signature is no reason to do without, nor to warn.
TEST_F(ChangedBundle, WithoutLibcryptoAndPolicyItIsNotKnown) {
  EXPECT_TRUE(layer(changed_, signatures(SignaturePolicy::off, "", "libcrypto-none.so.3"))->get(second_.id));
  EXPECT_THAT(warnings_, IsEmpty());
}

}  // namespace
}  // namespace gemvjit
