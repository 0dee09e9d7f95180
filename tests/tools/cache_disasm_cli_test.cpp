// gemvjit-cache disasm: the right bytes reach the disassembler or the file, no shell is in between, nothing is left
// behind, and each failure has its exit code.
#include <sys/stat.h>
#include <unistd.h>

#include "cache/layout.h"
#include "cache/store.h"
#include "tests/support/entries.h"
#include "tests/support/nvdisasm.h"
#include "tests/tools/cli_fixture.h"

namespace gemvjit::test {
namespace {

using nlohmann::json;

class DisasmCli : public CliTest {
 protected:
  DisasmCli() {
    std::filesystem::create_directories(temporary_);
    environment_["TMPDIR"] = temporary_;
    environment_["GEMVJIT_NVDISASM"] = "";
    environment_["CUDA_HOME"] = "";
  }
  Entry put(const EntryParts& parts) const {
    const Entry entry = sample_entry(parts);
    EXPECT_TRUE(make_dir_store(cache_dir_, Log::silent())->put(entry));
    return entry;
  }
  // A script in a folder whose name a shell would trip over.
  std::string script(const std::string& name, const std::string& body) const {
    const std::string path = folder_.write("bin $HOME;'/" + name, "#!/bin/sh\n" + body);
    EXPECT_EQ(::chmod(path.c_str(), 0755), 0);
    return path;
  }
  void expect_nothing_left() const { EXPECT_TRUE(std::filesystem::is_empty(temporary_)); }

  std::string temporary_ = folder_.path("temporary $(false) '");
};

TEST_F(DisasmCli, TheToolGetsTheCubinInAPrivateFileAndItsOutputIsHandedOn) {
  const Entry entry = put({.payload = 70'000, .content = 'x'});
  put({.n = 128, .digest_byte = 2, .content = 'y'});
  environment_["GEMVJIT_NVDISASM"] = script("nvdisasm", "echo \"$#\"; stat -c '%a' \"$1\" \"${1%/*}\"; cat \"$1\"\n");
  const std::string cubin(70'000, 'x');
  for (const std::string& name : {entry.id.key.text(), to_hex(entry.id.digest).substr(0, 4)}) {
    const ProgramOutput output = cache({"disasm", name});
    EXPECT_EQ(output.exit_code, 0) << output.err;
    EXPECT_EQ(output.out, "1\n600\n700\n" + cubin);
    expect_nothing_left();
  }
  const json document = CliTest::document(cache({"disasm", entry.id.key.text(), "--json"}));
  EXPECT_EQ(document["key"], entry.id.key.text());
  EXPECT_EQ(document["digest"], to_hex(entry.id.digest));
  EXPECT_EQ(document["tool"], environment_["GEMVJIT_NVDISASM"]);
  EXPECT_EQ(document["listing"], "1\n600\n700\n" + cubin);
}

TEST_F(DisasmCli, NvdisasmOfThePathComesBeforeCuobjdumpAndThatGetsItsOption) {
  const Entry entry = put({});
  const std::string cuobjdump = script("cuobjdump", "echo \"cuobjdump $# $1\"\n");
  environment_["PATH"] = "relative:" + cuobjdump.substr(0, cuobjdump.rfind('/')) + ":/bin:/usr/bin";
  environment_["GEMVJIT_NVDISASM"] = cuobjdump;
  EXPECT_EQ(cache({"disasm", entry.id.key.text()}).out, "cuobjdump 2 -sass\n");
  script("nvdisasm", "echo nvdisasm\n");
  environment_["GEMVJIT_NVDISASM"] = "";
  EXPECT_EQ(cache({"disasm", entry.id.key.text()}).out, "nvdisasm\n");
}

TEST_F(DisasmCli, CubinGoesToAFileWithoutATool) {
  const Entry entry = put({.payload = 5000});
  environment_["GEMVJIT_NVDISASM"] = folder_.path("none");
  const std::string file = folder_.path("kernel.cubin");
  EXPECT_EQ(cache({"disasm", entry.id.key.text(), "--cubin", file}).exit_code, 0);
  EXPECT_EQ(read_text(file), std::string(entry.cubin.bytes.begin(), entry.cubin.bytes.end()));
  const json document = CliTest::document(cache({"disasm", entry.id.key.text(), "--cubin", file, "--json"}));
  EXPECT_EQ(document["bytes"], 5000);
  EXPECT_EQ(cache({"disasm", entry.id.key.text(), "--cubin", folder_.path("no/such/file")}).exit_code, 6);
  EXPECT_EQ(cache({"disasm", entry.id.key.text(), "--cubin", folder_.path() + "/"}).exit_code, 2);
}

TEST_F(DisasmCli, FailuresHaveTheirExitCodes) {
  const Entry entry = put({});
  const std::string key = entry.id.key.text();
  environment_["GEMVJIT_NVDISASM"] = folder_.path("none");
  ProgramOutput output = cache({"disasm", key});
  EXPECT_EQ(output.exit_code, 5);
  EXPECT_TRUE(contains(output.err, folder_.path("none"))) << output.err;
  EXPECT_TRUE(contains(error_message(cache({"disasm", key, "--json"})), "GEMVJIT_NVDISASM"));

  environment_["GEMVJIT_NVDISASM"] = script("nvdisasm", "echo part; echo wrong >&2; exit 3\n");
  output = cache({"disasm", key});
  EXPECT_EQ(output.exit_code, 5);
  EXPECT_TRUE(contains(output.err, "wrong") && contains(output.err, "exit code 3")) << output.err;
  environment_["GEMVJIT_NVDISASM"] = script("nvdisasm", "kill -9 $$\n");
  EXPECT_TRUE(contains(cache({"disasm", key}).err, "signal 9"));
  expect_nothing_left();

  EXPECT_EQ(cache({"disasm", "nonsense"}).exit_code, 2);
  EXPECT_EQ(cache({"disasm"}).exit_code, 2);
  EXPECT_EQ(cache({"disasm", "ffffffff"}).exit_code, 4);
  Entry other = entry;
  other.id.digest.fill(9);
  ASSERT_TRUE(make_dir_store(cache_dir_, Log::silent())->put(other));
  output = cache({"disasm", key});
  EXPECT_EQ(output.exit_code, 2) << "two entries";
  EXPECT_TRUE(contains(output.err, to_hex(other.id.digest))) << output.err;
  damage(entry_path(cache_dir_, entry.id));
  EXPECT_EQ(cache({"disasm", to_hex(entry.id.digest)}).exit_code, 7) << "only what is verified is shown";
}

// Where nothing is found at all, each place is named. Not to be seen on a machine with a toolkit in /usr/local.
TEST_F(DisasmCli, WithoutAnyToolAllPlacesAreNamed) {
  const Entry entry = put({});
  environment_["PATH"] = folder_.path("empty");
  environment_["CUDA_HOME"] = folder_.path("toolkit");
  const ProgramOutput output = cache({"disasm", entry.id.key.text()});
  if (!contains(output.err, "no disassembler")) GTEST_SKIP() << "this machine has a disassembler in /usr/local/cuda*";
  EXPECT_EQ(output.exit_code, 5);
  for (const std::string& place : {folder_.path("empty/nvdisasm"), folder_.path("toolkit/bin/cuobjdump")}) {
    EXPECT_TRUE(contains(output.err, place)) << output.err;
  }
}

TEST_F(DisasmCli, TheRealDisassemblerShowsAKernel) {
  const std::string nvdisasm = find_nvdisasm();
  if (nvdisasm.empty()) GTEST_SKIP() << "no nvdisasm on this machine";
  ASSERT_EQ(warm_one_kernel({"-q"}).exit_code, 0);
  environment_["GEMVJIT_NVDISASM"] = nvdisasm;
  const json listed = document(cache({"ls", "--json"}))["entries"];
  ASSERT_EQ(listed.size(), 1u);
  const ProgramOutput output = cache({"disasm", listed[0]["key"]});
  EXPECT_EQ(output.exit_code, 0) << output.err;
  EXPECT_TRUE(contains(output.out, listed[0]["entry_name"]) && contains(output.out, "EXIT"))
      << output.out.substr(0, 500);
  expect_nothing_left();
}

}  // namespace
}  // namespace gemvjit::test
