// gemvjit-cache disasm: the machine code of one entry.
#include <fmt/format.h>
#include <signal.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "src/base/files.h"
#include "tools/common/interrupt.h"
#include "tools/gemvjit_cache/cache_folder.h"
#include "tools/gemvjit_cache/disassembler.h"

namespace gemvjit::tools {
namespace {

// The one whole entry of the name; what a key with several means is for the caller to say.
ExitCode choose_entry(const std::vector<ListedEntry>& entries, const std::string& selector, const Entry*& entry) {
  std::vector<const ListedEntry*> selected;
  if (const ExitCode code = select_entries(entries, selector, selected); code != exit_done) return code;
  if (selected.size() > 1) {
    std::string text = fmt::format("{} has {} entries; name one by its digest:", selector, selected.size());
    for (const ListedEntry* one : selected) text += "\n  " + to_hex(one->entry->id.digest);
    complain(text);
    return exit_usage;
  }
  entry = &*selected.front()->entry;
  return exit_done;
}

ExitCode write_cubin(const CacheArguments& arguments, const Entry& entry) {
  const Bytes& cubin = entry.cubin.bytes;
  const auto [folder, name] = split_path(arguments.cubin);
  if (name.empty()) {
    complain(fmt::format("--cubin {} names no file", arguments.cubin));
    return exit_usage;
  }
  if (const Status free = check_replaceable(arguments.cubin); !free) {
    complain(free.message());
    return exit_cache_not_writable;
  }
  if (const Status written = publish_file(folder, name, cubin.data(), cubin.size()); !written) {
    complain(written.message());
    return exit_cache_not_writable;
  }
  if (arguments.json) {
    print_json({{"key", entry.id.key.text()},
                {"digest", to_hex(entry.id.digest)},
                {"cubin", arguments.cubin},
                {"bytes", cubin.size()}});
  } else {
    tell("{}: {} bytes\n", arguments.cubin, cubin.size());
  }
  return exit_done;
}

}  // namespace

ExitCode disassemble_entry(const CacheArguments& arguments) {
  std::vector<ListedEntry> entries;
  if (const ExitCode code = load_entries(arguments, entries); code != exit_done) return code;
  const Entry* entry = nullptr;
  if (const ExitCode code = choose_entry(entries, arguments.selectors.front(), entry); code != exit_done) return code;
  if (!arguments.cubin.empty()) return write_cubin(arguments, *entry);

  const auto tool = find_disassembler();
  if (!tool) {
    complain(tool.status().message());
    return exit_environment;
  }
  // A reader that has seen enough, or an interrupt, must not leave the temporary file behind.
  ::signal(SIGPIPE, SIG_IGN);
  catch_interrupts();
  std::string listing;
  const Status ran = run_disassembler(
      *tool, entry->cubin.bytes,
      [&](std::string_view text) {
        if (arguments.json) {
          listing += text;
        } else {
          (void)std::fwrite(text.data(), 1, text.size(), stdout);  // a failure is told at the end, as for all output
        }
      },
      interrupt_flag());
  if (*interrupt_flag() != 0) return exit_interrupted;
  if (!ran) {
    complain(ran.message());
    return exit_environment;
  }
  if (arguments.json) {
    print_json({{"key", entry->id.key.text()},
                {"digest", to_hex(entry->id.digest)},
                {"tool", tool->path},
                {"listing", listing}});
  }
  return exit_done;
}

}  // namespace gemvjit::tools
