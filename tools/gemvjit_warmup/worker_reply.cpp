#include "tools/gemvjit_warmup/worker_reply.h"

#include <nlohmann/json.hpp>

namespace gemvjit::tools {

using nlohmann::json;

// cppcheck-suppress unknownMacro
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(KernelOutcome, path, error, outcome, status, milliseconds, compile_ms, registers,
                                   smem_bytes, spill_bytes, cubin_bytes)

std::string write_reply(const WorkerReply& reply) {
  const json document = reply.is_log ? json{{"log", reply.log_level}, {"message", reply.message}}
                                     : json(static_cast<const KernelOutcome&>(reply));
  return document.dump(-1, ' ', false, json::error_handler_t::replace);
}

bool read_reply(const std::string& line, WorkerReply& reply) {
  try {
    const json document = json::parse(line);
    reply.is_log = document.contains("log");
    if (reply.is_log) {
      document.at("log").get_to(reply.log_level);
      document.at("message").get_to(reply.message);
      return true;
    }
    document.get_to(static_cast<KernelOutcome&>(reply));
    return reply.outcome >= GEMVJIT_OUTCOME_COMPILED && reply.outcome <= GEMVJIT_OUTCOME_FAILED;
  } catch (const json::exception&) {
    return false;
  }
}

}  // namespace gemvjit::tools
