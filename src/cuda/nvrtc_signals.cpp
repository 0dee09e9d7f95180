#include "src/cuda/nvrtc_signals.h"

#include <dlfcn.h>
#include <link.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>

namespace gemvjit::cuda {
namespace {

using Handler = void (*)(int);

// What signal() answers where the host ignores the signal, which callers leave at that.
Handler leave_alone(int, Handler) { return SIG_IGN; }

// The tables of a loaded object that tell which functions it imports, and where their addresses lie.
struct Imports {
  const ElfW(Sym) * symbols = nullptr;
  const char* names = nullptr;
  const ElfW(Rela) * slots = nullptr;
  std::size_t bytes = 0;
  bool has_addends = false;  // else the slots are of another type than here
};

Imports imports_of(const link_map& object) {
  Imports imports;
  // glibc has added the object's address already.
  for (const ElfW(Dyn)* entry = object.l_ld; entry != nullptr && entry->d_tag != DT_NULL; ++entry) {
    switch (entry->d_tag) {
      case DT_SYMTAB:
        imports.symbols = reinterpret_cast<const ElfW(Sym)*>(entry->d_un.d_ptr);
        break;
      case DT_STRTAB:
        imports.names = reinterpret_cast<const char*>(entry->d_un.d_ptr);
        break;
      case DT_JMPREL:
        imports.slots = reinterpret_cast<const ElfW(Rela)*>(entry->d_un.d_ptr);
        break;
      case DT_PLTRELSZ:
        imports.bytes = entry->d_un.d_val;
        break;
      case DT_PLTREL:
        imports.has_addends = entry->d_un.d_val == DT_RELA;
        break;
      default:
        break;
    }
  }
  return imports;
}

void set_slot(std::uintptr_t address, Handler (*function)(int, Handler)) {
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  // Of no effect where the table may be written to, as NVRTC's may.
  if (::mprotect(reinterpret_cast<void*>(address & ~(page - 1)), page, PROT_READ | PROT_WRITE) != 0) return;
  __atomic_store_n(reinterpret_cast<std::uintptr_t*>(address), reinterpret_cast<std::uintptr_t>(function),
                   __ATOMIC_RELEASE);
}

}  // namespace

void keep_signals_from(void* library) {
  link_map* object = nullptr;
  if (::dlinfo(library, RTLD_DI_LINKMAP, static_cast<void*>(&object)) != 0 || object == nullptr) return;
  const Imports imports = imports_of(*object);
  if (imports.symbols == nullptr || imports.names == nullptr || imports.slots == nullptr || !imports.has_addends)
    return;
  for (std::size_t i = 0; i < imports.bytes / sizeof *imports.slots; ++i) {
    const ElfW(Rela)& slot = imports.slots[i];
    const char* const name = imports.names + imports.symbols[ELF64_R_SYM(slot.r_info)].st_name;
    if (std::strcmp(name, "signal") == 0) set_slot(object->l_addr + slot.r_offset, &leave_alone);
  }
}

}  // namespace gemvjit::cuda
