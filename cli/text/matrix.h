// A table of one narrow column per round: a header, rows of one-character cells, wrapped to the page. Plain value.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "text/style.h"

namespace dssync::cli {

struct Matrix {
  struct Cell {
    std::string text;
    Tint tint = Tint::kNone;
  };
  struct Row {
    std::string label;
    std::vector<Cell> cells;
    bool opens_block = false;  // a gap stands before it
  };
  std::vector<std::string> header;
  std::vector<Row> rows;
};

// Too many columns for the page continue in blocks below, `max_blocks` at most; then a line says how many are left out.
std::string draw_matrix(const Matrix& matrix, std::size_t max_blocks, const Style& style);

}  // namespace dssync::cli
