#include "dssync/comm/c10d/cuttable_group.h"

#include <atomic>
#include <exception>
#include <memory>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace dssync {
namespace {

std::runtime_error cut_error() { return std::runtime_error("the connection was cut"); }

// An operation of all members.
class CuttableOperation final : public c10d::Work {
 public:
  explicit CuttableOperation(dssync::Work below) : below_(std::move(below)) {}

  // The first call counts.
  void end(const std::exception_ptr& error) {
    if (has_ended_.exchange(true)) return;
    finish(error);
    if (error) {
      future_->setError(error);
    } else {
      future_->markCompleted(c10::IValue());
    }
  }

  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override { return future_; }
  void synchronize() override { below_->synchronize(); }

 private:
  const dssync::Work below_;
  std::atomic<bool> has_ended_{false};
  const c10::intrusive_ptr<c10::ivalue::Future> future_ =
      c10::make_intrusive<c10::ivalue::Future>(c10::NoneType::get());
};

// Whoever waits for this message stops.
void end_wait(c10d::Work& message) noexcept {
  try {
    message.abort();
  } catch (const std::exception&) {
    return;  // this kind of group cannot: its own cut has ended the message
  }
}

// What is under way in one group. Shared with c10d's threads, which may outlive the group. Thread-safe.
class UnderWay : public std::enable_shared_from_this<UnderWay> {
 public:
  void require_whole() const {
    if (is_cut()) throw cut_error();
  }

  bool is_cut() const {
    const std::lock_guard lock(mutex_);
    return is_cut_;
  }

  // Whether c10d holds on to no operation.
  bool is_idle() const {
    const std::lock_guard lock(mutex_);
    return operations_.empty();
  }

  Work watch(const Work& below) {
    const auto future = below->getFuture();
    const auto operation = c10::make_intrusive<CuttableOperation>(below);
    const bool is_late = add(operation);
    // The group itself must not be kept alive from here: c10d's thread, which calls this, cannot wait for its own end.
    future->addCallback([self = shared_from_this(), operation](c10::ivalue::Future& ended) {
      self->remove(operation);
      operation->end(ended.hasError() ? ended.exception_ptr() : nullptr);
    });
    if (is_late) operation->end(std::make_exception_ptr(cut_error()));
    return operation;
  }

  // Messages have no future, but whoever waits for one can be told to stop.
  void add_message(c10d::Work& below) {
    const std::lock_guard lock(mutex_);
    messages_.insert(&below);
    if (is_cut_) end_wait(below);
  }

  void remove_message(c10d::Work& below) {
    const std::lock_guard lock(mutex_);
    messages_.erase(&below);
  }

  void cut() {
    std::set<c10::intrusive_ptr<CuttableOperation>> operations;
    {
      const std::lock_guard lock(mutex_);
      is_cut_ = true;
      operations = operations_;
      for (c10d::Work* message : messages_) end_wait(*message);
    }
    // Without the lock: whoever hears of it takes locks of its own.
    for (const auto& operation : operations) operation->end(std::make_exception_ptr(cut_error()));
  }

 private:
  bool add(const c10::intrusive_ptr<CuttableOperation>& operation) {
    const std::lock_guard lock(mutex_);
    operations_.insert(operation);
    return is_cut_;
  }

  void remove(const c10::intrusive_ptr<CuttableOperation>& operation) {
    const std::lock_guard lock(mutex_);
    operations_.erase(operation);
  }

  mutable std::mutex mutex_;
  bool is_cut_ = false;
  std::set<c10::intrusive_ptr<CuttableOperation>> operations_;  // that c10d has not ended
  std::set<c10d::Work*> messages_;                              // that somebody may wait for
};

// A message to or from one member.
class CuttableMessage final : public c10d::Work {
 public:
  CuttableMessage(dssync::Work below, std::shared_ptr<UnderWay> under_way)
      : below_(std::move(below)), under_way_(std::move(under_way)) {
    under_way_->add_message(*below_);
  }
  ~CuttableMessage() override { under_way_->remove_message(*below_); }

  bool wait(std::chrono::milliseconds timeout) override {
    const bool is_done = below_->wait(timeout);
    if (!is_done) under_way_->require_whole();
    return is_done;
  }

  int sourceRank() const override { return below_->sourceRank(); }
  void abort() override { below_->abort(); }

 private:
  const dssync::Work below_;
  const std::shared_ptr<UnderWay> under_way_;
};

class CuttableGroup final : public ChannelType, public Cuttable {
 public:
  explicit CuttableGroup(Channel group)
      : ChannelType(group->getRank(), group->getSize()), group_(std::move(group)) {}

  // A group ends when its last operation has. Nobody waits for one that c10d holds on to.
  ~CuttableGroup() override {
    if (!under_way_->is_idle()) std::thread([group = std::move(group_)]() mutable { group.reset(); }).detach();
  }

  const std::string getBackendName() const override { return group_->getBackendName(); }

  // The connections first: nothing comes in any more when whoever waits hears of it.
  void cut() override {
    cut_all({group_});
    under_way_->cut();
  }

  Work alltoall_base(at::Tensor& output, at::Tensor& input, std::vector<std::int64_t>& received,
                     std::vector<std::int64_t>& sent, const c10d::AllToAllOptions& options) override {
    return operation([&] { return group_->alltoall_base(output, input, received, sent, options); });
  }

  Work allgather(std::vector<std::vector<at::Tensor>>& outputs, std::vector<at::Tensor>& inputs,
                 const c10d::AllgatherOptions& options) override {
    return operation([&] { return group_->allgather(outputs, inputs, options); });
  }

  Work allreduce(std::vector<at::Tensor>& tensors, const c10d::AllreduceOptions& options) override {
    return operation([&] { return group_->allreduce(tensors, options); });
  }

  Work broadcast(std::vector<at::Tensor>& tensors, const c10d::BroadcastOptions& options) override {
    return operation([&] { return group_->broadcast(tensors, options); });
  }

  Work gather(std::vector<std::vector<at::Tensor>>& outputs, std::vector<at::Tensor>& inputs,
              const c10d::GatherOptions& options) override {
    return operation([&] { return group_->gather(outputs, inputs, options); });
  }

  Work send(std::vector<at::Tensor>& tensors, int to, int tag) override {
    return message([&] { return group_->send(tensors, to, tag); });
  }

  Work recv(std::vector<at::Tensor>& tensors, int from, int tag) override {
    return message([&] { return group_->recv(tensors, from, tag); });
  }

  Work recvAnysource(std::vector<at::Tensor>& tensors, int tag) override {
    return message([&] { return group_->recvAnysource(tensors, tag); });
  }

 private:
  template <typename Start>
  Work operation(Start start) {
    under_way_->require_whole();
    return under_way_->watch(start());
  }

  template <typename Start>
  Work message(Start start) {
    under_way_->require_whole();
    return c10::make_intrusive<CuttableMessage>(start(), under_way_);
  }

  Channel group_;
  const std::shared_ptr<UnderWay> under_way_ = std::make_shared<UnderWay>();
};

}  // namespace

Channel make_cuttable(Channel group) { return c10::make_intrusive<CuttableGroup>(std::move(group)); }

}  // namespace dssync
