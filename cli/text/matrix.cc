#include "text/matrix.h"

#include <algorithm>

#include <fmt/format.h>

namespace dssync::cli {
namespace {

constexpr std::size_t kIndent = 2;

std::size_t widest_label(const Matrix& matrix) {
  std::size_t result = 0;
  for (const Matrix::Row& row : matrix.rows) result = std::max(result, width(row.label));
  return result;
}

std::size_t column_width(const Matrix& matrix) {
  std::size_t result = 2;
  for (const std::string& text : matrix.header) result = std::max(result, width(text));
  return result + 2;
}

// Columns [begin, end) with the header above them.
std::string draw_block(const Matrix& matrix, std::size_t begin, std::size_t end, const Style& style) {
  const std::size_t label_columns = widest_label(matrix);
  const std::size_t cell_columns = column_width(matrix);
  std::string header(kIndent + label_columns, ' ');
  for (std::size_t i = begin; i < end; ++i) header += pad_left(matrix.header[i], cell_columns);
  std::string result = style.paint(header, Tint::kDim) + "\n";
  for (const Matrix::Row& row : matrix.rows) {
    if (row.opens_block) result += "\n";
    result += std::string(kIndent, ' ') + pad_right(row.label, label_columns);
    for (std::size_t i = begin; i < end; ++i) {
      const Matrix::Cell& cell = row.cells[i];
      result += std::string(cell_columns - width(cell.text), ' ') + style.paint(cell.text, cell.tint);
    }
    result += "\n";
  }
  return result;
}

}  // namespace

std::string draw_matrix(const Matrix& matrix, std::size_t max_blocks, const Style& style) {
  const std::size_t room = kPageWidth - kIndent - std::min(widest_label(matrix), kPageWidth / 2);
  const std::size_t per_block = std::max<std::size_t>(1, room / column_width(matrix));
  std::string result;
  std::size_t begin = 0;
  for (std::size_t block = 0; block < max_blocks && begin < matrix.header.size(); ++block) {
    const std::size_t end = std::min(begin + per_block, matrix.header.size());
    if (block > 0) result += "\n";
    result += draw_block(matrix, begin, end, style);
    begin = end;
  }
  if (begin < matrix.header.size()) {
    result += fmt::format("  {} and {} (--format json lists all)\n", style.glyphs().ellipsis,
                          counted(matrix.header.size() - begin, "more column"));
  }
  return result;
}

}  // namespace dssync::cli
