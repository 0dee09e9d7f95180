#include "src/tuning/served_table.h"

#include <algorithm>

namespace gemvjit {

ServedTable::ServedTable(TableData parsed) : name_(parsed.name), archs_(parsed.archs) {
  rows_.emplace(std::move(parsed));
  std::call_once(parse_once_, [] {});
}

ServedTable::ServedTable(std::string name, std::vector<std::string> archs, std::string_view text)
    : name_(std::move(name)), archs_(std::move(archs)), text_(text) {}

Result<std::shared_ptr<const ServedTable>> ServedTable::parsed_later(std::string name, std::string_view text) {
  GEMVJIT_TRY_ASSIGN(std::vector<std::string> archs, listed_archs(name, text));
  return std::shared_ptr<const ServedTable>(new ServedTable(std::move(name), std::move(archs), text));
}

bool ServedTable::serves(const std::string& arch) const {
  return std::find(archs_.begin(), archs_.end(), arch) != archs_.end();
}

Result<const IndexedTable*> ServedTable::rows() const {
  std::call_once(parse_once_, [this] {
    Result<TableData> parsed = parse_table(name_, text_);
    parsed ? void(rows_.emplace(std::move(parsed).value())) : void(failure_ = parsed.status());
  });
  if (!failure_) return failure_;
  return &*rows_;
}

}  // namespace gemvjit
