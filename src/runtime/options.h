// Run-time options: one table, one reading of the environment, one order: default < configuration files (settings.h) <
// environment < what the caller set. This is the only place of the library that reads the environment, but for the
// search of libcuda and NVRTC in src/cuda.
//
// docs/configuration.md shows the same table; a test holds the two together.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cache/root_safety.h"
#include "cache/signatures.h"
#include "src/base/log.h"
#include "src/base/status.h"
#include "src/remote/remote_options.h"
#include "src/runtime/launch_shape.h"

namespace gemvjit {

// X(name, environment variable or "", default for people, text)
#define GEMVJIT_RUNTIME_OPTIONS(X)                                                                                    \
  X(cache_dir, "GEMVJIT_CACHE_DIR", "$XDG_CACHE_HOME/gemvjit, else $HOME/.cache/gemvjit, else memory only",           \
    "folder of compiled kernels")                                                                                     \
  X(cache_max_bytes, "GEMVJIT_CACHE_MAX_BYTES", "1073741824 (1 GiB)",                                                 \
    "bytes that cache_dir may hold, at least 1048576; 0 for no cap")                                                  \
  X(cache_trust, "GEMVJIT_CACHE_TRUST", "owner", "who may write cache_dir: owner (this user alone) or shared")        \
  X(cache_ro, "GEMVJIT_CACHE_RO", "none", "folders and bundles of kernels that are only read, with : between them")   \
  X(cache_signatures, "GEMVJIT_CACHE_SIGNATURES", "off", "what a trusted key must have signed: off, bundles or all")  \
  X(cache_trust_dir, "GEMVJIT_CACHE_TRUST_DIR",                                                                       \
    "$XDG_CONFIG_HOME/gemvjit/trust, else $HOME/.config/gemvjit/trust; and /etc/gemvjit/trust",                       \
    "folder of the trusted public keys, *.pub")                                                                       \
  X(cache_signing_key, "GEMVJIT_CACHE_SIGNING_KEY", "none",                                                           \
    "file of the private key that new entries are signed with")                                                       \
  X(remote, "GEMVJIT_REMOTE", "none",                                                                                 \
    "address of a cache that many machines share: http://host[:port][/prefix], https://..., s3://bucket[/prefix]")    \
  X(remote_write, "GEMVJIT_REMOTE_WRITE", "0", "1: also publish there what is compiled here; 0: only read")           \
  X(remote_budget, "GEMVJIT_REMOTE_BUDGET", "30", "seconds that a warmup may fetch from there, 1 to 3600")            \
  X(remote_token_file, "GEMVJIT_REMOTE_TOKEN_FILE", "none; GEMVJIT_REMOTE_TOKEN may hold the token itself",           \
    "file of the token that is sent to it as Authorization: Bearer")                                                  \
  X(remote_netrc, "GEMVJIT_REMOTE_NETRC", "none", "file with user and password for it, as netrc(5) has it")           \
  X(remote_ca, "GEMVJIT_REMOTE_CA", "those of the system", "PEM file of the authorities that may vouch for it")       \
  X(remote_cert, "GEMVJIT_REMOTE_CERT", "none", "PEM file of the certificate to show to it")                          \
  X(remote_key, "GEMVJIT_REMOTE_KEY", "none", "PEM file of that certificate's private key")                           \
  X(remote_s3_endpoint, "GEMVJIT_REMOTE_S3_ENDPOINT",                                                                 \
    "AWS_ENDPOINT_URL_S3, else AWS_ENDPOINT_URL, else Amazon's for AWS_REGION",                                       \
    "address of the server for s3://: http://host[:port] or https://host[:port]")                                     \
  X(tuning_dir, "GEMVJIT_TUNING_DIR", "none", "folder of tuning tables (*.json) that replace the built-in ones")      \
  X(dump_dir, "GEMVJIT_DUMP_DIR", "none", "folder for the sources of failed compiles, with log level debug of all")   \
  X(compile_threads, "GEMVJIT_COMPILE_THREADS",                                                                       \
    "number of cores, at most 8, at most one for each 0.5 GB of free memory",                                         \
    "kernels built at a time, 1 to 256; each uses at most 500 MB")                                                    \
  X(log_level, "GEMVJIT_LOG", "warning", "debug, info, warning, error or off")                                        \
  X(on_miss, "", "fail", "a launch that was not warmed: fail, or compile unless the stream captures or it is sealed") \
  X(device, "", "current", "an ordinal, the device of the current CUDA context, or none")

struct OptionRow {
  const char* name;
  const char* variable;      // "" if the environment has no say
  const char* default_text;  // for people
  const char* text;
};
std::span<const OptionRow> option_rows();
const OptionRow& option_row(std::string_view name);  // of a name that there is

inline constexpr int device_current = -1;  // the current context's device, else device 0, else none
inline constexpr int device_none = -2;     // never open libcuda
inline constexpr int max_compile_threads = 256;

// What a caller set; empty means "not set".
struct OptionRequest {
  int device = device_current;
  bool compile_on_miss = false;
  std::optional<std::string> cache_dir;  // "": memory only
  std::optional<std::string> cache_ro;   // "": none
  std::optional<std::string> tuning_dir, dump_dir;
  int compile_threads = 0;  // 0: not set
  std::optional<LogLevel> log_level;
  Log::Sink log_sink;  // none: stderr
  LaunchMissSink on_launch_miss;
};

// What a context works with.
struct ContextOptions {
  int device = device_current;
  bool compile_on_miss = false;
  std::string cache_dir;                                   // "": memory only
  std::uint64_t cache_max_bytes = std::uint64_t{1} << 30;  // 0: no cap
  CacheTrust cache_trust = CacheTrust::owner;
  std::vector<std::string> cache_ro;  // read-only layers, in the order that they are asked
  SignatureOptions signatures;
  RemoteOptions remote;
  std::string runtime_dir;  // XDG_RUNTIME_DIR, for locks; "": not set
  std::string tuning_dir, dump_dir;
  int compile_threads = 1;
  LogLevel log_level = LogLevel::warning;
  Log::Sink log_sink;
  LaunchMissSink on_launch_miss;  // may be empty
};

// The value of a variable, or nothing. Tests give their own.
using EnvironmentReader = std::function<std::optional<std::string>(const char* variable)>;
EnvironmentReader process_environment();

// Those of signatures alone, as the environment has them.
Result<SignatureOptions> resolve_signature_options(const EnvironmentReader& environment);

// Those of the remote cache alone. Besides the options: GEMVJIT_REMOTE_TOKEN, and for s3:// what its clients read
// elsewhere, AWS_REGION (AWS_DEFAULT_REGION), AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN.
Result<RemoteOptions> resolve_remote_options(const EnvironmentReader& environment);

// invalid_argument, naming the option or the variable and what is accepted, for a value that means nothing.
Result<ContextOptions> resolve_options(const OptionRequest& request, const EnvironmentReader& environment);

}  // namespace gemvjit
