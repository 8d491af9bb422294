#pragma once
// Little-endian fields of the cache's on-disk formats. A reader that ran past the end stays bad and answers zeros.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

namespace thermo::cache {

class FieldWriter {
 public:
  template <class T>
    requires std::is_unsigned_v<T>
  void number(T value) {
    for (std::size_t i = 0; i < sizeof(T); ++i) out_.push_back(static_cast<char>((value >> (8 * i)) & 0xff));
  }
  void text(std::string_view value) {
    number(static_cast<std::uint32_t>(value.size()));
    out_.append(value);
  }
  [[nodiscard]] std::string& str() { return out_; }

 private:
  std::string out_;
};

class FieldReader {
 public:
  explicit FieldReader(std::span<const std::byte> in) : in_(in) {}
  explicit FieldReader(std::string_view in) : in_(std::as_bytes(std::span(in.data(), in.size()))) {}

  template <class T>
    requires std::is_unsigned_v<T>
  [[nodiscard]] T number() {
    if (!take(sizeof(T))) return 0;
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < sizeof(T); ++i) {
      value |= static_cast<std::uint64_t>(static_cast<unsigned char>(in_[at_ - sizeof(T) + i])) << (8 * i);
    }
    return static_cast<T>(value);
  }
  [[nodiscard]] std::string text() {
    const auto length = number<std::uint32_t>();
    if (!take(length)) return {};
    return {reinterpret_cast<const char*>(in_.data()) + at_ - length, length};
  }
  [[nodiscard]] bool good() const { return good_; }
  [[nodiscard]] std::size_t at() const { return at_; }
  [[nodiscard]] std::size_t left() const { return in_.size() - at_; }

 private:
  [[nodiscard]] bool take(std::size_t n) {
    if (!good_ || n > in_.size() - at_) return good_ = false;
    at_ += n;
    return true;
  }
  std::span<const std::byte> in_;
  std::size_t at_ = 0;
  bool good_ = true;
};

}  // namespace thermo::cache
