#pragma once
// What the database knows of one cached object version. For planning and for objects without a sidecar; which pages of a larger
// one are present says its sidecar alone.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cache/cache.h"

namespace thermo::cache {

/// kOpen: being filled when the record was written, so `charged` and `resident` may be out of date after an unclean stop.
enum class RecordState : std::uint8_t { kSettled = 0, kOpen = 1 };

/// The part that start-up needs of every record.
struct RecordHead {
  RecordState state = RecordState::kSettled;
  std::uint64_t order = 0;     ///< of insertion; the oldest is the first victim
  std::uint64_t charged = 0;   ///< st_blocks of object file and sidecar
  std::uint64_t resident = 0;  ///< bytes of the pages that are present
  std::uint64_t size = 0;
};

struct Record {
  RecordHead head;
  ObjectRef ref;
  std::vector<std::uint32_t> crcs;  ///< of each block, only for objects without a sidecar
};

/// Key of a record: "o" + 16 bytes.
[[nodiscard]] std::string record_key(const VersionId& version);
/// kCorrupt when it is none.
[[nodiscard]] Result<VersionId> parse_record_key(std::string_view key);
[[nodiscard]] std::string encode_record(const Record& record);
[[nodiscard]] Result<RecordHead> parse_record_head(std::string_view value);
[[nodiscard]] Result<Record> parse_record(const VersionId& version, std::string_view value);

}  // namespace thermo::cache
