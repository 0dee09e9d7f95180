#include "tools/cache_view/tool_settings.h"

namespace gemvjit::tools {

const Result<Settings>& tool_settings() {
  static const Result<Settings> settings = process_settings();
  return settings;
}

const EnvironmentReader& tool_environment() {
  static const EnvironmentReader reader = tool_settings() ? tool_settings()->reader() : process_environment();
  return reader;
}

}  // namespace gemvjit::tools
