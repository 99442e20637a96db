// The reader of Slurm's topology.conf (topology/tree).
#include <algorithm>
#include <array>
#include <unordered_map>

#include <fmt/format.h>

#include "dssync/base/error.h"
#include "dssync/base/text.h"
#include "dssync/topology/read.h"
#include "dssync/topology/text_check.h"

namespace dssync {
namespace {

constexpr Bandwidth kUsualNic{1.25e9};  // 10Gbps
constexpr std::array<std::string_view, 4> kKeys{"SwitchName", "Nodes", "Switches", "LinkSpeed"};

// A line of the file: the values of kKeys, in that order.
struct Statement {
  int line = 0;
  std::array<std::optional<std::string>, kKeys.size()> values;

  const std::optional<std::string>& switch_name() const { return values[0]; }
  const std::optional<std::string>& nodes() const { return values[1]; }
  const std::optional<std::string>& switches() const { return values[2]; }
  const std::optional<std::string>& link_speed() const { return values[3]; }
};

// Takes the next line off the text, without its comment. A backslash at the end joins the next line to it.
std::string take_line(std::string_view& text, int& lines) {
  std::string joined;
  while (true) {
    const std::size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    ++lines;
    line = trimmed(line.substr(0, line.find('#')));
    const bool more = line.ends_with('\\');
    if (more) line.remove_suffix(1);
    joined += line;
    if (!more || text.empty()) return joined;
    joined += ' ';
  }
}

// Takes the next word off the line: up to a blank, or to the closing quote of KEY="value".
std::string_view take_word(std::string_view& line) {
  constexpr std::string_view kBlank = " \t";
  std::size_t end = line.find_first_of(kBlank);
  const std::size_t quote_at = line.find('"');
  if (quote_at != std::string_view::npos && quote_at < end) {
    const std::size_t closing = line.find('"', quote_at + 1);
    end = closing == std::string_view::npos ? line.size() : closing + 1;
  }
  const std::string_view word = line.substr(0, end);
  line = trimmed(line.substr(word.size()));
  return word;
}

std::string_view without_quotes(std::string_view value) {
  const bool both = value.size() >= 2 && value.front() == '"' && value.back() == '"';
  return both ? value.substr(1, value.size() - 2) : value;
}

// Splits "a[0-3,7],b" at the commas outside brackets.
std::vector<std::string_view> split_list(std::string_view list) {
  std::vector<std::string_view> parts;
  std::size_t begin = 0;
  bool inside = false;
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (list[i] == '[') inside = true;
    if (list[i] == ']') inside = false;
    if (list[i] != ',' || inside) continue;
    parts.push_back(list.substr(begin, i - begin));
    begin = i + 1;
  }
  parts.push_back(list.substr(begin));
  return parts;
}

class SlurmReader {
 public:
  SlurmReader(const std::string& source, const Assumptions& assumptions)
      : source_(source), assumptions_(assumptions), nic_(assumptions.nic.value_or(kUsualNic)) {}

  ReadResult run(std::string_view text);

 private:
  [[noreturn]] void fail(int line, const std::string& message) const { throw InputError(source_, line, message); }

  Statement parse_statement(std::string_view text, int line) const;
  std::vector<std::string> expand(const std::string& list, std::string_view key, int line, std::size_t taken) const;
  void add(const Statement& statement);
  Bandwidth link_speed(const std::string& text, int line);
  void connect();
  void assume_uplinks();
  std::size_t widen_from_below();
  void add_notes(std::vector<std::string>& notes) const;

  const std::string& source_;
  const Assumptions& assumptions_;
  const Bandwidth nic_;
  std::vector<Topology::SwitchSpec> switches_;
  std::vector<Topology::HostSpec> hosts_;
  // A switch that a Switches= names, and where.
  struct Child {
    std::string name;
    std::size_t parent;
    int line;
  };
  std::vector<Child> children_;
  std::unordered_map<std::string_view, std::size_t> by_name_;
  bool bare_speed_ = false;  // a LinkSpeed without a unit was read
  std::size_t assumed_uplinks_ = 0;
};

Statement SlurmReader::parse_statement(std::string_view text, int line) const {
  Statement statement;
  statement.line = line;
  while (!text.empty()) {
    const std::string_view word = take_word(text);
    const std::string_view key = word.substr(0, word.find('='));
    if (lower_case(key) == "include") fail(line, "Include is not read; expected all switches in one file");
    const auto found = std::find_if(kKeys.begin(), kKeys.end(),
                                    [&](std::string_view known) { return lower_case(known) == lower_case(key); });
    if (found == kKeys.end()) {
      const std::string_view guess = nearest(key, kKeys);
      fail(line, fmt::format("unknown key {}{}; expected one of {}", quote(key),
                             guess.empty() ? "" : fmt::format(" (did you mean {}?)", guess), fmt::join(kKeys, ", ")));
    }
    if (key.size() == word.size()) fail(line, fmt::format("{} has no value; expected {}=...", *found, *found));
    std::optional<std::string>& value = statement.values[static_cast<std::size_t>(found - kKeys.begin())];
    if (value) fail(line, fmt::format("{} stands twice in one line; expected it once", *found));
    value = without_quotes(word.substr(key.size() + 1));
    if (value->empty()) fail(line, fmt::format("{} has no value; expected {}=...", *found, *found));
  }
  return statement;
}

std::vector<std::string> SlurmReader::expand(const std::string& list, std::string_view key, int line,
                                             std::size_t taken) const {
  std::vector<std::string> names;
  try {
    for (const std::string_view part : split_list(list)) {
      const std::size_t left = static_cast<std::size_t>(Topology::kMaxWorkers) - taken - names.size();
      const std::vector<std::string> more = expand_host_range(part, left);
      names.insert(names.end(), more.begin(), more.end());
    }
  } catch (const InputError& error) {
    fail(line, fmt::format("{}: {}", key, error.what()));
  }
  return names;
}

Bandwidth SlurmReader::link_speed(const std::string& text, int line) {
  const bool bare = text.find_first_not_of("0123456789.") == std::string::npos;
  if (bare) bare_speed_ = true;
  try {
    return parse_bandwidth(bare ? text + "Mbps" : text);
  } catch (const InputError& error) {
    fail(line, fmt::format("LinkSpeed: {}", error.what()));
  }
}

void SlurmReader::add(const Statement& statement) {
  if (!statement.switch_name()) fail(statement.line, "the line names no switch; expected SwitchName=...");
  if (!statement.nodes() && !statement.switches()) {
    fail(statement.line, fmt::format("switch {} has nothing below it; expected Nodes=... or Switches=...",
                                     quote(*statement.switch_name())));
  }
  Topology::SwitchSpec spec;
  spec.line = statement.line;
  const std::vector<std::string> names = expand(*statement.switch_name(), "SwitchName", statement.line, 0);
  if (names.size() != 1) fail(statement.line, "SwitchName stands for several switches; expected one name");
  spec.name = names.front();
  if (statement.link_speed()) spec.uplink = link_speed(*statement.link_speed(), statement.line);
  if (statement.switches()) {
    for (std::string& name : expand(*statement.switches(), "Switches", statement.line, children_.size())) {
      children_.push_back({std::move(name), switches_.size(), statement.line});
    }
  }
  if (statement.nodes()) {
    for (std::string& name : expand(*statement.nodes(), "Nodes", statement.line, hosts_.size())) {
      hosts_.push_back({std::move(name), spec.name, nic_, Seconds(0), 1, statement.line});
    }
  }
  switches_.push_back(std::move(spec));
}

// Gives every switch its parent.
void SlurmReader::connect() {
  by_name_.reserve(switches_.size());
  for (std::size_t i = 0; i < switches_.size(); ++i) by_name_.emplace(switches_[i].name, i);
  for (const Child& child : children_) {
    const std::string& parent = switches_[child.parent].name;
    const auto found = by_name_.find(child.name);
    if (found == by_name_.end()) {
      fail(child.line, fmt::format("switch {} is below {} but is not defined; expected a line SwitchName={}",
                                   quote(child.name), quote(parent), child.name));
    }
    Topology::SwitchSpec& spec = switches_[found->second];
    if (!spec.parent.empty()) {
      fail(child.line,
           fmt::format("switch {} is below both {} and {}; expected a tree, with each switch below one other",
                       quote(child.name), quote(spec.parent), quote(parent)));
    }
    spec.parent = parent;
  }
}

void SlurmReader::assume_uplinks() {
  if (!assumptions_.uplink) {
    assumed_uplinks_ = widen_from_below();
    return;
  }
  for (Topology::SwitchSpec& spec : switches_) {
    if (spec.parent.empty() || spec.uplink.bytes_per_second > 0) continue;
    spec.uplink = *assumptions_.uplink;
    ++assumed_uplinks_;
  }
}

// Gives every uplink without a speed the sum of the links below, leaves first. Returns how many. Switches in a cycle
// are never reached; Topology::build refuses them before it looks at their rates.
std::size_t SlurmReader::widen_from_below() {
  std::vector<double> below(switches_.size(), 0);
  std::vector<std::size_t> waits_for(switches_.size(), 0);
  for (const Topology::HostSpec& host : hosts_) below[by_name_.at(host.switch_name)] += host.nic.bytes_per_second;
  for (const Child& child : children_) ++waits_for[child.parent];
  std::vector<std::size_t> ready;
  for (std::size_t i = 0; i < switches_.size(); ++i) {
    if (waits_for[i] == 0) ready.push_back(i);
  }
  std::size_t widened = 0;
  while (!ready.empty()) {
    const std::size_t at = ready.back();
    ready.pop_back();
    Topology::SwitchSpec& spec = switches_[at];
    if (spec.parent.empty()) continue;
    if (!(spec.uplink.bytes_per_second > 0)) {
      spec.uplink.bytes_per_second = below[at];
      ++widened;
    }
    const std::size_t parent = by_name_.at(spec.parent);
    below[parent] += spec.uplink.bytes_per_second;
    if (--waits_for[parent] == 0) ready.push_back(parent);
  }
  return widened;
}

void SlurmReader::add_notes(std::vector<std::string>& notes) const {
  notes.push_back(fmt::format("Slurm's file says nothing of NICs: {} is assumed for each of the {} hosts.",
                              format_bandwidth(nic_), hosts_.size()));
  if (bare_speed_)
    notes.emplace_back("LinkSpeed without a unit is read as Mbit/s, of the cable from a switch up to its parent.");
  if (assumed_uplinks_ > 0) {
    const std::string speed = assumptions_.uplink ? fmt::format("{} is assumed", format_bandwidth(*assumptions_.uplink))
                                                  : "each is taken to be as fast as the links below it together";
    notes.push_back(fmt::format("The file gives no LinkSpeed for {} of {} uplinks: {}.", assumed_uplinks_,
                                switches_.size() - 1, speed));
  }
}

ReadResult SlurmReader::run(std::string_view text) {
  int lines = 0;
  while (!text.empty()) {
    const int line = lines + 1;
    const std::string statement = take_line(text, lines);
    if (!trimmed(statement).empty()) add(parse_statement(trimmed(statement), line));
  }
  if (switches_.empty()) fail(0, "the file names no switch; expected lines such as SwitchName=rack0 Nodes=node[0-7]");
  connect();
  assume_uplinks();
  ReadResult result{Topology::build(switches_, hosts_, source_), {}};
  add_notes(result.notes);
  return result;
}

}  // namespace

ReadResult read_slurm_topology(std::string_view text, const std::string& source, const Assumptions& assumptions) {
  return SlurmReader(source, assumptions).run(checked_text(text, source));
}

}  // namespace dssync
