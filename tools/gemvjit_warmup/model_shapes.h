// ModelShapes: what --model, --tp, --engine and --scan make of one checkpoint: the shapes to warm, and what there is to
// say of them.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tools/common/exit_codes.h"
#include "tools/common/shape_spec.h"

namespace gemvjit::tools {

struct ModelRequest {
  std::string path;             // a folder or a file
  std::string engine = "none";  // a name of tools/model_rules/engines.json
  std::vector<std::int64_t> tps{1};
  bool scan = false;
};

struct ModelShape {
  ShapeSpec shape;
  std::string layer;  // "qkv_proj tp2", or a tensor's name
};

struct ModelShapes {
  std::vector<ModelShape> shapes;  // with repeats
  std::vector<std::string> notes;  // lines for stderr; those of something wrong begin with "warning: "
  nlohmann::ordered_json json;     // an element of "models" in the document of --json
};

// Why no kernel serves a shape; empty if one does.
using ShapeVerdict = std::function<std::string(const ShapeSpec&)>;

// exit_done, or the exit code and the reason in `error`. With engine none and tp 1, without config.json, or for a model
// type without rules each tensor is a shape of its own (linear_layers.h).
ExitCode make_model_shapes(const ModelRequest& request, const ShapeVerdict& verdict, ModelShapes& result,
                           std::string& error);

}  // namespace gemvjit::tools
