#include "dssync/report/iteration_line.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string>
#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "dssync/runlog/schema.h"

namespace dssync {
namespace {

constexpr double kNothing = std::numeric_limits<double>::quiet_NaN();
constexpr std::array<std::string_view, 8> kKeys{
    log_key::kIteration,   log_key::kLoss,        log_key::kIterationSeconds,     log_key::kComputeSeconds,
    log_key::kSyncSeconds, log_key::kWaitSeconds, log_key::kRelativeDisagreement, log_key::kBytesSent};

// Keeps the numbers of an object that has nothing nested in it.
class Numbers : public nlohmann::json_sax<nlohmann::json> {
 public:
  Numbers() { values_.fill(kNothing); }

  double operator[](std::size_t key) const { return values_[key]; }

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t value) override { return keep(static_cast<double>(value)); }
  bool number_unsigned(number_unsigned_t value) override { return keep(static_cast<double>(value)); }
  bool number_float(number_float_t value, const string_t&) override { return keep(value); }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return false; }
  bool start_object(std::size_t) override { return depth_++ == 0; }
  bool key(string_t& name) override {
    place_ = static_cast<std::size_t>(std::find(kKeys.begin(), kKeys.end(), name) - kKeys.begin());
    return true;
  }
  bool end_object() override { return true; }
  bool start_array(std::size_t) override { return false; }
  bool end_array() override { return false; }
  bool parse_error(std::size_t, const std::string&, const nlohmann::json::exception&) override { return false; }

 private:
  bool keep(double value) {
    if (place_ < values_.size()) values_[place_] = value;
    return true;
  }

  std::array<double, kKeys.size()> values_{};
  std::size_t place_ = kKeys.size();
  int depth_ = 0;
};

}  // namespace

double sound(double value) {
  constexpr double kLargest = 1e18;
  return std::isfinite(value) ? std::clamp(value, -kLargest, kLargest) : kNothing;
}

float sound_sample(double value) {
  constexpr double kLargest = 1e12;
  return std::abs(value) < kLargest ? static_cast<float>(value) : std::numeric_limits<float>::quiet_NaN();
}

std::int64_t sound_whole(double value) {
  constexpr double kLargest = 9e15;  // doubles hold every whole number up to here
  return std::isfinite(value) ? static_cast<std::int64_t>(std::clamp(value, -kLargest, kLargest)) : 0;
}

std::optional<IterationLine> read_iteration_line(const std::string& line) {
  static const std::string kStart = fmt::format(R"({{"{}":"{}",)", log_key::kEvent, name_of(LogEvent::kIteration));
  if (!line.starts_with(kStart)) return std::nullopt;
  Numbers found;
  if (!nlohmann::json::sax_parse(line, &found)) return std::nullopt;
  IterationLine result;
  result.sample = {.iteration = sound_whole(found[0]),
                   .loss = sound_sample(found[1]),
                   .seconds = sound_sample(found[2]),
                   .compute_seconds = sound_sample(found[3]),
                   .sync_seconds = sound_sample(found[4]),
                   .wait_seconds = sound_sample(found[5]),
                   .relative_disagreement = sound_sample(found[6])};
  if (found[7] > 0) result.bytes_sent = sound(found[7]);
  return result;
}

}  // namespace dssync
