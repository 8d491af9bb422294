#pragma once
// How keys and prefixes are written into the database, and the small algebra of paths, names and prefixes on which the catalog
// rests.
//
//   k | store u32 BE | key        -> FileRecord        f | store u32 BE | prefix/ -> FolderRecord
//   n | number u64 BE             -> Owner             s | store id               -> u32 BE
//   e | store u32 BE | prefix/    -> floor of an explicit refresh (i64 BE)        m | name -> settings of the database itself

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "catalog/catalog.h"

namespace thermo::catalog {

using StoreNumber = std::uint32_t;

[[nodiscard]] std::string file_key(StoreNumber store, std::string_view key);
[[nodiscard]] std::string folder_key(StoreNumber store, std::string_view prefix);
[[nodiscard]] std::string number_key(Number number);
[[nodiscard]] std::string store_key(std::string_view store_id);
[[nodiscard]] std::string floor_key(StoreNumber store, std::string_view prefix);
[[nodiscard]] std::string meta_key(std::string_view name);
/// There when the store was seen to list in another order than that of keys.
[[nodiscard]] std::string unordered_key(StoreNumber store);
/// Length of what stands before the key or prefix in file_key, folder_key and floor_key.
inline constexpr std::size_t kStoreHeader = 5;

void append_be32(std::string& out, std::uint32_t value);
void append_be64(std::string& out, std::uint64_t value);
[[nodiscard]] std::uint32_t read_be32(std::string_view bytes);
[[nodiscard]] std::uint64_t read_be64(std::string_view bytes);

/// The smallest string above everything that starts with `prefix` ("a/" -> "a0"); empty for the empty prefix: no bound.
[[nodiscard]] std::string prefix_end(std::string_view prefix);
/// "a/b" and "a/b/" -> "a/"; "a" -> "".
[[nodiscard]] std::string_view parent_prefix(std::string_view path);
/// "a/b" and "a/b/" -> "b".
[[nodiscard]] std::string_view base_name(std::string_view path);
/// "a/b/" -> "a/b": how a folder is called among names; "" stays.
[[nodiscard]] std::string_view folder_path(std::string_view prefix);

/// Whether a component can be shown as a name: not empty, ".", "..", no '/' or NUL, at most kMaxNameBytes.
[[nodiscard]] bool valid_name(std::string_view component);

enum class KeyShape : std::uint8_t { kFile, kMarker, kHidden };

/// What a key is below a listed prefix.
struct ParsedKey {
  KeyShape shape = KeyShape::kFile;  ///< kHidden: some component cannot be a name
  std::size_t folders_end = 0;       ///< the folders named by key[0, folders_end) are valid names
};
/// `key` starts with the `prefix_length` bytes of the listed prefix. key == prefix is that folder's marker.
[[nodiscard]] ParsedKey parse_key(std::string_view key, std::size_t prefix_length);

}  // namespace thermo::catalog
