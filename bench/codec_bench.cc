// How fast a core encodes and decodes: float32 bytes per second, of vectors that fit a cache and that do not.
#include <cstdint>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include "dssync/codec/encoding.h"

namespace {

using dssync::Codec;

std::vector<float> noise(std::int64_t size) {
  std::vector<float> values(static_cast<std::size_t>(size));
  std::uint64_t state = 1;
  for (float& value : values) {
    state = dssync::mix_seeds(state, 0);
    value = static_cast<float>(static_cast<std::int64_t>(state)) * 0x1p-63F;
  }
  return values;
}

void count(benchmark::State& state, std::int64_t size) {
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations()) * size * 4);
}

void encode(benchmark::State& state, Codec codec) {
  const std::int64_t size = state.range(0);
  const std::vector<float> values = noise(size);
  std::vector<std::byte> bytes(static_cast<std::size_t>(dssync::encoded_bytes(codec, size)));
  std::uint64_t seed = 0;
  for (auto _ : state) {
    dssync::encode(codec, values, ++seed, bytes.data());
    benchmark::ClobberMemory();
  }
  count(state, size);
}

void decode(benchmark::State& state, Codec codec) {
  const std::int64_t size = state.range(0);
  std::vector<float> values = noise(size);
  std::vector<std::byte> bytes(static_cast<std::size_t>(dssync::encoded_bytes(codec, size)));
  dssync::encode(codec, values, 1, bytes.data());
  for (auto _ : state) {
    dssync::decode(codec, bytes.data(), values);
    benchmark::ClobberMemory();
  }
  count(state, size);
}

// What a pair does with both messages.
void decode_and_add(benchmark::State& state, Codec codec) {
  const std::int64_t size = state.range(0);
  std::vector<float> values = noise(size);
  std::vector<std::byte> bytes(static_cast<std::size_t>(dssync::encoded_bytes(codec, size)));
  dssync::encode(codec, values, 1, bytes.data());
  const std::vector<dssync::Part> parts = {{bytes.data(), nullptr}, {bytes.data(), nullptr}};
  for (auto _ : state) {
    dssync::decode_and_add(codec, parts, 2, values);
    benchmark::ClobberMemory();
  }
  count(state, size);
}

}  // namespace

int main(int argc, char** argv) {
  for (const Codec codec : dssync::all_codecs()) {
    if (codec == Codec::kFloat32) continue;
    const std::string name = dssync::name_of(codec);
    const auto add = [&](const char* what, auto function) {
      benchmark::RegisterBenchmark((std::string(what) + "/" + name).c_str(), function, codec)
          ->Arg(32'000)
          ->Arg(2'000'000);
    };
    add("encode", encode);
    add("decode", decode);
    add("decode_and_add_two", decode_and_add);
  }
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
