#include "src/compile/nvrtc_compiler.h"

#include <fmt/format.h>

#include <chrono>
#include <utility>

#include "src/base/process_end.h"
#include "src/cuda/nvrtc_call.h"

namespace gemvjit {
namespace {

// Owns an NVRTC program for the length of one compile.
class Program {
 public:
  explicit Program(const cuda::NvrtcApi& api) : api_(api) {}
  ~Program() {
    if (program_ != nullptr) api_.nvrtcDestroyProgram(&program_);
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  nvrtcResult create(const Recipe& recipe) {
    std::vector<const char*> names, texts;
    for (std::size_t i = 1; i < recipe.sources.size(); ++i) {
      names.push_back(recipe.sources[i].name.c_str());
      texts.push_back(recipe.sources[i].text.c_str());
    }
    return api_.nvrtcCreateProgram(&program_, recipe.sources[0].text.c_str(), recipe.sources[0].name.c_str(),
                                   static_cast<int>(names.size()), texts.data(), names.data());
  }
  // NVRTC asks now and then whether to go on. Where it cannot be told, exit() waits for the whole compile.
  void cancel_at_exit() {
    if (api_.set_flow_callback == nullptr) return;
    (void)api_.set_flow_callback(
        program_, [](void*, void*) { return process_is_ending() ? 1 : 0; }, nullptr);
  }
  nvrtcResult compile(const std::vector<std::string>& options) {
    std::vector<const char*> pointers;
    pointers.reserve(options.size());
    for (const std::string& option : options) pointers.push_back(option.c_str());
    return api_.nvrtcCompileProgram(program_, static_cast<int>(pointers.size()), pointers.data());
  }
  std::string log() const { return text(api_.nvrtcGetProgramLogSize, api_.nvrtcGetProgramLog); }
  std::string ptx() const { return text(api_.nvrtcGetPTXSize, api_.nvrtcGetPTX); }
  nvrtcResult cubin(Bytes& bytes) const {
    std::size_t size = 0;
    if (const nvrtcResult result = api_.nvrtcGetCUBINSize(program_, &size); result != NVRTC_SUCCESS) return result;
    bytes.resize(size);
    return api_.nvrtcGetCUBIN(program_, reinterpret_cast<char*>(bytes.data()));
  }

 private:
  // NVRTC's texts have their terminator counted in; it is dropped here.
  template <typename SizeFunction, typename GetFunction>
  std::string text(SizeFunction get_size, GetFunction get) const {
    std::size_t size = 0;
    if (get_size(program_, &size) != NVRTC_SUCCESS || size == 0) return {};
    std::string result(size, '\0');
    if (get(program_, result.data()) != NVRTC_SUCCESS) return {};
    while (!result.empty() && result.back() == '\0') result.pop_back();
    return result;
  }

  const cuda::NvrtcApi& api_;
  nvrtcProgram program_ = nullptr;
};

class NvrtcCompiler final : public Compiler {
 public:
  explicit NvrtcCompiler(std::shared_ptr<const cuda::NvrtcApi> api) : api_(std::move(api)) {}

  Result<Cubin> compile(const Recipe& recipe) override {
    if (!supports(recipe.key.arch)) {
      return Status(StatusCode::no_compiler,
                    fmt::format("{} ({}) does not compile for {}; it knows {} and their suffixed forms", version(),
                                api_->path, recipe.key.arch.text(), list_sms()));
    }
    const cuda::NvrtcCall call;
    if (!call.allowed()) return ending(recipe);
    const auto start = std::chrono::steady_clock::now();
    Program program(*api_);
    if (const nvrtcResult result = program.create(recipe); result != NVRTC_SUCCESS) {
      return failure(recipe, "nvrtcCreateProgram", result, "");
    }
    program.cancel_at_exit();
    if (const nvrtcResult result = program.compile(recipe.options); result != NVRTC_SUCCESS) {
      if (process_is_ending()) return ending(recipe);
      return failure(recipe, "nvrtcCompileProgram", result, program.log());
    }
    Cubin cubin;
    if (const nvrtcResult result = program.cubin(cubin.bytes); result != NVRTC_SUCCESS || cubin.bytes.empty()) {
      return failure(recipe, "nvrtcGetCUBIN", result, program.log());
    }
    cubin.entry_name = recipe.entry_name;
    cubin.compiler_version = version();
    if (!parse_ptxas_report(program.log(), recipe.entry_name, cubin.resources)) {
      return failure(recipe, "reading the assembler's report", NVRTC_SUCCESS, program.log());
    }
    cubin.waits_for_predecessor = ptx_waits_for_predecessor(program.ptx());
    const auto elapsed = std::chrono::steady_clock::now() - start;
    cubin.compile_ms =
        static_cast<std::uint32_t>(std::chrono::duration_cast<std::chrono::milliseconds>(elapsed).count());
    return cubin;
  }

  std::string version() const override {
    const std::string build = api_->build.empty() ? "" : fmt::format(" ({})", api_->build);
    return fmt::format("NVRTC {}.{}{}", api_->major, api_->minor, build);
  }
  std::string path() const override { return api_->path; }
  bool supports(const Arch& arch) const override { return api_->supports(arch.sm, arch.suffix); }
  std::vector<int> supported_sms() const override { return api_->supported_sms; }

 private:
  std::string list_sms() const {
    std::string text;
    for (const int sm : api_->supported_sms) text += fmt::format("{}sm_{}", text.empty() ? "" : ", ", sm);
    return text;
  }
  static Status ending(const Recipe& recipe) {
    return {StatusCode::cancelled, fmt::format("{} is not compiled: the process is ending", recipe.key.text())};
  }
  Status failure(const Recipe& recipe, std::string_view step, nvrtcResult result, const std::string& log) const {
    return {StatusCode::compile_failed,
            fmt::format("{}: {} with {} ({}) failed: {}{}{}", recipe.key.text(), step, version(), api_->path,
                        api_->nvrtcGetErrorString(result), log.empty() ? "" : "\n", log)};
  }

  std::shared_ptr<const cuda::NvrtcApi> api_;
};

// The unsigned number that ends just before `unit` in `line`; false if `unit` is not there.
bool number_before(std::string_view line, std::string_view unit, std::uint32_t& value) {
  const std::size_t unit_at = line.find(unit);
  if (unit_at == std::string_view::npos) return false;
  std::size_t begin = unit_at;
  while (begin > 0 && line[begin - 1] >= '0' && line[begin - 1] <= '9') --begin;
  if (begin == unit_at) return false;
  value = 0;
  for (const char digit : line.substr(begin, unit_at - begin)) {
    value = value * 10 + static_cast<std::uint32_t>(digit - '0');
  }
  return true;
}

}  // namespace

std::unique_ptr<Compiler> make_nvrtc_compiler(std::shared_ptr<const cuda::NvrtcApi> nvrtc) {
  return std::make_unique<NvrtcCompiler>(std::move(nvrtc));
}

// The report, as ptxas 12.9 to 13.x write it:
//   ptxas info    : Compiling entry function 'nvfp4_gemv' for 'sm_90a'
//   ptxas info    : Function properties for nvfp4_gemv
//   ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
//   ptxas info    : Used 40 registers, used 1 barriers, 256 bytes smem
bool parse_ptxas_report(std::string_view log, std::string_view entry_name, KernelResources& resources) {
  const std::string heading = fmt::format("Compiling entry function '{}'", entry_name);
  std::size_t at = log.find(heading);
  if (at == std::string_view::npos) return false;
  log.remove_prefix(at + heading.size());
  if (const std::size_t next = log.find("Compiling entry function"); next != std::string_view::npos) {
    log = log.substr(0, next);
  }
  resources = {};
  bool found_frame = false, found_registers = false;
  while (!log.empty()) {
    const std::size_t end = log.find('\n');
    const std::string_view line = log.substr(0, end);
    if (!found_frame && number_before(line, " bytes stack frame", resources.stack_bytes)) {
      found_frame = number_before(line, " bytes spill stores", resources.spill_store_bytes) &&
                    number_before(line, " bytes spill loads", resources.spill_load_bytes);
    }
    if (!found_registers && number_before(line, " registers", resources.registers)) {
      found_registers = true;
      number_before(line, " bytes smem", resources.static_smem_bytes);
    }
    if (end == std::string_view::npos) break;
    log.remove_prefix(end + 1);
  }
  return found_frame && found_registers;
}

bool ptx_waits_for_predecessor(std::string_view ptx) {
  while (!ptx.empty()) {
    const std::size_t end = ptx.find('\n');
    std::string_view line = ptx.substr(0, end);
    line = line.substr(0, line.find("//"));  // not in a comment
    if (line.find("griddepcontrol.wait") != std::string_view::npos) return true;
    if (end == std::string_view::npos) break;
    ptx.remove_prefix(end + 1);
  }
  return false;
}

}  // namespace gemvjit
