// gemvjit-cache with signatures: keys of the openssl program or made by hand, sign, export --sign-key, import, verify,
// show, explain and doctor, and warmup --check under the policies.
#include <sys/stat.h>

#include "cache/bundle.h"
#include "cache/layout.h"
#include "cache/store.h"
#include "tests/support/signing_fixture.h"
#include "tests/tools/cli_entries.h"
#include "tests/tools/cli_fixture.h"

namespace gemvjit::test {
namespace {

using nlohmann::json;

class SignCli : public CliTest {
 protected:
  void SetUp() override {
    const auto opened = Ed25519::open();
    if (!opened) GTEST_SKIP() << opened.status().message();
    files_ = std::make_unique<SigningFiles>(folder_, **opened);
    environment_["GEMVJIT_CACHE_TRUST_DIR"] = files_->trust;
    for (const std::int64_t n : {64, 128}) {
      const Status status = make_dir_store(cache_dir_, Log::silent())->put(entry(n));
      ASSERT_TRUE(status) << status.message();
    }
  }
  static Entry entry(std::int64_t n) { return cli_entry(n); }
  std::string key(int seed) const { return folder_.path(std::to_string(seed) + ".key"); }
  const std::string& id(int seed) const { return files_->pairs[static_cast<std::size_t>(seed) - 1].id; }
  void set_policy(const std::string& policy) { environment_["GEMVJIT_CACHE_SIGNATURES"] = policy; }

  std::unique_ptr<SigningFiles> files_;
  std::string file_ = folder_.path("out.gjb");
  const std::string name_ = "n64-k4096-nt1-f0000410208848021-sm_90a";
};

TEST_F(SignCli, SignedInPlaceTheEntriesAreShownWithTheirSigner) {
  EXPECT_EQ(document(cache({"show", name_, "--json"}))["entries"][0]["signature"]["state"], "none");
  const json done = document(cache({"sign", name_, "--sign-key", key(1), "--json"}));
  EXPECT_EQ(done["key_id"], id(1));
  EXPECT_EQ(done["signed"].size(), 1u);
  EXPECT_EQ(done["failed"], json::array());
  const json shown = document(cache({"show", name_, "--json"}))["entries"][0]["signature"];
  EXPECT_EQ(shown["state"], "trusted");
  EXPECT_EQ(shown["key_id"], id(1));
  EXPECT_EQ(shown["key_file"], files_->trust + "/one.pub");
  EXPECT_TRUE(contains(cache({"show", name_}).out, "signed by " + id(1) + " (" + files_->trust + "/one.pub)"));

  EXPECT_EQ(cache({"verify"}).exit_code, 0);
  set_policy("all");
  const ProgramOutput verified = cache({"verify"});
  EXPECT_EQ(verified.exit_code, 10);
  EXPECT_TRUE(contains(verified.out, "NOT TRUSTED")) << verified.out;
  EXPECT_TRUE(contains(verified.out, "1 entries: signed by " + id(1))) << verified.out;
  EXPECT_EQ(cache({"explain", name_}).exit_code, 0);
  const std::string other = entry(128).id.key.text();
  EXPECT_EQ(document(cache({"explain", other, "--json"}))["result"], "untrusted");
  EXPECT_EQ(cache({"explain", other}).exit_code, 9);

  environment_["GEMVJIT_CACHE_SIGNING_KEY"] = key(2);
  EXPECT_EQ(cache({"sign"}).exit_code, 0);
  EXPECT_EQ(cache({"verify"}).exit_code, 0);
  const json signers = document(cache({"verify", "--json"}))["signatures"];
  EXPECT_EQ(signers["policy"], "all");
  EXPECT_EQ(signers["not_trusted"], 0);
  EXPECT_EQ(signers["signers"][0]["key_id"], id(2));
  EXPECT_EQ(signers["signers"][0]["entries"], 2);
}

TEST_F(SignCli, ASignedBundleIsImportedAndOthersAreNot) {
  EXPECT_EQ(document(cache({"export", file_, "--json"}))["signed_by"], nullptr);
  set_policy("bundles");
  const std::string other = folder_.path("other");
  const ProgramOutput refused = cache({"import", file_, "--cache-dir", other});
  EXPECT_EQ(refused.exit_code, 10);
  EXPECT_TRUE(contains(refused.err, "not signed, and cache_signatures is bundles")) << refused.err;
  EXPECT_FALSE(std::filesystem::exists(other));
  EXPECT_EQ(cache({"export", file_, "--sign-key", key(3)}).exit_code, 0);
  EXPECT_EQ(cache({"import", file_, "--cache-dir", other}).exit_code, 10);
  EXPECT_FALSE(std::filesystem::exists(other));

  const ProgramOutput written = cache({"export", file_, "--sign-key", key(1)});
  EXPECT_EQ(written.exit_code, 0) << written.err;
  EXPECT_TRUE(contains(written.out, "signed by " + id(1)));
  const std::string first = read_text(file_);
  EXPECT_EQ(cache({"export", file_, "--sign-key", key(1)}).exit_code, 0);
  EXPECT_EQ(read_text(file_), first);
  set_policy("all");
  const json imported = document(cache({"import", file_, "--cache-dir", other, "--json"}));
  EXPECT_EQ(imported["imported"], 2);
  EXPECT_EQ(imported["signature"]["key_id"], id(1));
  EXPECT_EQ(cache({"verify", "--cache-dir", other}).exit_code, 0);
  EXPECT_EQ(entry_files(cache_dir_).size(), 2u);
  EXPECT_EQ(cache({"verify"}).exit_code, 10);         // export has signed what it gave away, not what is here
  EXPECT_EQ(cache({"export", file_}).exit_code, 10);  // nothing here is signed
}

TEST_F(SignCli, DoctorAndDeepVerifyNameSignersAndWhatIsRefused) {
  ASSERT_EQ(cache({"export", file_, "--sign-key", key(3)}).exit_code, 0);
  environment_["GEMVJIT_CACHE_RO"] = file_;
  environment_["GEMVJIT_CACHE_SIGNING_KEY"] = key(2);
  set_policy("bundles");
  const json report = document(cache({"doctor", "--json"}));
  EXPECT_EQ(report["signatures"]["policy"], "bundles");
  EXPECT_EQ(report["signatures"]["keys"].size(), 2u);
  EXPECT_EQ(report["signatures"]["signing_key_id"], id(2));
  EXPECT_EQ(report["signatures"]["problems"], json::array());
  EXPECT_EQ(report["layers"][1]["signature"]["key_id"], id(3));
  EXPECT_TRUE(contains(report["layers"][1]["problem"], "no trust directory")) << report["layers"][1];
  EXPECT_TRUE(contains(cache({"doctor"}).out, "trusted key   " + id(1)));
  EXPECT_EQ(cache({"verify", "--deep"}).exit_code, 10);
}

TEST_F(SignCli, KeysAndPoliciesThatCannotBeUsedAreSaid) {
  ::chmod(key(1).c_str(), 0640);
  const ProgramOutput loose = cache({"export", file_, "--sign-key", key(1)});
  EXPECT_EQ(loose.exit_code, 5);
  EXPECT_TRUE(contains(loose.err, "chmod 600")) << loose.err;
  EXPECT_FALSE(std::filesystem::exists(file_));
  EXPECT_EQ(cache({"sign"}).exit_code, 2);
  ::chmod(files_->trust.c_str(), 0777);
  set_policy("all");
  EXPECT_TRUE(contains(cache({"verify"}).err, files_->trust + " is not used: all users may write it"));
  EXPECT_FALSE(document(cache({"doctor", "--json"}))["signatures"]["problems"].empty());
  set_policy("some");
  for (const std::vector<std::string>& arguments : {std::vector<std::string>{"verify"}, {"show", name_}, {"sign"}}) {
    EXPECT_EQ(cache(arguments).exit_code, 2);
  }
}

TEST_F(SignCli, KeysOfTheOpensslProgramWorkAsTheyAre) {
  const std::string secret = folder_.path("made.key"), shared = files_->trust + "/made.pub";
  const auto openssl = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"/usr/bin/env", "openssl"});
    return run_program(arguments, environment_);
  };
  if (openssl({"genpkey", "-algorithm", "ed25519", "-out", secret}).exit_code != 0) {
    GTEST_SKIP() << "there is no openssl program that makes Ed25519 keys";
  }
  ASSERT_EQ(openssl({"pkey", "-in", secret, "-pubout", "-out", shared}).exit_code, 0);
  ::chmod(secret.c_str(), 0600);
  ::chmod(shared.c_str(), 0644);
  EXPECT_EQ(cache({"sign", "--sign-key", secret}).exit_code, 0);
  set_policy("all");
  const ProgramOutput verified = cache({"verify"});
  EXPECT_EQ(verified.exit_code, 0) << verified.out << verified.err;
  EXPECT_TRUE(contains(verified.out, "(" + shared + ")"));
}

TEST_F(SignCli, AWarmupCheckAsksForSignaturesToo) {
  set_policy("all");
  const std::vector<std::string> check = {"--shape", "64x4096", "--arch", "sm_90a", "--nt", "1", "--check", "--json"};
  const auto cached = [&] {
    std::size_t count = 0;
    const json checked = document(warmup(check));
    for (const json& result : checked["results"]) count += result["status"] == "cached" ? 1 : 0;
    return count;
  };
  // Whatever the kernels of the shape are: put each as an entry, first without and then with a signature.
  const json named = document(warmup(check));
  ASSERT_FALSE(named["results"].empty());
  const auto store = make_dir_store(cache_dir_, Log::silent());
  for (const json& result : named["results"]) {
    Entry made = entry(64);
    made.id = specialize(*KernelKey::parse(result["key"].get<std::string>()))->id();
    ASSERT_TRUE(store->put(made));
  }
  EXPECT_EQ(cached(), 0u);
  ASSERT_EQ(cache({"sign", "--sign-key", key(1)}).exit_code, 0);
  EXPECT_EQ(cached(), named["results"].size());
}

// The whole way, with the compiler.
TEST_F(SignCli, AWarmupUnderAllKeepsOnlyWhatItCanSignAndUsesOnlyWhatIsSigned) {
  std::filesystem::remove_all(cache_dir_);
  const auto only = [](const ProgramOutput& output) { return document(output)["results"][0]["status"]; };
  const ProgramOutput plain = warm_one_kernel({"--json"});
  if (plain.exit_code == 5) GTEST_SKIP() << "no NVRTC: " << plain.err;
  ASSERT_EQ(only(plain), "compiled") << plain.err;
  EXPECT_EQ(only(warm_one_kernel({"--json"})), "cached");
  const auto files = entry_files(cache_dir_);
  ASSERT_EQ(files.size(), 1u);
  const std::string as_it_was = read_text(files[0]);

  set_policy("all");
  const ProgramOutput unsigned_run = warm_one_kernel({"--json"});
  EXPECT_EQ(only(unsigned_run), "failed");  // the tool wants what it builds to be kept
  EXPECT_EQ(unsigned_run.exit_code, 6);
  EXPECT_TRUE(contains(unsigned_run.out, "kept in memory only")) << unsigned_run.out;
  EXPECT_TRUE(contains(unsigned_run.err, "not signed, and cache_signatures is all")) << unsigned_run.err;
  EXPECT_EQ(read_text(files[0]), as_it_was);

  environment_["GEMVJIT_CACHE_SIGNING_KEY"] = key(1);
  const ProgramOutput signed_run = warm_one_kernel({"--json"});
  EXPECT_EQ(signed_run.exit_code, 0) << signed_run.err;
  EXPECT_EQ(only(signed_run), "compiled");
  EXPECT_EQ(read_text(files[0]).size(), as_it_was.size() + signature_block_bytes);
  environment_["GEMVJIT_CACHE_SIGNING_KEY"] = "";
  EXPECT_EQ(only(warm_one_kernel({"--json"})), "cached");
  EXPECT_EQ(cache({"verify"}).exit_code, 0);
}

}  // namespace
}  // namespace gemvjit::test
