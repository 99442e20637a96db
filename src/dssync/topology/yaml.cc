// The YAML reader. yaml-cpp's events are taken as they come, without its tree of nodes: the first event that does not
// fit ends the reading, and memory stays in proportion to what is kept.
#include <algorithm>
#include <array>
#include <charconv>
#include <span>
#include <sstream>
#include <system_error>

#include <fmt/format.h>
#include <yaml-cpp/anchor.h>
#include <yaml-cpp/emitterstyle.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include "dssync/base/error.h"
#include "dssync/base/text.h"
#include "dssync/topology/read.h"
#include "dssync/topology/text_check.h"

namespace dssync {
namespace {

struct Value {
  std::string text;
  int line = 0;
};

// One map of the file: `defaults`, a switch or a host. Which keys it may have is up to the section it stands in.
struct Entry {
  int line = 0;
  std::optional<Value> name, parent, switch_name, uplink, nic, latency, workers;
};

using Slot = std::optional<Value> Entry::*;

struct Key {
  std::string_view name;
  Slot slot;
};

constexpr std::array<Key, 4> kDefaultsKeys{
    {{"nic", &Entry::nic}, {"uplink", &Entry::uplink}, {"latency", &Entry::latency}, {"workers", &Entry::workers}}};
constexpr std::array<Key, 4> kSwitchKeys{
    {{"name", &Entry::name}, {"parent", &Entry::parent}, {"uplink", &Entry::uplink}, {"latency", &Entry::latency}}};
constexpr std::array<Key, 5> kHostKeys{{{"name", &Entry::name},
                                        {"switch", &Entry::switch_name},
                                        {"nic", &Entry::nic},
                                        {"latency", &Entry::latency},
                                        {"workers", &Entry::workers}}};
constexpr std::array<std::string_view, 3> kSections{"defaults", "switches", "hosts"};

struct Document {
  int hosts_line = 0;
  Entry defaults;
  std::vector<Entry> switches;
  std::vector<Entry> hosts;
};

int line_of(const YAML::Mark& mark) { return mark.line + 1; }

std::string unknown_key(std::string_view key, std::string_view where, std::span<const std::string_view> known) {
  const std::string_view guess = nearest(key, known);
  const std::string hint = guess.empty() ? "" : fmt::format(" (did you mean {}?)", guess);
  return fmt::format("unknown key {} {}{}; expected one of {}", quote(key), where, hint, fmt::join(known, ", "));
}

// Turns the events of one document into a Document, or throws at the first one that does not fit.
class DocumentBuilder : public YAML::EventHandler {
 public:
  explicit DocumentBuilder(const std::string& source) : source_(source) {}

  // Throws if there was nothing.
  const Document& document() const;

  void OnDocumentStart(const YAML::Mark& mark) override;
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override;
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override;
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override;
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value style) override;
  void OnSequenceEnd() override { place_ = Place::kDocument; }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value style) override;
  void OnMapEnd() override;

 private:
  // What the next event may be.
  enum class Place {
    kStart,     // the map of sections
    kDocument,  // a section's name
    kSection,   // a section's content
    kList,      // a map in the list of a section
    kEntry,     // a key
    kValue,     // the text of a key
    kEnd,       // nothing
  };
  enum class Section { kDefaults, kSwitches, kHosts };

  [[noreturn]] void fail(int line, const std::string& message) const { throw InputError(source_, line, message); }
  [[noreturn]] void fail_unexpected(int line, std::string_view found) const;
  void start_section(int line, const std::string& name);
  void start_entry(int line);
  void start_value(int line, const std::string& key);
  template <std::size_t n>
  Slot find_slot(int line, const std::string& key, const std::array<Key, n>& keys, std::string_view where) const;
  Entry& entry();
  std::string_view section_name() const { return kSections[static_cast<std::size_t>(section_)]; }

  const std::string& source_;
  Document document_;
  bool started_ = false;
  Place place_ = Place::kStart;
  Section section_ = Section::kDefaults;
  std::array<bool, kSections.size()> seen_{};
  Slot slot_ = nullptr;
  std::string key_;
  int key_line_ = 0;
};

Entry& DocumentBuilder::entry() {
  if (section_ == Section::kDefaults) return document_.defaults;
  return section_ == Section::kSwitches ? document_.switches.back() : document_.hosts.back();
}

const Document& DocumentBuilder::document() const {
  if (place_ == Place::kStart) {
    fail(0, fmt::format("the file is empty; expected the keys {}", fmt::join(kSections, ", ")));
  }
  return document_;
}

// yaml-cpp starts an empty document at a stray comma without passing it, for ever: the second start must be the last.
void DocumentBuilder::OnDocumentStart(const YAML::Mark& mark) {
  if (started_ && place_ == Place::kStart) fail_unexpected(line_of(mark), "no map");
  if (started_) {
    fail(line_of(mark),
         "more follows the end of the YAML document (another one, or a stray bracket or comma); expected one "
         "document in the file");
  }
  started_ = true;
}

void DocumentBuilder::fail_unexpected(int line, std::string_view found) const {
  switch (place_) {
    case Place::kStart:
      fail(line, fmt::format("the file holds {}; expected the keys {}", found, fmt::join(kSections, ", ")));
    case Place::kDocument:
      fail(line, fmt::format("there is {} for a key (is a bracket left open?); expected one of {}", found,
                             fmt::join(kSections, ", ")));
    case Place::kSection:
      if (section_ == Section::kDefaults) {
        fail(line, fmt::format("defaults is {}; expected a map such as {{nic: 10Gbps}}", found));
      }
      fail(line, fmt::format("{} is {}; expected a list, with an entry such as - {{name: {}}}", section_name(), found,
                             section_ == Section::kSwitches ? "rack0, parent: core, uplink: 40Gbps" : "node0"));
    case Place::kList:
      fail(line, fmt::format("an entry of {} is {}; expected a map such as {{name: node0}}", section_name(), found));
    case Place::kEntry:
      fail(line, fmt::format("there is {} for a key (is a bracket left open?); expected a word", found));
    case Place::kValue:
      fail(line, fmt::format("{} is {}; expected a single value", key_, found));
    case Place::kEnd:
      break;
  }
  fail(line, fmt::format("there is {} after the end; expected one document in the file", found));
}

void DocumentBuilder::OnNull(const YAML::Mark& mark, YAML::anchor_t) {
  if (place_ == Place::kStart) return;  // only comments; reported as empty by the caller
  if (place_ == Place::kSection) {
    place_ = Place::kDocument;  // "switches:" with nothing below
    return;
  }
  if (place_ == Place::kValue) {
    fail(key_line_, fmt::format("{} has no value; expected one, or the key left out", key_));
  }
  fail_unexpected(line_of(mark), "nothing");
}

void DocumentBuilder::OnAlias(const YAML::Mark& mark, YAML::anchor_t) {
  fail(line_of(mark), "there is a YAML alias (*name); expected the value itself, or a value under defaults");
}

void DocumentBuilder::OnScalar(const YAML::Mark& mark, const std::string&, YAML::anchor_t, const std::string& value) {
  const int line = line_of(mark);
  switch (place_) {
    case Place::kDocument:
      return start_section(line, value);
    case Place::kEntry:
      return start_value(line, value);
    case Place::kValue:
      entry().*slot_ = Value{value, line};
      place_ = Place::kEntry;
      return;
    default:
      fail_unexpected(line, quote(value));
  }
}

void DocumentBuilder::OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t,
                                      YAML::EmitterStyle::value) {
  if (place_ != Place::kSection || section_ == Section::kDefaults) fail_unexpected(line_of(mark), "a list");
  place_ = Place::kList;
}

void DocumentBuilder::OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t,
                                 YAML::EmitterStyle::value) {
  const bool in_defaults = place_ == Place::kSection && section_ == Section::kDefaults;
  if (place_ == Place::kStart) {
    place_ = Place::kDocument;
  } else if (place_ == Place::kList || in_defaults) {
    start_entry(line_of(mark));
  } else {
    fail_unexpected(line_of(mark), "a map");
  }
}

void DocumentBuilder::OnMapEnd() {
  if (place_ == Place::kDocument) {
    place_ = Place::kEnd;
  } else if (section_ == Section::kDefaults) {
    place_ = Place::kDocument;
  } else {
    if (!entry().name)
      fail(entry().line, fmt::format("an entry of {} has no name; expected name: and a name", section_name()));
    place_ = Place::kList;
  }
}

void DocumentBuilder::start_section(int line, const std::string& name) {
  const auto found = std::find(kSections.begin(), kSections.end(), name);
  if (found == kSections.end()) fail(line, unknown_key(name, "at the top of the file", kSections));
  const auto number = static_cast<std::size_t>(found - kSections.begin());
  if (seen_[number]) fail(line, fmt::format("{} stands here a second time; expected it once", name));
  seen_[number] = true;
  section_ = static_cast<Section>(number);
  if (section_ == Section::kHosts) document_.hosts_line = line;
  place_ = Place::kSection;
}

void DocumentBuilder::start_entry(int line) {
  if (section_ != Section::kDefaults) {
    std::vector<Entry>& entries = section_ == Section::kSwitches ? document_.switches : document_.hosts;
    if (entries.size() == static_cast<std::size_t>(Topology::kMaxWorkers)) {
      fail(line, fmt::format("there are too many {}; expected at most {}", section_name(), Topology::kMaxWorkers));
    }
    entries.emplace_back();
  }
  entry().line = line;
  place_ = Place::kEntry;
}

void DocumentBuilder::start_value(int line, const std::string& key) {
  switch (section_) {
    case Section::kDefaults:
      slot_ = find_slot(line, key, kDefaultsKeys, "in defaults");
      break;
    case Section::kSwitches:
      slot_ = find_slot(line, key, kSwitchKeys, "of a switch");
      break;
    case Section::kHosts:
      slot_ = find_slot(line, key, kHostKeys, "of a host");
      break;
  }
  if (entry().*slot_) fail(line, fmt::format("{} stands twice in one entry; expected it once", key));
  key_ = key;
  key_line_ = line;
  place_ = Place::kValue;
}

template <std::size_t n>
Slot DocumentBuilder::find_slot(int line, const std::string& key, const std::array<Key, n>& keys,
                                std::string_view where) const {
  std::array<std::string_view, n> names;
  for (std::size_t i = 0; i < n; ++i) {
    if (keys[i].name == key) return keys[i].slot;
    names[i] = keys[i].name;
  }
  fail(line, unknown_key(key, where, names));
}

// yaml-cpp holds all of a flow collection's tokens until it ends, so brackets without end cost memory before any event
// tells. Brackets in quotes count too, which no name with ranges comes near.
void check_nesting(std::string_view text, const std::string& source) {
  constexpr int kDeepest = 64;
  int line = 1;
  int depth = 0;
  bool comment = false;
  char before = '\n';
  for (const char c : text) {
    if (c == '\n') {
      ++line;
      comment = false;
    } else if (c == '#' && (before == ' ' || before == '\t' || before == '\n')) {
      comment = true;
    }
    before = c;
    if (comment) continue;
    if (c == '[' || c == '{') ++depth;
    if ((c == ']' || c == '}') && depth > 0) --depth;
    if (depth > kDeepest) {
      throw InputError(source, line,
                       fmt::format("brackets are nested more than {} deep; expected a topology as in "
                                   "docs/topology.md",
                                   kDeepest));
    }
  }
}

Document parse_document(std::string_view text, const std::string& source) {
  check_nesting(text, source);
  DocumentBuilder builder(source);
  std::istringstream stream{std::string(text)};
  try {
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(builder)) {
    }
  } catch (const YAML::Exception& error) {
    throw InputError(source, line_of(error.mark),
                     fmt::format("this is not YAML: {}; expected a topology as in docs/topology.md", error.msg));
  }
  return builder.document();
}

// Applies defaults and assumptions to a document.
class Resolver {
 public:
  Resolver(const Document& document, const std::string& source, const Assumptions& assumptions)
      : document_(document), source_(source), assumptions_(assumptions) {}

  ReadResult run();

 private:
  [[noreturn]] void fail(int line, const std::string& message) const { throw InputError(source_, line, message); }

  // Adds the place to what a parser of values throws.
  template <typename Parser>
  auto parse(const Value& value, std::string_view key, Parser parser) const {
    try {
      return parser(value.text);
    } catch (const InputError& error) {
      throw InputError(source_, value.line, fmt::format("{}: {}", key, error.what()));
    }
  }
  std::optional<Bandwidth> rate(const std::optional<Value>& own, Slot fallback, std::string_view key) const;
  Seconds latency(const Entry& entry) const;
  int workers(const Entry& entry) const;
  std::vector<std::string> names(const Entry& entry, std::size_t taken) const;
  void add_switch(const Entry& entry);
  void add_host(const Entry& entry);
  void add_notes(std::vector<std::string>& notes) const;

  const Document& document_;
  const std::string& source_;
  const Assumptions& assumptions_;
  std::vector<Topology::SwitchSpec> switches_;
  std::vector<Topology::HostSpec> hosts_;
  std::size_t assumed_nics_ = 0;
  std::size_t assumed_uplinks_ = 0;
};

std::optional<Bandwidth> Resolver::rate(const std::optional<Value>& own, Slot fallback, std::string_view key) const {
  const std::optional<Value>& value = own ? own : document_.defaults.*fallback;
  if (!value) return std::nullopt;
  return parse(*value, key, parse_bandwidth);
}

Seconds Resolver::latency(const Entry& entry) const {
  const std::optional<Value>& value = entry.latency ? entry.latency : document_.defaults.latency;
  return value ? parse(*value, "latency", parse_duration) : Seconds(0);
}

int Resolver::workers(const Entry& entry) const {
  const std::optional<Value>& value = entry.workers ? entry.workers : document_.defaults.workers;
  if (!value) return 1;
  int count = 0;
  const char* end = value->text.data() + value->text.size();
  const auto [stop, problem] = std::from_chars(value->text.data(), end, count);
  if (problem != std::errc() || stop != end || count < 1 || count > Topology::kMaxWorkers) {
    fail(value->line,
         fmt::format("workers is {}; expected a whole number from 1 to {}", quote(value->text), Topology::kMaxWorkers));
  }
  return count;
}

std::vector<std::string> Resolver::names(const Entry& entry, std::size_t taken) const {
  const std::size_t limit = static_cast<std::size_t>(Topology::kMaxWorkers) - taken;
  return parse(*entry.name, "name", [limit](const std::string& text) { return expand_host_range(text, limit); });
}

void Resolver::add_switch(const Entry& entry) {
  Topology::SwitchSpec spec;
  spec.line = entry.line;
  const std::vector<std::string> all = names(entry, switches_.size());
  if (entry.parent) {
    spec.parent = entry.parent->text;
    if (spec.parent.empty()) fail(entry.parent->line, "parent is empty; expected the name of a switch");
    spec.latency = latency(entry);
    const std::optional<Bandwidth> given = rate(entry.uplink, &Entry::uplink, "uplink");
    if (!given && !assumptions_.uplink) {
      fail(entry.line,
           fmt::format("switch {} has no uplink; expected uplink: with a rate such as 40Gbps, here or under "
                       "defaults",
                       quote(all.front())));
    }
    if (!given) assumed_uplinks_ += all.size();
    spec.uplink = given ? *given : *assumptions_.uplink;
  } else if (entry.uplink || entry.latency) {
    fail(entry.uplink ? entry.uplink->line : entry.latency->line,
         fmt::format("switch {} has {} but no parent; expected parent: as well, or neither at the root",
                     quote(all.front()), entry.uplink ? "an uplink" : "a latency (which is its uplink's)"));
  }
  for (const std::string& name : all) {
    spec.name = name;
    switches_.push_back(spec);
  }
}

void Resolver::add_host(const Entry& entry) {
  Topology::HostSpec spec;
  spec.line = entry.line;
  const std::vector<std::string> all = names(entry, hosts_.size());
  if (entry.switch_name) {
    spec.switch_name = entry.switch_name->text;
  } else if (switches_.size() == 1) {
    spec.switch_name = switches_.front().name;
  } else {
    fail(entry.line, fmt::format("host {} has no switch; expected switch: and the name of one, as there are {}",
                                 quote(all.front()), switches_.size()));
  }
  const std::optional<Bandwidth> given = rate(entry.nic, &Entry::nic, "nic");
  if (!given && !assumptions_.nic) {
    fail(entry.line, fmt::format("host {} has no nic; expected nic: with a rate such as 10Gbps, here or under defaults",
                                 quote(all.front())));
  }
  if (!given) assumed_nics_ += all.size();
  spec.nic = given ? *given : *assumptions_.nic;
  spec.latency = latency(entry);
  spec.workers = workers(entry);
  for (const std::string& name : all) {
    spec.name = name;
    hosts_.push_back(spec);
  }
}

void Resolver::add_notes(std::vector<std::string>& notes) const {
  if (assumed_nics_ > 0) {
    notes.push_back(fmt::format("The file gives no nic for {} of {} hosts: {} is assumed.", assumed_nics_,
                                hosts_.size(), format_bandwidth(*assumptions_.nic)));
  }
  if (assumed_uplinks_ > 0) {
    notes.push_back(fmt::format("The file gives no uplink for {} of {} switches: {} is assumed.", assumed_uplinks_,
                                switches_.size(), format_bandwidth(*assumptions_.uplink)));
  }
}

ReadResult Resolver::run() {
  if (document_.hosts.empty()) {
    fail(document_.hosts_line, "there is no host; expected a list hosts: with an entry such as - {name: node0}");
  }
  for (const Entry& entry : document_.switches) add_switch(entry);
  if (switches_.empty()) {
    switches_.emplace_back();
    switches_.back().name = "switch";
  }
  for (const Entry& entry : document_.hosts) add_host(entry);
  ReadResult result{Topology::build(switches_, hosts_, source_), {}};
  add_notes(result.notes);
  return result;
}

}  // namespace

ReadResult read_yaml_topology(std::string_view text, const std::string& source, const Assumptions& assumptions) {
  const Document document = parse_document(checked_text(text, source), source);
  return Resolver(document, source, assumptions).run();
}

}  // namespace dssync
