#pragma once
// What the database keeps of a file, of a folder and of a number, and how that is written as bytes.

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "catalog/key_layout.h"
#include "catalog/stamps.h"

namespace thermo::catalog {

struct FileRecord {
  Number number = 0;
  std::uint32_t generation = 1;
  std::uint64_t ino = 0;
  std::uint64_t size = 0;
  WallNanos mtime = 0;
  WallNanos checked_at = 0;  ///< start of the request that last looked at this very name (or first saw this version)
  bool alone = false;        ///< and told that no folder of the same name hides it
  std::string etag;
  std::string storage_class;
  bool operator==(const FileRecord&) const = default;
};

/// All times are those at which the request that told us began: what the store did later is not covered. 0 = never.
struct FolderRecord {
  Number number = 0;
  std::uint64_t ino = 0;
  WallNanos first_seen = 0;
  WallNanos seen_at =
      0;  ///< it was known to exist; 0: it has a number, nothing more (the root of a mount, a parent that is gone)
  WallNanos listed_at = 0;  ///< its direct children were listed in full
  WallNanos sealed_at = 0;  ///< everything below it was listed in full
  std::uint32_t pages = 0;  ///< delimited pages that a full listing took; 0 = not known
  [[nodiscard]] bool exists() const { return seen_at != 0; }
  bool operator==(const FolderRecord&) const = default;
};

/// Whose number it is.
struct Owner {
  StoreNumber store = 0;
  bool is_folder = false;
  std::string key;  ///< key, or prefix with its '/'
  bool operator==(const Owner&) const = default;
};

[[nodiscard]] std::string encode(const FileRecord& record);
[[nodiscard]] std::string encode(const FolderRecord& record);
[[nodiscard]] std::string encode(const Owner& owner);
[[nodiscard]] std::string encode(const Stamps::Mark& mark);
/// kCorrupt for bytes that encode() did not make.
[[nodiscard]] Result<FileRecord> decode_file(std::string_view bytes);
[[nodiscard]] Result<FolderRecord> decode_folder(std::string_view bytes);
[[nodiscard]] Result<Owner> decode_owner(std::string_view bytes);
[[nodiscard]] Result<Stamps::Mark> decode_mark(std::string_view bytes);

[[nodiscard]] std::uint64_t file_ino(std::string_view store_id, std::string_view key, const store::VersionId& version);
[[nodiscard]] std::uint64_t folder_ino(std::string_view store_id, std::string_view prefix);

}  // namespace thermo::catalog
