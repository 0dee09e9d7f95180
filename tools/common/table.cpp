#include "tools/common/table.h"

#include <fmt/format.h>

#include <algorithm>

namespace gemvjit::tools {

namespace {

// What is too much goes from the columns that can be shortened, the widest first, each down to `least`.
void narrow(const std::vector<Table::Column>& columns, std::size_t limit, std::vector<std::size_t>& widths) {
  constexpr std::size_t least = 16;
  std::size_t total = columns.empty() ? 0 : 2 * (columns.size() - 1);
  for (const std::size_t width : widths) total += width;
  while (total > limit) {
    std::size_t widest = columns.size();
    for (std::size_t i = 0; i < columns.size(); ++i) {
      if (!columns[i].can_shorten || widths[i] <= least) continue;
      if (widest == columns.size() || widths[i] > widths[widest]) widest = i;
    }
    if (widest == columns.size()) return;
    --widths[widest];
    --total;
  }
}

}  // namespace

std::string Table::text(const StreamStyle& style) const {
  std::vector<std::string> titles;
  std::vector<std::size_t> widths;
  for (const Column& column : columns_) {
    titles.push_back(column.title);
    widths.push_back(column.title.size());
  }
  for (const auto& row : rows_) {
    for (std::size_t i = 0; i < widths.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  if (style.columns > 0) narrow(columns_, style.columns, widths);
  std::string text;
  const auto add_line = [&](const std::vector<std::string>& cells, bool with_paint) {
    std::string line;
    std::size_t owed = 0;  // spaces, written only if something follows
    for (std::size_t i = 0; i < widths.size(); ++i) {
      const Column& column = columns_[i];
      const std::string cell = column.can_shorten ? shorten_middle(cells[i], widths[i]) : cells[i];
      const std::size_t space = widths[i] - std::min(widths[i], cell.size());
      if (i > 0) owed += 2;
      if (column.align == Align::right) owed += space;
      if (!cell.empty()) {
        line += std::string(owed, ' ') +
                paint(cell, column.paint ? column.paint(cell) : Paint::none, style.color && with_paint);
        owed = 0;
      }
      if (column.align == Align::left) owed += space;
    }
    text += line + "\n";
  };
  add_line(titles, false);
  for (const auto& row : rows_) add_line(row, true);
  return text;
}

}  // namespace gemvjit::tools
