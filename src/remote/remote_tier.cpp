#include "src/remote/remote_tier.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <new>
#include <set>
#include <system_error>

#include "src/base/process_end.h"
#include "src/remote/parallel_each.h"

namespace gemvjit {
namespace {

// The tiers of this process that have something to send, for the handler of exit(). A child of fork() begins with none:
// its parent's may be locked for ever.
struct Senders {
  std::uint32_t generation;
  std::mutex mutex;
  std::set<RemoteTier*> tiers;
};
std::atomic<Senders*> senders_of_process{nullptr};

constexpr std::chrono::milliseconds most_at_exit{default_flush_ms};  // for all contexts of the process

// Run by exit() before libcurl may not be called any more. Joins no thread: one may be within a request.
void finish_all() {
  Senders* const senders = senders_of_process.load(std::memory_order_acquire);
  if (senders == nullptr || forked_since(senders->generation)) return;
  const std::lock_guard lock(senders->mutex);
  const auto end = std::chrono::steady_clock::now() + most_at_exit;
  for (RemoteTier* tier : senders->tiers) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
    tier->stop_after(std::max(0, static_cast<int>(left.count())));
  }
}

Senders& senders() {
  static const bool registered = run_at_exit(finish_all);
  (void)registered;
  const std::uint32_t generation = watch_forks();
  Senders* seen = senders_of_process.load(std::memory_order_acquire);
  while (seen == nullptr || seen->generation != generation) {
    auto made = std::make_unique<Senders>();
    made->generation = generation;
    if (senders_of_process.compare_exchange_strong(seen, made.get(), std::memory_order_acq_rel)) seen = made.release();
  }
  return *seen;  // never destroyed
}

// ", not KEY, KEY and 3 more"; "" for none.
std::string named(const std::vector<EntryId>& lacking) {
  constexpr std::size_t most = 8;
  std::string text;
  for (std::size_t i = 0; i < std::min(most, lacking.size()); ++i) {
    text += (i == 0 ? ", not " : ", ") + lacking[i].key.text();
  }
  if (lacking.size() > most) text += fmt::format(" and {} more", lacking.size() - most);
  return text;
}

}  // namespace

RemoteTier::RemoteTier(std::unique_ptr<RemoteStore> remote, CubinStore& local, Log log)
    : remote_(std::move(remote)), local_(local), log_(std::move(log)) {}

RemoteTier::~RemoteTier() {
  stop_after(remote_->options().flush_ms);
  if (sender_.joinable()) sender_.join();  // at most until its request has ended
  // What is left of a parent's is not looked at: its mutex may be locked for ever, and this tier is not in it.
  Senders* const all = senders_of_process.load(std::memory_order_acquire);
  if (all != nullptr && !forked_since(all->generation)) {
    const std::lock_guard lock(all->mutex);
    all->tiers.erase(this);
  }
}

void RemoteTier::stop_after(int milliseconds) {
  (void)flush(std::min(milliseconds, remote_->options().flush_ms));
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
}

std::vector<EntryId> RemoteTier::missing(const std::vector<EntryId>& ids) const {
  std::vector<EntryId> lacking;
  for (const EntryId& id : ids) {
    if (!local_.look(id)) lacking.push_back(id);
  }
  return lacking;
}

std::vector<EntryId> RemoteTier::fetch(const std::vector<EntryId>& wanted, const std::vector<EntryId>& plan,
                                       const std::function<bool()>& stop, std::optional<Deadline> until) {
  if (wanted.empty()) return {};
  const Deadline deadline = until.value_or(remote_->deadline_in(remote_->options().budget_ms));
  std::map<std::string, ManifestFile> known;
  if (plan.size() > 1) known = remote_->read_plan(plan, deadline).by_path;
  std::vector<std::uint8_t> got(wanted.size(), 0);
  remote_->for_each(wanted.size(), stop, [&](std::size_t i) {
    // Another process of this machine may have fetched or built it since: what is here is not asked for.
    if (local_.look(wanted[i])) {
      got[i] = 1;
      return;
    }
    const auto found = known.find(manifest_path(wanted[i]));
    const Result<Entry> entry = remote_->fetch(wanted[i], found == known.end() ? nullptr : &found->second, deadline);
    if (entry) got[i] = local_.put(*entry, Replace::unusable_only).is_ok() ? 1 : 0;
  });
  std::vector<EntryId> lacking;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (got[i] == 0) lacking.push_back(wanted[i]);
  }
  log_.info("remote cache {}: {} of {} kernels fetched{}", remote_->base_url(), wanted.size() - lacking.size(),
            wanted.size(), named(lacking));
  return lacking;
}

void RemoteTier::publish(std::vector<EntryId> plan, std::vector<EntryId> not_there) {
  if (!remote_->options().write || plan.empty()) return;
  Senders& all = senders();
  {
    const std::lock_guard lock(all.mutex);
    all.tiers.insert(this);
  }
  {
    const std::lock_guard lock(mutex_);
    if (ends_) return;
    if (jobs_.size() == most_jobs) {
      unsent_ += jobs_.front().plan.size();
      jobs_.pop_front();
      log_.warning("remote cache {}: more to publish than can be sent; the oldest plan is left out",
                   remote_->base_url());
    }
    jobs_.push_back({std::move(plan), std::move(not_there)});
    if (!sender_.joinable()) {
      try {
        sender_ = std::thread([this] { run(); });
      } catch (const std::exception& error) {  // else flush() would wait for what nobody sends
        unsent_ += jobs_.back().plan.size();
        jobs_.clear();
        log_.warning("remote cache {}: nothing is published: {}", remote_->base_url(), error.what());
      }
    }
  }
  changed_.notify_all();
}

Status RemoteTier::flush(int milliseconds) {
  std::unique_lock lock(mutex_);
  const bool done = changed_.wait_for(lock, std::chrono::milliseconds(milliseconds),
                                      [this] { return jobs_.empty() && !is_sending_; });
  if (!done) {
    return {StatusCode::cancelled,
            fmt::format("{}: not all was published within {} ms", remote_->base_url(), milliseconds)};
  }
  const std::uint64_t failed = unsent_ + remote_->remote_stats().upload_failures;
  if (failed == 0) return Status::ok();
  return {StatusCode::io_error,
          fmt::format("{}: {} entries or manifests could not be published", remote_->base_url(), failed)};
}

void RemoteTier::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return ends_ || !jobs_.empty(); });
    if (ends_) return;  // flush() has waited for what is left as long as it may
    const Job job = std::move(jobs_.front());
    jobs_.pop_front();
    is_sending_ = true;
    lock.unlock();
    try {
      send(job);
    } catch (const std::bad_alloc&) {
      log_.warning("remote cache {}: no memory to publish", remote_->base_url());
      const std::lock_guard counted(mutex_);
      ++unsent_;
    }
    lock.lock();
    is_sending_ = false;
    changed_.notify_all();
  }
}

void RemoteTier::send(const Job& job) {
  const Deadline deadline = remote_->deadline_in(remote_->options().flush_ms);
  const std::string name = plan_name(job.plan);
  const auto ended = [this] {
    const std::lock_guard lock(mutex_);
    return ends_;
  };
  if (job.not_there.empty() && job.plan.size() > 1) {
    const Result<Manifest> there = remote_->read_manifest(name, deadline);
    if (there && there->files.size() == job.plan.size()) return;  // nothing is new
  }
  std::set<std::string> lacking;
  for (const EntryId& id : job.not_there) lacking.insert(manifest_path(id));
  std::vector<std::optional<ManifestFile>> sent(job.plan.size());
  remote_->for_each(job.plan.size(), ended, [&](std::size_t i) {
    const Result<FoundEntry> found = local_.look(job.plan[i]);
    if (!found) return;  // another name of the kernel was built, or it could not be
    const bool skip_if_there = !lacking.contains(manifest_path(job.plan[i]));
    Result<ManifestFile> file = remote_->publish(found->entry, skip_if_there, deadline);
    if (file) sent[i] = std::move(file).value();
  });
  Manifest all;
  for (std::optional<ManifestFile>& file : sent) {
    if (file) all.files.push_back(std::move(*file));
  }
  if (job.plan.size() < 2 || all.files.size() != job.plan.size()) return;
  if (const Status written = remote_->write_set(name, all, deadline); !written) {
    log_.warning("remote cache: {}", written.message());
    const std::lock_guard lock(mutex_);
    ++unsent_;
  }
}

}  // namespace gemvjit
