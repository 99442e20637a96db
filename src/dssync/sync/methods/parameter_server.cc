#include "dssync/sync/methods/parameter_server.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <exception>
#include <functional>
#include <limits>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <ATen/ATen.h>
#include <fmt/format.h>

#include "dssync/base/error.h"
#include "dssync/sync/methods/base_synchronizer.h"

namespace dssync {
namespace {

using std::int64_t;

constexpr int kRequestTag = 1;
constexpr int kReplyTag = 2;
// A server waits as long as its workers compute; that they died shows in their connections.
constexpr std::chrono::milliseconds kAnyLength = std::chrono::hours(24 * 365);

enum class Request : int64_t {
  kPush,  // add this change, and answer with the slice once the bound allows
  kPull,  // answer with the slice
  kBye,   // no more requests
};

struct Header {
  Request request = Request::kBye;
  int64_t clock = 0;  // iterations that the sender has done
};

// The part of every flat tensor that one server keeps.
struct Slice {
  int64_t begin = 0;
  int64_t end = 0;
};

Slice slice_of(const Flat& flat, int server, int servers) {
  return {flat.vector.numel() * server / servers, flat.vector.numel() * (server + 1) / servers};
}

int64_t payload_bytes(const std::vector<Flat>& flats, int server, int servers) {
  int64_t bytes = 0;
  for (const Flat& flat : flats) {
    const Slice slice = slice_of(flat, server, servers);
    bytes += (slice.end - slice.begin) * static_cast<int64_t>(flat.vector.element_size());
  }
  return bytes;
}

at::Tensor narrowed(const Flat& flat, Slice slice) {
  return flat.vector.narrow(0, slice.begin, slice.end - slice.begin);
}

// A message is bytes on the CPU: a header, then the slices of all flat tensors.
at::Tensor make_message(int64_t payload) {
  return at::zeros({static_cast<int64_t>(sizeof(Header)) + payload}, at::TensorOptions().dtype(at::kByte));
}

void write_header(const at::Tensor& message, Header header) { std::memcpy(message.data_ptr(), &header, sizeof header); }

Header read_header(const at::Tensor& message) {
  Header header;
  std::memcpy(&header, message.data_ptr(), sizeof header);
  return header;
}

// The parts of a message as tensors, in the order of the flat ones.
class Payload {
 public:
  explicit Payload(const at::Tensor& message) : at_(static_cast<std::byte*>(message.data_ptr()) + sizeof(Header)) {}

  at::Tensor next(const at::Tensor& like) {
    at::Tensor part = at::from_blob(at_, like.sizes(), at::TensorOptions().dtype(like.dtype()));
    at_ += like.nbytes();
    return part;
  }

 private:
  std::byte* at_;
};

// One server's slice of the parameters, and the clocks of all workers. Thread-safe.
class Server {
 public:
  // bound: how many iterations a worker may be ahead of the slowest.
  Server(Channel channel, const std::vector<Flat>& flats, int rank, int workers, int64_t bound)
      : channel_(std::move(channel)),
        rank_(rank),
        payload_(payload_bytes(flats, rank, workers)),
        bound_(bound),
        clocks_(static_cast<std::size_t>(workers)),
        replies_(static_cast<std::size_t>(workers)) {
    for (const Flat& flat : flats)
      slices_.push_back(narrowed(flat, slice_of(flat, rank, workers)).to(at::kCPU, false, true));
    if (workers > 1) thread_ = std::thread([this] { serve(); });
  }

  // Ends serving although some have not said bye. Whoever waits for the bound learns the reason.
  void give_up(const std::string& reason) {
    const std::lock_guard lock(mutex_);
    if (!failure_) failure_ = std::make_exception_ptr(std::runtime_error(reason));
    if (receiving_) receiving_->abort();
    answered_.notify_all();
  }

  // Returns when every other worker has said bye, or after a failure.
  void finish() {
    if (thread_.joinable()) thread_.join();
  }

  ~Server() { finish(); }

  // What the worker in the same process does without messages: returns the slice when the bound allows. Throws where
  // it does not within the timeout.
  std::vector<at::Tensor> push_local(const std::vector<at::Tensor>& changes, int64_t clock,
                                     std::chrono::milliseconds timeout) {
    std::unique_lock lock(mutex_);
    local_reply_.reset();
    pending_.push_back({rank_, clock});
    apply(rank_, changes, clock);
    if (!answered_.wait_for(lock, timeout, [&] { return failure_ || local_reply_; })) {
      throw std::runtime_error(fmt::format("timed out after {} ms", timeout.count()));
    }
    if (failure_) std::rethrow_exception(failure_);
    return *std::move(local_reply_);
  }

  std::vector<at::Tensor> read() {
    const std::lock_guard lock(mutex_);
    return copies();
  }

  // In replies since the last call.
  int64_t take_bytes_sent() {
    const std::lock_guard lock(mutex_);
    return std::exchange(bytes_sent_, 0);
  }

  void check() {
    const std::lock_guard lock(mutex_);
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  struct Pending {
    int worker;
    int64_t clock;
  };

  void serve() {
    try {
      const at::Tensor message = make_message(payload_);
      for (std::size_t gone = 0; gone + 1 < clocks_.size();) {
        const Work work = receive(message);
        if (!work || !work->wait(kAnyLength)) return;
        if (handle(work->sourceRank(), message) == Request::kBye) ++gone;
      }
      for (Reply& reply : replies_) reply.finish();
    } catch (...) {
      const std::lock_guard lock(mutex_);
      if (!failure_) failure_ = std::current_exception();
      answered_.notify_all();
    }
  }

  // Null after give_up().
  Work receive(const at::Tensor& message) {
    const std::lock_guard lock(mutex_);
    if (failure_) return Work();
    std::vector<at::Tensor> tensors = {message};
    receiving_ = channel_->recvAnysource(tensors, kRequestTag);
    return receiving_;
  }

  Request handle(int worker, const at::Tensor& message) {
    const Header header = read_header(message);
    const std::lock_guard lock(mutex_);
    if (header.request == Request::kPush) {
      Payload payload(message);
      std::vector<at::Tensor> changes;
      for (const at::Tensor& slice : slices_) changes.push_back(payload.next(slice));
      pending_.push_back({worker, header.clock});
      apply(worker, changes, header.clock);
    } else if (header.request == Request::kPull) {
      answer(worker);
    }
    return header.request;
  }

  void apply(int worker, const std::vector<at::Tensor>& changes, int64_t clock) {
    for (std::size_t index = 0; index < slices_.size(); ++index) slices_[index].add_(changes[index]);
    clocks_[static_cast<std::size_t>(worker)] = clock;
    const auto waiting = std::stable_partition(pending_.begin(), pending_.end(),
                                               [this](const Pending& entry) { return allowed(entry.clock); });
    for (auto entry = pending_.begin(); entry != waiting; ++entry) answer(entry->worker);
    pending_.erase(pending_.begin(), waiting);
  }

  bool allowed(int64_t clock) const { return clock - *std::min_element(clocks_.begin(), clocks_.end()) <= bound_; }

  std::vector<at::Tensor> copies() const {
    std::vector<at::Tensor> result;
    for (const at::Tensor& slice : slices_) result.push_back(slice.clone());
    return result;
  }

  void answer(int worker) {
    if (worker == rank_) {
      local_reply_ = copies();
      answered_.notify_all();
      return;
    }
    Reply& reply = replies_[static_cast<std::size_t>(worker)];
    reply.finish();
    reply.message = make_message(payload_);
    Payload payload(reply.message);
    for (const at::Tensor& slice : slices_) payload.next(slice).copy_(slice);
    std::vector<at::Tensor> tensors = {reply.message};
    reply.work = channel_->send(tensors, worker, kReplyTag);
    bytes_sent_ += reply.message.numel();
  }

  // Lives until the worker has it, which is before it asks again.
  struct Reply {
    at::Tensor message;
    Work work;

    void finish() {
      if (work) work->wait();
      work = Work();
    }
  };

  const Channel channel_;
  const int rank_;
  const int64_t payload_;
  const int64_t bound_;
  std::mutex mutex_;
  std::condition_variable answered_;
  std::optional<std::vector<at::Tensor>> local_reply_;
  std::vector<at::Tensor> slices_;  // by flat tensor
  std::vector<int64_t> clocks_;     // by worker
  std::vector<Pending> pending_;
  std::vector<Reply> replies_;  // by worker
  int64_t bytes_sent_ = 0;
  std::exception_ptr failure_;
  Work receiving_;
  std::thread thread_;
};

class ParameterServer final : public BaseSynchronizer {
 public:
  ParameterServer(World& world, const Replica& replica, const Topology& topology, const SyncOptions& options,
                  Timeline* timeline)
      : BaseSynchronizer(world, replica, topology, timeline, options), base_(flat_like(parameters_.flats())) {
    const int64_t bound = options.method == Method::kSsp ? options.staleness : std::numeric_limits<int64_t>::max();
    if (world_.size() > 1) channel_ = world_.channel(world_.everyone(), name_);
    for (int server = 0; server < world_.size(); ++server) {
      requests_.push_back(make_message(payload_bytes(parameters_.flats(), server, world_.size())));
      replies_.push_back(at::empty_like(requests_.back()));
    }
    remember();
    server_.emplace(channel_, parameters_.flats(), world_.rank(), world_.size(), bound);
  }

  ~ParameterServer() override {
    try {
      if (!broken_) tell_all({Request::kBye, iteration()}, false);
    } catch (const std::exception&) {
      broken_ = true;
    }
    if (broken_) give_up("this worker has failed");
    server_->finish();
  }

 protected:
  void on_after_step() override {
    guarded("pushing and pulling", [this] {
      const int64_t clock = iteration() + 1;
      parameters_.gather();
      write_changes();
      const Clock::time_point start = Clock::now();
      tell_all({Request::kPush, clock}, true);
      const Clock::time_point told = Clock::now();
      finish_pull(server_->push_local(local_changes(), clock, world_.timeout()));
      record_wait("waiting for the servers", told);
      count_sent(server_->take_bytes_sent());
      record("push and pull", start);
    });
  }

  double consolidate_parameters() override {
    double distance = 0;
    guarded("pulling the final parameters", [this, &distance] {
      const std::string name = fmt::format("{}, consolidate {}", name_, ++consolidations_);
      world_.barrier(name + ": all pushed");
      tell_all({Request::kPull, iteration()}, true);
      finish_pull(server_->read());
      distance = metrics_.disagreement;
      world_.barrier(name + ": all pulled");
    });
    return distance;
  }

 private:
  template <typename Action>
  void guarded(const std::string& doing, Action action) {
    try {
      server_->check();
      action();
    } catch (const Error&) {
      broken_ = true;
      throw;
    } catch (const std::exception& error) {
      broken_ = true;
      throw world_.explain(doing, world_.everyone(), error.what());
    }
  }

  // Nothing waits any longer, neither here nor at the other workers.
  void give_up(const std::string& reason) {
    server_->give_up(reason);
    world_.abandon_channels();
  }

  bool is_self(int server) const { return server == world_.rank(); }

  void remember() {
    for (std::size_t index = 0; index < base_.size(); ++index)
      base_[index].vector.copy_(parameters_.flats()[index].vector);
  }

  // Each worker's change counts for one N-th, so that N of them make one step of the average gradient.
  at::Tensor change(std::size_t index, int server) const {
    const Slice slice = slice_of(parameters_.flats()[index], server, world_.size());
    return (narrowed(parameters_.flats()[index], slice) - narrowed(base_[index], slice)).div_(world_.size());
  }

  void write_changes() {
    for (int server = 0; server < world_.size(); ++server) {
      if (is_self(server)) continue;
      Payload payload(requests_[static_cast<std::size_t>(server)]);
      for (std::size_t index = 0; index < base_.size(); ++index) {
        const at::Tensor part = change(index, server);
        payload.next(part).copy_(part);
      }
    }
  }

  std::vector<at::Tensor> local_changes() const {
    std::vector<at::Tensor> changes;
    for (std::size_t index = 0; index < base_.size(); ++index) {
      changes.push_back(change(index, world_.rank()).to(at::kCPU));
    }
    return changes;
  }

  void tell_all(Header header, bool expect_replies) {
    receives_.clear();
    std::vector<Work> sends;
    for (int step = 1; step < world_.size(); ++step) {
      const int server = (world_.rank() + step) % world_.size();
      at::Tensor& message = requests_[static_cast<std::size_t>(server)];
      write_header(message, header);
      if (expect_replies) {
        std::vector<at::Tensor> incoming = {replies_[static_cast<std::size_t>(server)]};
        receives_.push_back(channel_->recv(incoming, server, kReplyTag));
      }
      std::vector<at::Tensor> outgoing = {message};
      sends.push_back(channel_->send(outgoing, server, kRequestTag));
      count_sent(message.numel());
    }
    for (const Work& work : sends) work->wait();
  }

  // Waits for all slices and makes them the parameters. Their distance from the old ones is the disagreement.
  void finish_pull(const std::vector<at::Tensor>& own) {
    for (const Work& work : receives_) work->wait();
    double distance = 0;
    double norm = 0;
    for (int server = 0; server < world_.size(); ++server) {
      Payload payload(replies_[static_cast<std::size_t>(server)]);
      for (std::size_t index = 0; index < base_.size(); ++index) {
        const at::Tensor here =
            narrowed(parameters_.flats()[index], slice_of(parameters_.flats()[index], server, world_.size()));
        const at::Tensor pulled = (is_self(server) ? own[index] : payload.next(here)).to(here.device());
        distance += (here - pulled).to(at::kDouble).square().sum().item<double>();
        norm += pulled.to(at::kDouble).square().sum().item<double>();
        here.copy_(pulled);
      }
    }
    parameters_.scatter();
    remember();
    metrics_.disagreement = distance;
    metrics_.parameter_norm = std::sqrt(norm);
  }

  const std::string name_ = world_.unique("parameter-server");  // for its channel and its barriers
  Channel channel_;
  std::vector<Flat> base_;            // the parameters as they were pulled last
  std::vector<at::Tensor> requests_;  // by server
  std::vector<at::Tensor> replies_;   // by server
  std::vector<Work> receives_;
  std::optional<Server> server_;
  int consolidations_ = 0;
  bool broken_ = false;
};

}  // namespace

std::unique_ptr<Synchronizer> make_parameter_server(World& world, const Replica& replica, const Topology& topology,
                                                    const SyncOptions& options, Timeline* timeline) {
  return std::make_unique<ParameterServer>(world, replica, topology, options, timeline);
}

}  // namespace dssync
