#include "src/runtime/remote_warmup.h"

namespace gemvjit {
namespace {

// The lock of a plan: named as that of a kernel, by a digest that no kernel has.
EntryId lock_of(const std::vector<EntryId>& plan) {
  EntryId lock{plan.front().key, {}};
  (void)from_hex(plan_name(plan), lock.digest);
  return lock;
}

}  // namespace

RemoteWarmup::RemoteWarmup(Context& context, const WorkPlan& plan, const std::function<bool()>& stop)
    : context_(context) {
  RemoteTier* const remote = context.remote();
  if (remote == nullptr) return;
  for (const WorkItem& item : plan.items) {
    if (const Result<Recipe> recipe = specialize(item.key())) plan_.push_back(recipe->id());
  }
  std::vector<EntryId> wanted = remote->missing(plan_);
  if (wanted.empty()) return;
  // Waiting for another process counts, too: it may be slow for just as long, and fetched nothing.
  const RemoteStore& store = remote->store();
  const Deadline deadline = store.deadline_in(store.options().budget_ms);
  const auto is_over = [&] { return (stop && stop()) || store.deadline_in(0) >= deadline; };
  const Turn turn = context.build_locks().acquire(lock_of(plan_), is_over);
  if (turn.waited) wanted = remote->missing(wanted);
  // Each of many processes would else find out for itself, and take as long for it as the first.
  if (turn.kind == Turn::Kind::failed && turn.maker == store.base_url()) remote->store().leave_alone();
  not_there_ = remote->fetch(wanted, plan_, stop, deadline);
  if (!turn.lock) return;
  if (store.is_failing()) {
    turn.lock->fail({StatusCode::io_error, store.base_url() + " does not answer"}, store.base_url());
  } else {
    turn.lock->finish();
  }
}

void RemoteWarmup::publish() {
  if (RemoteTier* const remote = context_.remote()) remote->publish(plan_, not_there_);
}

}  // namespace gemvjit
