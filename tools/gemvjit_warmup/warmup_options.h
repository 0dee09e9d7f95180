// What the command line of gemvjit-warmup asks for.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/common/shape_spec.h"
#include "tools/gemvjit_warmup/shard.h"

namespace gemvjit::tools {

enum class WarmupMode { build, dry_run, check };
enum class PdlChoice { on, off, both };

struct WarmupOptions {
  std::vector<ShapeSpec> shapes;
  std::vector<std::string> models;  // folders or files
  std::string engine = "none";      // whose merging and padding --model follows
  std::vector<std::int64_t> tps;    // tensor parallel sizes; {1} if not said
  bool scan = false;                // read the scales of --model, too
  std::vector<std::string> archs;   // targets, without repeats; "native" among them or alone if none was named
  struct ArchName {
    std::string name;                  // as written
    std::vector<std::string> targets;  // of `archs`
    std::string note;                  // for people; "" if there is nothing to say
  };
  std::vector<ArchName> arch_names;  // what `archs` come from, without repeats
  std::vector<int> nts;              // empty: all of a family
  PdlChoice pdl = PdlChoice::on;
  std::optional<std::string> cache_dir;
  int jobs = 0;  // 0: the library's default
  WarmupMode mode = WarmupMode::build;
  std::string plan_in, plan_out;  // files; "": none
  bool any_digest = false;        // take a plan of other kernel sources by its keys
  bool isolate = false;           // compile in processes of their own
  double isolate_timeout_s = 600;
  int isolate_memory_mb = 0;  // of address space; 0: no limit
  Shard shard;                // of the kernels; all if not said
  double max_seconds = 0;     // 0: no limit
  bool tuned_only = false;
  bool segments = false, swizzle = false;  // also these kernels of NVFP4 shapes
  bool cluster_fallbacks = false;          // also what serves where a cluster does not fit
  std::string remote;                      // address of a remote cache, or "none"; "": what the settings say
  bool remote_write = false;               // publish there
  bool remote_required = false;            // an exit code of its own where it fails
  bool json = false;
  bool quiet = false;
  int verbosity = 0;
  std::string progress = "auto";  // one of progress_choices()

  bool wants_native() const;
};

// An exit code if the program is to end now, with what was wrong on stderr.
std::optional<int> parse_warmup_options(int argc, char** argv, WarmupOptions& options);

}  // namespace gemvjit::tools
