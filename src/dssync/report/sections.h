// The sections of the page, as HTML. Each says what is missing where the logs do not have what it shows. Pure;
// thread-safe.
#pragma once

#include <string>

#include "dssync/report/comparison.h"

namespace dssync {

std::string header_section(const Comparison& comparison);
std::string summary_section(const Comparison& comparison);
std::string accuracy_section(const Comparison& comparison);
std::string time_section(const Comparison& comparison);
std::string disagreement_section(const Comparison& comparison);
std::string links_section(const Comparison& comparison);
std::string network_section(const Comparison& comparison);
std::string runs_section(const Comparison& comparison);

// The style sheet and the script of the page.
std::string page_style();
std::string page_script();

}  // namespace dssync
