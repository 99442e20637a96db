#include "dssync/planner/codecs.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "dssync/base/error.h"
#include "dssync/base/index.h"

namespace dssync {

Codecs::Codecs(std::vector<Codec> by_level, double bytes_per_second)
    : by_level_(std::move(by_level)), bytes_per_second_(bytes_per_second) {
  while (by_level_.size() > 1 && by_level_.back() == by_level_[by_level_.size() - 2]) by_level_.pop_back();
  if (by_level_.size() == 1 && by_level_.front() == Codec::kFloat32) *this = {};
}

Codec Codecs::at(int level) const {
  return by_level_.empty() ? Codec::kFloat32 : by_level_[std::min(index(level), by_level_.size() - 1)];
}

std::vector<Codec> Codecs::by_level() const { return by_level_.empty() ? std::vector{Codec::kFloat32} : by_level_; }

std::string name_of(const Codecs& codecs) {
  std::vector<std::string> names;
  for (const Codec codec : codecs.by_level()) names.emplace_back(name_of(codec));
  return fmt::format("{}", fmt::join(names, "/"));
}

std::string name_of(const CodecChoice& choice) { return choice.codec ? name_of(*choice.codec) : "auto"; }

std::vector<std::string> codec_choice_names() {
  std::vector<std::string> names = {"auto"};
  for (const Codec codec : all_codecs()) names.emplace_back(name_of(codec));
  return names;
}

std::optional<Codec> codec_choice_from_name(const std::string& name) {
  if (name == "auto") return std::nullopt;
  if (const std::optional<Codec> codec = codec_of(name)) return codec;
  throw InputError(fmt::format("expected one of {}, but found '{}'", fmt::join(codec_choice_names(), ", "), name));
}

}  // namespace dssync
