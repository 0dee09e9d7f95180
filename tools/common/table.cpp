#include "tools/common/table.h"

#include <fmt/format.h>

#include <algorithm>

#include "tools/common/printable.h"

namespace gemvjit::tools {

namespace {

std::size_t total_of(const std::vector<std::size_t>& widths) {
  std::size_t total = 0, shown = 0;
  for (const std::size_t width : widths) {
    if (width == 0) continue;
    total += width;
    ++shown;
  }
  return total + (shown == 0 ? 0 : 2 * (shown - 1));
}

// What is still too much after narrow() goes with whole columns: their width is 0 then.
void drop(const std::vector<Table::Column>& columns, std::size_t limit, std::vector<std::size_t>& widths) {
  for (std::size_t i = columns.size(); i-- > 0 && total_of(widths) > limit;) {
    if (columns[i].can_drop) widths[i] = 0;
  }
}

// What is too much goes from the columns that can be shortened, the widest first, each down to `least`.
void narrow(const std::vector<Table::Column>& columns, std::size_t limit, std::vector<std::size_t>& widths) {
  constexpr std::size_t least = 16;
  std::size_t total = total_of(widths);
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

void Table::add_row(std::vector<std::string> cells) {
  for (std::string& cell : cells) cell = printable_line(cell);
  rows_.push_back(std::move(cells));
}

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
  if (style.columns > 0) {
    narrow(columns_, style.columns, widths);
    drop(columns_, style.columns, widths);
  }
  std::string text;
  const auto add_line = [&](const std::vector<std::string>& cells, bool with_paint) {
    std::string line;
    std::size_t owed = 0;  // spaces, written only if something follows
    bool is_first = true;
    for (std::size_t i = 0; i < widths.size(); ++i) {
      if (widths[i] == 0) continue;
      const Column& column = columns_[i];
      const std::string cell = column.can_shorten ? shorten_middle(cells[i], widths[i]) : cells[i];
      const std::size_t space = widths[i] - std::min(widths[i], cell.size());
      if (!is_first) owed += 2;
      is_first = false;
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
