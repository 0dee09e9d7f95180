// CompilerPool: the compilers of a context, opened when a compile is really needed and not before.
//
// Threads: any. A failure to open one is remembered too: the environment is read once, so that asking again would only
// cost the search again.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>

#include "src/compile/nvrtc_compiler.h"

namespace gemvjit {

// A compiler that lists `sm`, or no_compiler with what was tried and what for.
using CompilerFactory = std::function<Result<std::unique_ptr<Compiler>>(int sm, const std::string& purpose)>;

class CompilerPool {
 public:
  explicit CompilerPool(CompilerFactory factory) : factory_(std::move(factory)) {}

  struct Choice {
    std::shared_ptr<Compiler> compiler;
    std::size_t index = 0;  // of the candidate
  };
  // The first of the candidates (one kernel for several targets of one sm, best first) that the compiler supports.
  // no_compiler names what this compiler supports.
  Result<Choice> choose(std::span<const KernelKey> candidates);
  // For people: the compiler that is found without a target in mind, its file, and what it compiles for. no_compiler
  // with every file tried.
  Result<std::string> describe();

 private:
  Result<std::shared_ptr<Compiler>> compiler_for(int sm, const std::string& purpose);

  CompilerFactory factory_;
  std::mutex mutex_;
  std::map<int, Result<std::shared_ptr<Compiler>>> compilers_;  // by sm
};

}  // namespace gemvjit
