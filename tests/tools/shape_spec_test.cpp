#include "tools/common/shape_spec.h"

#include <gtest/gtest.h>

namespace gemvjit::tools {
namespace {

TEST(ShapeSpec, TakesEveryDocumentedForm) {
  struct Case {
    const char* text;
    ShapeSpec spec;
  };
  const Case cases[] = {
      {"4096x14336", {4096, 14336, ShapeFamily::nvfp4, false}},
      {"4096x14336:nvfp4", {4096, 14336, ShapeFamily::nvfp4, false}},
      {"4096x14336:silu", {4096, 14336, ShapeFamily::nvfp4, true}},
      {"8x16:bf16", {8, 16, ShapeFamily::bf16, false}},
      {"28672x4096:bf16:silu", {28672, 4096, ShapeFamily::bf16, true}},
      {"144x464:dequant", {144, 464, ShapeFamily::dequant, false}},
      {"144x464:swizzle", {144, 464, ShapeFamily::swizzle, false}},
      {"6144x4096:segments", {6144, 4096, ShapeFamily::nvfp4, false, true}},
      {"28672x4096:nvfp4:silu:segments", {28672, 4096, ShapeFamily::nvfp4, true, true}},
      {"28672x4096:segments:silu", {28672, 4096, ShapeFamily::nvfp4, true, true}},
      // Well spelled; that no kernel has such sizes is the library's verdict.
      {"0x64", {0, 64, ShapeFamily::nvfp4, false}},
      {"-8x64", {-8, 64, ShapeFamily::nvfp4, false}},
  };
  for (const Case& c : cases) {
    const auto spec = parse_shape(c.text);
    ASSERT_TRUE(spec) << c.text << ": " << spec.status().message();
    EXPECT_EQ(*spec, c.spec) << c.text;
  }
}

TEST(ShapeSpec, RefusesEverythingElseAndSaysWhatIsAccepted) {
  for (const char* text : {"",
                           "x",
                           "4096",
                           "4096x",
                           "x4096",
                           "4096X64",
                           "4096 x64",
                           "4096x64 ",
                           "4096x64x2",
                           "0x1000x2",
                           "1e3x64",
                           "+8x64",
                           "8x64:",
                           "8x64:fp8",
                           "8x64:NVFP4",
                           "8x64:silu:silu",
                           "8x64:silu:bf16",
                           "8x64:bf16:nvfp4",
                           "8x64:dequant:silu",
                           "8x64:swizzle:silu",
                           "8x64:bf16:segments",
                           "8x64:swizzle:segments",
                           "8x64:segments:segments",
                           "8x64:segments:nvfp4",
                           "8x64:bf16:",
                           "99999999999999999999x64",
                           "64x99999999999999999999"}) {
    const auto spec = parse_shape(text);
    ASSERT_FALSE(spec) << text;
    EXPECT_EQ(spec.status().code(), StatusCode::invalid_argument);
    EXPECT_NE(spec.status().message().find("NxK[:nvfp4|:bf16|:dequant|:swizzle][:silu][:segments]"), std::string::npos)
        << spec.status().message();
  }
  EXPECT_NE(parse_shape("99999999999999999999x64").status().message().find("64 bits"), std::string::npos);
}

}  // namespace
}  // namespace gemvjit::tools
