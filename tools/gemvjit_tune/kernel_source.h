// KernelSource: a configuration of a case becomes a compiled kernel, or the samples of it that there are already.
#pragma once

#include <memory>
#include <string>

#include "cache/store.h"
#include "src/catalog/catalog.h"
#include "src/compile/nvrtc_compiler.h"
#include "tools/gemvjit_tune/sample_book.h"
#include "tools/gemvjit_tune/tune_case.h"

namespace gemvjit::tools {

// What is known of one configuration before the device has its turn.
struct Prepared {
  CandidateSample sample;  // who it is: case, configuration, GPU, compiler, recipe; its samples, if `measured`
  bool measured = false;   // an earlier run has measured it: there is nothing to do
  KernelSpec spec;
  std::shared_ptr<const Cubin> cubin;  // null if measured, or if sample.failure says why there is none
};

class KernelSource {
 public:
  // `store` may be null: nothing is kept. Both must outlive this.
  KernelSource(Compiler& compiler, CubinStore* store, const SampleBook& book)
      : compiler_(compiler), store_(store), book_(book) {}

  // Never fails: a kernel that cannot be had, or that spills registers, is a sample with its failure. Threads: any.
  Prepared prepare(const TuneCase& c, const Configuration& configuration, const Arch& arch, const std::string& gpu,
                   bool final) const;
  std::string compiler_version() const { return compiler_.version(); }

 private:
  Result<std::shared_ptr<const Cubin>> cubin_of(const Recipe& recipe) const;

  Compiler& compiler_;
  CubinStore* store_;
  const SampleBook& book_;
};

}  // namespace gemvjit::tools
