#include "tools/gemvjit_warmup/problem_list.h"

#include <fmt/format.h>

#include <map>
#include <set>
#include <tuple>

#include "src/catalog/arch.h"
#include "tools/common/printable.h"
#include "tools/gemvjit_warmup/model_shapes.h"

namespace gemvjit::tools {
namespace {

gemvjit_family library_family(ShapeFamily family) {
  switch (family) {
    case ShapeFamily::nvfp4:
      return GEMVJIT_NVFP4_GEMV;
    case ShapeFamily::bf16:
      return GEMVJIT_BF16_GEMV;
    case ShapeFamily::dequant:
      return GEMVJIT_DEQUANTIZE_ROWS;
    case ShapeFamily::swizzle:
      return GEMVJIT_SWIZZLE_BLOCKSCALE;
  }
  return GEMVJIT_NVFP4_GEMV;
}

// `arch` as in ProblemList, and living as long as the problem.
gemvjit_problem make_problem(const ShapeSpec& shape, const std::string& arch) {
  gemvjit_problem problem;
  (void)gemvjit_problem_init(&problem, library_family(shape.family), shape.n, shape.k);
  problem.silu_mul = shape.silu_mul ? 1 : 0;
  problem.scale_segments = shape.scale_segments ? 1 : 0;
  problem.allow_untuned = 1;
  problem.arch = arch.empty() ? nullptr : arch.c_str();
  return problem;
}

// Shapes without repeats, in the order in which they were first asked for, and who asked.
class ShapeSet {
 public:
  explicit ShapeSet(const WarmupOptions& options) : options_(options) {}

  void add(const ShapeSpec& shape, const std::string& source) {
    const auto [place, is_new] =
        places_.try_emplace({shape.n, shape.k, shape.family, shape.silu_mul, shape.scale_segments}, shapes_.size());
    if (is_new) {
      shapes_.push_back(shape);
      sources_.emplace_back();
    }
    sources_[place->second].insert(source);
    // A prefill path that has no W4A16 GEMM dequantizes the weight, so every NVFP4 shape brings that kernel along.
    if (shape.family != ShapeFamily::nvfp4) return;
    add({.n = shape.n, .k = shape.k, .family = ShapeFamily::dequant}, source);
    if (options_.swizzle) add({.n = shape.n, .k = shape.k, .family = ShapeFamily::swizzle}, source);
    if (options_.segments && !shape.scale_segments) {
      ShapeSpec with_segments = shape;
      with_segments.scale_segments = true;
      add(with_segments, source);
    }
  }
  const std::vector<ShapeSpec>& shapes() const { return shapes_; }
  std::vector<std::string> sources(std::size_t shape) const { return {sources_[shape].begin(), sources_[shape].end()}; }

 private:
  const WarmupOptions& options_;
  std::map<std::tuple<std::int64_t, std::int64_t, ShapeFamily, bool, bool>, std::size_t> places_;
  std::vector<ShapeSpec> shapes_;
  std::vector<std::set<std::string>> sources_;
};

// "model.layers.*.mlp.up_proj.weight": the layers of a model differ in their numbers.
std::string without_numbers(const std::string& name) {
  std::string text, part;
  const auto end_part = [&] {
    const bool is_number = !part.empty() && part.find_first_not_of("0123456789") == std::string::npos;
    text += is_number ? "*" : part;
    part.clear();
  };
  for (const char c : name) {
    if (c != '.') {
      part += c;
      continue;
    }
    end_part();
    text += c;
  }
  end_part();
  return text;
}

// The model's own name, wherever it lies.
std::string model_name(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path.substr(path.rfind('/') + 1);
}

std::string shape_text(const ShapeSpec& shape) {
  return fmt::format("{}x{}:{}{}{}", shape.n, shape.k, shape_family_name(shape.family), shape.silu_mul ? ":silu" : "",
                     shape.scale_segments ? ":segments" : "");
}

std::string describe_compiler(gemvjit_context* context) {
  char text[1024] = "";
  return gemvjit_describe_compiler(context, text, sizeof text, nullptr) == GEMVJIT_OK ? text : gemvjit_last_error();
}

ExitCode resolve_archs(gemvjit_context* context, const WarmupOptions& options, ProblemList& list, std::string& error) {
  const char* device_arch = gemvjit_device_arch(context);
  if (options.wants_native() && device_arch == nullptr) {
    error =
        "no GPU was found, so the target is not known: libcuda.so.1 or a device is missing. To fill a cache here for "
        "other machines name the targets, such as --arch sm_90a (H100, H200), sm_100a (B200) or sm_120a (RTX 50); "
        "gemvjit-cache doctor shows what was tried and which targets this NVRTC has";
    return exit_environment;
  }
  for (const std::string& name : options.archs) {
    if (name == "native") {
      list.archs.emplace_back();
    } else if (!options.wants_native() || name != device_arch) {
      list.archs.push_back(name);
    }
  }
  return exit_done;
}

// The library's verdict on a target, before any shape can be blamed for it: dequantize_rows is served wherever anything
// is, and needs no tuning table.
ExitCode check_arch(gemvjit_context* context, const std::string& arch, std::string& error) {
  const gemvjit_problem problem = make_problem({.n = 128, .k = 128, .family = ShapeFamily::dequant}, arch);
  if (gemvjit_supported(context, &problem, nullptr, 0) == GEMVJIT_OK) return exit_done;
  error = fmt::format(
      "--arch {}: {}; accepted: native, or sm_80 and newer that the NVRTC here lists, with the suffix a or f where the "
      "target has one (sm_90a, sm_120f), several joined by commas. {}",
      arch.empty() ? "native" : printable(arch), gemvjit_last_error(), describe_compiler(context));
  return exit_usage;
}

// Adds the model's layers to the shapes. A model without any is an error of its own.
ExitCode add_model(gemvjit_context* context, const WarmupOptions& options, const std::string& path,
                   const std::string& arch, ShapeSet& shapes, ProblemList& list, std::string& error) {
  const ModelRequest request{.path = path, .engine = options.engine, .tps = options.tps, .scan = options.scan};
  const auto verdict = [&](const ShapeSpec& shape) -> std::string {
    const gemvjit_problem problem = make_problem(shape, arch);
    return gemvjit_supported(context, &problem, nullptr, 0) == GEMVJIT_OK ? "" : gemvjit_last_error();
  };
  ModelShapes model;
  if (const ExitCode code = make_model_shapes(request, verdict, model, error); code != exit_done) return code;
  for (const ModelShape& wanted : model.shapes) {
    shapes.add(wanted.shape, fmt::format("model {}: {}", model_name(path), without_numbers(wanted.layer)));
  }
  list.notes.insert(list.notes.end(), model.notes.begin(), model.notes.end());
  list.models.push_back(std::move(model.json));
  return exit_done;
}

// With --tuned-only: whether there is a measured configuration. Without: always.
bool wanted(gemvjit_context* context, const gemvjit_problem& problem, ProblemList& list) {
  if (problem.allow_untuned != 0 || gemvjit_plan(context, &problem, 1, nullptr, nullptr) != GEMVJIT_UNTUNED)
    return true;
  list.notes.push_back(fmt::format("left out {} {}x{}{} nt {} {}: not tuned", family_name(problem.family), problem.n,
                                   problem.k, problem.silu_mul != 0 ? " silu_mul" : "", problem.nt,
                                   problem.arch == nullptr ? "native" : problem.arch));
  return false;
}

// One shape on one target: its problems for the wanted nt and pdl.
void add_problems(gemvjit_context* context, const WarmupOptions& options, const ShapeSpec& shape,
                  const std::vector<std::string>& sources, const std::string& arch, ProblemList& list) {
  std::vector<int> nts{0};
  if (shape.family == ShapeFamily::nvfp4 || shape.family == ShapeFamily::bf16) {
    if (!options.nts.empty()) nts = options.nts;
    // Each nt is tuned or not by itself.
    if (options.nts.empty() && options.tuned_only) nts = {1, 2, 4};
  }
  std::vector<int> pdls{options.pdl == PdlChoice::off ? 0 : 1};
  if (options.pdl == PdlChoice::both) pdls.push_back(0);
  for (const int pdl : pdls) {
    for (const int nt : nts) {
      gemvjit_problem problem = make_problem(shape, arch);
      problem.nt = nt;
      problem.pdl = pdl;
      problem.allow_untuned = options.tuned_only ? 0 : 1;
      problem.cluster_fallback = options.cluster_fallbacks ? 1 : 0;
      if (!wanted(context, problem, list)) continue;
      list.problems.push_back(problem);
      list.sources.push_back(sources);
    }
  }
}

ExitCode check_shapes(gemvjit_context* context, const WarmupOptions& options, const ProblemList& list,
                      std::string& error) {
  for (const ShapeSpec& shape : options.shapes) {
    for (const std::string& arch : list.archs) {
      const gemvjit_problem problem = make_problem(shape, arch);
      if (gemvjit_supported(context, &problem, nullptr, 0) == GEMVJIT_OK) continue;
      error = fmt::format("--shape {}: {}", shape_text(shape), gemvjit_last_error());
      return exit_usage;
    }
  }
  return exit_done;
}

}  // namespace

const char* family_name(int family) {
  switch (family) {
    case GEMVJIT_NVFP4_GEMV:
      return "nvfp4_gemv";
    case GEMVJIT_BF16_GEMV:
      return "bf16_gemv";
    case GEMVJIT_DEQUANTIZE_ROWS:
      return "dequantize_rows";
    case GEMVJIT_SWIZZLE_BLOCKSCALE:
      return "swizzle_blockscale";
    default:
      return "unknown";
  }
}

ExitCode make_problem_list(gemvjit_context* context, const WarmupOptions& options, ProblemList& list,
                           std::string& error) {
  if (const ExitCode code = resolve_archs(context, options, list, error); code != exit_done) return code;
  for (const std::string& arch : list.archs) {
    if (const ExitCode code = check_arch(context, arch, error); code != exit_done) return code;
  }
  if (const ExitCode code = check_shapes(context, options, list, error); code != exit_done) return code;

  ShapeSet shapes(options);
  for (const ShapeSpec& shape : options.shapes) shapes.add(shape, "shape " + shape_text(shape));
  for (const std::string& model : options.models) {
    const ExitCode code = add_model(context, options, model, list.archs.front(), shapes, list, error);
    if (code != exit_done) return code;
  }
  for (const std::string& arch : list.archs) {
    for (std::size_t i = 0; i < shapes.shapes().size(); ++i) {
      add_problems(context, options, shapes.shapes()[i], shapes.sources(i), arch, list);
    }
  }
  if (!list.problems.empty()) return exit_done;
  error = "no shape is left: none of them has a measured configuration; leave --tuned-only out to take defaults";
  return exit_nothing_found;
}

}  // namespace gemvjit::tools
