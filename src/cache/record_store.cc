#include "cache/record_store.h"

#include "base/log.h"

namespace thermo::cache {
namespace {

// Written when the database is made: one without it was deleted or lost since.
constexpr std::string_view kMarkerKey = "m";
constexpr std::string_view kMarkerValue = "1";

Error closed() { return Error(ErrorCode::kIo, "the record database is not open"); }

}  // namespace

Result<void> RecordStore::open_db() {
  io::KvOptions options;
  options.path = path_;
  options.cache_bytes = 16u << 20;
  options.write_buffer_bytes = 4u << 20;
  TRY_ASSIGN(std::shared_ptr<io::KvStore> opened, io::open_kv(options));
  MutexLock lock(mutex_);
  db_ = std::move(opened);
  return {};
}

Result<RecordStore::Opened> RecordStore::open() {
  auto opened = open_db();
  if (!opened && opened.error().code() != ErrorCode::kCorrupt && opened.error().code() != ErrorCode::kIo) {
    return fail(std::move(opened).error());
  }
  if (opened) {
    auto marker = db()->get(kMarkerKey);
    if (marker && marker->has_value()) return Opened::kExisting;
    if (marker) {
      io::KvBatch batch;
      batch.put(kMarkerKey, kMarkerValue);
      TRY(db()->write(batch));
      return Opened::kNew;
    }
    opened = fail(std::move(marker).error());
  }
  log::warn("cache: {}; made anew, what is cached is found again from the sidecars", opened.error().describe());
  TRY(recreate());
  return Opened::kRebuilt;
}

Result<void> RecordStore::recreate() {
  close();
  TRY(io::destroy_kv(path_));
  TRY(open_db());
  io::KvBatch batch;
  batch.put(kMarkerKey, kMarkerValue);
  return db()->write(batch);
}

std::shared_ptr<io::KvStore> RecordStore::db() const {
  MutexLock lock(mutex_);
  return db_;
}

void RecordStore::close() {
  std::shared_ptr<io::KvStore> last;
  MutexLock lock(mutex_);
  last.swap(db_);
}

Result<void> RecordStore::put(const Record& record) {
  io::KvBatch batch;
  batch.put(record_key(record.ref.version), encode_record(record));
  return write(batch);
}

Result<void> RecordStore::remove(const VersionId& version) {
  io::KvBatch batch;
  batch.remove(record_key(version));
  return write(batch);
}

Result<void> RecordStore::write(const io::KvBatch& batch) {
  const auto store = db();
  auto written = store ? store->write(batch) : Result<void>(fail(closed()));
  if (!written) complete_.store(false, std::memory_order_relaxed);
  return written;
}

Result<std::optional<Record>> RecordStore::get(const VersionId& version, bool may_wait) {
  const auto store = db();
  if (!store) return fail(closed());
  TRY_ASSIGN(const auto value, store->get(record_key(version), may_wait));
  if (!value) return std::optional<Record>();
  TRY_ASSIGN(Record record, parse_record(version, *value));
  return std::optional<Record>(std::move(record));
}

Result<void> RecordStore::scan(const std::function<void(const VersionId&, const std::optional<RecordHead>&)>& visit) {
  const auto store = db();
  if (!store) return fail(closed());
  return store->scan("o", [&](std::string_view key, std::string_view value, io::KvStore::Cursor&) {
    const auto version = parse_record_key(key);
    if (!version) return true;
    const auto head = parse_record_head(value);
    visit(*version, head ? std::optional<RecordHead>(*head) : std::nullopt);
    return true;
  });
}

Result<void> RecordStore::check() {
  io::KvBatch batch;
  batch.put(kMarkerKey, kMarkerValue);
  auto store = db();
  if (store && store->write(batch)) return {};
  // After an error the database refuses writes until it is opened again.
  store.reset();
  close();
  auto opened = open_db();
  if (!opened && opened.error().code() == ErrorCode::kCorrupt) {
    complete_.store(false, std::memory_order_relaxed);
    return recreate();
  }
  if (!opened) return opened;
  return db()->write(batch);
}

Result<void> RecordStore::flush() {
  const auto store = db();
  if (!store) return fail(closed());
  return store->flush();
}

}  // namespace thermo::cache
