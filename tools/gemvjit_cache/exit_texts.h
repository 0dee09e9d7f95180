// The exit codes of gemvjit-cache: see tools/common/exit_code_text.h.
#pragma once

#include "tools/common/exit_code_text.h"

namespace gemvjit::tools {

inline constexpr ExitCodeText exit_texts[] = {
    {0, "done; doctor: kernels can be compiled or launched here"},
    {2, "a bad option, name or plan, or a digest prefix that fits several entries"},
    {4,
     "no such entry; import: no such bundle, or no such manifest in an OCI layout; export, push: nothing to send; "
     "pull: "
     "no such set; explain: this version makes no such kernel"},
    {5,
     "no cache folder, or one that --cache-dir names and is not there, or one that cannot be read; verify: none "
     "damaged, but some cannot be read; doctor: neither NVRTC nor a device, or a setting that cannot work, a cache "
     "folder that is refused or cannot be read and a remote cache that does not answer among them; disasm: no "
     "disassembler, or one that fails; sign, export: a signing key that cannot be used; import: a bundle that cannot "
     "be read; stdout not written"},
    {6,
     "rm, gc: an entry could not be removed; import, pull, sign: an entry could not be written; export, disasm: the "
     "file or folder could not be written, or what has its name is none that is replaced"},
    {7,
     "verify: a file is damaged (with --deep: or layers contradict); show, rm, explain, disasm, sign: the entry of "
     "that name is; export, push, sign: some were left out; import: the bundle is"},
    {8, "push, pull: the remote cache failed, or none is named"},
    {9, "explain: the key would miss; pull: some kernels are not there"},
    {10,
     "verify, import, export, push, pull: something is not signed as GEMVJIT_CACHE_SIGNATURES asks, or, under any "
     "policy, "
     "wrongly"},
    {130,
     "disasm, export, push, pull: SIGINT, SIGTERM or SIGHUP; the disassembler is ended too, and no half of a bundle "
     "stays"},
};

}  // namespace gemvjit::tools
