#include "tools/gemvjit_tune/shape_sources.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "src/base/files.h"
#include "src/base/json_depth.h"
#include "tools/common/linear_layers.h"
#include "tools/common/safetensors.h"
#include "tools/common/shape_spec.h"

namespace gemvjit::tools {
namespace {

constexpr std::size_t kFileLimit = 64u << 20;

class CaseSet {
 public:
  explicit CaseSet(const CaseRequest& request) : request_(request) {}

  // Why the shape cannot be served, or ok.
  Status add(Family family, std::int64_t n, std::int64_t k, bool silu_mul) {
    if (std::find(request_.families.begin(), request_.families.end(), family) == request_.families.end()) {
      return Status::ok();
    }
    TuneCase c{family, n, k, silu_mul, 1};
    GEMVJIT_TRY(check_problem(c.problem()));
    for (const int nt : request_.nt) {
      c.nt = nt;
      if (seen_.insert(c).second) list_.cases.push_back(c);
    }
    return Status::ok();
  }
  // The same, where one bad shape is no reason to stop.
  void add_or_count(Family family, std::int64_t n, std::int64_t k, bool silu_mul) {
    const Status status = add(family, n, k, silu_mul);
    if (status) return;
    if (list_.refused++ == 0) list_.first_refusal = status.message();
  }
  CaseList take() { return std::move(list_); }

 private:
  const CaseRequest& request_;
  CaseList list_;
  std::set<TuneCase> seen_;
};

Status add_file(const std::string& path, const CaseRequest& request, CaseSet& cases) {
  GEMVJIT_TRY_ASSIGN(const Bytes bytes, read_file(path, kFileLimit));
  const std::string text(bytes.begin(), bytes.end());
  if (json_nests_deeper_than(text, kMaxJsonLevels)) {
    return {StatusCode::invalid_argument, fmt::format("{}: nested more than {} levels deep", path, kMaxJsonLevels)};
  }
  try {
    const auto document = nlohmann::ordered_json::parse(text);
    for (const auto& model : document.at("models")) {
      for (const int tp : request.tensor_parallel) {
        const std::string name = fmt::format("tp{}", tp);
        if (!model.at("layers_by_tp").contains(name)) continue;
        for (const auto& layer : model.at("layers_by_tp").at(name)) {
          const auto n = whole_number(layer.at("N")), k = whole_number(layer.at("K"));
          if (!n || !k) {
            return {StatusCode::invalid_argument, fmt::format("{}: \"{}\" of a layer is {}, no whole number of 64 bits",
                                                              path, n ? "K" : "N", layer.at(n ? "K" : "N").dump())};
          }
          const bool gate_up = layer.at("layer").get<std::string>().find("gate_up") != std::string::npos;
          for (const Family family : request.families) {
            cases.add_or_count(family, *n, *k, false);
            if (gate_up) cases.add_or_count(family, *n, *k, true);
          }
        }
      }
    }
  } catch (const nlohmann::json::exception& e) {
    return {StatusCode::invalid_argument, fmt::format("{}: {}", path, json_error_text(e.what()))};
  }
  return Status::ok();
}

Status add_model(const std::string& path, CaseSet& cases) {
  GEMVJIT_TRY_ASSIGN(const std::vector<Tensor> tensors, read_model(path));
  const auto family_of = [](WeightType type) {
    return type == WeightType::nvfp4 ? Family::nvfp4_gemv : Family::bf16_gemv;
  };
  const ModelLayers layers =
      find_linear_layers(tensors, [&](WeightType type, std::int64_t n, std::int64_t k) -> std::string {
        return check_problem({family_of(type), n, k, false, true}).message();
      });
  if (layers.layers.empty()) {
    return {StatusCode::not_found, fmt::format("{} has no linear layer that a kernel serves", path)};
  }
  for (const LinearLayer& layer : layers.layers) cases.add_or_count(family_of(layer.type), layer.n, layer.k, false);
  return Status::ok();
}

}  // namespace

Result<CaseList> make_cases(const CaseRequest& request) {
  CaseSet cases(request);
  for (const std::string& text : request.shapes) {
    const auto shape = parse_shape(text);
    // parse_shape also takes a family; here --family says it.
    const bool plain = text.find(":nvfp4") == std::string::npos && text.find(":bf16") == std::string::npos &&
                       text.find(":dequant") == std::string::npos;
    if (!shape || !plain) {
      return Status(StatusCode::invalid_argument,
                    fmt::format("shape {} is not understood; accepted: NxK or NxK:silu", text));
    }
    for (const Family family : request.families) GEMVJIT_TRY(cases.add(family, shape->n, shape->k, shape->silu_mul));
  }
  for (const std::string& path : request.shapes_files) GEMVJIT_TRY(add_file(path, request, cases));
  for (const std::string& path : request.models) GEMVJIT_TRY(add_model(path, cases));
  return cases.take();
}

}  // namespace gemvjit::tools
