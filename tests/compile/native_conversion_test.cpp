// The conversion of E2M1 in machine code: a newer NVRTC uses it on the a and f targets of Blackwell, and nowhere else;
// one older than 13.2 uses it nowhere. Compiled and disassembled only: no such GPU executes it here. (That both
// decoders compute the same is in decoders_agree_test.cpp.) B67: two NVRTCs on one machine.
#include <glob.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "src/catalog/catalog.h"
#include "src/compile/nvrtc_compiler.h"
#include "src/compile/specialize.h"
#include "src/cuda/nvrtc_api.h"
#include "tests/support/nvdisasm.h"

namespace gemvjit {
namespace {

using testing::HasSubstr;
using testing::Not;

// The folder of a second, newer NVRTC: tools/test.sh puts the wheel into build/deps where it can be had.
std::string find_newer_nvrtc() {
  if (const char* named = std::getenv("GEMVJIT_TEST_NEWER_NVRTC"); named != nullptr) return named;
  glob_t matches{};
  std::string found;
  const std::string pattern = std::string(GEMVJIT_SOURCE_DIR) + "/build/deps/newer_nvrtc/nvidia/*/lib";
  if (glob(pattern.c_str(), 0, nullptr, &matches) == 0) found = matches.gl_pathv[0];
  globfree(&matches);
  return found;
}

class NativeConversion : public testing::Test {
 protected:
  void SetUp() override {
    disassembler_ = test::find_nvdisasm();
    if (disassembler_.empty()) GTEST_SKIP() << "no nvdisasm found (CUDA toolkit, or the wheel nvidia-cuda-nvdisasm)";
  }
  void open_newer() {
    const std::string folder = find_newer_nvrtc();
    if (folder.empty()) GTEST_SKIP() << "no second NVRTC in build/deps/newer_nvrtc: tools/test.sh fetches it from PyPI";
    cuda::NvrtcSearch search;
    search.gemvjit_nvrtc = folder;
    open(search);
    ASSERT_GE(version_, std::pair(13, 2)) << folder;
  }
  void open(const cuda::NvrtcSearch& search) {
    const auto api = cuda::load_nvrtc(search, 0, "the conversion's tests");
    if (!api) GTEST_SKIP() << api.status().message();
    version_ = {(*api)->major, (*api)->minor};
    compiler_ = make_nvrtc_compiler(*api);
  }
  // The machine code of an NVFP4 kernel; "" and a failure if there is none.
  std::string sass(Family family, const Arch& arch, TileConfig tile = {}) {
    const bool has_tokens = family_row(family).has_tokens;
    const auto key = make_key({family, 4096, 4096, false, true}, has_tokens ? 1 : 0,
                              has_tokens ? tile : no_tile(), true, arch);
    EXPECT_TRUE(key) << key.status().text();
    const auto recipe = specialize(*key);
    EXPECT_TRUE(recipe) << recipe.status().text();
    const auto cubin = compiler_->compile(*recipe);
    EXPECT_TRUE(cubin) << cubin.status().text();
    if (!cubin) return "";
    EXPECT_EQ(cubin->resources.spill_store_bytes, 0u) << key->text();
    const std::string listing = test::disassemble(disassembler_, cubin->bytes);
    EXPECT_THAT(listing, HasSubstr("EXIT")) << key->text();
    return listing;
  }

  std::string disassembler_;
  std::pair<int, int> version_;
  std::unique_ptr<Compiler> compiler_;
};

constexpr const char* kConversion = "F2FP.BF16.E2M1.UNPACK_B";

TEST_F(NativeConversion, ANewerNvrtcUsesItOnTheSuffixedTargetsOfBlackwell) {
  open_newer();
  if (IsSkipped() || HasFatalFailure()) return;
  for (const Arch& arch : {Arch{100, 'a'}, Arch{100, 'f'}, Arch{103, 'a'}, Arch{110, 'a'}, Arch{120, 'a'},
                           Arch{120, 'f'}, Arch{121, 'a'}}) {
    ASSERT_TRUE(compiler_->supports(arch)) << arch.text();
    const std::string gemv = sass(Family::nvfp4_gemv, arch);
    EXPECT_THAT(gemv, HasSubstr(kConversion)) << arch.text();
    EXPECT_THAT(gemv, HasSubstr("HMMA")) << arch.text();
    EXPECT_THAT(sass(Family::dequantize_rows, arch), HasSubstr(kConversion)) << arch.text();
  }
}

// Negative control of the above, and what keeps entries of plain targets loadable on every chip of their generation.
TEST_F(NativeConversion, ANewerNvrtcUsesItNowhereElse) {
  open_newer();
  if (IsSkipped() || HasFatalFailure()) return;
  for (const Arch& arch : {Arch{80, 0}, Arch{89, 0}, Arch{90, 'a'}, Arch{100, 0}, Arch{120, 0}}) {
    EXPECT_THAT(sass(Family::nvfp4_gemv, arch), Not(HasSubstr("E2M1"))) << arch.text();
  }
  EXPECT_THAT(sass(Family::bf16_gemv, {100, 'a'}), Not(HasSubstr("E2M1")));
}

// The other compiler makes the same entry, by name and digest, with the integer decoder.
TEST_F(NativeConversion, AnOlderNvrtcFallsBackToTheIntegerDecoder) {
  open(cuda::nvrtc_search_from_environment());
  if (IsSkipped() || HasFatalFailure()) return;
  if (version_ >= std::pair(13, 2)) GTEST_SKIP() << compiler_->version() << " has the conversion";
  for (const Arch& arch : {Arch{100, 'a'}, Arch{120, 'a'}}) {
    EXPECT_THAT(sass(Family::nvfp4_gemv, arch), Not(HasSubstr("E2M1"))) << arch.text();
  }
}

}  // namespace
}  // namespace gemvjit
