// The commands of gemvjit-cache: a row here, a file each. A command writes its result to stdout and what went wrong to
// stderr, and returns the exit code.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/common/exit_codes.h"
#include "tools/common/output.h"

namespace gemvjit::tools {

struct CacheArguments {
  std::optional<std::string> cache_dir;  // --cache-dir
  bool json = false;
  std::vector<std::string> selectors;  // show: one, rm, export: any number; a key's text or a digest's first digits
  bool all = false, damaged = false;   // rm
  std::string max_bytes, max_age;      // gc: as typed
  bool dry_run = false;                // gc
  bool other_versions = false;         // gc
  std::string keep_plan;               // gc: a plan's file
  bool all_archs = false;              // gc: also targets that the plan has nothing of
  bool any_digest = false;             // gc: keep the plan's keys of whatever kernel sources
  bool deep = false, repair = false;   // verify
  bool prometheus = false;             // stats
  bool origin = false;                 // config
  std::string sign_key;                // export, sign
  std::string file;                    // export, import: the bundle, or an OCI image layout's folder
  bool oci = false, replace = false;   // export
  std::string ref;                     // export, import: a name in an OCI image layout
  std::string arch;                    // gc, export, explain: as typed
  std::vector<std::string> targets;    // gc, export: what `arch` stands for; empty: all
  bool silu = false, bf16 = false;     // explain of a shape
  bool no_pdl = false, tuned_only = false;  // explain of a shape
  std::string remote, set, plan;            // push, pull
  bool force = false;                       // push
  std::string cubin;                        // disasm: where to write the cubin instead
};

ExitCode list_entries(const CacheArguments& arguments);
ExitCode show_entry(const CacheArguments& arguments);
ExitCode verify_entries(const CacheArguments& arguments);
ExitCode show_stats(const CacheArguments& arguments);
ExitCode remove_entries(const CacheArguments& arguments);
ExitCode collect_entries(const CacheArguments& arguments);
ExitCode show_path(const CacheArguments& arguments);
ExitCode export_entries(const CacheArguments& arguments);
ExitCode import_entries(const CacheArguments& arguments);
ExitCode push_entries(const CacheArguments& arguments);
ExitCode pull_entries(const CacheArguments& arguments);
ExitCode sign_entries(const CacheArguments& arguments);
ExitCode explain_key(const CacheArguments& arguments);
ExitCode explain_shape(const CacheArguments& arguments);
ExitCode disassemble_entry(const CacheArguments& arguments);
ExitCode show_config(const CacheArguments& arguments);
ExitCode run_doctor(const CacheArguments& arguments);

}  // namespace gemvjit::tools
