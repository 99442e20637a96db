// How many threads one operation of torch may use. For the whole process.
#pragma once

namespace dssync {

void use_threads(int count);

}  // namespace dssync
