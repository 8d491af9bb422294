#include "catalog/records.h"

#include "base/hash.h"

namespace thermo::catalog {
namespace {

// The first byte is the format, so that a later release can read records of this one.
constexpr char kFormat = 1;

void append_text(std::string& out, std::string_view text) {
  append_be32(out, static_cast<std::uint32_t>(text.size()));
  out.append(text);
}

/// Takes fields off the front; any shortage turns `ok` false and stays so.
struct Reader {
  std::string_view rest;
  bool ok = true;

  std::string_view take(std::size_t n) {
    if (rest.size() < n) {
      ok = false;
      rest = {};
      return {};
    }
    const auto taken = rest.substr(0, n);
    rest.remove_prefix(n);
    return taken;
  }
  std::uint64_t u64() { return read_be64(take(8)); }
  std::uint32_t u32() { return read_be32(take(4)); }
  WallNanos time() { return static_cast<WallNanos>(u64()); }
  std::string text() { return std::string(take(u32())); }
  [[nodiscard]] bool finished() const { return ok && rest.empty(); }
};

Error bad_record(std::string_view what) {
  return Error(ErrorCode::kCorrupt,
               std::string(what) + " record of the catalog cannot be decoded; it is asked of the store again");
}

// 0 means "no inode" to the kernel and 1 is the root's by custom.
std::uint64_t usable_ino(std::uint64_t hash) { return hash < 2 ? hash + 2 : hash; }

}  // namespace

std::string encode(const FileRecord& record) {
  std::string out;
  out.reserve(64 + record.etag.size() + record.storage_class.size());
  out.push_back(kFormat);
  append_be64(out, record.number);
  append_be32(out, record.generation);
  append_be64(out, record.ino);
  append_be64(out, record.size);
  append_be64(out, static_cast<std::uint64_t>(record.mtime));
  append_be64(out, static_cast<std::uint64_t>(record.checked_at));
  out.push_back(record.alone ? 1 : 0);
  append_text(out, record.etag);
  append_text(out, record.storage_class);
  return out;
}

std::string encode(const FolderRecord& record) {
  std::string out;
  out.reserve(64);
  out.push_back(kFormat);
  append_be64(out, record.number);
  append_be64(out, record.ino);
  for (const WallNanos time : {record.first_seen, record.seen_at, record.listed_at, record.sealed_at}) {
    append_be64(out, static_cast<std::uint64_t>(time));
  }
  append_be32(out, record.pages);
  return out;
}

std::string encode(const Owner& owner) {
  std::string out(1, kFormat);
  append_be32(out, owner.store);
  out.push_back(owner.is_folder ? 'f' : 'k');
  out.append(owner.key);
  return out;
}

std::string encode(const Stamps::Mark& mark) {
  std::string out(1, kFormat);
  append_be64(out, static_cast<std::uint64_t>(mark.stamp));
  append_be64(out, static_cast<std::uint64_t>(mark.wall));
  return out;
}

Result<FileRecord> decode_file(std::string_view bytes) {
  Reader in{bytes};
  FileRecord record;
  const auto format = in.take(1);
  record.number = in.u64();
  record.generation = in.u32();
  record.ino = in.u64();
  record.size = in.u64();
  record.mtime = in.time();
  record.checked_at = in.time();
  const auto alone = in.take(1);
  record.alone = !alone.empty() && alone[0] != 0;
  record.etag = in.text();
  record.storage_class = in.text();
  if (!in.finished() || format[0] != kFormat) return fail(bad_record("file"));
  return record;
}

Result<FolderRecord> decode_folder(std::string_view bytes) {
  Reader in{bytes};
  FolderRecord record;
  const auto format = in.take(1);
  record.number = in.u64();
  record.ino = in.u64();
  record.first_seen = in.time();
  record.seen_at = in.time();
  record.listed_at = in.time();
  record.sealed_at = in.time();
  record.pages = in.u32();
  if (!in.finished() || format[0] != kFormat) return fail(bad_record("folder"));
  return record;
}

Result<Owner> decode_owner(std::string_view bytes) {
  Reader in{bytes};
  Owner owner;
  const auto format = in.take(1);
  owner.store = in.u32();
  const auto kind = in.take(1);
  if (!in.ok || format[0] != kFormat || (kind[0] != 'f' && kind[0] != 'k')) return fail(bad_record("number"));
  owner.is_folder = kind[0] == 'f';
  owner.key = std::string(in.rest);
  return owner;
}

Result<Stamps::Mark> decode_mark(std::string_view bytes) {
  Reader in{bytes};
  const auto format = in.take(1);
  Stamps::Mark mark;
  mark.stamp = in.time();
  mark.wall = in.time();
  if (!in.finished() || format[0] != kFormat) return fail(bad_record("clock"));
  return mark;
}

std::uint64_t file_ino(std::string_view store_id, std::string_view key, const store::VersionId& version) {
  std::string bytes(1, 'k');
  append_text(bytes, store_id);
  append_text(bytes, key);
  append_be64(bytes, version.high);
  append_be64(bytes, version.low);
  return usable_ino(hash64(bytes));
}

std::uint64_t folder_ino(std::string_view store_id, std::string_view prefix) {
  std::string bytes(1, 'f');
  append_text(bytes, store_id);
  append_text(bytes, prefix);
  return usable_ino(hash64(bytes));
}

}  // namespace thermo::catalog
