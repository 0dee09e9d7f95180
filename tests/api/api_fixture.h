// A context of the C API over the recording driver and the fake compiler.
#pragma once

#include <string>
#include <vector>

#include "gemvjit/gemvjit.h"
#include "src/api/api_support.h"
#include "tests/runtime/runtime_fixture.h"

namespace gemvjit::test {

class ApiTest : public RuntimeTest {
 protected:
  // Call after `options` and the fakes are as wanted.
  gemvjit_context* open() {
    context_.impl = make();
    return &context_;
  }
  void close() { context_.impl.reset(); }
  static gemvjit_problem problem(gemvjit_family family, std::int64_t n, std::int64_t k) {
    gemvjit_problem result;
    EXPECT_EQ(gemvjit_problem_init(&result, family, n, k), GEMVJIT_OK);
    result.allow_untuned = 1;
    return result;
  }
  static gemvjit_status warm(gemvjit_context* context, const std::vector<gemvjit_problem>& problems) {
    return gemvjit_warmup(context, problems.data(), problems.size(), nullptr);
  }
  static void* address(std::uintptr_t value) { return reinterpret_cast<void*>(value); }
  static gemvjit_nvfp4_gemv_args nvfp4_args(std::int64_t m, std::int64_t n, std::int64_t k) {
    gemvjit_nvfp4_gemv_args args{};
    args.struct_size = sizeof args;
    args.m = m;
    args.n = n;
    args.k = k;
    args.x_row_stride = k;
    args.x = address(0x10002);  // two bytes are enough
    args.weight = address(0x20010);
    args.weight_scale = address(0x30010);
    args.global_scale = static_cast<const float*>(address(0x40004));
    args.out = address(0x50002);
    args.scale_layout = GEMVJIT_SCALE_128X4_SWIZZLED;
    args.global_scale_kind = GEMVJIT_GLOBAL_SCALE_MULTIPLIER;
    args.pdl = 1;
    return args;
  }
  static gemvjit_bf16_gemv_args bf16_args(std::int64_t m, std::int64_t n, std::int64_t k) {
    gemvjit_bf16_gemv_args args{};
    args.struct_size = sizeof args;
    args.m = m;
    args.n = n;
    args.k = k;
    args.x_row_stride = k;
    args.x = address(0x10002);
    args.weight = address(0x20010);
    args.out = address(0x50002);
    args.pdl = 1;
    return args;
  }
  static gemvjit_dequantize_rows_args dequantize_args(std::int64_t n, std::int64_t k) {
    gemvjit_dequantize_rows_args args{};
    args.struct_size = sizeof args;
    args.n = n;
    args.k = k;
    args.weight = address(0x20010);
    args.weight_scale = address(0x30010);
    args.out = address(0x50010);
    args.scale_layout = GEMVJIT_SCALE_128X4_SWIZZLED;
    args.pdl = 1;
    return args;
  }

 private:
  gemvjit_context context_;
};

inline ::testing::AssertionResult last_error_has(std::string_view part) {
  if (std::string_view(gemvjit_last_error()).find(part) != std::string_view::npos) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << "the last error is \"" << gemvjit_last_error() << "\", without \"" << part
                                       << "\"";
}

}  // namespace gemvjit::test
