#include "tools/gemvjit_tune/kernel_source.h"

#include <fmt/format.h>

#include <ctime>

#include "src/compile/specialize.h"

namespace gemvjit::tools {
namespace {

// A message's first line: what a compiler says has many.
std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

}  // namespace

Prepared KernelSource::prepare(const TuneCase& c, const Configuration& configuration, const Arch& arch,
                               const std::string& gpu, bool final) const {
  Prepared made;
  made.sample.tune_case = c;
  made.sample.configuration = configuration;
  made.sample.gpu = gpu;
  made.sample.compiler = compiler_.version();
  made.sample.final = final;
  const auto fail = [&](const std::string& why) {
    made.sample.failure = first_line(why);
    return made;
  };
  const auto key = make_key(c.problem(), c.nt, configuration.tile, configuration.pdl, arch);
  if (!key) return fail(key.status().message());
  const auto spec = describe_key(*key);
  if (!spec) return fail(spec.status().message());
  made.spec = *spec;
  const auto recipe = specialize(*key);
  if (!recipe) return fail(recipe.status().message());
  made.sample.recipe = to_hex(recipe->digest).substr(0, 16);
  auto known = book_.find(made.sample);
  if (!known && !final) {  // more samples of the same serve as well
    made.sample.final = true;
    known = book_.find(made.sample);
    made.sample.final = final;
  }
  if (known) {
    made.sample = *known;
    made.measured = true;
    return made;
  }
  const auto cubin = cubin_of(*recipe);
  if (!cubin) return fail(cubin.status().message());
  const KernelResources& resources = (*cubin)->resources;
  made.sample.registers = resources.registers;
  if (resources.spill_store_bytes + resources.spill_load_bytes > 0) {
    return fail(fmt::format("spills registers: {} bytes stored, {} loaded, {} registers", resources.spill_store_bytes,
                            resources.spill_load_bytes, resources.registers));
  }
  made.cubin = *cubin;
  return made;
}

Result<std::shared_ptr<const Cubin>> KernelSource::cubin_of(const Recipe& recipe) const {
  if (store_ != nullptr) {
    if (auto entry = store_->get(recipe.id())) return std::make_shared<const Cubin>(std::move(entry->cubin));
  }
  GEMVJIT_TRY_ASSIGN(Cubin cubin, compiler_.compile(recipe));
  if (store_ == nullptr) return std::make_shared<const Cubin>(std::move(cubin));
  Entry entry{recipe.id(), static_cast<std::int64_t>(std::time(nullptr)), std::move(cubin), {}};
  (void)store_->put(entry);  // the store warns once; the kernel is there all the same
  return std::make_shared<const Cubin>(std::move(entry.cubin));
}

}  // namespace gemvjit::tools
