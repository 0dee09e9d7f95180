// What the embedded tuning tables name compiles without spills on the targets they list: each time a sample, spread
// over families, nt and ways for weights; with GEMVJIT_TEST_ALL_TABLE_KEYS set every entry and every default
// (CONTRIBUTING.md).
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <map>
#include <ostream>
#include <set>
#include <thread>

#include "embedded/embedded_tuning_tables.h"
#include "src/catalog/catalog.h"
#include "src/compile/nvrtc_compiler.h"
#include "src/compile/specialize.h"
#include "src/cuda/nvrtc_api.h"
#include "src/tuning/table_data.h"

namespace gemvjit {
namespace {

constexpr std::size_t kSample = 40;          // keys of a target that a table lists
constexpr std::size_t kSampleOfOthers = 10;  // of one that "*" stands for

// Stable over machines and runs, and without regard to the order of a table.
std::uint64_t scramble(const std::string& text) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash ^ hash >> 29;
}

// `count` of the keys, or all if there are fewer: each (family, nt, variant) has a turn until all are used up.
std::vector<KernelKey> spread_sample(const std::vector<KernelKey>& keys, std::size_t count) {
  std::map<std::tuple<Family, int, unsigned>, std::map<std::uint64_t, KernelKey>> strata;
  for (const KernelKey& key : keys) {
    const KernelSpec spec = *describe_key(key);
    strata[{spec.family, key.nt, spec.tile.variant}].emplace(scramble(key.text()), key);
  }
  std::vector<KernelKey> sample;
  for (bool took = true; took;) {
    took = false;
    for (auto& [kind, rest] : strata) {
      if (rest.empty() || sample.size() == count) continue;
      sample.push_back(rest.begin()->second);
      rest.erase(rest.begin());
      took = true;
    }
  }
  return sample;
}

// Keys of shapes that a row of defaults takes, two for each nt and silu_mul: some N and K of models and the row's
// bounds.
std::vector<KernelKey> keys_of_row(const DefaultRow& row, const Arch& arch) {
  std::vector<KernelKey> keys;
  for (const int nt : nt_values(row.family)) {
    for (const bool silu_mul : {false, true}) {
      std::size_t found = 0;
      for (const std::int64_t n : {std::int64_t{1968}, row.max_n / 16 * 16, (row.min_n + 15) / 16 * 16,
                                   std::int64_t{4096}, std::int64_t{28672}}) {
        for (const std::int64_t k : {std::int64_t{4096}, row.max_k / 32 * 32, (row.min_k + 31) / 32 * 32,
                                     std::int64_t{2880}, std::int64_t{14336}}) {
          const Problem problem{row.family, n, k, silu_mul, true};
          if (found == 2 || !row.fits(problem, nt)) continue;
          const auto key = make_key(problem, nt, row.tile, row.pdl, arch);
          if (!key) continue;
          keys.push_back(*key);
          ++found;
          break;  // the next one with another N
        }
      }
    }
  }
  return keys;
}

// Every entry and default of a table on a target, each key once. A row of defaults that takes none of the shapes tried
// is a failure.
std::vector<KernelKey> keys_of_table(const TableData& table, const Arch& arch) {
  std::set<std::string> seen;
  std::vector<KernelKey> keys;
  const auto add = [&](const KernelKey& key) {
    if (seen.insert(key.text()).second) keys.push_back(key);
  };
  for (const TunedEntry& entry : table.entries) {
    const auto key =
        make_key({entry.family, entry.n, entry.k, entry.silu_mul, true}, entry.nt, entry.tile, entry.pdl, arch);
    EXPECT_TRUE(key) << table.name << ": " << key.status().message();
    if (key) add(*key);
  }
  for (std::size_t i = 0; i < table.defaults.size(); ++i) {
    const auto of_row = keys_of_row(table.defaults[i], arch);
    EXPECT_FALSE(of_row.empty()) << table.name << ": defaults[" << i << "] was not tried on " << arch.text();
    for (const KernelKey& key : of_row) add(key);
  }
  return keys;
}

struct Listed {
  std::string file, text;
  Arch arch;
  std::size_t sample = kSample;
};
void PrintTo(const Listed& listed, std::ostream* out) { *out << listed.file << " on " << listed.arch.text(); }

std::vector<Listed> listed_targets() {
  std::vector<Listed> all;
  for (const EmbeddedFile& file : embedded_tuning_tables()) {
    const auto table = parse_table(std::string(file.name), file.text);
    if (!table) continue;  // EmbeddedTablesAreSound says so
    for (const std::string& name : table->archs) {
      const Listed listed{std::string(file.name), std::string(file.text), {}};
      if (name == "*") {
        for (const Arch& arch : {Arch{80, 0}, Arch{100, 'a'}, Arch{120, 'a'}}) {
          all.push_back({listed.file, listed.text, arch, kSampleOfOthers});
        }
      } else {
        all.push_back({listed.file, listed.text, *Arch::parse(name)});
      }
    }
  }
  return all;
}

class TableKeys : public testing::TestWithParam<Listed> {};

TEST_P(TableKeys, CompileWithoutSpills) {
  auto api = cuda::load_nvrtc(cuda::nvrtc_search_from_environment(), 0, "the compile tests");
  if (!api) GTEST_SKIP() << api.status().message();
  const auto compiler = make_nvrtc_compiler(std::move(*api));
  const auto& [file, text, arch, sample] = GetParam();
  if (!compiler->supports(arch)) GTEST_SKIP() << compiler->version() << " does not know " << arch.text();

  const char* const wish = std::getenv("GEMVJIT_TEST_ALL_TABLE_KEYS");
  const bool all = wish != nullptr && *wish != '\0';
  std::vector<KernelKey> keys = keys_of_table(*parse_table(file, text), arch);
  if (!all) keys = spread_sample(keys, sample);
  ASSERT_FALSE(keys.empty());

  std::vector<std::string> problems(keys.size());  // by key, so that threads do not meet
  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    for (std::size_t i = next++; i < keys.size(); i = next++) {
      const auto recipe = specialize(keys[i]);
      const auto cubin = recipe ? compiler->compile(*recipe) : Result<Cubin>(recipe.status());
      if (!cubin) {
        problems[i] = cubin.status().text();
      } else if (cubin->resources.spill_store_bytes + cubin->resources.spill_load_bytes != 0) {
        problems[i] = fmt::format("spills {} bytes", cubin->resources.spill_store_bytes);
      }
    }
  };
  std::vector<std::thread> threads(all ? std::max(1u, std::thread::hardware_concurrency()) : 1);
  for (std::thread& thread : threads) thread = std::thread(work);
  for (std::thread& thread : threads) thread.join();
  for (std::size_t i = 0; i < keys.size(); ++i) {
    EXPECT_EQ(problems[i], "") << keys[i].text() << ": " << flags_text(keys[i].flags);
  }
  RecordProperty("keys", std::to_string(keys.size()));
}

INSTANTIATE_TEST_SUITE_P(Embedded, TableKeys, testing::ValuesIn(listed_targets()), [](const auto& listed) {
  const std::string& file = listed.param.file;
  return fmt::format("{}_of_{}", listed.param.arch.text(), file.substr(0, file.find('.')));
});

TEST(TableKeysOf, EmbeddedTablesAreSound) {
  for (const EmbeddedFile& file : embedded_tuning_tables()) {
    const auto table = parse_table(std::string(file.name), file.text);
    EXPECT_TRUE(table) << table.status().message();
  }
}

// A table of many entries of one kind and few of others: the sample has some of each, and is the same in any order.
TEST(TableKeysOf, SampleIsSpreadAndDoesNotDependOnTheOrder) {
  std::vector<KernelKey> keys;
  const auto add = [&](Family family, int nt, unsigned variant, int count) {
    TileConfig tile;
    tile.variant = variant;
    tile.stages = 2;
    for (int i = 1; i <= count; ++i) {
      keys.push_back(*make_key({family, 128 * i, 4096, false, true}, nt, tile, true, {90, 'a'}));
    }
  };
  add(Family::nvfp4_gemv, 1, 0, 200);
  add(Family::nvfp4_gemv, 4, 1, 1);
  add(Family::bf16_gemv, 2, 1, 3);
  const auto sample = spread_sample(keys, 12);
  ASSERT_EQ(sample.size(), 12u);
  const auto of = [&](int nt) {
    return std::count_if(sample.begin(), sample.end(), [&](const KernelKey& key) { return key.nt == nt; });
  };
  EXPECT_EQ(of(1), 8);
  EXPECT_EQ(of(2), 3);
  EXPECT_EQ(of(4), 1);
  std::reverse(keys.begin(), keys.end());
  EXPECT_EQ(spread_sample(keys, 12), sample);
  EXPECT_EQ(spread_sample(keys, 1000).size(), keys.size());
}

TEST(TableKeysOf, EntriesAndEveryRowOfDefaultsGiveKeys) {
  TableData table;
  TunedEntry entry;
  entry.family = Family::bf16_gemv;
  entry.n = 512, entry.k = 1024, entry.nt = 2, entry.silu_mul = true;
  entry.tile = {.warps_k = 4, .stages = 2};
  table.entries = {entry, entry};  // one key, named twice
  DefaultRow small;
  small.nt = 1, small.silu_mul = 0, small.max_n = 64, small.max_k = 256;
  small.tile = {.warps_k = 2, .stages = 1};
  table.defaults.push_back(small);
  const auto keys = keys_of_table(table, {90, 'a'});
  ASSERT_EQ(keys.size(), 2u);
  EXPECT_EQ(keys[0].n, 512);
  EXPECT_EQ(keys[0].nt, 2);
  EXPECT_EQ(keys[1].n, 64);
  EXPECT_EQ(keys[1].k, 256);
}

}  // namespace
}  // namespace gemvjit
