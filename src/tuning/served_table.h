// ServedTable: one tuning table as look-ups see it, which targets it lists at once and its rows when first asked for.
//
// The built-in tables are most of a context's start: those of the targets that nobody asks for are never parsed, and
// what was parsed is shared by the contexts of a process. Threads: any.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/status.h"
#include "src/tuning/entry_index.h"
#include "src/tuning/table_data.h"

namespace gemvjit {

// A table's rows with their index.
struct IndexedTable : TableData {
  explicit IndexedTable(TableData data) : TableData(std::move(data)), index(entries) {}
  IndexedTable(const IndexedTable&) = delete;  // the index points into the entries
  IndexedTable& operator=(const IndexedTable&) = delete;
  EntryIndex index;
};

class ServedTable {
 public:
  explicit ServedTable(TableData parsed);
  // `text` outlives the table. invalid_argument if it is no JSON object that lists targets.
  static Result<std::shared_ptr<const ServedTable>> parsed_later(std::string name, std::string_view text);

  const std::string& name() const { return name_; }
  bool serves(const std::string& arch) const;
  // As parse_table(), once; the answer stays as long as the table.
  Result<const IndexedTable*> rows() const;

 private:
  ServedTable(std::string name, std::vector<std::string> archs, std::string_view text);
  const std::string name_;
  const std::vector<std::string> archs_;
  const std::string_view text_;  // not yet parsed; unused once rows_ is there
  mutable std::once_flag parse_once_;
  mutable Status failure_ = Status::ok();
  mutable std::optional<IndexedTable> rows_;
};

}  // namespace gemvjit
