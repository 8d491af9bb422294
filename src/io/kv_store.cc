#include "io/kv_store.h"

#include <rocksdb/cache.h>
#include <rocksdb/db.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/options.h>
#include <rocksdb/table.h>
#include <rocksdb/write_batch.h>

#include <utility>

namespace thermo::io {
namespace {

Error to_error(const rocksdb::Status& status, const std::string& path) {
  const std::string text = "database " + path + ": " + status.ToString();
  if (status.IsCorruption()) return Error(ErrorCode::kCorrupt, text);
  if (status.IsNoSpace()) return Error(ErrorCode::kNoSpace, text);
  if (status.IsBusy()) return Error(ErrorCode::kBusy, text);
  if (status.IsIncomplete()) return Error(ErrorCode::kWouldWaitDevice);
  // RocksDB reports a held LOCK file as an I/O error.
  if (status.IsIOError() && text.find("lock hold by") != std::string::npos) return Error(ErrorCode::kBusy, text);
  if (status.IsIOError() && text.find("While lock file") != std::string::npos) return Error(ErrorCode::kBusy, text);
  if (status.IsInvalidArgument())
    return Error(ErrorCode::kCorrupt, text);  // a damaged MANIFEST or CURRENT file shows up like this
  return Error(ErrorCode::kIo, text);
}

rocksdb::Slice slice(std::string_view text) { return {text.data(), text.size()}; }
std::string_view view(const rocksdb::Slice& s) { return {s.data(), s.size()}; }

}  // namespace

class RocksKv final : public KvStore {
 public:
  RocksKv(std::unique_ptr<rocksdb::DB> db, std::shared_ptr<rocksdb::Cache> cache, std::string path)
      : db_(std::move(db)), cache_(std::move(cache)), path_(std::move(path)) {}
  ~RocksKv() override { (void)db_->Close(); }
  RocksKv(const RocksKv&) = delete;
  RocksKv& operator=(const RocksKv&) = delete;

  Result<std::optional<std::string>> get(std::string_view key, bool may_wait) override {
    rocksdb::PinnableSlice value;
    const auto status = db_->Get(read_options(may_wait), db_->DefaultColumnFamily(), slice(key), &value);
    if (status.IsNotFound()) return std::optional<std::string>();
    if (!status.ok()) return fail(to_error(status, path_));
    return std::optional<std::string>(value.ToString());
  }

  Result<void> write(const KvBatch& batch, bool sync) override {
    rocksdb::WriteBatch ops;
    for (const auto& op : batch.ops_) {
      const auto status = op.is_remove ? ops.Delete(slice(op.key)) : ops.Put(slice(op.key), slice(op.value));
      if (!status.ok()) return fail(to_error(status, path_));
    }
    rocksdb::WriteOptions options;
    options.sync = sync;
    const auto status = db_->Write(options, &ops);
    if (!status.ok()) return fail(to_error(status, path_));
    return {};
  }

  Result<void> scan(std::string_view from, const std::function<bool(std::string_view, std::string_view, Cursor&)>& visit,
                    bool may_wait) override {
    auto options = read_options(may_wait);
    options.auto_prefix_mode = false;
    const std::unique_ptr<rocksdb::Iterator> it(db_->NewIterator(options));
    Cursor cursor;
    for (it->Seek(slice(from)); it->Valid();) {
      cursor.seek.clear();
      if (!visit(view(it->key()), view(it->value()), cursor)) return {};
      if (cursor.seek.empty()) it->Next();
      else it->Seek(slice(cursor.seek));
    }
    if (!it->status().ok()) return fail(to_error(it->status(), path_));
    return {};
  }

  Result<void> flush() override {
    rocksdb::FlushOptions options;
    options.wait = true;
    auto status = db_->Flush(options);
    if (status.ok()) status = db_->SyncWAL();
    if (!status.ok() && !status.IsNotSupported()) return fail(to_error(status, path_));
    return {};
  }

  std::uint64_t memory_bytes() override {
    std::uint64_t memtables = 0;
    (void)db_->GetIntProperty(rocksdb::DB::Properties::kSizeAllMemTables, &memtables);
    return memtables + cache_->GetUsage();
  }

 private:
  static rocksdb::ReadOptions read_options(bool may_wait) {
    rocksdb::ReadOptions options;
    options.verify_checksums = true;
    if (!may_wait) options.read_tier = rocksdb::kBlockCacheTier;
    return options;
  }

  const std::unique_ptr<rocksdb::DB> db_;
  const std::shared_ptr<rocksdb::Cache> cache_;
  const std::string path_;
};

Result<std::unique_ptr<KvStore>> open_kv(const KvOptions& options) {
  rocksdb::BlockBasedTableOptions table;
  auto cache = rocksdb::NewLRUCache(options.cache_bytes, /*num_shard_bits=*/2);
  table.block_cache = cache;
  // Index and filter blocks inside the bounded cache: otherwise memory grows with the number of keys.
  table.cache_index_and_filter_blocks = true;
  table.pin_l0_filter_and_index_blocks_in_cache = true;
  table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(10));
  table.format_version = 5;

  rocksdb::Options db_options;
  db_options.create_if_missing = true;
  db_options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  db_options.write_buffer_size = options.write_buffer_bytes;
  db_options.max_write_buffer_number = 2;
  db_options.max_background_jobs = 2;
  db_options.max_open_files = 256;
  db_options.keep_log_file_num = 2;
  db_options.max_log_file_size = 4u << 20;
  db_options.max_total_wal_size = 4 * options.write_buffer_bytes;
  db_options.compression = rocksdb::kLZ4Compression;
  db_options.paranoid_checks = true;
  // A tail that a killed process left half-written is dropped; anything worse is corruption and says so.
  db_options.wal_recovery_mode = rocksdb::WALRecoveryMode::kTolerateCorruptedTailRecords;

  rocksdb::DB* raw = nullptr;
  const auto status = rocksdb::DB::Open(db_options, options.path, &raw);
  if (!status.ok()) return fail(to_error(status, options.path));
  return std::unique_ptr<KvStore>(std::make_unique<RocksKv>(std::unique_ptr<rocksdb::DB>(raw), std::move(cache), options.path));
}

Result<void> destroy_kv(const std::string& path) {
  const auto status = rocksdb::DestroyDB(path, rocksdb::Options());
  if (!status.ok()) return fail(to_error(status, path));
  return {};
}

}  // namespace thermo::io
