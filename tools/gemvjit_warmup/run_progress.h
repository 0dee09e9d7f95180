// RunProgress: what a run says on stderr while it goes on. First a table of what is there and what has to be built,
// with a forecast; then the progress, with the time left; with --progress=json both as events.
//
// Threads: kernel() from the library's threads, one at a time; message() from any; the rest from the main one.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "gemvjit/gemvjit.h"
#include "tools/common/progress.h"
#include "tools/common/time_left.h"
#include "tools/gemvjit_warmup/cache_report.h"
#include "tools/gemvjit_warmup/problem_list.h"
#include "tools/gemvjit_warmup/results.h"

namespace gemvjit::tools {

// What a build will find: by a look like that of --dry-run.
struct Preview {
  std::vector<KernelResult> kernels;  // with `from`
  Forecast forecast;
};
// By gemvjit_check, which changes nothing of what the run then finds, counts and says.
Preview look_ahead(gemvjit_context* context, const ProblemList& list, int jobs);
// A table by family and target, and the forecast, as wide as the stream.
std::string preview_text(const Preview& preview, const StreamStyle& style);

class RunProgress {
 public:
  // `preview`: null where there is none, as for --check and --dry-run. Begins to draw.
  RunProgress(ProgressMode mode, WarmupMode run_mode, const Preview* preview);
  RunProgress(const RunProgress&) = delete;
  RunProgress& operator=(const RunProgress&) = delete;

  void kernel(const gemvjit_kernel_info& kernel, const char* status);
  void message(std::string_view line) { progress_.message(line); }
  void stop_drawing() { progress_.finish(); }
  // The last event. `summary`: that of --json.
  void end(const nlohmann::ordered_json& summary, int exit_code);

 private:
  std::optional<double> seconds_left(double now);

  std::mutex mutex_;  // of what follows: the drawing thread asks for the time left
  std::optional<TimeLeft> left_;
  std::map<std::string, int> to_compile_;  // family by key
  Progress progress_;                      // last: its thread uses the others
};

}  // namespace gemvjit::tools
