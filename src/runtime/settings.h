// Settings: the environment, and under it the options that two files give, so that tools and engines on a machine work
// with the same ones.
//
//   $XDG_CONFIG_HOME/gemvjit/config.json, else $HOME/.config/gemvjit/config.json
//   /etc/gemvjit/config.json
//
// GEMVJIT_CONFIG names one file in the place of both, which then has to be there; "none" is no file. A file is a JSON
// object from option names (options.h; those with a variable) to texts, numbers or, for lists of paths, lists of texts;
// null counts as not there. The first file's value of an option wins, and a variable that is set to something over
// both.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "src/base/status.h"
#include "src/runtime/options.h"

namespace gemvjit {

class Settings {
 public:
  // Reads what there is. invalid_argument, naming the file, for one that is no such object, sets an option that is not
  // known or to a value that is not accepted, that another user (root may) owns or others may write: whoever may write
  // it could switch off what protects the cache. io_error for one that cannot be read.
  static Result<Settings> read(EnvironmentReader environment,
                               const std::string& system_file = "/etc/gemvjit/config.json");

  // The environment with what the files add to it; also for variables that are no options. Outlives the settings.
  EnvironmentReader reader() const;
  // Where an option's value comes from: its variable, the path of a file, or "" for the default.
  std::string origin_of(const OptionRow& row) const;
  // The files that were read, the one that wins first.
  const std::vector<std::string>& files() const { return files_; }

 private:
  struct Value {
    std::string text, file;
  };
  using Values = std::map<std::string, Value>;  // by variable

  explicit Settings(EnvironmentReader environment) : environment_(std::move(environment)) {}
  Status add_file(const std::string& path, bool must_exist, bool of_root);

  EnvironmentReader environment_;
  std::shared_ptr<Values> values_ = std::make_shared<Values>();
  std::vector<std::string> files_;
};

// The settings of this process as they are now.
Result<Settings> process_settings();

}  // namespace gemvjit
