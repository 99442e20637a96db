// What each launcher calls its variables, and how the store is found.
#include "dssync/launch/assignment.h"

#include <charconv>
#include <cstdlib>
#include <limits>
#include <system_error>

#include <fmt/format.h>

#include "dssync/base/error.h"
#include "dssync/base/text.h"

namespace dssync {
namespace {

constexpr std::int64_t kMostWorkers = 1'000'000;
// Slurm's numbers for steps in which it starts no tasks: interactive shell, batch script, external processes, pending.
constexpr std::int64_t kFirstSpecialStep = 4'294'967'290;

// How one launcher tells a worker its place. Empty: it has no such variable.
struct Dialect {
  const char* launcher;
  const char* rank;
  const char* size;
  const char* local_rank;
  const char* local_size;
};

constexpr Dialect kTorchrun{"torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"};
constexpr Dialect kOpenMpi{"mpirun", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
                           "OMPI_COMM_WORLD_LOCAL_SIZE"};
constexpr Dialect kMpich{"mpirun", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"};
constexpr Dialect kSlurm{"Slurm", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", ""};
constexpr Dialect kSlurmStep{"Slurm", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", ""};

class Reader {
 public:
  explicit Reader(const Environment& environment) : environment_(environment) {}

  std::optional<std::string> text(const std::string& name) const {
    if (name.empty()) return std::nullopt;
    std::optional<std::string> value = environment_(name);
    if (value && value->empty()) value.reset();
    return value;
  }

  bool has(const std::string& name) const { return text(name).has_value(); }

  // A whole number within [least, most]; nothing where the variable is not set.
  std::optional<std::int64_t> number(const std::string& name, std::int64_t least, std::int64_t most) const {
    const std::optional<std::string> value = text(name);
    if (!value) return std::nullopt;
    std::int64_t result = 0;
    const char* end = value->data() + value->size();
    const auto [stop, problem] = std::from_chars(value->data(), end, result);
    if (problem != std::errc() || stop != end || result < least || result > most) {
      throw InputError(fmt::format("the environment variable {} is {}; expected a whole number from {} to {}", name,
                                   quote(*value), least, most));
    }
    return result;
  }

 private:
  const Environment& environment_;
};

std::int64_t required(const Reader& reader, const char* name, const char* other, std::int64_t least,
                      std::int64_t most) {
  if (const std::optional<std::int64_t> value = reader.number(name, least, most)) return *value;
  throw InputError(
      fmt::format("the environment variable {} is set, but {} is not; expected both or neither", other, name));
}

// Rank, size and local rank in this dialect; nothing where neither rank nor size is set.
std::optional<Assignment> read_place(const Reader& reader, const Dialect& dialect) {
  if (!reader.has(dialect.rank) && !reader.has(dialect.size)) return std::nullopt;
  Assignment place;
  place.launcher = dialect.launcher;
  place.size = static_cast<int>(required(reader, dialect.size, dialect.rank, 1, kMostWorkers));
  place.rank = static_cast<int>(required(reader, dialect.rank, dialect.size, 0, place.size - 1));
  place.local_rank = static_cast<int>(reader.number(dialect.local_rank, 0, place.size - 1).value_or(0));
  return place;
}

bool all_on_this_machine(const Reader& reader, const Dialect& dialect, const Assignment& place) {
  return place.size == 1 || reader.number(dialect.local_size, 1, place.size) == place.size;
}

// "gpu[01-03,7]x,other" -> "gpu01x". `name` is the variable that holds the list.
std::string first_host(const std::string& list, const std::string& name) {
  std::string host;
  std::size_t at = 0;
  while (at < list.size() && list[at] != ',') {
    if (list[at] != '[') {
      host += list[at++];
      continue;
    }
    const std::size_t end = list.find_first_of("-,]", at);
    const std::size_t close = list.find(']', at);
    if (close == std::string::npos || end == at + 1) {
      throw InputError(fmt::format(
          "the environment variable {} is {}; expected host names such as node7 or node[01-04]", name, quote(list)));
    }
    host += list.substr(at + 1, end - at - 1);
    at = close + 1;
  }
  return host;
}

// Where task 0 of a Slurm step runs. The node on which srun was called comes last: it may be a login node.
std::optional<std::string> first_host_of_step(const Reader& reader) {
  for (const char* name : {"SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST", "SLURM_NODELIST"}) {
    if (const std::optional<std::string> list = reader.text(name)) return first_host(*list, name);
  }
  return reader.text("SLURM_LAUNCH_NODE_IPADDR");
}

void find_store(const Reader& reader, const Dialect& dialect, Assignment& place) {
  constexpr std::int64_t kMostPort = std::numeric_limits<std::uint16_t>::max();
  place.store_port = static_cast<std::uint16_t>(reader.number("MASTER_PORT", 1, kMostPort).value_or(place.store_port));
  if (const std::optional<std::string> address = reader.text("MASTER_ADDR")) {
    place.store_host = *address;
    return;
  }
  if (all_on_this_machine(reader, dialect, place)) return;
  const bool is_slurm = dialect.launcher == std::string(kSlurm.launcher);
  if (const std::optional<std::string> host = is_slurm ? first_host_of_step(reader) : std::nullopt) {
    place.store_host = *host;
    return;
  }
  throw InputError(
      fmt::format("the environment variable MASTER_ADDR is not set, though {} says that this is one of {} workers; "
                  "expected the name or address of the machine that runs rank 0",
                  dialect.size, place.size));
}

bool in_a_step_with_tasks(const Reader& reader) {
  constexpr std::int64_t kMost = std::numeric_limits<std::uint32_t>::max();
  const std::optional<std::int64_t> step = reader.number("SLURM_STEP_ID", 0, kMost);
  return step && *step < kFirstSpecialStep;
}

std::optional<Assignment> slurm_place(const Reader& reader) {
  if (!in_a_step_with_tasks(reader)) return std::nullopt;
  const Dialect& dialect = reader.has(kSlurmStep.size) ? kSlurmStep : kSlurm;
  std::optional<Assignment> place = read_place(reader, dialect);
  if (!place || place->size == 1) return std::nullopt;
  find_store(reader, dialect, *place);
  return place;
}

// Slurm's own PMI plugin sets MPICH's variables as well; then Slurm knows more.
bool is_from_slurm(const Reader& reader, const Assignment& place) {
  return in_a_step_with_tasks(reader) && reader.text("SLURM_PROCID") == std::to_string(place.rank) &&
         reader.text("SLURM_NTASKS") == std::to_string(place.size);
}

}  // namespace

Environment process_environment() {
  return [](const std::string& name) -> std::optional<std::string> {
    const char* value = std::getenv(name.c_str());
    if (value == nullptr) return std::nullopt;
    return value;
  };
}

std::optional<Assignment> assignment_from(const Environment& environment) {
  const Reader reader(environment);
  if (std::optional<Assignment> place = read_place(reader, kTorchrun)) {
    find_store(reader, kTorchrun, *place);
    place->store_is_hosted = reader.text("TORCHELASTIC_USE_AGENT_STORE") == "True";
    const auto attempt = reader.number("TORCHELASTIC_RESTART_COUNT", 0, std::numeric_limits<int>::max());
    place->run.attempt = static_cast<int>(attempt.value_or(0));
    place->run.name = reader.text("TORCHELASTIC_RUN_ID").value_or("");
    if (place->run.name == "none") place->run.name.clear();
    return place;
  }
  for (const Dialect& dialect : {kOpenMpi, kMpich}) {
    std::optional<Assignment> place = read_place(reader, dialect);
    if (!place || is_from_slurm(reader, *place)) continue;
    find_store(reader, dialect, *place);
    return place;
  }
  return slurm_place(reader);
}

}  // namespace dssync
