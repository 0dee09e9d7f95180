// gemvjit-cache with OCI image layouts: export --oci, import of a folder, what is not replaced, and a
// way through skopeo where that is installed.
#include <unistd.h>

#include <csignal>
#include <map>

#include "tests/support/signing_fixture.h"
#include "tests/tools/oci_cli_fixture.h"

namespace gemvjit::test {
namespace {

// What is pulled on another machine is what was made on this one, or it is refused.
TEST_F(OciCli, TheSameEntriesGiveTheSameManifestAndImportElsewhere) {
  const json first = document(cache({"export", "--oci", space_ + "/a/", "--ref", "1.0", "--json"}));
  const json second = document(cache({"export", space_ + "/b", "--oci", "--json"}));
  EXPECT_EQ(first["entries"], 2);
  EXPECT_EQ(first["ref"], "1.0");
  EXPECT_EQ(second["ref"], nullptr);
  EXPECT_EQ(first["manifest"], second["manifest"]) << "neither folder nor name is in it";
  EXPECT_EQ(names_in_space(), (std::vector<std::string>{"a", "b"}));

  const ProgramOutput output = import(space_ + "/a", {"--json"});
  EXPECT_EQ(output.exit_code, 0) << output.err;
  EXPECT_EQ(document(output)["imported"], 2);
  EXPECT_EQ(document(output)["manifest"], first["manifest"]);
  const std::string other = document(output)["cache_dir"];
  EXPECT_EQ(document(cache({"import", space_ + "/b/", "--cache-dir", other, "--json"}))["kept"], 2);
  const ProgramOutput again = cache({"export", "--oci", space_ + "/c", "--cache-dir", other});
  EXPECT_TRUE(contains(again.out, "2 entries")) << again.out;
  EXPECT_TRUE(contains(again.out, "manifest " + first["manifest"].get<std::string>())) << again.out;

  const std::string name = cli_entry(128).id.key.text();
  const json one = document(cache({"export", "--oci", space_ + "/d", name, "--json"}));
  EXPECT_EQ(one["entries"], 1);
  EXPECT_NE(one["manifest"], first["manifest"]);
}

TEST_F(OciCli, TheFolderIsAnImageLayoutOfTheSpecification) {
  const LayoutFiles layout = made();
  EXPECT_EQ(json::parse(read_text(layout.folder + "/oci-layout")), (json{{"imageLayoutVersion", "1.0.0"}}));
  const json index = layout.index(), manifest = layout.manifest();
  ASSERT_EQ(index["manifests"].size(), 1u);
  EXPECT_EQ(index["schemaVersion"], 2);
  EXPECT_EQ(index["mediaType"], "application/vnd.oci.image.index.v1+json");
  EXPECT_EQ(index["manifests"][0]["mediaType"], manifest_type);
  EXPECT_EQ(index["manifests"][0]["artifactType"], "application/vnd.gemvjit.cache.v1");
  EXPECT_EQ(index["manifests"][0]["annotations"]["org.opencontainers.image.ref.name"], "1.0");
  EXPECT_EQ(manifest["schemaVersion"], 2);
  EXPECT_EQ(manifest["mediaType"], manifest_type);
  EXPECT_EQ(manifest["artifactType"], "application/vnd.gemvjit.cache.v1");
  EXPECT_EQ(manifest["config"]["mediaType"], "application/vnd.oci.empty.v1+json");
  EXPECT_EQ(read_text(layout.blob(manifest["config"])), "{}");
  ASSERT_EQ(manifest["layers"].size(), 1u);
  EXPECT_EQ(manifest["layers"][0]["annotations"]["org.opencontainers.image.title"], "kernels.gjb");
  EXPECT_EQ(manifest["annotations"]["vnd.gemvjit.cache.targets"], "sm_90a");
  std::size_t blobs = 0;
  for (const auto& item : fs::directory_iterator(layout.blobs())) {
    ++blobs;
    EXPECT_EQ("sha256:" + item.path().filename().string(), digest_of(read_text(item.path())));
  }
  EXPECT_EQ(blobs, 3u) << "manifest, config, layer, and nothing left of their making";
  EXPECT_EQ(manifest["layers"][0]["size"], fs::file_size(layout.layer()));

  // The layer alone serves as a read-only one.
  environment_["GEMVJIT_CACHE_RO"] = layout.layer();
  EXPECT_EQ(cache({"explain", cli_entry_key, "--cache-dir", folder_.path("")}).exit_code, 0);
}

// Whoever signed or pinned a digest has to find it again: a change of the manifest's text is a change of the format.
TEST_F(OciCli, TheManifestOfTheGoldenBundle) {
  const std::string golden = std::string(GEMVJIT_SOURCE_DIR) + "/tests/golden/bundle_v1.gjb", other = folder_.path("o");
  ASSERT_EQ(cache({"import", golden, "--cache-dir", other}).exit_code, 0);
  const json written = document(cache({"export", "--oci", space_ + "/a", "--cache-dir", other, "--json"}));
  EXPECT_EQ(written["manifest"], "sha256:f76881b2beb4262dcf0e1dae3658ad154c72f30a55abb788ea33fd761d1dec69");
}

TEST_F(OciCli, BadUsageIsTwo) {
  const std::string out = space_ + "/out", file = folder_.path("f.gjb");
  ASSERT_EQ(cache({"export", file}).exit_code, 0);
  for (const std::vector<std::string>& arguments : {std::vector<std::string>{"export", "--oci"},
                                                    {"export", out, "--ref", "a"},
                                                    {"export", out, "--replace"},
                                                    {"export", "--oci", out, "--ref", "a b"},
                                                    {"export", "--oci", out, "--ref", "../a"},
                                                    {"export", "--oci", out, "--ref", "a//b"},
                                                    {"export", "--oci", out, "--ref", "a\x1b[2J"},
                                                    {"export", "--oci", out, "--ref", std::string(256, 'a')},
                                                    {"import", out, "--oci"},
                                                    {"import", file, "--ref", "a"}}) {
    EXPECT_EQ(cache(arguments).exit_code, 2) << arguments.back();
  }
  EXPECT_TRUE(names_in_space().empty());
  EXPECT_EQ(cache({"export", "--oci", out, "--ref", "r.example:5000/a--b/c_d@1+2"}).exit_code, 0);
}

TEST_F(OciCli, WhatIsThereStays) {
  const std::string empty = space_ + "/empty", full = space_ + "/full", link = space_ + "/link",
                    file = space_ + "/file";
  for (const std::string& folder : {empty, full}) fs::create_directory(folder);
  write_text(full + "/mine", "mine");
  write_text(file, "file");
  fs::create_directory_symlink(empty, link);
  for (const std::string& path : {full, file, link, link + "/", space_, space_ + "/absent/x", std::string(".")}) {
    for (const bool replace : {false, true}) {
      std::vector<std::string> arguments{"export", "--oci", path};
      if (replace) arguments.push_back("--replace");
      const ProgramOutput output = cache(arguments);
      EXPECT_EQ(output.exit_code, 6) << path << output.err;
    }
  }
  EXPECT_EQ(read_text(full + "/mine"), "mine");
  EXPECT_TRUE(fs::is_empty(empty));
  EXPECT_EQ(names_in_space(), (std::vector<std::string>{"empty", "file", "full", "link"}));
  EXPECT_EQ(cache({"export", "--oci", empty}).exit_code, 0);
  EXPECT_EQ(import(empty).exit_code, 0);
}

TEST_F(OciCli, OnlyALayoutOfOursIsReplaced) {
  const LayoutFiles layout = made();
  const std::string before = read_text(layout.index_path());
  put(cli_entry(256));
  const ProgramOutput refused = cache({"export", "--oci", layout.folder});
  EXPECT_EQ(refused.exit_code, 6);
  EXPECT_TRUE(contains(refused.err, "--replace")) << refused.err;
  EXPECT_EQ(read_text(layout.index_path()), before);
  EXPECT_EQ(cache({"export", "--oci", layout.folder, "--replace"}).exit_code, 0);
  EXPECT_EQ(document(import(layout.folder, {"--json"}))["imported"], 3);
  EXPECT_EQ(std::distance(fs::directory_iterator(layout.blobs()), {}), 3) << "nothing of the old one";
  EXPECT_EQ(names_in_space(), std::vector<std::string>{"made"});

  for (const char* more : {"/notes", "/blobs/notes", "/blobs/sha256/notes"}) {
    write_text(layout.folder + more, "mine");
    EXPECT_EQ(cache({"export", "--oci", layout.folder, "--replace"}).exit_code, 6) << more;
    EXPECT_EQ(read_text(layout.folder + more), "mine");
    fs::remove(layout.folder + more);
  }
  // Somebody's image beside it.
  layout.change_index([&](json& index) {
    index["manifests"].push_back(layout.add(R"({"schemaVersion": 2, "config": {}, "layers": []})"));
  });
  EXPECT_EQ(cache({"export", "--oci", layout.folder, "--replace"}).exit_code, 6);
  EXPECT_EQ(import(layout.folder).exit_code, 0) << "which is no reason not to take ours";
}

TEST_F(OciCli, OneOfSeveralManifestsIsNamed) {
  const LayoutFiles layout = made("made", "first");
  put(cli_entry(256));
  const LayoutFiles second = made("second", "second");
  for (const auto& item : fs::directory_iterator(second.blobs())) {
    fs::copy_file(item.path(), layout.blobs() + item.path().filename().string(), fs::copy_options::skip_existing);
  }
  const json other = second.index()["manifests"][0];
  layout.change_index([&](json& index) {
    // An image and an index are not ours, and what they name need not be here.
    json image = layout.add(R"({"schemaVersion": 2, "layers": []})");
    json nested = layout.add(layout.index().dump(), "application/vnd.oci.image.index.v1+json");
    image["annotations"]["org.opencontainers.image.ref.name"] = "image";
    nested["annotations"]["org.opencontainers.image.ref.name"] = "nested";
    json absent{{"mediaType", manifest_type},
                {"digest", "sha256:" + std::string(64, 'a')},
                {"size", 1'000'000'000},
                {"artifactType", "application/vnd.another.v1"}};
    json twice = index["manifests"][0];
    twice["annotations"]["org.opencontainers.image.ref.name"] = "alias";
    index["manifests"].insert(index["manifests"].end(), {image, nested, absent, twice});
  });
  EXPECT_EQ(document(import(layout.folder, {"--json"}))["imported"], 2) << "one manifest with two names";
  layout.change_index([&](json& index) { index["manifests"].push_back(other); });

  const ProgramOutput ambiguous = import(layout.folder);
  EXPECT_EQ(ambiguous.exit_code, 2);
  EXPECT_TRUE(contains(ambiguous.err, "first, second")) << ambiguous.err;
  for (const auto& [ref, imported] :
       std::map<std::string, int>{{"first", 2}, {"alias", 2}, {"second", 3}, {other["digest"].get<std::string>(), 3}}) {
    EXPECT_EQ(document(import(layout.folder, {"--ref", ref, "--json"}))["imported"], imported) << ref;
  }
  for (const char* ref : {"third", "image", "nested", "sha256:"}) {
    const ProgramOutput output = import(layout.folder, {"--ref", ref});
    EXPECT_EQ(output.exit_code, 4) << ref << output.err;
  }
}

TEST_F(OciCli, SignaturesAreThoseOfTheBundle) {
  const auto opened = Ed25519::open();
  if (!opened) GTEST_SKIP() << opened.status().message();
  const SigningFiles files(folder_, **opened);
  const LayoutFiles plain = made("plain");
  const json signed_one =
      document(cache({"export", "--oci", space_ + "/signed", "--sign-key", folder_.path("1.key"), "--json"}));
  EXPECT_EQ(signed_one["signed_by"], files.pairs[0].id);
  EXPECT_EQ(document(cache(
                {"export", "--oci", space_ + "/again", "--sign-key", folder_.path("1.key"), "--json"}))["manifest"],
            signed_one["manifest"]);
  environment_["GEMVJIT_CACHE_TRUST_DIR"] = files.trust;
  for (const char* policy : {"bundles", "all"}) {
    environment_["GEMVJIT_CACHE_SIGNATURES"] = policy;
    EXPECT_EQ(import(plain.folder).exit_code, 10) << policy;
    const ProgramOutput output = import(space_ + "/signed", {"--json"});
    EXPECT_EQ(output.exit_code, 0) << output.err;
    EXPECT_EQ(document(output)["signature"]["state"], "trusted");
  }
}

TEST_F(OciCli, AnExportThatEndsEarlyLeavesNothing) {
  const LayoutFiles before = made("kept");
  for (int n = 3; n <= 60; ++n) {
    Entry one = cli_entry(64 * n);
    one.cubin.bytes.assign(120'000, static_cast<std::uint8_t>(n));
    put(one);
  }
  const std::string kept = read_text(before.index_path()), out = space_ + "/out";
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    Program program({GEMVJIT_CACHE_BINARY, "export", "--oci", out}, environment_);
    for (int i = 0; i < 20'000 && names_in_space().size() < 2; ++i) ::usleep(1000);
    program.send(signal);
    EXPECT_EQ(program.wait().exit_code, 130);
    EXPECT_EQ(names_in_space(), std::vector<std::string>{"kept"}) << signal;
  }
  // No room: a file may not grow beyond a megabyte.
  for (const std::string& arguments : {out, before.folder + " --replace"}) {
    const ProgramOutput output = run_program(
        {"/bin/sh", "-c", "trap '' XFSZ; ulimit -f 2048; exec " GEMVJIT_CACHE_BINARY " export --oci " + arguments},
        environment_);
    EXPECT_EQ(output.exit_code, 6) << output.err;
    EXPECT_EQ(names_in_space(), std::vector<std::string>{"kept"});
  }
  EXPECT_EQ(read_text(before.index_path()), kept);
  EXPECT_EQ(document(import(before.folder, {"--json"}))["imported"], 2);
}

TEST_F(OciCli, WhatKilledExportsLeftIsRemovedLater) {
  const std::string old_one = space_ + "/.tmp-1-0123456789abcdef.oci", young = space_ + "/.tmp-2-0123456789abcdef.oci",
                    other = space_ + "/.tmp-3.oci";
  for (const std::string& path : {old_one, young, other}) {
    fs::create_directories(path + "/blobs/sha256");
    write_text(path + "/blobs/sha256/kernels.gjb", "half");
    for (const char* sub : {"/blobs/sha256/kernels.gjb", "/blobs/sha256", "/blobs", ""}) {
      if (path == young && std::string(sub) == "/blobs/sha256/kernels.gjb") continue;  // still written
      fs::last_write_time(path + sub, fs::file_time_type::clock::now() - std::chrono::hours(2));
    }
  }
  made();
  EXPECT_EQ(names_in_space(), (std::vector<std::string>{".tmp-2-0123456789abcdef.oci", ".tmp-3.oci", "made"}));
}

// skopeo reads the layout, and what it writes is imported under the digest that was printed here.
TEST_F(OciCli, AWayThroughSkopeo) {
  const auto skopeo = [&](const std::string& arguments) {
    return run_program({"/bin/sh", "-c", "exec skopeo --insecure-policy --tmpdir " + space_ + " " + arguments},
                       environment_);
  };
  if (skopeo("--version").exit_code != 0) GTEST_SKIP() << "skopeo is not installed";
  const LayoutFiles layout = made();
  const std::string raw = skopeo("inspect --raw oci:" + layout.folder + ":1.0").out;
  EXPECT_EQ(digest_of(raw), layout.index()["manifests"][0]["digest"]) << raw;
  const std::string copy = space_ + "/copy", archive = space_ + "/kernels.tar", back = space_ + "/back";
  for (const std::string& way :
       {"oci:" + layout.folder + ":1.0 oci:" + copy + ":2.0", "oci:" + copy + ":2.0 oci-archive:" + archive + ":3.0",
        "oci-archive:" + archive + ":3.0 oci:" + back + ":4.0"}) {
    const ProgramOutput output = skopeo("copy --preserve-digests " + way);
    ASSERT_EQ(output.exit_code, 0) << way << output.err;
  }
  const json imported = document(import(back, {"--ref", "4.0", "--json"}));
  EXPECT_EQ(imported["imported"], 2);
  EXPECT_EQ(imported["manifest"], layout.index()["manifests"][0]["digest"]);
  EXPECT_EQ(cache({"export", "--oci", back, "--replace"}).exit_code, 0) << "it is still one of ours";
}

}  // namespace
}  // namespace gemvjit::test
