#include "src/remote/remote_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "src/remote/parallel_each.h"

namespace gemvjit {
namespace {

constexpr std::size_t page_limit = 64u << 10;  // bytes of an answer that says no more than its status
constexpr const char* doctors_set = "gemvjit-cache doctor";

std::string payload_path(const ManifestFile& file) { return "/cas/" + to_hex(file.sha256); }

ManifestFile file_of(std::string path, const Bytes& payload) {
  return {std::move(path), Sha256::of(payload.data(), payload.size()), payload.size()};
}

// What a status says of a request that was for something. 2xx: ok.
Status meaning_of(HttpMethod method, const std::string& url, long status) {
  if (status >= 200 && status < 300) return Status::ok();
  const auto say = [&](StatusCode code, const char* what) {
    return Status(code, fmt::format("{} {}: {}{}", http_method_name(method), url, status, what));
  };
  switch (status) {
    case 404:
    case 410:
      if (method != HttpMethod::put) return say(StatusCode::not_found, "");
      return say(StatusCode::io_error, " (is there such a folder, and may it be written to?)");
    case 401:
      return say(StatusCode::io_error, " (who asks is not known there: is the token, netrc file or key right?)");
    case 403:
      return say(StatusCode::io_error, " (who asks is not allowed to)");
    default:
      return say(StatusCode::io_error, "");
  }
}

// Whether the server is to blame, so that it is better left alone. A refusal of what was asked is no fault of its.
bool is_server_failure(long status) { return status >= 500 || status == 429 || status == 401 || status == 403; }

CircuitBreaker::Clock clock_or_steady(CircuitBreaker::Clock clock) {
  return clock ? std::move(clock) : [] { return std::chrono::steady_clock::now(); };
}

}  // namespace

RemoteStore::RemoteStore(RemoteOptions options, std::unique_ptr<HttpTransport> transport,
                         std::shared_ptr<const Signatures> signatures, Log log, CircuitBreaker::Clock clock)
    : options_(std::move(options)),
      base_(remote_base_url(options_)),
      transport_(std::move(transport)),
      signatures_(std::move(signatures)),
      log_(std::move(log)),
      clock_(clock_or_steady(std::move(clock))),
      breaker_(options_.breaker_failures, std::chrono::milliseconds(options_.probe_after_ms), clock_),
      ramp_(options_.connections) {}

void RemoteStore::for_each(std::size_t count, const std::function<bool()>& stop,
                           const std::function<void(std::size_t index)>& work) {
  parallel_each(count, static_cast<std::size_t>(options_.connections), [&](std::size_t index) {
    const Ramp::Place place(ramp_);
    if (!stop || !stop()) work(index);
  });
}

Result<HttpResponse> RemoteStore::ask(HttpMethod method, const std::string& path, const Bytes* body, std::size_t limit,
                                      Deadline deadline) {
  HttpRequest request;
  request.method = method;
  request.url = base_ + path;
  request.body = body;
  request.body_limit = limit;
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - clock_()).count();
  if (left <= 0) {
    return Status(StatusCode::cancelled,
                  fmt::format("{} {}: the time for the remote cache is up", http_method_name(method), request.url));
  }
  request.timeout_ms = static_cast<int>(std::min<std::int64_t>(left, options_.request_ms));
  request.may_repeat = breaker_.is_well();  // a server that is down is known for it without
  const std::optional<CircuitBreaker::Ticket> ticket = breaker_.allow();
  if (!ticket) {
    return Status(StatusCode::cancelled, fmt::format("{} is left alone for a while: it failed {} times in a row", base_,
                                                     options_.breaker_failures));
  }
  requests_.fetch_add(1, std::memory_order_relaxed);
  Result<HttpResponse> response = transport_->send(request);
  // What this machine lacks will not come by waiting, but nor does asking again cost anything.
  const bool failed = response ? is_server_failure(response->status) : response.status().code() == StatusCode::io_error;
  if (!failed) {
    breaker_.succeeded();
    ramp_.answered();
  } else if (breaker_.failed(*ticket)) {
    ramp_.failed();
  }
  if (!response) return response;
  bytes_received_.fetch_add(response->body.size(), std::memory_order_relaxed);
  GEMVJIT_TRY(meaning_of(method, request.url, response->status));
  return response;
}

void RemoteStore::warn(const Status& status) {
  if (warned_.exchange(true)) {
    log_.debug("remote cache: {}", status.message());
  } else {
    log_.warning("remote cache: {} (later failures are told at level debug)", status.message());
  }
}

Result<Manifest> RemoteStore::read_manifest(const std::string& name, Deadline deadline) {
  GEMVJIT_TRY_ASSIGN(const HttpResponse response,
                     ask(HttpMethod::get, "/ac/" + name, nullptr, manifest_size_limit, deadline));
  Result<Manifest> manifest = decode_manifest(response.body);
  if (manifest) return manifest;
  return Status(manifest.status().code(), fmt::format("{}/ac/{}: {}", base_, name, manifest.status().message()));
}

Result<Manifest> RemoteStore::read_set(const std::string& name, Deadline deadline) {
  Result<Manifest> manifest = read_manifest(name, deadline);
  if (manifest || manifest.status().code() != StatusCode::not_found) return manifest;
  return read_manifest(list_name(name), deadline);
}

Status RemoteStore::write_encoded(const std::string& name, const Bytes& bytes, std::size_t files, Deadline deadline) {
  if (files > manifest_file_limit || bytes.size() > manifest_size_limit) {
    return {StatusCode::unsupported,
            fmt::format("a manifest of {} entries is more than anybody would read ({})", files, manifest_file_limit)};
  }
  return ask(HttpMethod::put, "/ac/" + name, &bytes, page_limit, deadline).status();
}

Status RemoteStore::write_set(const std::string& name, const Manifest& manifest, Deadline deadline) {
  GEMVJIT_TRY(write_encoded(list_name(name), encode_list(manifest), manifest.files.size(), deadline));
  return write_encoded(name, encode_manifest(manifest), manifest.files.size(), deadline);
}

RemoteStore::PlanFiles RemoteStore::read_plan(const std::vector<EntryId>& plan, Deadline deadline) {
  Result<Manifest> manifest = read_set(plan_name(plan), deadline);
  if (!manifest) return {{}, manifest.status()};
  PlanFiles files;
  for (ManifestFile& file : manifest->files) files.by_path[file.path] = file;
  return files;
}

// The payload, and after it the manifest that names it.
Status RemoteStore::put_named(const std::string& name, const ManifestFile& file, const Bytes& payload,
                              Deadline deadline) {
  GEMVJIT_TRY(ask(HttpMethod::put, payload_path(file), &payload, page_limit, deadline).status());
  return write_encoded(name, encode_manifest({{file}}), 1, deadline);
}

Result<ManifestFile> RemoteStore::file_of_kernel(const EntryId& id, Deadline deadline) {
  GEMVJIT_TRY_ASSIGN(Manifest manifest, read_manifest(kernel_name(id), deadline));
  const std::string path = manifest_path(id);
  const auto found = std::find_if(manifest.files.begin(), manifest.files.end(),
                                  [&](const ManifestFile& one) { return one.path == path; });
  if (found != manifest.files.end()) return std::move(*found);
  return Status(StatusCode::entry_damaged, fmt::format("{} is of another kernel", path_of(id)));
}

Result<Entry> RemoteStore::fetch_uncounted(const EntryId& id, const ManifestFile* known, Deadline deadline) {
  if (known != nullptr) {
    Result<Entry> entry = fetch_file(id, *known, deadline);
    if (entry || entry.status().code() != StatusCode::not_found) return entry;
  }
  GEMVJIT_TRY_ASSIGN(const ManifestFile file, file_of_kernel(id, deadline));
  if (known != nullptr && file == *known) return Status(StatusCode::not_found, base_ + payload_path(file) + ": 404");
  return fetch_file(id, file, deadline);
}

Result<Entry> RemoteStore::fetch_file(const EntryId& id, const ManifestFile& file, Deadline deadline) {
  const std::string path = payload_path(file);
  GEMVJIT_TRY_ASSIGN(const HttpResponse response, ask(HttpMethod::get, path, nullptr, file.size, deadline));
  const auto damaged = [&](const std::string& why) {
    return Status(StatusCode::entry_damaged, fmt::format("{}{}: {}", base_, path, why));
  };
  if (Sha256::of(response.body.data(), response.body.size()) != file.sha256)
    return damaged("not the bytes of its name");
  Result<Entry> entry = decode_entry(response.body);
  if (!entry) return damaged(entry.status().message());
  if (entry->id != id) return damaged(fmt::format("the entry of another kernel, {}", entry->id.key.text()));
  if (signatures_ != nullptr) GEMVJIT_TRY(signatures_->check_foreign(*entry));
  return entry;
}

Result<Entry> RemoteStore::fetch(const EntryId& id, const ManifestFile* known, Deadline deadline) {
  Result<Entry> entry = fetch_uncounted(id, known, deadline);
  if (entry) {
    hits_.fetch_add(1, std::memory_order_relaxed);
  } else if (entry.status().code() == StatusCode::not_found) {
    misses_.fetch_add(1, std::memory_order_relaxed);
  } else {
    failures_.fetch_add(1, std::memory_order_relaxed);
    warn(entry.status());
  }
  return entry;
}

Result<ManifestFile> RemoteStore::publish_uncounted(const Entry& entry, bool skip_if_there, Deadline deadline) {
  if (!options_.write) {
    return Status(StatusCode::unsupported, fmt::format("{} is not to be written to: ask for that with --remote-write "
                                                       "or GEMVJIT_REMOTE_WRITE=1",
                                                       base_));
  }
  const std::string name = kernel_name(entry.id);
  if (skip_if_there) {
    const Result<Manifest> there = read_manifest(name, deadline);
    const StatusCode code = there.status().code();
    if (!there && code != StatusCode::not_found && code != StatusCode::entry_damaged) return there.status();
    if (there && there->files.front().path == manifest_path(entry.id)) {
      // Servers of files that remove what is old may have kept the one without the other.
      const std::string path = payload_path(there->files.front());
      const Result<HttpResponse> payload = ask(HttpMethod::head, path, nullptr, page_limit, deadline);
      if (payload) return there->files.front();
      if (payload.status().code() != StatusCode::not_found) return payload.status();
    }
  }
  const Bytes bytes = encode_entry(entry);
  if (bytes.size() > remote_payload_limit) {
    return Status(StatusCode::invalid_argument, fmt::format("the entry of {} has {} bytes, {} are sent at most",
                                                            entry.id.key.text(), bytes.size(), remote_payload_limit));
  }
  const ManifestFile file = file_of(manifest_path(entry.id), bytes);
  GEMVJIT_TRY(put_named(name, file, bytes, deadline));
  return file;
}

Result<ManifestFile> RemoteStore::publish(const Entry& entry, bool skip_if_there, Deadline deadline) {
  Result<ManifestFile> file = publish_uncounted(entry, skip_if_there, deadline);
  (file ? uploads_ : upload_failures_).fetch_add(1, std::memory_order_relaxed);
  if (!file) warn(file.status());
  return file;
}

Status RemoteStore::ping(Deadline deadline) {
  const Result<HttpResponse> response =
      ask(HttpMethod::head, "/ac/" + set_name(doctors_set), nullptr, page_limit, deadline);
  return response || response.status().code() == StatusCode::not_found ? Status::ok() : response.status();
}

Status RemoteStore::try_write(Deadline deadline) {
  constexpr std::string_view text = "gemvjit-cache doctor\n";
  const Bytes bytes(text.begin(), text.end());
  const ManifestFile file = file_of("doctor", bytes);
  const std::string name = set_name(doctors_set);
  GEMVJIT_TRY(put_named(name, file, bytes, deadline));
  GEMVJIT_TRY_ASSIGN(const Manifest manifest, read_manifest(name, deadline));
  GEMVJIT_TRY_ASSIGN(const HttpResponse payload,
                     ask(HttpMethod::get, payload_path(file), nullptr, bytes.size(), deadline));
  if (manifest.files == std::vector{file} && payload.body == bytes) return Status::ok();
  return {StatusCode::entry_damaged, fmt::format("{} gives back other bytes than it was given", base_)};
}

std::optional<Entry> RemoteStore::get(const EntryId& id) {
  Result<Entry> entry = fetch(id, nullptr, deadline_in(options_.budget_ms));
  if (!entry) return std::nullopt;
  return std::move(entry).value();
}

Result<FoundEntry> RemoteStore::look(const EntryId& id) {
  GEMVJIT_TRY_ASSIGN(Entry entry, fetch_uncounted(id, nullptr, deadline_in(options_.budget_ms)));
  return FoundEntry{std::move(entry), path_of(id)};
}

Status RemoteStore::put(const Entry& entry, Replace replace) {
  return publish(entry, replace == Replace::unusable_only, deadline_in(options_.budget_ms)).status();
}

Status RemoteStore::remove(const EntryId&) {
  return {StatusCode::unsupported, "entries of a remote cache are removed by its own server's means"};
}

Result<std::vector<ListedEntry>> RemoteStore::list() {
  return Status(StatusCode::unsupported, "a remote cache cannot be listed: name a plan or a set");
}

std::string RemoteStore::path_of(const EntryId& id) const { return base_ + "/ac/" + kernel_name(id); }

StoreStats RemoteStore::stats() const {
  const RemoteStats remote = remote_stats();
  StoreStats stats;
  stats.hits = remote.hits;
  stats.misses = remote.misses + remote.failures;
  stats.puts = remote.uploads;
  stats.put_failures = remote.upload_failures;
  return stats;
}

RemoteStats RemoteStore::remote_stats() const {
  return {hits_.load(),     misses_.load(),        failures_.load(), uploads_.load(), upload_failures_.load(),
          requests_.load(), bytes_received_.load()};
}

}  // namespace gemvjit
