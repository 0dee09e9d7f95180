// RemoteStore: cache entries on a server that keeps files under names, as bazel-remote, nginx with WebDAV, an object
// store: "<base>/cas/<sha256>" is an entry's bytes, "<base>/ac/<name>" the manifest that names them (manifest.h).
//
// As a CubinStore: get() and look() ask for a kernel's manifest and then its payload; put() writes the payload first
// and the manifest last, so that a manifest is never there without its payload, and neither if both are there already,
// whatever the payload's bytes, but under Replace::any. What is got is used only if its digest is the manifest's, it is
// one whole entry (entry.h), its id is the one asked for, and its signature is what Signatures::check_foreign() asks
// for. remove() and list() are unsupported: a server of files cannot list, and what is shared is only added to.
//
// Each request waits at most RemoteOptions::request_ms, all of them together no longer than the deadline. A server that
// fails some times in a row is left alone (circuit_breaker.h). Failures are io_error (the server, the network),
// entry_damaged (what it gave), unsupported (what this side lacks or its policy refuses), cancelled (left alone, or the
// deadline is past) and not_found, which is none.
//
// Threads: every function from any thread. Nothing is opened or asked before the first call.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "cache/signatures.h"
#include "cache/store.h"
#include "src/remote/circuit_breaker.h"
#include "src/remote/http_transport.h"
#include "src/remote/manifest.h"
#include "src/remote/ramp.h"
#include "src/remote/remote_options.h"

namespace gemvjit {

using Deadline = std::chrono::steady_clock::time_point;

struct RemoteStats {
  std::uint64_t hits = 0;             // entries got and found good
  std::uint64_t misses = 0;           // entries that are not there
  std::uint64_t failures = 0;         // entries not got for any other reason
  std::uint64_t uploads = 0;          // entries put, or found to be there
  std::uint64_t upload_failures = 0;  // entries that could not be put
  std::uint64_t requests = 0;         // sent
  std::uint64_t bytes_received = 0;   // of bodies
};

class RemoteStore final : public CubinStore {
 public:
  RemoteStore(RemoteOptions options, std::unique_ptr<HttpTransport> transport,
              std::shared_ptr<const Signatures> signatures, Log log, CircuitBreaker::Clock clock = nullptr);

  // CubinStore
  std::optional<Entry> get(const EntryId& id) override;
  Result<FoundEntry> look(const EntryId& id) override;
  Status put(const Entry& entry, Replace replace) override;
  Status remove(const EntryId& id) override;
  Result<std::vector<ListedEntry>> list() override;
  std::string path_of(const EntryId& id) const override;  // the address of the kernel's manifest
  std::string root() const override { return ""; }
  StoreStats stats() const override;

  // The same within a deadline. `known`, if given, is where a manifest says that the payload is; where it is not there
  // any more the kernel's own manifest is asked, which may name the same kernel's bytes of another day.
  Result<Entry> fetch(const EntryId& id, const ManifestFile* known, Deadline deadline);
  // What the manifest under its own name holds after it; `skip_if_there`: nothing is sent where the kernel has one and
  // its payload.
  Result<ManifestFile> publish(const Entry& entry, bool skip_if_there, Deadline deadline);
  Result<Manifest> read_manifest(const std::string& name, Deadline deadline);
  // Of a plan or set: also where the server has let go of some of its payloads, and then does not give the manifest.
  Result<Manifest> read_set(const std::string& name, Deadline deadline);
  // The same of a plan, by path; `problem` says why it is empty.
  struct PlanFiles {
    std::map<std::string, ManifestFile> by_path;
    Status problem;
  };
  PlanFiles read_plan(const std::vector<EntryId>& plan, Deadline deadline);
  // For read_manifest() and read_set(). unsupported for one beyond the limits that decode_manifest() has.
  Status write_set(const std::string& name, const Manifest& manifest, Deadline deadline);
  // One request that answers whether the server is there and takes us: ok also where it has nothing.
  Status ping(Deadline deadline);
  // Puts a payload and a manifest that no kernel has, always the same, and reads them back. Also where the options do
  // not ask for writing.
  Status try_write(Deadline deadline);

  // Calls `work` for 0 to count - 1 from several threads, at most RemoteOptions::connections at once and fewer at the
  // beginning and after failures (ramp.h), and returns when all is done. What `stop` (may be empty) ends is left out.
  // `work` throws nothing of use, as in parallel_each().
  void for_each(std::size_t count, const std::function<bool()>& stop,
                const std::function<void(std::size_t index)>& work);

  const RemoteOptions& options() const { return options_; }
  const std::string& base_url() const { return base_; }
  Deadline deadline_in(int milliseconds) const { return clock_() + std::chrono::milliseconds(milliseconds); }
  bool is_left_alone() const { return breaker_.is_open(); }
  bool is_failing() const { return !breaker_.is_well(); }  // nothing was answered since the last failure
  void leave_alone() { breaker_.open(); }                  // another process has found it to be down
  RemoteStats remote_stats() const;

 private:
  Result<HttpResponse> ask(HttpMethod method, const std::string& path, const Bytes* body, std::size_t limit,
                           Deadline deadline);
  Result<Entry> fetch_file(const EntryId& id, const ManifestFile& file, Deadline deadline);
  Result<ManifestFile> file_of_kernel(const EntryId& id, Deadline deadline);
  Status write_encoded(const std::string& name, const Bytes& bytes, std::size_t files, Deadline deadline);
  Result<Entry> fetch_uncounted(const EntryId& id, const ManifestFile* known, Deadline deadline);
  Result<ManifestFile> publish_uncounted(const Entry& entry, bool skip_if_there, Deadline deadline);
  Status put_named(const std::string& name, const ManifestFile& file, const Bytes& payload, Deadline deadline);
  void warn(const Status& status);

  const RemoteOptions options_;
  const std::string base_;
  const std::unique_ptr<HttpTransport> transport_;
  const std::shared_ptr<const Signatures> signatures_;  // may be null
  const Log log_;
  const CircuitBreaker::Clock clock_;
  CircuitBreaker breaker_;
  Ramp ramp_;
  std::atomic<std::uint64_t> hits_{0}, misses_{0}, failures_{0}, uploads_{0}, upload_failures_{0}, requests_{0},
      bytes_received_{0};
  std::atomic<bool> warned_{false};
};

}  // namespace gemvjit
