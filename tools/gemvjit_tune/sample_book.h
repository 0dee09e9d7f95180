// SampleBook: everything that was ever measured, in a file that grows by one line of JSON for each measurement. It lets
// a run go on where an earlier one stopped, and it teaches which configurations did well on shapes like the one at
// hand.
//
//   {"kind": "candidate", <case>, "tile", "pdl", "gpu", "compiler", "recipe", "final", "tokens": [1, 8],
//    "samples_us": [[...], [...]], "registers", "failure"}       samples: one list for each number of tokens
//   {"kind": "alternative", "n", "k", "nt", "silu_mul", "gpu", "compiler": "cublasLt ...", "us", "spread_us",
//   "failure"}
//
// "recipe" is the digest of what was compiled (sources, configuration, options): a kernel that was changed since is
// another one and is measured again. A line that is damaged (the last one of a run that was killed) is passed over.
//
// Threads: any. Processes: one at a time for a file.
#pragma once

#include <cstdio>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "tools/gemvjit_tune/search.h"
#include "tools/gemvjit_tune/tune_case.h"

namespace gemvjit::tools {

struct CandidateSample {
  TuneCase tune_case;
  Configuration configuration;
  std::string gpu, compiler, recipe;
  bool final = false;
  std::vector<std::vector<double>> samples_us;  // one list for each of tune_case.tokens()
  unsigned registers = 0;
  std::string failure;

  Outcome outcome() const;
};

struct AlternativeSample {
  TuneCase tune_case;  // its family does not count
  std::string gpu, compiler;
  double us = 0, spread_us = 0;
  std::string failure;
};

// A configuration that was measured on some shape, for shapes like it.
struct Known {
  TuneCase tune_case;
  Configuration configuration;
  double us = 0;
  int sm_count = 0;  // of the GPU that measured it; 0: not said
};

class SampleBook {
 public:
  // Reads the file, if it is there, and appends to it from then on. An empty path: in memory only. io_error if it
  // cannot be read or opened for writing, and if it is a link, or no regular file, or one with a second name.
  static Result<std::unique_ptr<SampleBook>> open(const std::string& path);
  ~SampleBook();
  SampleBook(const SampleBook&) = delete;
  SampleBook& operator=(const SampleBook&) = delete;

  std::size_t damaged_lines() const { return damaged_lines_; }
  std::optional<CandidateSample> find(const CandidateSample& like) const;  // all but samples and failure must agree
  std::optional<AlternativeSample> find(const AlternativeSample& like) const;
  // io_error if it could not be written; it is remembered all the same.
  Status add(const CandidateSample& sample);
  Status add(const AlternativeSample& sample);

  // Good configurations for a case, the most promising first: those of the `shapes` nearest ones (by the distance in
  // log N and log K; same family, nt and silu_mul; the case's own shape is the nearest of all) by turns, each shape's
  // fastest first, `rounds` rescaled. `also` are configurations known from elsewhere, such as a table.
  std::vector<Configuration> nearest(const TuneCase& c, std::size_t shapes, std::size_t a_shape,
                                     const std::vector<Known>& also) const;

 private:
  explicit SampleBook(std::FILE* file) : file_(file) {}
  void read_line(const std::string& line);
  void remember(const CandidateSample& sample);
  Status write(const std::string& line);

  mutable std::mutex mutex_;
  std::FILE* file_;
  std::size_t damaged_lines_ = 0;
  std::map<std::string, CandidateSample> candidates_;
  std::map<std::string, AlternativeSample> alternatives_;
  std::map<TuneCase, std::map<std::string, Known>> known_;  // by the configuration's text
};

}  // namespace gemvjit::tools
