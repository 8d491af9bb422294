#pragma once
// Private to s3sim: what was asked and answered, for tests that assert on requests.

#include <array>
#include <atomic>
#include <deque>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "s3sim/faults.h"
#include "s3sim/request.h"

namespace thermo::s3sim {

/// One GET that was answered with 200 or 206.
struct GetRecord {
  std::string key;
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
};

/// Thread-safe; counters are exact, and a snapshot taken while requests run may be a moment apart between counters.
class Stats {
 public:
  static constexpr std::size_t kMaxRecords = 10'000;

  void count(Op op) { requests_[static_cast<std::size_t>(op)].fetch_add(1, std::memory_order_relaxed); }
  void count(FaultKind kind) { faults_[static_cast<std::size_t>(kind)].fetch_add(1, std::memory_order_relaxed); }
  void add_in(std::uint64_t bytes) { bytes_in_.fetch_add(bytes, std::memory_order_relaxed); }
  void add_out(std::uint64_t bytes) { bytes_out_.fetch_add(bytes, std::memory_order_relaxed); }
  void begin();
  void end() { in_flight_.fetch_sub(1, std::memory_order_relaxed); }
  void record(GetRecord record);
  void reset();

  [[nodiscard]] std::uint64_t requests(Op op) const { return requests_[static_cast<std::size_t>(op)].load(); }
  [[nodiscard]] std::uint64_t faults(FaultKind kind) const { return faults_[static_cast<std::size_t>(kind)].load(); }
  [[nodiscard]] std::uint64_t bytes_in() const { return bytes_in_.load(); }
  [[nodiscard]] std::uint64_t bytes_out() const { return bytes_out_.load(); }
  [[nodiscard]] std::uint64_t in_flight() const { return in_flight_.load(); }
  [[nodiscard]] std::uint64_t in_flight_max() const { return in_flight_max_.load(); }
  /// Oldest first.
  [[nodiscard]] std::vector<GetRecord> records();

 private:
  std::array<std::atomic<std::uint64_t>, kOps> requests_{};
  std::array<std::atomic<std::uint64_t>, kFaultKinds> faults_{};
  std::atomic<std::uint64_t> bytes_in_{0}, bytes_out_{0}, in_flight_{0}, in_flight_max_{0};
  Mutex mutex_{LockRank::kLeaf, "s3sim records"};
  std::deque<GetRecord> records_ GUARDED_BY(mutex_);
};

}  // namespace thermo::s3sim
