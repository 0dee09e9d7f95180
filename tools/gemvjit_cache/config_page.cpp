#include "tools/gemvjit_cache/config_page.h"

#include <fmt/format.h>

#include "gemvjit/gemvjit.h"
#include "src/runtime/options.h"
#include "tools/common/cli_page.h"

namespace gemvjit::tools {
namespace {

// As they stand in docs/configuration.md.
constexpr const char* description =
    "An object of JSON, in which comments are allowed, from names of options to their values: texts, numbers, or for\n"
    "cache_ro a list of paths; null is as good as absent. Both files are read where they are there; an option that "
    "the\n"
    "first has is not taken from the second. GEMVJIT_CONFIG names one file to be read in the place of both, which has\n"
    "to be there then; none means no file. Variables of the environment overrule the files; what a caller or a tool's\n"
    "flag says overrules both.\n"
    "A file that others could have written is refused.";

constexpr const char* example =
    "{\"cache_dir\": \"/var/cache/gemvjit\", \"cache_trust\": \"shared\",\n"
    " \"cache_ro\": [\"/opt/kernels.gjb\"], \"cache_max_bytes\": 4294967296}";

}  // namespace

std::string config_man_page() {
  std::string roff = fmt::format(".TH GEMVJIT\\-CONFIG 5 \"\" \"gemvjit {}.{}.{}\" \"gemvjit\"\n",
                                 GEMVJIT_VERSION_MAJOR, GEMVJIT_VERSION_MINOR, GEMVJIT_VERSION_PATCH);
  roff += ".SH NAME\ngemvjit\\-config \\- configuration files of gemvjit, its library and tools\n.SH SYNOPSIS\n.nf\n" +
          roff_text(
              "$XDG_CONFIG_HOME/gemvjit/config.json, else $HOME/.config/gemvjit/config.json\n"
              "/etc/gemvjit/config.json") +
          "\n.fi\n.SH DESCRIPTION\n" + roff_text(description) + "\n.SH OPTIONS\n";
  for (const OptionRow& row : option_rows()) {
    if (row.variable[0] == '\0') continue;  // a caller's alone
    roff += fmt::format(".TP\n\\fB{}\\fR (\\fB{}\\fR)\n{}. Default: {}.\n", roff_text(row.name),
                        roff_text(row.variable), roff_text(row.text), roff_text(row.default_text));
  }
  return roff + ".SH EXAMPLES\n.nf\n" + roff_text(example) +
         "\n.fi\n.SH SEE ALSO\n.BR gemvjit\\-cache (1),\nwhose command \\fBconfig \\-\\-origin\\fR shows each option "
         "and what said so\n";
}

}  // namespace gemvjit::tools
