// Which status an exception becomes, and what is told of it.
#include "dssync/launch/exit_status.h"

#include <new>
#include <stdexcept>
#include <string>

#include <gtest/gtest.h>

#include "dssync/base/error.h"

namespace dssync {
namespace {

// "STATUS MESSAGE"
std::string outcome_of(const std::function<int()>& work) {
  std::string told;
  const int status = exit_status_of(work, [&](const std::string& message, int of) {
    told = " " + message;
    return of;
  });
  return std::to_string(status) + told;
}

TEST(ExitStatusTest, WorkThatEndsSaysItsOwn) {
  EXPECT_EQ(outcome_of([] { return ExitStatus::kDone; }), "0");
  EXPECT_EQ(outcome_of([] { return 7; }), "7");
}

TEST(ExitStatusTest, AnExceptionSaysWhoseFaultItIs) {
  EXPECT_EQ(outcome_of([]() -> int { throw InputError("no such file"); }), "2 no such file");
  EXPECT_EQ(outcome_of([]() -> int { throw Error("the disk is full"); }), "1 the disk is full");
  EXPECT_EQ(outcome_of([]() -> int { throw std::logic_error("a slip"); }), "1 a slip");
  EXPECT_EQ(outcome_of([]() -> int { throw std::bad_alloc(); }), "1 out of memory");
}

}  // namespace
}  // namespace dssync
