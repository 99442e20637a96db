#include "dssync/launch/exit_status.h"

#include <exception>
#include <new>

#include "dssync/base/error.h"

namespace dssync {

int exit_status_of(const std::function<int()>& work, const Complain& complain) {
  try {
    return work();
  } catch (const InputError& error) {
    return complain(error.what(), ExitStatus::kBadInput);
  } catch (const std::bad_alloc&) {
    return complain("out of memory", ExitStatus::kFailed);
  } catch (const std::exception& error) {
    return complain(error.what(), ExitStatus::kFailed);
  }
}

}  // namespace dssync
