// The file: a header of fixed size (magic number, size and CRC-32 of the rest), then an archive of torch.
#include "dssync/training/checkpoints/checkpoint.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>
#include <zlib.h>

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <torch/serialize/archive.h>

#include "dssync/base/durable_file.h"
#include "dssync/base/error.h"
#include "dssync/comm/c10d/c10d.h"

namespace dssync {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;
using torch::serialize::InputArchive;
using torch::serialize::OutputArchive;

struct Header {
  std::array<char, 16> magic{'d', 's', 's', 'y', 'n', 'c', ' ', 'c', 'h', 'e', 'c', 'k', 'p', 't', ' ', '3'};
  std::uint64_t bytes = 0;  // that follow
  std::uint32_t crc = 0;    // of those
  std::uint32_t unused = 0;
};
static_assert(sizeof(Header) == 32);

std::uint32_t crc_of(std::string_view bytes) {
  return static_cast<std::uint32_t>(crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

// Tensors by number; their names stand in the description.
class Packer {
 public:
  ordered_json add(const std::vector<NamedTensor>& tensors) {
    ordered_json names = ordered_json::array();
    for (const auto& [name, tensor] : tensors) {
      // A copy: of a view into a larger tensor, all of that would be saved.
      archive_.write(std::to_string(count_++), tensor.detach().clone(), /*is_buffer=*/true);
      names.push_back(name);
    }
    return names;
  }

  std::string pack(const ordered_json& description) {
    archive_.write("description", c10::IValue(description.dump()));
    std::string bytes;
    archive_.save_to([&bytes](const void* data, std::size_t size) {
      bytes.append(static_cast<const char*>(data), size);
      return size;
    });
    return bytes;
  }

 private:
  OutputArchive archive_;
  int count_ = 0;
};

class Unpacker {
 public:
  explicit Unpacker(std::string_view bytes) {
    archive_.load_from(bytes.data(), bytes.size());
    c10::IValue text;
    archive_.read("description", text);
    description_ = ordered_json::parse(text.toStringRef());
  }

  const ordered_json& description() const { return description_; }

  std::vector<NamedTensor> take(const ordered_json& names) {
    std::vector<NamedTensor> tensors;
    for (const ordered_json& name : names) {
      at::Tensor tensor;
      archive_.read(std::to_string(count_++), tensor, /*is_buffer=*/true);
      tensors.push_back({name.get<std::string>(), tensor});
    }
    return tensors;
  }

 private:
  InputArchive archive_;
  ordered_json description_;
  int count_ = 0;
};

std::string pack(const Checkpoint& checkpoint) {
  Packer packer;
  ordered_json text = {{"name", checkpoint.name},
                       {"rank", checkpoint.rank},
                       {"identity", checkpoint.identity},
                       {"iteration", checkpoint.iteration},
                       {"epoch", checkpoint.epoch},
                       {"seconds", checkpoint.seconds},
                       {"training_seconds", checkpoint.training_seconds}};
  text["parameters"] = packer.add(checkpoint.parameters);
  text["buffers"] = packer.add(checkpoint.buffers);
  text["optimizer"] = ordered_json::array();
  for (const OptimizerState& state : checkpoint.optimizer) {
    text["optimizer"].push_back({{"kind", state.name}, {"names", packer.add(state.tensors)}});
  }
  text["sync"] = packer.add(checkpoint.sync.tensors);
  text["mean"] = packer.add(checkpoint.mean);
  text["mean_count"] = checkpoint.mean_count;
  return packer.pack(text);
}

Checkpoint unpack(std::string_view bytes) {
  Unpacker unpacker(bytes);
  const ordered_json& text = unpacker.description();
  Checkpoint checkpoint;
  checkpoint.name = text.at("name").get<std::string>();
  checkpoint.rank = text.at("rank").get<int>();
  checkpoint.identity = text.at("identity").get<RunIdentity>();
  checkpoint.iteration = text.at("iteration").get<std::int64_t>();
  checkpoint.epoch = text.at("epoch").get<std::int64_t>();
  checkpoint.seconds = text.at("seconds").get<double>();
  checkpoint.training_seconds = text.at("training_seconds").get<double>();
  checkpoint.parameters = unpacker.take(text.at("parameters"));
  checkpoint.buffers = unpacker.take(text.at("buffers"));
  for (const ordered_json& state : text.at("optimizer")) {
    checkpoint.optimizer.push_back({state.at("kind").get<std::string>(), unpacker.take(state.at("names"))});
  }
  checkpoint.sync = {checkpoint.iteration, unpacker.take(text.at("sync"))};
  checkpoint.mean = unpacker.take(text.at("mean"));
  checkpoint.mean_count = text.at("mean_count").get<std::int64_t>();
  return checkpoint;
}

// The archive in the file. Throws plain causes, which read_checkpoint gives their place.
std::string checked_archive(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  if (!stream) throw Error(fmt::format("cannot be read ({})", std::strerror(errno)));
  std::ostringstream content;
  content << stream.rdbuf();
  std::string bytes = std::move(content).str();
  Header header;
  const auto magic = header.magic;
  if (bytes.size() < sizeof header) throw Error(fmt::format("is truncated: {} bytes", bytes.size()));
  std::memcpy(&header, bytes.data(), sizeof header);
  if (header.magic != magic) throw Error("is no checkpoint of this version of dssync");
  bytes.erase(0, sizeof header);
  if (bytes.size() < header.bytes) {
    throw Error(fmt::format("is truncated: {} of {} bytes are there", bytes.size(), header.bytes));
  }
  if (bytes.size() > header.bytes) throw Error("goes on after its end");
  if (crc_of(bytes) != header.crc) throw Error("is damaged: its checksum is wrong");
  return bytes;
}

}  // namespace

std::int64_t write_checkpoint(const fs::path& file, const Checkpoint& checkpoint) {
  const std::string archive = pack(checkpoint);
  Header header;
  header.bytes = archive.size();
  header.crc = crc_of(archive);
  const std::string_view head(reinterpret_cast<const char*>(&header), sizeof header);
  write_durably(file, {head, archive}, fmt::format("the checkpoint of rank {}", checkpoint.rank));
  return static_cast<std::int64_t>(sizeof header + archive.size());
}

Checkpoint read_checkpoint(const fs::path& file, const std::string& name, int rank) {
  try {
    Checkpoint checkpoint = unpack(checked_archive(file));
    if (checkpoint.name != name || checkpoint.rank != rank) {
      throw Error(fmt::format("is the file of rank {} of checkpoint {}", checkpoint.rank, checkpoint.name));
    }
    return checkpoint;
  } catch (const std::exception& error) {
    throw Error(fmt::format("{}: the checkpoint of rank {} {}", file.string(), rank, plain_message(error.what())));
  }
}

void check_identity(const fs::path& file, const RunIdentity& saved, const RunIdentity& own) {
  const auto value_in = [](const RunIdentity& identity, const std::string& name) -> std::string {
    for (const auto& [known, value] : identity) {
      if (known == name) return value;
    }
    return "not set";
  };
  RunIdentity all = own;
  all.insert(all.end(), saved.begin(), saved.end());
  for (const auto& [name, value] : all) {
    const std::string before = value_in(saved, name);
    const std::string now = value_in(own, name);
    if (before != now) {
      throw InputError(file, 0,
                       fmt::format("{} was {} when this checkpoint was written, and is {} now: a run can only "
                                   "go on as it began",
                                   name, before, now));
    }
  }
}

}  // namespace dssync
