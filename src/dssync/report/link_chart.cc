#include "dssync/report/link_chart.h"

#include <algorithm>
#include <map>
#include <tuple>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "dssync/base/name_pattern.h"
#include "dssync/report/markup.h"

namespace dssync {
namespace {

constexpr std::size_t kMostLinkRows = 12;
constexpr double kLinksLeft = 8;
constexpr double kLinksRight = 104;
constexpr double kLinksRow = 52;

struct Part {
  std::vector<std::string> nodes;  // each once
  std::vector<std::string> ways;
  std::vector<LinkLoad> links;
};

void add_once(std::vector<std::string>& list, const std::string& name) {
  if (std::find(list.begin(), list.end(), name) == list.end()) list.push_back(name);
}

// "a0 out" -> "a0" and "out".
std::pair<std::string, std::string> split_name(const std::string& link) {
  const std::size_t blank = link.rfind(' ');
  if (blank == std::string::npos) return {link, ""};
  return {link.substr(0, blank), link.substr(blank + 1)};
}

std::string label_of(const Part& part) {
  const bool is_host = part.ways.front() == "out" || part.ways.front() == "in";
  const std::string kind = is_host ? "NIC" : "uplink";
  const std::string names = shortened(fmt::format("{}", fmt::join(fold_names(part.nodes), ", ")), 40);
  const std::string way = part.ways.size() == 2 ? "both ways" : part.ways.front();
  const std::string head = part.nodes.size() == 1 ? kind : fmt::format("{} {}s", part.nodes.size(), kind);
  return fmt::format("{} {}, {}", head, names, way);
}

std::string kind_of(const std::string& way) { return way == "out" || way == "in" ? "host" : "switch"; }

std::string bar(const char* style, double top, double bytes, double scale, double height) {
  if (bytes <= 0) return {};
  return fmt::format(R"(<rect class="{}" x="{}" y="{}" width="{}" height="{}"/>)", style, kLinksLeft, coordinate(top),
                     coordinate(std::max(1.0, bytes * scale)), coordinate(height));
}

std::string share_text(const FoldedLinks& row) {
  if (row.measured_share.count > 0) return shown_percent(row.measured_share.mean, 0) + " busy";
  return row.predicted_share ? shown_percent(*row.predicted_share, 0) + " planned" : std::string();
}

std::string draw_row(const FoldedLinks& row, double top, double scale) {
  const std::string capacity = row.bytes_per_second > 0 ? ", " + shown_rate(row.bytes_per_second) : std::string();
  std::string out = fmt::format(R"(<text class="label" x="{}" y="{}">{}{}</text>)", kLinksLeft, coordinate(top + 14),
                                escaped(row.label), capacity);
  out += bar("planned", top + 20, row.predicted_bytes.value_or(0), scale, 10);
  out += bar("carried", top + 32, row.measured_bytes.mean, scale, 10);
  if (row.measured_bytes.count > 1 && row.measured_bytes.high > row.measured_bytes.low) {
    out +=
        fmt::format(R"(<path class="whisker" d="M{} {}H{}"/>)", coordinate(kLinksLeft + row.measured_bytes.low * scale),
                    coordinate(top + 37), coordinate(kLinksLeft + row.measured_bytes.high * scale));
  }
  const double longest = std::max({row.predicted_bytes.value_or(0), row.measured_bytes.mean, row.measured_bytes.high});
  const double bytes = row.measured_bytes.count > 0 ? row.measured_bytes.mean : row.predicted_bytes.value_or(0);
  const double x = kLinksLeft + longest * scale + 7;
  out += fmt::format(R"(<text class="total" x="{}" y="{}">{}</text>)", coordinate(x), coordinate(top + 29),
                     shown_bytes(bytes));
  out += fmt::format(R"(<text class="total quiet" x="{}" y="{}">{}</text>)", coordinate(x), coordinate(top + 42),
                     share_text(row));
  return out;
}

std::string range_text(const Figure& figure) {
  if (figure.count == 0) return "–";
  std::string mean = shown_bytes(figure.mean);
  if (figure.count == 1 || shown_bytes(figure.low) == shown_bytes(figure.high)) return mean;
  return fmt::format("{} <small>({} to {})</small>", mean, shown_bytes(figure.low), shown_bytes(figure.high));
}

std::string table(const std::vector<FoldedLinks>& rows, std::size_t shown) {
  std::string out =
      "<div class=\"scroll\"><table><thead><tr><th>links</th><th class=\"n\">capacity</th><th class=\"n\">predicted "
      "per iteration</th><th "
      "class=\"n\">measured per "
      "iteration</th><th class=\"n\">measured / predicted</th><th class=\"n\">predicted share of the iteration</th><th "
      "class=\"n\">measured share of "
      "capacity</th></tr></thead>\n<tbody>\n";
  for (std::size_t i = 0; i < shown; ++i) {
    const FoldedLinks& row = rows[i];
    const bool both = row.predicted_bytes && *row.predicted_bytes > 0 && row.measured_bytes.count > 0;
    out += fmt::format(
        "<tr><th scope=\"row\">{}</th><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td "
        "class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td></tr>\n",
        escaped(row.label), row.bytes_per_second > 0 ? shown_rate(row.bytes_per_second) : "–",
        row.predicted_bytes ? shown_bytes(*row.predicted_bytes) : "–", range_text(row.measured_bytes),
        both ? shown_ratio(row.measured_bytes.mean / *row.predicted_bytes) : "–",
        row.predicted_share ? shown_percent(*row.predicted_share, 0) : "–",
        row.measured_share.count > 0 ? shown_percent(row.measured_share.mean, 0) : "–");
  }
  out += "</tbody></table></div>\n";
  if (rows.size() > shown)
    out += fmt::format("<p class=\"note\">and {} more kinds of load, each below these.</p>\n", rows.size() - shown);
  return out;
}

}  // namespace

std::vector<FoldedLinks> fold_links(const std::vector<LinkLoad>& links) {
  std::map<std::tuple<std::string, double, std::string>, std::size_t> place;
  std::vector<Part> parts;
  for (const LinkLoad& link : links) {
    const auto [node, way] = split_name(link.name);
    const std::string predicted = link.predicted_bytes ? shown_bytes(*link.predicted_bytes) : "";
    const auto [entry, is_new] =
        place.emplace(std::make_tuple(kind_of(way), link.bytes_per_second, predicted), parts.size());
    if (is_new) parts.emplace_back();
    Part& part = parts[entry->second];
    add_once(part.nodes, node);
    add_once(part.ways, way);
    part.links.push_back(link);
  }
  std::vector<FoldedLinks> result;
  for (const Part& part : parts) {
    std::vector<double> bytes;
    std::vector<double> shares;
    for (const LinkLoad& link : part.links) {
      if (link.measured_bytes) bytes.push_back(*link.measured_bytes);
      if (link.measured_share) shares.push_back(*link.measured_share);
    }
    const LinkLoad& first = part.links.front();
    result.push_back({label_of(part), first.bytes_per_second, first.predicted_bytes, first.predicted_share,
                      figure_of(bytes), figure_of(shares)});
  }
  std::stable_sort(result.begin(), result.end(), [](const FoldedLinks& a, const FoldedLinks& b) {
    const auto key = [](const FoldedLinks& row) {
      return row.measured_share.count > 0 ? row.measured_share.high : row.predicted_share.value_or(0);
    };
    return key(a) > key(b);
  });
  return result;
}

std::string draw_links(const RunGroup& group, const std::string& id) {
  const std::vector<FoldedLinks> rows = fold_links(group.links);
  if (rows.empty()) return {};
  const std::size_t shown = std::min(rows.size(), kMostLinkRows);
  double most = 0;
  for (std::size_t i = 0; i < shown; ++i)
    most = std::max({most, rows[i].predicted_bytes.value_or(0), rows[i].measured_bytes.high});
  const double scale = most > 0 ? (kChartWidth - kLinksLeft - kLinksRight) / most : 0;
  const double height = 8 + kLinksRow * static_cast<double>(shown);
  std::string out = fmt::format(
      "<figure class=\"chart wide\" id=\"{}\">\n<figcaption>{}: bytes per link and iteration</figcaption>\n<div "
      "class=\"legend\">{}{}</div>\n",
      id, escaped(group.name), legend_box("planned", "predicted"), legend_box("carried", "measured"));
  out += begin_svg({id, "Bytes per link and iteration, " + group.name,
                    "Bars of predicted and measured bytes; the table below has the values.", kChartWidth, height,
                    "class=\"half\""});
  for (std::size_t i = 0; i < shown; ++i) out += draw_row(rows[i], 4 + kLinksRow * static_cast<double>(i), scale);
  return out + "</svg>\n" + table(rows, shown) + "</figure>\n";
}

}  // namespace dssync
