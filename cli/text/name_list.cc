#include "text/name_list.h"

#include <fmt/format.h>

#include "dssync/base/name_pattern.h"

namespace dssync::cli {

std::string list_names(const std::vector<std::string>& names, std::size_t columns, const Style& style) {
  std::vector<std::string> shown;
  for (const std::string& name : names) shown.push_back(printable(name));
  const std::vector<std::string> folded = fold_names(shown);
  const std::string all = fmt::format("{}", fmt::join(folded, ", "));
  if (width(all) <= columns || folded.size() == 1) return clip(all, columns, style);
  const std::string tail = fmt::format(", {}", style.glyphs().ellipsis);
  std::string result = folded.front();
  for (std::size_t i = 1; width(result) + 2 + width(folded[i]) + width(tail) <= columns; ++i) {
    result += ", " + folded[i];
  }
  return clip(result + tail, columns, style);
}

}  // namespace dssync::cli
