// ReadOnlyLayer: entries that somebody else keeps: a folder with the cache's layout (layout.h), or a bundle. Never
// written to: no sweeping, no moving of damaged files, no time stamps, no lock file.
//
// Threads: every function from any thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cache/signatures.h"
#include "cache/store.h"

namespace gemvjit {

class ReadOnlyLayer {
 public:
  virtual ~ReadOnlyLayer() = default;
  // The verified entry with just this id. not_found if the layer has none; entry_damaged, io_error or out_of_memory,
  // with a message that names the file, for one of no use.
  virtual Result<Entry> read(const EntryId& id) const = 0;
  // The file that holds the entry, for a bundle "<bundle>#<name>"; "" if there is none. Does not read the entry.
  virtual std::string find(const EntryId& id) const = 0;
  // As CubinStore::list().
  virtual Result<std::vector<ListedEntry>> list() const = 0;
  virtual bool is_bundle() const = 0;
  const std::string& path() const { return path_; }

 protected:
  explicit ReadOnlyLayer(std::string path) : path_(std::move(path)) {}

 private:
  std::string path_;
};

// What is at the path: a folder (also through a symbolic link), else a bundle. not_found if there is nothing;
// entry_damaged or io_error, naming the path, for what cannot be used; unsupported for a bundle whose signature is not
// what `signatures`, if any, asks for. The entries' own signatures are for the caller to check.
Result<std::unique_ptr<ReadOnlyLayer>> open_read_only_layer(const std::string& path,
                                                            const Signatures* signatures = nullptr);

// "/a:/b.gjb" as paths in order; empty parts are left out.
std::vector<std::string> split_layer_paths(const std::string& text);

}  // namespace gemvjit
