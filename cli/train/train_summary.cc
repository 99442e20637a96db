#include "train/train_summary.h"

#include <cmath>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "dssync/base/units.h"
#include "text/numbers.h"

namespace dssync::cli {
namespace {

using Json = nlohmann::ordered_json;

const FieldValue* find(const Fields& fields, const std::string& name) {
  for (const auto& [key, value] : fields) {
    if (key == name) return &value;
  }
  return nullptr;
}

double number(const Fields& fields, const std::string& name) {
  const FieldValue* value = find(fields, name);
  if (value == nullptr) return 0;
  if (const auto* whole = std::get_if<std::int64_t>(value)) return static_cast<double>(*whole);
  const auto* real = std::get_if<double>(value);
  return real == nullptr ? 0 : *real;
}

std::size_t length(const Fields& fields, const std::string& name) {
  const FieldValue* value = find(fields, name);
  const auto* list = value == nullptr ? nullptr : std::get_if<std::vector<std::string>>(value);
  return list == nullptr ? 0 : list->size();
}

std::string plan_text(const Fields& plan) {
  return fmt::format(
      "cycle of {}, {}; predicted {} per iteration for averaging, S = {}", counted(length(plan, "rounds"), "round"),
      counted(static_cast<std::size_t>(number(plan, "shards")), "shard"),
      seconds_text(number(plan, "seconds_per_iteration")), format_disagreement(number(plan, "total_disagreement")));
}

std::string progress_so_far(const TrainResult& result) {
  const std::string done = counted(static_cast<std::size_t>(result.iterations), "iteration");
  return result.iterations == result.total_iterations ? done : fmt::format("{} of {}", done, result.total_iterations);
}

std::string auc_text(const std::optional<double>& area) { return area ? fmt::format(", AUC {:.4f}", *area) : ""; }

std::string swa_text(const SwaReport& swa) {
  return fmt::format("accuracy {:.2f} %, loss {:.3g}{}, of parameters over {}", 100 * swa.test_accuracy, swa.test_loss,
                     auc_text(swa.test_auc), counted(static_cast<std::size_t>(swa.iterations), "iteration"));
}

using SummaryRows = std::vector<std::pair<std::string, std::string>>;

SummaryRows rows_of(const TrainSummary& summary) {
  const TrainResult& result = summary.result;
  const TrainFigures& figures = summary.figures;
  SummaryRows rows;
  rows.emplace_back("accuracy", fmt::format("{:.2f} %", 100 * result.test_accuracy));
  rows.emplace_back("loss", fmt::format("{:.3g}", result.test_loss));
  if (result.test_auc) rows.emplace_back("AUC", fmt::format("{:.4f}", *result.test_auc));
  if (result.swa) rows.emplace_back("mean", swa_text(*result.swa));
  rows.emplace_back("time", fmt::format("{} for {}, {} of it training", seconds_text(result.seconds),
                                        progress_so_far(result), seconds_text(result.training_seconds)));
  rows.emplace_back("per iteration", fmt::format("{}: {} computing, {} synchronizing",
                                                 seconds_text(figures.per_iteration(figures.seconds)),
                                                 seconds_text(figures.per_iteration(figures.compute_seconds)),
                                                 seconds_text(figures.per_iteration(figures.sync_seconds))));
  rows.emplace_back("speed", fmt::format("{} {}/s", grouped(figures.images_per_second()), summary.start.examples_word));
  rows.emplace_back(
      "sent", fmt::format("{} per worker and iteration", format_bytes(figures.per_iteration(figures.bytes_sent))));
  rows.emplace_back("disagreement", fmt::format("{:.2g} of the parameters' norm in the last iteration",
                                                figures.last.relative_disagreement));
  if (result.plan_changes > 0) {
    rows.emplace_back("plan",
                      fmt::format("changed {}", counted(static_cast<std::size_t>(result.plan_changes), "time")));
  }
  if (!summary.log.empty()) rows.emplace_back("log", printable(summary.log));
  if (!summary.trace.empty()) rows.emplace_back("trace", printable(summary.trace));
  if (!summary.checkpoint.empty()) rows.emplace_back("checkpoint", printable(summary.checkpoint));
  return rows;
}

Json path_json(const std::string& path) { return path.empty() ? Json(nullptr) : Json(path); }

Json number_json(const std::optional<double>& number) { return number ? Json(*number) : Json(nullptr); }

Json swa_json(const std::optional<SwaReport>& swa) {
  if (!swa) return nullptr;
  return {{"iterations", swa->iterations},
          {"test_accuracy", swa->test_accuracy},
          {"test_loss", swa->test_loss},
          {"test_auc", number_json(swa->test_auc)}};
}

Json fields_json(const Fields& fields) {
  if (fields.empty()) return nullptr;
  Json json;
  for (const auto& [key, value] : fields) {
    std::visit([&json, name = key](const auto& content) { json[name] = content; }, value);
  }
  return json;
}

}  // namespace

std::string start_as_text(const StartReport& report) {
  std::string text = fmt::format("{}: {} with {} parameters ({}), {}: {} {}\n",
                                 counted(static_cast<std::size_t>(report.workers), "worker"), report.model,
                                 grouped(static_cast<double>(report.parameters)),
                                 format_bytes(static_cast<double>(report.model_bytes)), report.data,
                                 grouped(static_cast<double>(report.train_examples)), report.examples_word);
  text += report.plan.empty() ? report.method : fmt::format("{}: {}", report.method, plan_text(report.plan));
  if (report.first_iteration > 0) {
    text += fmt::format("\ngoing on after iteration {} of {}", report.first_iteration, report.total_iterations);
  }
  return text;
}

std::string evaluation_as_text(const EvaluationReport& report) {
  std::string text = fmt::format("epoch {}, iteration {}: accuracy {:.2f} %, loss {:.3g}{}, after {}", report.epoch,
                                 report.iteration, 100 * report.test_accuracy, report.test_loss,
                                 auc_text(report.test_auc), seconds_text(report.seconds));
  if (report.swa) text += fmt::format("\n  mean: {}", swa_text(*report.swa));
  return text;
}

std::string replanned_as_text(const PlanChange& change) {
  return fmt::format("after iteration {}: {}", change.iteration, printable(change.explanation));
}

std::string summary_as_text(const TrainSummary& summary, const Style& style) {
  const StartReport& start = summary.start;
  std::string text = fmt::format("{} on {}, {}, {}\n\n", start.model, start.data, start.method,
                                 counted(static_cast<std::size_t>(start.workers), "worker"));
  for (const auto& [name, value] : rows_of(summary)) {
    text += fmt::format("  {}  {}\n", style.paint(pad_right(name, 13), Tint::kDim),
                        style.paint(value, name == "accuracy" ? Tint::kBold : Tint::kNone));
  }
  return text;
}

std::string summary_as_json(const TrainSummary& summary) {
  const StartReport& start = summary.start;
  const TrainResult& result = summary.result;
  const TrainFigures& figures = summary.figures;
  Json json;
  json["method"] = start.method;
  json["model"] = start.model;
  json["data"] = start.data;
  json["workers"] = start.workers;
  json["parameters"] = start.parameters;
  json["model_bytes"] = start.model_bytes;
  json["plan"] = fields_json(start.plan);
  json["first_iteration"] = start.first_iteration;
  json["iterations"] = result.iterations;
  json["total_iterations"] = result.total_iterations;
  json["epochs"] = result.epochs;
  json["seconds"] = result.seconds;
  json["training_seconds"] = result.training_seconds;
  json["test_accuracy"] = result.test_accuracy;
  json["test_loss"] = result.test_loss;
  json["test_auc"] = number_json(result.test_auc);
  json["swa"] = swa_json(result.swa);
  json["seconds_per_iteration"] = figures.per_iteration(figures.seconds);
  json["compute_seconds_per_iteration"] = figures.per_iteration(figures.compute_seconds);
  json["sync_seconds_per_iteration"] = figures.per_iteration(figures.sync_seconds);
  json["images_per_second"] = figures.images_per_second();
  json["bytes_sent_per_iteration"] = figures.per_iteration(figures.bytes_sent);
  json["relative_disagreement"] = figures.last.relative_disagreement;
  json["consolidated_disagreement"] = summary.consolidated_disagreement;
  json["plan_changes"] = result.plan_changes;
  json["log"] = path_json(summary.log);
  json["trace"] = path_json(summary.trace);
  json["checkpoint"] = path_json(summary.checkpoint);
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace dssync::cli
