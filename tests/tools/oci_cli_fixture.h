// OCI image layouts that gemvjit-cache makes, and that a test reads, spoils and has imported.
#pragma once

#include <algorithm>
#include <functional>

#include "cache/store.h"
#include "src/base/sha256.h"
#include "tests/tools/cli_entries.h"
#include "tests/tools/cli_fixture.h"

namespace gemvjit::test {

namespace fs = std::filesystem;
using nlohmann::json;

inline constexpr const char* manifest_type = "application/vnd.oci.image.manifest.v1+json";

inline void write_text(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
}
inline std::string digest_of(const std::string& text) {
  return "sha256:" + to_hex(Sha256::of(text.data(), text.size()));
}

// A layout that a test reads and spoils.
struct LayoutFiles {
  std::string folder;

  std::string index_path() const { return folder + "/index.json"; }
  std::string blobs() const { return folder + "/blobs/sha256/"; }
  std::string blob(const json& descriptor) const {
    return blobs() + descriptor["digest"].get<std::string>().substr(sizeof "sha256:" - 1);
  }
  json index() const { return json::parse(read_text(index_path())); }
  json manifest() const { return json::parse(read_text(blob(index()["manifests"][0]))); }
  std::string layer() const { return blob(manifest()["layers"][0]); }

  void set_index(const json& index) const { write_text(index_path(), index.dump()); }
  // A descriptor of a blob that is written.
  json add(const std::string& text, const char* type = manifest_type) const {
    const json descriptor{{"mediaType", type}, {"digest", digest_of(text)}, {"size", text.size()}};
    write_text(blob(descriptor), text);
    return descriptor;
  }
  void set_manifest(const std::string& text) const {
    json changed = index();
    changed["manifests"][0] = add(text);
    set_index(changed);
  }
  void change_manifest(const std::function<void(json& manifest)>& change) const {
    json changed = manifest();
    change(changed);
    set_manifest(changed.dump());
  }
  void change_index(const std::function<void(json& index)>& change) const {
    json changed = index();
    change(changed);
    set_index(changed);
  }
};

class OciCli : public CliTest {
 protected:
  void SetUp() override {
    for (const std::int64_t n : {64, 128}) put(cli_entry(n));
    fs::create_directory(space_);
  }
  void put(const Entry& entry) const {
    const Status status = make_dir_store(cache_dir_, Log::silent())->put(entry);
    ASSERT_TRUE(status) << status.message();
  }
  LayoutFiles made(const std::string& name = "made", const std::string& ref = "1.0") const {
    const LayoutFiles layout{space_ + "/" + name};
    const ProgramOutput output = cache({"export", "--oci", layout.folder, "--ref", ref});
    EXPECT_EQ(output.exit_code, 0) << output.err;
    return layout;
  }
  // Into a folder of its own; nothing may be there after a failure.
  ProgramOutput import(const std::string& folder, std::vector<std::string> more = {}) {
    const std::string other = folder_.path("other" + std::to_string(++imports_));
    std::vector<std::string> arguments{"import", folder, "--cache-dir", other};
    arguments.insert(arguments.end(), more.begin(), more.end());
    ProgramOutput output = cache(arguments);
    if (output.exit_code != 0) {
      EXPECT_TRUE(entry_files(other).empty()) << output.err;
    }
    return output;
  }
  std::vector<std::string> names_in_space() const {
    std::vector<std::string> names;
    for (const auto& item : fs::directory_iterator(space_)) names.push_back(item.path().filename());
    std::sort(names.begin(), names.end());
    return names;
  }

  const std::string space_ = folder_.path("space");  // the folder where layouts are made
  int imports_ = 0;
};

}  // namespace gemvjit::test
