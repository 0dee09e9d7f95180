// gemvjit-cache import of OCI image layouts that are not whole: nothing is imported, and no name leads out of the
// folder.
#include <sys/stat.h>

#include <map>

#include "tests/tools/oci_cli_fixture.h"

namespace gemvjit::test {
namespace {

TEST_F(OciCli, DamagedLayoutsChangeNothing) {
  using Spoil = std::function<void(const LayoutFiles& layout)>;
  const auto size = [](const json& bytes) {
    return [bytes](const LayoutFiles& layout) {
      layout.change_index([&](json& index) { index["manifests"][0]["size"] = bytes; });
    };
  };
  const auto layer = [](const char* field, const json& value) {
    return [=](const LayoutFiles& layout) {
      layout.change_manifest([&](json& manifest) { manifest["layers"][0][field] = value; });
    };
  };
  const auto digest = [](const std::string& text) {
    return [=](const LayoutFiles& layout) {
      layout.change_index([&](json& index) { index["manifests"][0]["digest"] = text; });
    };
  };
  const std::string secret = folder_.path("secret");
  write_text(secret, "{}");
  const std::map<std::string, Spoil> ways = {
      {"a flipped byte in the layer", [](const LayoutFiles& layout) { damage(layout.layer()); }},
      {"a flipped byte in the manifest",
       [](const LayoutFiles& layout) { damage(layout.blob(layout.index()["manifests"][0])); }},
      {"a flipped byte in the config",
       [](const LayoutFiles& layout) { damage(layout.blob(layout.manifest()["config"])); }},
      {"no layer", [](const LayoutFiles& layout) { fs::remove(layout.layer()); }},
      {"no manifest", [](const LayoutFiles& layout) { fs::remove(layout.blob(layout.index()["manifests"][0])); }},
      {"no config", [](const LayoutFiles& layout) { fs::remove(layout.blob(layout.manifest()["config"])); }},
      {"no index", [](const LayoutFiles& layout) { fs::remove(layout.index_path()); }},
      {"no oci-layout", [](const LayoutFiles& layout) { fs::remove(layout.folder + "/oci-layout"); }},
      {"no blobs", [](const LayoutFiles& layout) { fs::remove_all(layout.folder + "/blobs"); }},
      {"another version",
       [](const LayoutFiles& layout) { write_text(layout.folder + "/oci-layout", R"({"imageLayoutVersion": "2"})"); }},
      {"a cut layer", [](const LayoutFiles& layout) { fs::resize_file(layout.layer(), 100); }},
      {"a manifest of 10^9 bytes", size(1'000'000'000)},
      {"a manifest of 2^64-1 bytes", size(~std::uint64_t{0})},
      {"a size below 0", size(-1)},
      {"a size of 1.5", size(1.5)},
      {"a size in words", size("700")},
      {"a wrong size", size(699)},
      {"a layer of 10^9 bytes", layer("size", 1'000'000'000)},
      {"a layer of 2^60 bytes", layer("size", std::uint64_t{1} << 60)},
      {"another layer's media type", layer("mediaType", "application/vnd.oci.image.layer.v1.tar+gzip")},
      {"a digest that leaves the folder", digest("sha256:../../../secret")},
      {"an absolute digest", digest("sha256:" + secret)},
      {"a layer's digest that leaves the folder", layer("digest", "sha256:../../../secret")},
      {"another algorithm", digest("../secret:" + std::string(64, 'a'))},
      {"a digest in capitals", digest("sha256:" + std::string(64, 'A'))},
      {"two layers",
       [](const LayoutFiles& layout) {
         layout.change_manifest([](json& manifest) { manifest["layers"].push_back(manifest["layers"][0]); });
       }},
      {"no list of layers",
       [](const LayoutFiles& layout) { layout.change_manifest([](json& manifest) { manifest["layers"] = 1; }); }},
      {"a layer that is no bundle",
       [](const LayoutFiles& layout) {
         layout.change_manifest([&](json& manifest) {
           manifest["layers"][0] = layout.add("no bundle", "application/vnd.gemvjit.cache.bundle.v1");
         });
       }},
      {"schemaVersion 1",
       [](const LayoutFiles& layout) {
         layout.change_manifest([](json& manifest) { manifest["schemaVersion"] = 1; });
       }},
      {"a deep index", [](const LayoutFiles& layout) { write_text(layout.index_path(), std::string(1 << 20, '[')); }},
      {"a deep manifest",
       [](const LayoutFiles& layout) {
         layout.set_manifest("{\"a\":" + std::string(100'000, '[') + std::string(100'000, ']') + "}");
       }},
      {"a large index",
       [](const LayoutFiles& layout) { write_text(layout.index_path(), "{}" + std::string(5 << 20, ' ')); }},
      {"many manifests",
       [](const LayoutFiles& layout) {
         layout.change_index([](json& index) {
           const json one = index["manifests"][0];
           for (int i = 0; i < 1024; ++i) index["manifests"].push_back(one);
         });
       }},
      {"no list of manifests",
       [](const LayoutFiles& layout) {
         layout.set_index({{"schemaVersion", 2}});
       }},
      {"an index that is a list", [](const LayoutFiles& layout) { write_text(layout.index_path(), "[]"); }},
      {"a name that is there twice",
       [](const LayoutFiles& layout) { write_text(layout.index_path(), R"({"manifests": [], "manifests": []})"); }},
      {"a link for a layer",
       [](const LayoutFiles& layout) {
         fs::rename(layout.layer(), layout.folder + "/away");
         fs::create_symlink(layout.folder + "/away", layout.layer());
       }},
      {"a link for the blobs",
       [](const LayoutFiles& layout) {
         fs::rename(layout.folder + "/blobs", layout.folder + "/away");
         fs::create_directory_symlink("away", layout.folder + "/blobs");
       }},
      {"a pipe for the index",
       [](const LayoutFiles& layout) {
         fs::remove(layout.index_path());
         ASSERT_EQ(::mkfifo(layout.index_path().c_str(), 0600), 0);
       }},
  };
  const LayoutFiles whole = made("whole");
  int count = 0;
  for (const auto& [name, spoil] : ways) {
    const LayoutFiles layout{space_ + "/" + std::to_string(++count)};
    fs::copy(whole.folder, layout.folder, fs::copy_options::recursive);
    spoil(layout);
    const ProgramOutput output = import(layout.folder);
    EXPECT_EQ(output.exit_code, 7) << name << ": " << output.err;
    EXPECT_TRUE(contains(output.err, layout.folder)) << name << ": " << output.err;
    EXPECT_TRUE(contains(output.err, "nothing was imported")) << name << ": " << output.err;
  }
  EXPECT_EQ(import(whole.folder).exit_code, 0);
}

TEST_F(OciCli, AFolderThatIsNoLayout) {
  EXPECT_EQ(import(space_ + "/absent").exit_code, 4);
  EXPECT_EQ(import(space_).exit_code, 5) << "nothing of a layout is damaged here";
  fs::create_directory_symlink(made().folder, space_ + "/link");
  EXPECT_EQ(import(space_ + "/link").exit_code, 5) << "as a link to a bundle";
  EXPECT_EQ(import(space_ + "/link/").exit_code, 5);
}

}  // namespace
}  // namespace gemvjit::test
