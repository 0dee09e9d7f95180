#include "tools/gemvjit_warmup/worker_reply.h"

#include <nlohmann/json.hpp>

namespace gemvjit::tools {

using nlohmann::json;

std::string write_reply(const WorkerReply& reply) {
  const auto replace = json::error_handler_t::replace;
  if (reply.is_log) return json{{"log", reply.log_level}, {"message", reply.message}}.dump(-1, ' ', false, replace);
  return json{{"outcome", reply.outcome},
              {"status", reply.status},
              {"digest", reply.digest},
              {"path", reply.path},
              {"error", reply.error},
              {"flags_text", reply.flags_text},
              {"milliseconds", reply.milliseconds},
              {"compile_ms", reply.compile_ms},
              {"registers", reply.registers},
              {"smem_bytes", reply.smem_bytes},
              {"spill_bytes", reply.spill_bytes},
              {"cubin_bytes", reply.cubin_bytes}}
      .dump(-1, ' ', false, replace);
}

bool read_reply(const std::string& line, WorkerReply& reply) {
  try {
    const json document = json::parse(line);
    if (document.contains("log")) {
      reply.is_log = true;
      document.at("log").get_to(reply.log_level);
      document.at("message").get_to(reply.message);
      return true;
    }
    document.at("outcome").get_to(reply.outcome);
    document.at("status").get_to(reply.status);
    document.at("digest").get_to(reply.digest);
    document.at("path").get_to(reply.path);
    document.at("error").get_to(reply.error);
    document.at("flags_text").get_to(reply.flags_text);
    document.at("milliseconds").get_to(reply.milliseconds);
    document.at("compile_ms").get_to(reply.compile_ms);
    document.at("registers").get_to(reply.registers);
    document.at("smem_bytes").get_to(reply.smem_bytes);
    document.at("spill_bytes").get_to(reply.spill_bytes);
    document.at("cubin_bytes").get_to(reply.cubin_bytes);
    return reply.outcome >= GEMVJIT_OUTCOME_COMPILED && reply.outcome <= GEMVJIT_OUTCOME_FAILED;
  } catch (const json::exception&) {
    return false;
  }
}

}  // namespace gemvjit::tools
