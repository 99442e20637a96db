// What tells one run from another: a plain value. The launcher makes it, and every key in the store carries it.
#pragma once

#include <string>

namespace dssync {

struct RunId {
  std::string name;  // empty: nobody said one, and rank 0 makes it
  int attempt = 0;   // how often a launcher (torchrun) has started the workers anew

  bool operator==(const RunId&) const = default;
};

// 128 random bits in hex.
std::string make_run_name();

// "5f0c...", or "5f0c..., attempt 2".
std::string to_text(const RunId& run);

}  // namespace dssync
