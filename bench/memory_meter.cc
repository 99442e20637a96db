// Counts what is allocated with new: each block is preceded by its size.
#include "memory_meter.h"

#include <algorithm>
#include <cstdlib>
#include <new>

namespace {

std::size_t allocated = 0;
std::size_t peak = 0;

struct Header {
  alignas(std::max_align_t) std::size_t size;
};

}  // namespace

void* operator new(std::size_t size) {
  auto* header = static_cast<Header*>(std::malloc(sizeof(Header) + size));
  if (header == nullptr) {
    throw std::bad_alloc();
  }
  header->size = size;
  allocated += size;
  peak = std::max(peak, allocated);
  return header + 1;
}

void operator delete(void* memory) noexcept {
  if (memory != nullptr) {
    Header* header = static_cast<Header*>(memory) - 1;
    allocated -= header->size;
    std::free(header);
  }
}

void operator delete(void* memory, std::size_t /*size*/) noexcept { operator delete(memory); }

namespace dssync::bench {

std::size_t allocated_bytes() { return allocated; }
std::size_t peak_bytes() { return peak; }
void reset_peak() { peak = allocated; }

}  // namespace dssync::bench
