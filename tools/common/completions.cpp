#include <fmt/format.h>

#include <algorithm>

#include "tools/common/cli_page.h"

namespace gemvjit::tools {
namespace {

enum class ValueKind { none, choices, file, folder, other };

ValueKind kind_of(const CliOption& option) {
  if (option.value.empty()) return ValueKind::none;
  if (!choices_of(option).empty()) return ValueKind::choices;
  if (option.value.starts_with("FILE")) return ValueKind::file;
  return option.value.starts_with("DIR") ? ValueKind::folder : ValueKind::other;
}

std::string joined(const std::vector<std::string>& words, std::string_view between) {
  std::string text;
  for (const std::string& word : words) {
    if (!text.empty()) text += between;
    text += word;
  }
  return text;
}

// Of a shell's function: letters, digits and _.
std::string identifier(std::string name) {
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

std::string replaced(std::string_view text, std::initializer_list<std::pair<char, const char*>> pairs) {
  std::string result;
  for (const char letter : text) {
    const auto* place =
        std::find_if(pairs.begin(), pairs.end(), [&](const auto& pair) { return pair.first == letter; });
    if (place == pairs.end()) {
      result += letter;
    } else {
      result += place->second;
    }
  }
  return result;
}

// Between single quotes of bash or zsh, or of fish.
std::string shell_quoted(std::string_view text) { return replaced(text, {{'\'', "'\\''"}}); }
std::string fish_quoted(std::string_view text) { return replaced(text, {{'\'', "\\'"}, {'\\', "\\\\"}}); }

std::vector<std::string> option_words(const CliPage& page) {
  std::vector<std::string> words;
  for (const CliOption& option : page.options) {
    if (!option.is_positional()) words.insert(words.end(), option.names.begin(), option.names.end());
  }
  return words;
}

// A command's with those of all that it may be followed by.
CliPage with_common(const CliPage& page, const CliPage& command) {
  CliPage all = command;
  const std::vector<std::string> own = option_words(command);
  for (const CliOption& option : page.options) {
    if (std::find(own.begin(), own.end(), option.names.front()) == own.end()) all.options.push_back(option);
  }
  return all;
}

std::vector<std::string> command_names(const CliPage& page) {
  std::vector<std::string> names;
  for (const CliPage& command : page.commands) names.push_back(command.name);
  return names;
}

// What is completed where no option is: files, if a positional is one.
bool takes_files(const CliPage& page) {
  return std::any_of(page.options.begin(), page.options.end(), [](const CliOption& option) {
    return option.is_positional() && kind_of(option) == ValueKind::file;
  });
}

// The `case` of what follows an option; its patterns are "command:option", or "*:option" for those of all.
std::string bash_values(const CliPage& page, const std::string& command) {
  std::string cases;
  for (const CliOption& option : page.options) {
    const ValueKind kind = kind_of(option);
    if (option.is_positional() || kind == ValueKind::none) continue;
    std::vector<std::string> patterns;
    for (const std::string& name : option.names) patterns.push_back(command + ":" + name);
    const std::string words = kind == ValueKind::choices
                                  ? fmt::format("-W '{}' -- \"$cur\"", shell_quoted(joined(choices_of(option), " ")))
                              : kind == ValueKind::file   ? "-f -- \"$cur\""
                              : kind == ValueKind::folder ? "-d -- \"$cur\""
                                                          : "";
    cases += fmt::format("    {})\n", joined(patterns, "|"));
    if (!words.empty()) cases += fmt::format("      mapfile -t COMPREPLY < <(compgen {})\n", words);
    if (kind == ValueKind::file || kind == ValueKind::folder) cases += "      compopt -o filenames 2>/dev/null\n";
    cases += "      return ;;\n";
  }
  return cases;
}

void add_zsh_options(const CliPage& page, std::string& script) {
  for (const CliOption& option : page.options) {
    const std::string text =
        replaced(first_line(option.text), {{'\'', "'\\''"}, {'[', "\\["}, {']', "\\]"}, {':', "\\:"}});
    const std::string value = replaced(option.value, {{'\'', "'\\''"}, {':', "\\:"}, {'[', "\\["}, {']', "\\]"}});
    std::string action;
    switch (kind_of(option)) {
      case ValueKind::none:
        break;
      case ValueKind::choices:
        action = fmt::format(":value:({})", shell_quoted(joined(choices_of(option), " ")));
        break;
      case ValueKind::file:
        action = ":file:_files";
        break;
      case ValueKind::folder:
        action = ":folder:_files -/";
        break;
      case ValueKind::other:
        action = fmt::format(":{}: ", value);
    }
    if (option.is_positional()) {
      script += fmt::format("    '*{}' \\\n", action.empty() ? ":" + option.names.front() + ": " : action);
      continue;
    }
    for (const std::string& name : option.names) {
      const bool is_long = name.starts_with("--");
      script += fmt::format("    '*{}{}[{}]{}' \\\n", name, action.empty() ? "" : is_long ? "=" : "+", text, action);
    }
  }
}

std::string fish_options(const CliPage& page, const std::string& program, const std::string& condition) {
  std::string script;
  for (const CliOption& option : page.options) {
    const ValueKind kind = kind_of(option);
    if (option.is_positional()) {
      if (kind == ValueKind::file) script += fmt::format("complete -c {}{} -F\n", program, condition);
      continue;
    }
    script += fmt::format("complete -c {}{}", program, condition);
    for (const std::string& name : option.names) {
      script += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
    }
    if (kind == ValueKind::choices) script += fmt::format(" -x -a '{}'", fish_quoted(joined(choices_of(option), " ")));
    if (kind == ValueKind::file) script += " -r -F";
    if (kind == ValueKind::folder) script += " -x -a '(__fish_complete_directories)'";
    if (kind == ValueKind::other) script += " -x";
    script += fmt::format(" -d '{}'\n", fish_quoted(first_line(option.text)));
  }
  return script;
}

}  // namespace

std::vector<std::string> choices_of(const CliOption& option) {
  std::vector<std::string> words;
  if (option.value.find('|') == std::string::npos) return words;
  for (std::size_t begin = 0; begin <= option.value.size();) {
    const std::size_t end = std::min(option.value.find('|', begin), option.value.size());
    words.push_back(option.value.substr(begin, end - begin));
    begin = end + 1;
  }
  return words;
}

std::string render_page(const CliPage& page, std::string_view format) {
  if (format == "man") return man_page(page);
  if (format == "bash") return bash_completion(page);
  if (format == "zsh") return zsh_completion(page);
  return format == "fish" ? fish_completion(page) : "";
}

std::string bash_completion(const CliPage& page) {
  const std::string function = "_" + identifier(page.name);
  std::string script = fmt::format(
      "# bash completion of {0}, made from its command line.\n{1}() {{\n"
      "  local cur=${{COMP_WORDS[COMP_CWORD]}} prev=${{COMP_WORDS[COMP_CWORD-1]}} command='' words files{2}\n  "
      "COMPREPLY=()\n"
      // "--option=value" comes as three words, since = parts them.
      "  if [[ $cur == \"=\" ]]; then cur=; elif [[ $prev == \"=\" ]]; then prev=${{COMP_WORDS[COMP_CWORD-2]}}; fi\n",
      page.name, function, page.commands.empty() ? "" : " word i");
  if (!page.commands.empty()) {
    script += fmt::format(
        "  for ((i = 1; i < COMP_CWORD; i++)); do\n    word=${{COMP_WORDS[i]}}\n    case $word in\n"
        "      {}) command=$word; break ;;\n    esac\n  done\n",
        joined(command_names(page), "|"));
  }
  script += "  case $command:$prev in\n";
  for (const CliPage& command : page.commands) script += bash_values(command, command.name);
  script += bash_values(page, "*") + "  esac\n  case $command in\n";
  for (const CliPage& command : page.commands) {
    script += fmt::format("    {}) words='{}'; files={} ;;\n", command.name,
                          joined(option_words(with_common(page, command)), " "), takes_files(command) ? 1 : 0);
  }
  std::vector<std::string> first = option_words(page);
  for (const std::string& name : command_names(page)) first.push_back(name);
  script += fmt::format(
      "    *) words='{}'; files=0 ;;\n  esac\n"
      "  mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$cur\")\n"
      "  if ((files)) && [[ $cur != -* ]]; then\n    mapfile -t COMPREPLY < <(compgen -f -- \"$cur\")\n"
      "    compopt -o filenames 2>/dev/null\n  fi\n}}\ncomplete -F {} {}\n",
      joined(first, " "), function, page.name);
  return script;
}

std::string zsh_completion(const CliPage& page) {
  std::string script = fmt::format("#compdef {0}\n# zsh completion of {0}, made from its command line.\n", page.name);
  if (page.commands.empty()) {
    script += "_arguments -s -S \\\n";
    add_zsh_options(page, script);
    return script + "  && return 0\n";
  }
  script += "local context state state_descr line\ntypeset -A opt_args\n_arguments -C -s -S \\\n";
  add_zsh_options(page, script);
  script +=
      "    '1: :->command' '*:: :->arguments' && return 0\ncase $state in\n  command)\n    local -a commands\n    "
      "commands=(\n";
  for (const CliPage& command : page.commands) {
    script += fmt::format("      '{}:{}'\n", command.name,
                          replaced(first_line(command.text), {{'\'', "'\\''"}, {':', "\\:"}}));
  }
  script += "    )\n    _describe command commands ;;\n  arguments)\n    case $line[1] in\n";
  for (const CliPage& command : page.commands) {
    script += fmt::format("    {})\n    _arguments -s -S \\\n", command.name);
    add_zsh_options(with_common(page, command), script);
    script += "    && return 0 ;;\n";
  }
  return script + "    esac ;;\nesac\n";
}

std::string fish_completion(const CliPage& page) {
  std::string script =
      fmt::format("# fish completion of {0}, made from its command line.\ncomplete -c {0} -f\n", page.name);
  script += fish_options(page, page.name, "");
  const std::string names = joined(command_names(page), " ");
  for (const CliPage& command : page.commands) {
    script += fmt::format("complete -c {} -n 'not __fish_seen_subcommand_from {}' -a {} -d '{}'\n", page.name, names,
                          command.name, fish_quoted(first_line(command.text)));
    script += fish_options(command, page.name, fmt::format(" -n '__fish_seen_subcommand_from {}'", command.name));
  }
  return script;
}

}  // namespace gemvjit::tools
