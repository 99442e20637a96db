// A list of names in so many columns, folded as dssync/base/name_pattern.h does it. Pure; thread-safe.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "text/style.h"

namespace dssync::cli {

// The folded names, with commas, in at most `columns`; an ellipsis stands for what does not fit.
std::string list_names(const std::vector<std::string>& names, std::size_t columns, const Style& style);

}  // namespace dssync::cli
