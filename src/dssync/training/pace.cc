#include "dssync/training/pace.h"

#include <thread>

#include "dssync/method/overlap.h"

namespace dssync {
Pace::Pace(const torch::nn::Module& model, Seconds duration) : duration_(duration) {
  if (duration_.count() <= 0) return;
  for (const at::Tensor& parameter : model.parameters()) {
    if (!parameter.requires_grad()) continue;
    hooks_.emplace_back(parameter, parameter.register_hook([this](const at::Tensor&) { gradient_ready(); }));
  }
}

Pace::~Pace() {
  for (const auto& [parameter, hook] : hooks_) parameter.remove_hook(hook);
}

void Pace::begin() {
  start_ = Clock::now();
  ready_ = 0;
}

void Pace::layers_done(std::size_t done, std::size_t all) const {
  sleep_until(kForwardPart * static_cast<double>(done) / static_cast<double>(all));
}

void Pace::exclude(Seconds seconds) { start_ += std::chrono::duration_cast<Clock::duration>(seconds); }

void Pace::forward_done() const { sleep_until(kForwardPart); }

void Pace::backward_done() const { sleep_until(1); }

void Pace::gradient_ready() {
  ++ready_;
  sleep_until(kForwardPart + (1 - kForwardPart) * static_cast<double>(ready_) / static_cast<double>(hooks_.size()));
}

void Pace::sleep_until(double part) const {
  if (duration_.count() <= 0) return;
  std::this_thread::sleep_until(start_ + std::chrono::duration_cast<Clock::duration>(duration_ * part));
}

}  // namespace dssync
