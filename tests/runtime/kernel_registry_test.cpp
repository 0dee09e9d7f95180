#include "src/runtime/kernel_registry.h"

#include <gtest/gtest.h>

#include <thread>

#include "src/catalog/kernel_flags.h"

namespace gemvjit {
namespace {

// A kernel as load() would make it, without a driver. `family` dequantize_rows takes nt 0.
std::unique_ptr<LoadedKernel> kernel(std::int64_t n, int nt, bool pdl, Family family = Family::nvfp4_gemv,
                                     bool silu_mul = false) {
  TileConfig tile;
  if (nt == 4) tile.stages = 2;
  if (family == Family::dequantize_rows) tile = no_tile();
  const auto key = make_key({family, n, 4096, silu_mul, pdl}, nt, tile, true, {90, 'a'});
  EXPECT_TRUE(key) << key.status().text();
  auto loaded = std::make_unique<LoadedKernel>();
  loaded->spec = describe_key(*key).value();
  return loaded;
}

const LoadedKernel* insert(KernelRegistry& registry, std::unique_ptr<LoadedKernel> kernel) {
  const LoadedKernel* const taken = registry.add(std::move(kernel));
  registry.serve(*taken);
  return taken;
}

LaunchShape shape(std::int64_t n, bool pdl, Family family = Family::nvfp4_gemv, bool silu_mul = false) {
  return {n, 4096, family, silu_mul, pdl};
}

TEST(KernelRegistry, AnEmptyOneKnowsNothing) {
  const KernelRegistry registry;
  const auto found = registry.find(shape(4096, true), 1);
  EXPECT_EQ(found.kernel, nullptr);
  EXPECT_FALSE(found.shape_known);
  EXPECT_EQ(registry.size(), 0u);
}

TEST(KernelRegistry, TheSmallestWarmedNtThatCoversServes) {
  KernelRegistry registry;
  const LoadedKernel* four = insert(registry, kernel(4096, 4, false));
  EXPECT_EQ(registry.find(shape(4096, false), 1).kernel, four);  // a larger one covers
  const LoadedKernel* one = insert(registry, kernel(4096, 1, false));
  for (const int m : {1, 7, 8}) EXPECT_EQ(registry.find(shape(4096, false), m).kernel, one) << m;
  for (const int m : {9, 16, 17, 32}) EXPECT_EQ(registry.find(shape(4096, false), m).kernel, four) << m;
  const LoadedKernel* two = insert(registry, kernel(4096, 2, false));
  for (const int m : {9, 16}) EXPECT_EQ(registry.find(shape(4096, false), m).kernel, two) << m;
  EXPECT_EQ(registry.find(shape(4096, false), 8).kernel, one);
  EXPECT_EQ(registry.find(shape(4096, false), 17).kernel, four);
}

TEST(KernelRegistry, AShapeMayBeKnownAndMNotCovered) {
  KernelRegistry registry;
  insert(registry, kernel(4096, 1, false));
  const auto found = registry.find(shape(4096, false), 9);
  EXPECT_EQ(found.kernel, nullptr);
  EXPECT_TRUE(found.shape_known);
}

TEST(KernelRegistry, ALaunchThatForbidsPdlNeverGetsAPdlKernel) {
  KernelRegistry registry;
  insert(registry, kernel(4096, 1, true));
  EXPECT_NE(registry.find(shape(4096, true), 1).kernel, nullptr);
  EXPECT_EQ(registry.find(shape(4096, false), 1).kernel, nullptr);
  EXPECT_FALSE(registry.find(shape(4096, false), 1).shape_known);
}

TEST(KernelRegistry, ALaunchThatAllowsPdlFallsBackAndPrefers) {
  KernelRegistry registry;
  const LoadedKernel* plain = insert(registry, kernel(4096, 1, false));
  EXPECT_EQ(registry.find(shape(4096, true), 1).kernel, plain);
  const LoadedKernel* pdl = insert(registry, kernel(4096, 1, true));
  EXPECT_EQ(registry.find(shape(4096, true), 1).kernel, pdl);
  EXPECT_EQ(registry.find(shape(4096, false), 1).kernel, plain);
  // The order does not matter.
  KernelRegistry other;
  const LoadedKernel* first = insert(other, kernel(4096, 1, true));
  insert(other, kernel(4096, 1, false));
  EXPECT_EQ(other.find(shape(4096, true), 1).kernel, first);
  // Less work comes before overlap.
  const LoadedKernel* two = insert(other, kernel(8192, 2, true));
  const LoadedKernel* one = insert(other, kernel(8192, 1, false));
  EXPECT_EQ(other.find(shape(8192, true), 1).kernel, one);
  EXPECT_EQ(other.find(shape(8192, true), 9).kernel, two);
}

TEST(KernelRegistry, FamiliesAndFlagsAreApart) {
  KernelRegistry registry;
  const LoadedKernel* nvfp4 = insert(registry, kernel(4096, 1, false));
  const LoadedKernel* bf16 = insert(registry, kernel(4096, 1, false, Family::bf16_gemv));
  const LoadedKernel* silu = insert(registry, kernel(4096, 1, false, Family::nvfp4_gemv, true));
  const LoadedKernel* rows = insert(registry, kernel(4096, 0, false, Family::dequantize_rows));
  EXPECT_EQ(registry.find(shape(4096, false), 1).kernel, nvfp4);
  EXPECT_EQ(registry.find(shape(4096, false, Family::bf16_gemv), 1).kernel, bf16);
  EXPECT_EQ(registry.find(shape(4096, false, Family::nvfp4_gemv, true), 1).kernel, silu);
  EXPECT_EQ(registry.find(shape(4096, false, Family::dequantize_rows), 0).kernel, rows);
  EXPECT_EQ(registry.find(shape(4096, false, Family::bf16_gemv, true), 1).kernel, nullptr);
}

TEST(KernelRegistry, OneKeyIsKeptOnce) {
  KernelRegistry registry;
  const LoadedKernel* first = insert(registry, kernel(4096, 1, false));
  EXPECT_EQ(insert(registry, kernel(4096, 1, false)), first);
  EXPECT_EQ(registry.size(), 1u);
  EXPECT_EQ(registry.find_key(first->spec.key), first);
  KernelKey other = first->spec.key;
  other.arch = {90, 0};
  EXPECT_EQ(registry.find_key(other), nullptr);
}

TEST(KernelRegistry, ItGrowsWhileOthersRead) {
  KernelRegistry registry;
  const LoadedKernel* first = insert(registry, kernel(8, 1, false));
  std::atomic<bool> stop{false};
  std::atomic<int> wrong{0};
  std::vector<std::thread> readers;
  for (int i = 0; i < 2; ++i) {
    readers.emplace_back([&] {
      while (!stop) {
        if (registry.find(shape(8, false), 1).kernel != first) ++wrong;
        const LoadedKernel* some = registry.find(shape(808, true), 1).kernel;
        if (some != nullptr && some->spec.key.n != 808) ++wrong;
      }
    });
  }
  constexpr int count = 700;  // two slots each
  for (int i = 2; i <= count; ++i) insert(registry, kernel(8 * i, 1, false));
  stop = true;
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(wrong, 0);
  for (int i = 1; i <= count; ++i) {
    const LoadedKernel* found = registry.find(shape(8 * i, true), 1).kernel;
    ASSERT_NE(found, nullptr) << i;
    EXPECT_EQ(found->spec.key.n, 8 * i);
  }
  EXPECT_EQ(registry.find(shape(8 * (count + 1), true), 1).kernel, nullptr);
}

}  // namespace
}  // namespace gemvjit
