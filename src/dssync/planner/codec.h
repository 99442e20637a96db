// How the values of a stage travel between workers. Plain values.
#pragma once

namespace dssync {

enum class Codec {
  kFloat32,  // as the vector holds them
};

// Bytes on the wire for each byte of the vector.
constexpr double wire_share(Codec codec) {
  switch (codec) {
    case Codec::kFloat32:
      return 1;
  }
  return 1;
}

}  // namespace dssync
