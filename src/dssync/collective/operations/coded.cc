#include "dssync/collective/operations/coded.h"

#include <algorithm>
#include <span>

#include <ATen/ATen.h>

#include "dssync/codec/encoding.h"

namespace dssync {
namespace {

constexpr std::int64_t kHalf = kCodecBlock / 2;
constexpr std::int64_t kWord = 0xFFFFFFFF;  // 32 bits

std::span<float> span_of(const at::Tensor& values) {
  return {values.data_ptr<float>(), static_cast<std::size_t>(values.numel())};
}

std::byte* bytes_of(const at::Tensor& bytes) { return reinterpret_cast<std::byte*>(bytes.data_ptr<std::uint8_t>()); }

std::int64_t blocks_of(std::int64_t values) { return (values + kCodecBlock - 1) / kCodecBlock; }

std::int64_t levels_of(Codec codec) { return codec == Codec::kInt8 ? 127 : 7; }

// A row for each block, the last one spread over both halves (encoding.cc), and back.
at::Tensor rows_of(const at::Tensor& values) {
  const std::int64_t blocks = blocks_of(values.numel());
  at::Tensor rows = at::zeros({blocks, kCodecBlock}, values.options());
  const std::int64_t last = values.numel() - (blocks - 1) * kCodecBlock;
  const std::int64_t whole = last == kCodecBlock ? blocks : blocks - 1;
  rows.narrow(0, 0, whole).copy_(values.narrow(0, 0, whole * kCodecBlock).view({whole, kCodecBlock}));
  if (whole == blocks) return rows;
  const std::int64_t first = (last + 1) / 2;
  rows[whole].narrow(0, 0, first).copy_(values.narrow(0, whole * kCodecBlock, first));
  rows[whole].narrow(0, kHalf, last - first).copy_(values.narrow(0, whole * kCodecBlock + first, last - first));
  return rows;
}

at::Tensor joined(const at::Tensor& rows, std::int64_t values) {
  const std::int64_t blocks = blocks_of(values);
  const std::int64_t last = values - (blocks - 1) * kCodecBlock;
  if (last == kCodecBlock) return rows.reshape({-1});
  const std::int64_t first = (last + 1) / 2;
  return at::cat({rows.narrow(0, 0, blocks - 1).reshape({-1}), rows[blocks - 1].narrow(0, 0, first),
                  rows[blocks - 1].narrow(0, kHalf, last - first)});
}

// 16 bits for each value, in rows; numbers of 32 bits in tensors of 64.
at::Tensor draws(std::int64_t blocks, std::uint64_t seed, std::int64_t first_block, at::Device device) {
  at::Tensor keys = at::empty({blocks, 1}, at::kLong);
  for (std::int64_t block = 0; block < blocks; ++block) {
    keys.data_ptr<std::int64_t>()[block] =
        static_cast<std::int64_t>(mix_seeds(seed, static_cast<std::uint64_t>(first_block + block)) & kWord);
  }
  at::Tensor x = keys.to(device).add(at::arange(kHalf, at::kLong).to(device)).bitwise_and_(kWord);
  x.bitwise_xor_(x.bitwise_right_shift(16));
  x.mul_(std::int64_t{0x7FEB352D}).bitwise_and_(kWord);
  x.bitwise_xor_(x.bitwise_right_shift(15));
  x.mul_(std::int64_t{0x846CA68B}).bitwise_and_(kWord);
  x.bitwise_xor_(x.bitwise_right_shift(16));
  return at::cat({x.bitwise_and(0xFFFF), x.bitwise_right_shift(16)}, 1);
}

at::Tensor bits_of(const at::Tensor& values) { return values.contiguous().view(at::kInt).to(at::kLong); }

at::Tensor floats_of(const at::Tensor& upper_bits) {
  return upper_bits.bitwise_left_shift(16).to(at::kInt).contiguous().view(at::kFloat);
}

// Integers of 16 bits as bytes, the lower one first. `to` signed: c10d and PyTorch know no others.
at::Tensor bytes_of_words(const at::Tensor& words) {
  const at::Tensor is_high = words.ge(0x8000);
  return words.sub(is_high.to(at::kLong), 0x10000).to(at::kShort).contiguous().view(at::kByte);
}

at::Tensor words_of_bytes(const at::Tensor& bytes) {
  return bytes.clone().view(at::kShort).to(at::kLong).bitwise_and(0xFFFF);
}

at::Tensor bfloat16_message(const at::Tensor& values, std::uint64_t seed, std::int64_t first_block) {
  const at::Tensor bits = bits_of(values).bitwise_and(kWord);
  const at::Tensor drawn = draws(blocks_of(values.numel()), seed, first_block, values.device());
  const at::Tensor random = joined(drawn, values.numel());
  const at::Tensor is_special = bits.bitwise_and(0x7F800000).eq(0x7F800000);
  const at::Tensor is_nan = is_special.logical_and(bits.bitwise_and(0x007FFFFF).ne(0));
  const at::Tensor whole = at::where(is_nan, at::full_like(bits, 0x7FC0), bits.bitwise_right_shift(16));
  const at::Tensor rounded = bits.add(random).bitwise_and(kWord).bitwise_right_shift(16);
  return bytes_of_words(at::where(is_special, whole, rounded));
}

// Rows of bytes, a block each, of which the last one's end is cut off.
at::Tensor integer_message(Codec codec, const at::Tensor& values, std::uint64_t seed, std::int64_t first_block) {
  const std::int64_t levels = levels_of(codec);
  const at::Tensor rows = rows_of(values);
  const at::Tensor most = rows.view(at::kInt).bitwise_and(0x7FFFFFFF).amax(1, true);
  const at::Tensor is_nan = most.ge(0x7F000000);
  const at::Tensor is_plain = most.gt(0).logical_and(is_nan.logical_not());
  const at::Tensor scale = most.view(at::kFloat).div(levels).clamp_min(0x1p-120);
  at::Tensor scales = bits_of(scale).add(0xFFFF).bitwise_right_shift(16);
  scales = at::where(is_plain, scales, at::where(is_nan, at::full_like(scales, 0x7FC0), at::zeros_like(scales)));
  const at::Tensor zero = at::zeros({1, 1}, values.options());
  const at::Tensor inverse = at::where(is_plain, floats_of(scales).reciprocal(), zero);
  const at::Tensor u = draws(rows.size(0), seed, first_block, values.device()).to(at::kFloat).mul_(0x1p-16);
  const at::Tensor codes = at::where(is_plain, rows, zero)
                               .mul(inverse)
                               .add(u.add_(static_cast<double>(levels + 1)))
                               .to(at::kLong)
                               .clamp_(1, 2 * levels + 1);
  at::Tensor bytes = codec == Codec::kInt8 ? codes.bitwise_xor(0x80)
                                           : codes.narrow(1, 0, kHalf).add(codes.narrow(1, kHalf, kHalf), 16);
  if (codec == Codec::kInt8) {
    const at::Tensor in_order = joined(bytes, values.numel());
    bytes = at::zeros_like(bytes);
    bytes.view({-1}).narrow(0, 0, in_order.numel()).copy_(in_order);
  }
  const at::Tensor whole = at::cat({bytes_of_words(scales.view({-1})).view({-1, 2}), bytes.to(at::kByte)}, 1);
  return whole.view({-1}).narrow(0, 0, encoded_bytes(codec, values.numel()));
}

at::Tensor integer_values(Codec codec, const at::Tensor& bytes, std::int64_t values) {
  const std::int64_t row = encoded_bytes(codec, kCodecBlock);
  at::Tensor whole = at::full({blocks_of(values) * row}, 0x88, bytes.options());
  whole.narrow(0, 0, bytes.numel()).copy_(bytes);
  whole = whole.view({-1, row});
  const at::Tensor scales = floats_of(words_of_bytes(whole.narrow(1, 0, 2).reshape({-1}))).unsqueeze(1);
  const at::Tensor codes = whole.narrow(1, 2, row - 2).to(at::kLong);
  if (codec == Codec::kInt8) {
    return codes.bitwise_xor(0x80).sub(0x80).to(at::kFloat).mul(scales).view({-1}).narrow(0, 0, values);
  }
  const at::Tensor halves = at::cat({codes.bitwise_and(15), codes.bitwise_right_shift(4)}, 1);
  return joined(halves.sub(8).to(at::kFloat).mul(scales), values);
}

}  // namespace

Codec codec_for(const at::Tensor& vector, Codec asked, Codec shortest) {
  if (vector.scalar_type() != at::kFloat) return Codec::kFloat32;
  return std::min(asked, shortest);
}

void encode(Codec codec, const at::Tensor& values, std::uint64_t seed, const at::Tensor& bytes,
            std::int64_t first_block) {
  if (values.numel() == 0) return;
  if (!values.is_cpu()) return encode_by_operations(codec, values, seed, bytes, first_block);
  dssync::encode(codec, span_of(values), seed, bytes_of(bytes), first_block);
}

void decode(Codec codec, const at::Tensor& bytes, const at::Tensor& values) {
  if (values.numel() == 0) return;
  if (!values.is_cpu()) return decode_by_operations(codec, bytes, values);
  dssync::decode(codec, bytes_of(bytes), span_of(values));
}

void decode_and_add(Codec codec, const std::vector<CodedPart>& parts, int divisor, const at::Tensor& sum) {
  if (sum.numel() == 0) return;
  if (sum.is_cpu()) {
    std::vector<Part> plain;
    for (const CodedPart& part : parts) {
      plain.push_back(part.message.defined() ? Part{bytes_of(part.message), nullptr}
                                             : Part{nullptr, part.values.data_ptr<float>()});
    }
    return dssync::decode_and_add(codec, plain, static_cast<float>(divisor), span_of(sum));
  }
  at::Tensor total;
  for (const CodedPart& part : parts) {
    at::Tensor values = part.values;
    if (part.message.defined()) {
      values = at::empty_like(sum);
      decode_by_operations(codec, part.message, values);
    }
    total = total.defined() ? total + values : values.clone();
  }
  sum.copy_(total.div_(divisor));
}

void encode_by_operations(Codec codec, const at::Tensor& values, std::uint64_t seed, const at::Tensor& bytes,
                          std::int64_t first_block) {
  if (codec == Codec::kFloat32) {
    bytes.copy_(values.view(at::kByte));
  } else {
    bytes.copy_(codec == Codec::kBfloat16 ? bfloat16_message(values, seed, first_block)
                                          : integer_message(codec, values, seed, first_block));
  }
}

void decode_by_operations(Codec codec, const at::Tensor& bytes, const at::Tensor& values) {
  if (codec == Codec::kFloat32) {
    values.copy_(bytes.clone().view(at::kFloat));
  } else if (codec == Codec::kBfloat16) {
    values.copy_(floats_of(words_of_bytes(bytes)));
  } else {
    values.copy_(integer_values(codec, bytes, values.numel()));
  }
}

}  // namespace dssync
