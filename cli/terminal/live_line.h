// One line on a terminal that is written anew while something goes on; where nobody watches (a file, a pipe), a plain
// line now and then. For one thread.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include "text/style.h"

namespace dssync::cli {

class LiveLine {
 public:
  using Clock = std::chrono::steady_clock;

  struct Screen {
    bool rewrites = false;  // a terminal that understands escape codes
    std::function<std::size_t()> columns;
    std::function<void(const std::string&)> write;
    Style style;
  };

  static constexpr std::chrono::milliseconds kEvery{200};        // on a terminal
  static constexpr std::chrono::milliseconds kPlainEvery{5000};  // elsewhere; the first one, too

  LiveLine(Screen screen, Clock::time_point now);

  // Whether it is time for a new text.
  bool is_due(Clock::time_point now) const { return now >= next_; }
  // Shows the text, cut to the width of the terminal.
  void show(const std::string& text, Clock::time_point now);
  // Writes a line that stays; the live one goes on below it.
  void note(const std::string& text);
  // Removes the live line.
  void clear();

 private:
  const Screen screen_;
  Clock::time_point next_;
  std::string shown_;
};

// Standard error.
LiveLine::Screen standard_error_screen();

// Removes a live line that any process of this terminal left on standard error. Thread-safe.
void clear_standard_error_line();

}  // namespace dssync::cli
