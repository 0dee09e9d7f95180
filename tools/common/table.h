// Table: columns of text for a terminal, aligned, two spaces between.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tools/common/terminal.h"

namespace gemvjit::tools {

class Table {
 public:
  enum class Align { left, right };
  struct Column {
    std::string title;
    Align align = Align::left;
    // Where colors are wanted: a cell's. Null: none.
    Paint (*paint)(std::string_view cell) = nullptr;
    bool can_shorten = false;  // in the middle, where lines are to fit a terminal
    bool can_drop = false;     // left out, the last such first, where that is not enough
  };

  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}
  // One cell a column. What would steer a terminal is escaped (printable_line()), so that a table's text can be written
  // as it is, colors and all.
  void add_row(std::vector<std::string> cells);
  bool empty() const { return rows_.empty(); }
  // Title line and rows, each ended by a newline, none by a space.
  std::string text() const { return text({}); }
  // The same for a stream of this style: in color, and no wider than it as far as the columns that can be shortened or
  // dropped allow.
  std::string text(const StreamStyle& style) const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace gemvjit::tools
