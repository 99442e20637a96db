#include "dssync/comm/fake_channel.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <numeric>
#include <stdexcept>
#include <utility>

#include <ATen/ATen.h>

namespace dssync::testing {
namespace {

std::size_t index_of(int member) { return static_cast<std::size_t>(member); }

class FakeWork final : public c10d::Work {
 public:
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override { return future_; }

  void end(const std::exception_ptr& error) {
    finish(error);
    if (error) {
      future_->setError(error);
    } else {
      future_->markCompleted(c10::IValue());
    }
  }

 private:
  c10::intrusive_ptr<c10::ivalue::Future> future_ = c10::make_intrusive<c10::ivalue::Future>(c10::NoneType::get());
};

// What a member gives to an operation. Sizes are of an all-to-all, root is of a broadcast.
struct Share {
  FakeOperation operation;
  at::Tensor input;
  at::Tensor output;
  std::vector<std::int64_t> sent;
  std::vector<std::int64_t> received;
  int root = 0;
};

// Slice number `index` of a tensor whose slices have these sizes.
at::Tensor slice_of(const at::Tensor& tensor, const std::vector<std::int64_t>& sizes, std::size_t index) {
  const auto end = sizes.begin() + static_cast<std::ptrdiff_t>(index);
  return tensor.narrow(0, std::accumulate(sizes.begin(), end, std::int64_t{0}), sizes[index]);
}

void exchange(const std::vector<Share*>& shares) {
  for (std::size_t from = 0; from < shares.size(); ++from) {
    for (std::size_t to = 0; to < shares.size(); ++to) {
      const at::Tensor sent = slice_of(shares[from]->input, shares[from]->sent, to);
      const at::Tensor received = slice_of(shares[to]->output, shares[to]->received, from);
      if (sent.numel() != received.numel()) throw std::runtime_error("members sent and expected different sizes");
      received.copy_(sent);
    }
  }
}

void add_up(const std::vector<Share*>& shares) {
  at::Tensor sum = shares.front()->input.clone();
  for (std::size_t member = 1; member < shares.size(); ++member) sum.add_(shares[member]->input);
  for (Share* share : shares) share->output.copy_(sum);
}

void hand_out(const std::vector<Share*>& shares) {
  const at::Tensor values = shares[index_of(shares.front()->root)]->input;
  for (Share* share : shares) share->output.copy_(values);
}

void move_data(const std::vector<Share*>& shares) {
  const std::string& kind = shares.front()->operation.kind;
  for (const Share* share : shares) {
    if (share->operation.kind != kind) throw std::runtime_error("members started different operations");
  }
  if (kind == "all-to-all") exchange(shares);
  if (kind == "all-reduce") add_up(shares);
  if (kind == "broadcast") hand_out(shares);
}

std::exception_ptr cut_error() { return std::make_exception_ptr(std::runtime_error("the connection was cut")); }

}  // namespace

class FakeGroup::State {
 public:
  explicit State(int size) : members_(index_of(size)) {}

  struct Script {
    bool is_held = false;
    bool is_stuck = false;
    std::exception_ptr failure;
    std::exception_ptr refusal;
  };

  int size() const { return static_cast<int>(members_.size()); }

  Work start(int member, Share share) {
    std::unique_lock lock(mutex_);
    Member& own = members_[index_of(member)];
    const std::size_t number = own.calls.size();
    Script& script = own.scripts[number];
    if (script.refusal) std::rethrow_exception(std::exchange(script.refusal, nullptr));
    Call& call = own.calls.emplace_back();
    call.share = std::move(share);
    const auto work = call.work;
    if (is_cut_) {
      mark(member, number, cut_error());
    } else if (script.failure) {
      call.has_failed = true;
      mark(member, number, script.failure);
    } else {
      meet(number);
    }
    end_marked(lock);
    return work;
  }

  template <typename Change>
  void change(int member, std::size_t operation, Change apply) {
    const std::lock_guard lock(mutex_);
    apply(members_[index_of(member)].scripts[operation]);
  }

  void release(int member, std::size_t operation) {
    std::unique_lock lock(mutex_);
    Member& own = members_[index_of(member)];
    const bool was_stuck = std::exchange(own.scripts[operation].is_stuck, false);
    own.scripts[operation].is_held = false;
    if (operation < own.calls.size()) {
      if (own.calls[operation].has_moved) mark(member, operation, nullptr);
      if (was_stuck && is_cut_) mark(member, operation, cut_error());
    }
    end_marked(lock);
  }

  void cut() {
    std::unique_lock lock(mutex_);
    is_cut_ = true;
    for (int member = 0; member < size(); ++member) {
      const std::size_t calls = members_[index_of(member)].calls.size();
      for (std::size_t operation = 0; operation < calls; ++operation) mark(member, operation, cut_error());
    }
    end_marked(lock);
  }

  bool is_cut() const {
    const std::lock_guard lock(mutex_);
    return is_cut_;
  }

  std::vector<FakeOperation> started(int member) const {
    const std::lock_guard lock(mutex_);
    std::vector<FakeOperation> operations;
    for (const Call& call : members_[index_of(member)].calls) operations.push_back(call.share.operation);
    return operations;
  }

  void await_started(int member, std::size_t operations) const {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return members_[index_of(member)].calls.size() >= operations; });
  }

  void await_end(int member, std::size_t operation) const {
    std::unique_lock lock(mutex_);
    const std::deque<Call>& calls = members_[index_of(member)].calls;
    changed_.wait(lock, [&] { return operation < calls.size() && calls[operation].has_ended; });
  }

 private:
  struct Call {
    Share share;
    c10::intrusive_ptr<FakeWork> work = c10::make_intrusive<FakeWork>();
    bool has_failed = false;  // by script: it never meets the others
    bool has_moved = false;   // its data are there
    bool is_marked = false;   // it has ended or is about to
    bool has_ended = false;   // and whoever waits for it has been told
  };
  struct Member {
    std::deque<Call> calls;  // whose elements stay where they are
    std::map<std::size_t, Script> scripts;
  };
  struct Ending {
    Call* call;
    std::exception_ptr error;
  };

  // REQUIRES, as all below: mutex_ is held.
  void mark(int member, std::size_t number, const std::exception_ptr& error) {
    if (members_[index_of(member)].scripts[number].is_stuck) return;
    Call& call = members_[index_of(member)].calls[number];
    if (std::exchange(call.is_marked, true)) return;
    marked_.push_back({&call, error});
  }

  // Moves the data of an operation that all members have started.
  void meet(std::size_t number) {
    std::vector<Share*> shares;
    for (Member& member : members_) {
      if (number >= member.calls.size() || member.calls[number].has_failed) return;
      shares.push_back(&member.calls[number].share);
    }
    std::exception_ptr error;
    try {
      move_data(shares);
    } catch (...) {
      error = std::current_exception();
    }
    for (int member = 0; member < size(); ++member) {
      Member& own = members_[index_of(member)];
      own.calls[number].has_moved = true;
      if (!own.scripts[number].is_held) mark(member, number, error);
    }
  }

  // Without the lock: whoever is told takes locks of its own.
  void end_marked(std::unique_lock<std::mutex>& lock) {
    changed_.notify_all();
    const std::vector<Ending> endings = std::exchange(marked_, {});
    lock.unlock();
    for (const Ending& ending : endings) ending.call->work->end(ending.error);
    lock.lock();
    for (const Ending& ending : endings) ending.call->has_ended = true;
    changed_.notify_all();
  }

  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::vector<Member> members_;
  std::vector<Ending> marked_;
  bool is_cut_ = false;
};

class FakeChannel final : public ChannelType, public Cuttable {
 public:
  FakeChannel(int member, std::shared_ptr<FakeGroup::State> state)
      : ChannelType(member, state->size()), state_(std::move(state)) {}

  const std::string getBackendName() const override { return "fake"; }

  void cut() override { state_->cut(); }

  Work alltoall_base(at::Tensor& output, at::Tensor& input, std::vector<std::int64_t>& received,
                     std::vector<std::int64_t>& sent, const c10d::AllToAllOptions& /*options*/) override {
    return state_->start(getRank(), {{"all-to-all", input.numel()}, input, output, sent, received});
  }

  Work allreduce(std::vector<at::Tensor>& tensors, const c10d::AllreduceOptions& /*options*/) override {
    const at::Tensor& tensor = tensors.front();
    return state_->start(getRank(), {{"all-reduce", tensor.numel()}, tensor, tensor, {}, {}});
  }

  Work broadcast(std::vector<at::Tensor>& tensors, const c10d::BroadcastOptions& options) override {
    const at::Tensor& tensor = tensors.front();
    const int root = static_cast<int>(options.rootRank);
    return state_->start(getRank(), {{"broadcast", tensor.numel()}, tensor, tensor, {}, {}, root});
  }

 private:
  std::shared_ptr<FakeGroup::State> state_;
};

FakeGroup::FakeGroup(int size) : state_(std::make_shared<State>(size)) {}

Channel FakeGroup::channel(int member) const { return c10::make_intrusive<FakeChannel>(member, state_); }

void FakeGroup::hold(int member, std::size_t operation) {
  state_->change(member, operation, [](State::Script& script) { script.is_held = true; });
}

void FakeGroup::stick(int member, std::size_t operation) {
  state_->change(member, operation, [](State::Script& script) { script.is_stuck = true; });
}

void FakeGroup::fail(int member, std::size_t operation, std::exception_ptr error) {
  state_->change(member, operation, [&](State::Script& script) { script.failure = std::move(error); });
}

void FakeGroup::refuse(int member, std::size_t operation, std::exception_ptr error) {
  state_->change(member, operation, [&](State::Script& script) { script.refusal = std::move(error); });
}

void FakeGroup::release(int member, std::size_t operation) { state_->release(member, operation); }
void FakeGroup::cut() { state_->cut(); }
bool FakeGroup::is_cut() const { return state_->is_cut(); }
std::vector<FakeOperation> FakeGroup::started(int member) const { return state_->started(member); }

void FakeGroup::await_started(int member, std::size_t operations) const { state_->await_started(member, operations); }
void FakeGroup::await_end(int member, std::size_t operation) const { state_->await_end(member, operation); }

}  // namespace dssync::testing
