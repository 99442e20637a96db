// Any bytes as a message of any codec and length: decoding reads no more than the message, and adding does the same.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "dssync/codec/encoding.h"
#include "invariants.h"

namespace {

// The most values whose message has no more than so many bytes.
std::int64_t values_in(dssync::Codec codec, std::int64_t bytes) {
  auto values = static_cast<std::int64_t>(static_cast<double>(bytes) / (4 * dssync::wire_share(codec))) + 2;
  while (values > 0 && dssync::encoded_bytes(codec, values) > bytes) --values;
  return values;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  for (const dssync::Codec codec : dssync::all_codecs()) {
    const auto count = static_cast<std::size_t>(values_in(codec, static_cast<std::int64_t>(size)));
    // Memory of just this size, so that a sanitizer sees a step beyond it.
    const auto bytes = static_cast<std::size_t>(dssync::encoded_bytes(codec, static_cast<std::int64_t>(count)));
    const std::unique_ptr<std::byte[]> message(new std::byte[bytes]);
    if (bytes > 0) std::memcpy(message.get(), data, bytes);
    std::vector<float> decoded(count);
    dssync::decode(codec, message.get(), decoded);
    std::vector<float> sum = decoded;
    const std::vector<dssync::Part> parts = {{message.get(), nullptr}, {nullptr, sum.data()}};
    dssync::decode_and_add(codec, parts, 2, sum);
    for (std::size_t i = 0; i < count; ++i) {
      const float expected = (decoded[i] + decoded[i]) / 2;
      DSSYNC_FUZZ_CHECK(sum[i] == expected || (std::isnan(sum[i]) && std::isnan(expected)));
    }
    // What was decoded can be sent again.
    const std::unique_ptr<std::byte[]> again(new std::byte[bytes]);
    dssync::encode(codec, decoded, 1, again.get());
  }
  return 0;
}
