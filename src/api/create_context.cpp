// gemvjit_options_init, gemvjit_create, gemvjit_destroy, gemvjit_seal and what a context says of itself.
#include "src/api/api_support.h"
#include "src/runtime/settings.h"

namespace api = gemvjit::api;
using gemvjit::Status;

namespace {

Status set_log(const gemvjit_options& options, gemvjit::OptionRequest& request) {
  if (options.log_level < GEMVJIT_LOG_DEFAULT || options.log_level > GEMVJIT_LOG_OFF) {
    return api::invalid(fmt::format("gemvjit_options.log_level is {}; 0 to 5 are accepted", options.log_level));
  }
  // The C enum has the default first, then the levels in the same order.
  if (options.log_level != GEMVJIT_LOG_DEFAULT) {
    request.log_level = static_cast<gemvjit::LogLevel>(options.log_level - GEMVJIT_LOG_DEBUG);
  }
  if (options.log_callback != nullptr) {
    request.log_sink = [callback = options.log_callback, user = options.log_user](gemvjit::LogLevel level,
                                                                                  std::string_view message) {
      const std::string text(message);
      callback(user, static_cast<gemvjit_log_level>(static_cast<int>(level) + GEMVJIT_LOG_DEBUG), text.c_str());
    };
  }
  return Status::ok();
}
static_assert(static_cast<int>(gemvjit::LogLevel::debug) + GEMVJIT_LOG_DEBUG == GEMVJIT_LOG_DEBUG);
static_assert(static_cast<int>(gemvjit::LogLevel::off) + GEMVJIT_LOG_DEBUG == GEMVJIT_LOG_OFF);
static_assert(gemvjit::device_current == GEMVJIT_DEVICE_CURRENT && gemvjit::device_none == GEMVJIT_DEVICE_NONE);

void set_events(const gemvjit_options& options, gemvjit::OptionRequest& request) {
  if (options.event_callback == nullptr) return;
  request.on_launch_miss = [callback = options.event_callback,
                            user = options.event_user](const gemvjit::LaunchMiss& miss) {
    gemvjit_event event{};
    event.struct_size = sizeof event;
    event.kind = GEMVJIT_EVENT_LAUNCH_MISS;
    event.status = static_cast<std::int32_t>(miss.code);
    event.family = static_cast<std::int32_t>(miss.shape.family);
    event.sealed = miss.sealed ? 1 : 0;
    event.m = miss.m;
    event.n = miss.shape.n;
    event.k = miss.shape.k;
    event.silu_mul = miss.shape.silu_mul ? 1 : 0;
    event.pdl = miss.shape.pdl_allowed ? 1 : 0;
    event.scale_segments = miss.shape.scale_segments ? 1 : 0;
    callback(user, &event);
  };
}

Status read_options(const gemvjit_options& options, gemvjit::OptionRequest& request) {
  GEMVJIT_TRY(api::check_struct("gemvjit_options", &options));
  if (options.device < GEMVJIT_DEVICE_NONE) {
    return api::invalid(
        fmt::format("gemvjit_options.device is {}; an ordinal, GEMVJIT_DEVICE_CURRENT (-1) and "
                    "GEMVJIT_DEVICE_NONE (-2) are accepted",
                    options.device));
  }
  if (options.on_miss != GEMVJIT_ON_MISS_FAIL && options.on_miss != GEMVJIT_ON_MISS_COMPILE) {
    return api::invalid(
        fmt::format("gemvjit_options.on_miss is {}; GEMVJIT_ON_MISS_FAIL (0) and "
                    "GEMVJIT_ON_MISS_COMPILE (1) are accepted",
                    options.on_miss));
  }
  request.device = options.device;
  request.compile_on_miss = options.on_miss == GEMVJIT_ON_MISS_COMPILE;
  request.compile_threads = options.compile_threads;
  if (options.cache_dir != nullptr) request.cache_dir = options.cache_dir;
  if (options.tuning_dir != nullptr) request.tuning_dir = options.tuning_dir;
  if (options.dump_dir != nullptr) request.dump_dir = options.dump_dir;
  set_events(options, request);
  return set_log(options, request);
}

Status create(const gemvjit_options* options, gemvjit_context** out) {
  if (out == nullptr) return api::invalid("gemvjit_create: out is null");
  gemvjit::OptionRequest request;
  if (options != nullptr) GEMVJIT_TRY(read_options(*options, request));
  GEMVJIT_TRY_ASSIGN(const gemvjit::Settings settings, gemvjit::process_settings());
  GEMVJIT_TRY_ASSIGN(gemvjit::ContextOptions resolved, gemvjit::resolve_options(request, settings.reader()));
  GEMVJIT_TRY_ASSIGN(auto context, gemvjit::Context::create(std::move(resolved), gemvjit::default_dependencies()));
  // cppcheck-suppress ignoredReturnValue ; it does not know aggregate initialization
  *out = new gemvjit_context{std::move(context)};
  return Status::ok();
}

// A text of the context; nullptr, with the reason as last error, for no context.
template <typename Text>
const char* text_of(const gemvjit_context* context, const Text& text) {
  if (const gemvjit_status status = api::guarded([&] { return api::check_context(context); }); status != GEMVJIT_OK) {
    return nullptr;
  }
  return text(*context->impl);
}

}  // namespace

gemvjit_status gemvjit_options_init(gemvjit_options* options) {
  return api::guarded([&] {
    if (options == nullptr) return api::invalid("gemvjit_options_init: options is null");
    *options = {};
    options->struct_size = sizeof *options;
    options->device = GEMVJIT_DEVICE_CURRENT;
    return Status::ok();
  });
}

gemvjit_status gemvjit_create(const gemvjit_options* options, gemvjit_context** out) {
  return api::guarded([&] { return create(options, out); });
}

gemvjit_status gemvjit_destroy(gemvjit_context* context) {
  return api::guarded([&] {
    delete context;
    return Status::ok();
  });
}

const char* gemvjit_device_arch(const gemvjit_context* context) {
  return text_of(context, [](const gemvjit::Context& c) { return c.device_target_text(); });
}

const char* gemvjit_cache_dir(const gemvjit_context* context) {
  return text_of(context, [](const gemvjit::Context& c) {
    // A folder that was refused is none.
    return c.store().root().empty() ? "" : c.options().cache_dir.c_str();
  });
}

const char* gemvjit_tuning_hash(const gemvjit_context* context) {
  return text_of(context, [](const gemvjit::Context& c) { return c.tables().digest().c_str(); });
}

gemvjit_status gemvjit_seal(gemvjit_context* context) {
  return api::guarded([&] {
    GEMVJIT_TRY(api::check_own_context(context));
    context->impl->seal();
    return Status::ok();
  });
}
