#include "base/units.h"

#include <fmt/core.h>

#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <utility>

namespace thermo {
namespace {

struct Parsed {
  double number = 0;
  std::string_view unit;
};

std::optional<Parsed> split_number(std::string_view text) {
  std::size_t end = 0;
  while (end < text.size() && ((text[end] >= '0' && text[end] <= '9') || text[end] == '.')) ++end;
  Parsed parsed;
  const auto [ptr, ec] = std::from_chars(text.data(), text.data() + end, parsed.number);
  if (end == 0 || ec != std::errc() || ptr != text.data() + end) return std::nullopt;
  parsed.unit = text.substr(end);
  while (!parsed.unit.empty() && parsed.unit.front() == ' ') parsed.unit.remove_prefix(1);
  return parsed;
}

constexpr double kKiB = 1024.0;
constexpr std::array<std::pair<std::string_view, double>, 18> kSizes{{{"", 1},
                                                                      {"B", 1},
                                                                      {"K", kKiB},
                                                                      {"KiB", kKiB},
                                                                      {"KB", 1e3},
                                                                      {"kB", 1e3},
                                                                      {"k", kKiB},
                                                                      {"M", kKiB* kKiB},
                                                                      {"MiB", kKiB* kKiB},
                                                                      {"MB", 1e6},
                                                                      {"G", kKiB* kKiB* kKiB},
                                                                      {"GiB", kKiB* kKiB* kKiB},
                                                                      {"GB", 1e9},
                                                                      {"T", kKiB* kKiB* kKiB* kKiB},
                                                                      {"TiB", kKiB* kKiB* kKiB* kKiB},
                                                                      {"TB", 1e12},
                                                                      {"P", kKiB* kKiB* kKiB* kKiB* kKiB},
                                                                      {"PiB", kKiB* kKiB* kKiB* kKiB* kKiB}}};
constexpr std::array<std::pair<std::string_view, double>, 7> kDurations{
    {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}, {"m", 60e9}, {"h", 3600e9}, {"d", 86400e9}}};

}  // namespace

Result<std::uint64_t> parse_size(std::string_view text) {
  const auto parsed = split_number(text);
  if (parsed) {
    // Whole numbers of bytes are read as such: a double is exact only up to 2^53.
    std::uint64_t whole = 0;
    const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), whole);
    const bool bytes_only = ec == std::errc() && end == text.data() + text.size();
    if (bytes_only && whole < (std::uint64_t{1} << 63)) return whole;
    for (const auto& [unit, factor] : kSizes) {
      if (parsed->unit != unit) continue;
      const double bytes = parsed->number * factor;
      if (bytes >= 0x1p63) break;
      return static_cast<std::uint64_t>(std::llround(bytes));
    }
  }
  return fail(
      ErrorCode::kInvalidArgument,
      fmt::format("'{}' is not a size; write a number and one of B, KB, MB, GB, TB, KiB, MiB, GiB, TiB, such as 200GiB", text));
}

Result<std::uint64_t> parse_rate(std::string_view text) {
  std::string_view size = text;
  if (size.ends_with("/s")) size.remove_suffix(2);
  auto bytes = parse_size(size);
  if (bytes) return bytes;
  return fail(ErrorCode::kInvalidArgument, fmt::format("'{}' is not a rate; write a size per second such as 90MB/s", text));
}

Result<Nanos> parse_duration(std::string_view text) {
  const auto parsed = split_number(text);
  if (parsed) {
    for (const auto& [unit, factor] : kDurations) {
      if (parsed->unit == unit && parsed->number * factor < 0x1p62) return Nanos(std::llround(parsed->number * factor));
    }
  }
  return fail(ErrorCode::kInvalidArgument,
              fmt::format("'{}' is not a duration; write a number and one of ms, s, m, h, d, such as 60s", text));
}

std::string format_size(std::uint64_t bytes) {
  static constexpr std::array<const char*, 6> kUnits{"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  double value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= 1024 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  return unit == 0 ? fmt::format("{} B", bytes) : fmt::format("{:.1f} {}", value, kUnits[unit]);
}

std::string format_duration(Nanos duration) {
  const double ns = static_cast<double>(duration.count());
  if (ns < 1e3) return fmt::format("{} ns", duration.count());
  if (ns < 1e6) return fmt::format("{:.1f} us", ns / 1e3);
  if (ns < 1e9) return fmt::format("{:.1f} ms", ns / 1e6);
  if (ns < 120e9) return fmt::format("{:.2f} s", ns / 1e9);
  return fmt::format("{:.0f} min", ns / 60e9);
}

}  // namespace thermo
