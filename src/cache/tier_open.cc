// The life of a tier's folder: open, sweep after an unclean stop, probe, close.
//
//   lock     flock of the process that has it open        FORMAT   version of everything below
//   clean    present only while nobody has it open and the last stop was an orderly one
//   records/ the database                                 objects/ object files and sidecars

#include <algorithm>
#include <array>
#include <map>
#include <string_view>

#include "cache/folder_lock.h"
#include "cache/tier.h"

namespace thermo::cache {
namespace {

constexpr std::string_view kFormatPrefix = "thermocline-cache ";

Result<std::string> read_text(io::Disk& disk, const char* path) {
  TRY_ASSIGN(const auto file, disk.open(path, io::OpenMode::kRead));
  std::array<std::byte, 128> bytes{};
  TRY_ASSIGN(const std::size_t n, file->read_at(0, bytes));
  return std::string(reinterpret_cast<const char*>(bytes.data()), n);
}

Result<void> write_text(io::Disk& disk, const char* path, std::string_view text) {
  TRY_ASSIGN(const auto file, disk.open(path, io::OpenMode::kCreate));
  TRY(file->truncate(0));
  return file->write_at(0, std::as_bytes(std::span(text.data(), text.size())));
}

}  // namespace

Tier::Tier(const Options& options, CacheMetrics& metrics, EntryTable& table)
    : disk_(options.disk),
      clock_(*options.clock),
      metrics_(metrics),
      table_(table),
      space_(options.limit_bytes, metrics.used, metrics.limit),
      device_(clock_),
      crcs_(options.crc_cache_bytes),
      records_(options.disk->root() + "/" + kRecordsDir),
      open_files_(OpenFiles::limit_of_process()),
      damage_log_(std::chrono::seconds(10), clock_),
      record_log_(std::chrono::seconds(10), clock_) {}

Result<void> Tier::write_format() {
  return write_text(*disk_, kFormatFile, std::string(kFormatPrefix) + std::to_string(kFormatVersion) + "\n");
}

Result<bool> Tier::check_format() {
  auto text = read_text(*disk_, kFormatFile);
  if (!text && text.error().code() == ErrorCode::kNotFound) {
    TRY(write_format());
    return false;
  }
  if (!text) return fail(text.error().within("cache folder '" + disk_->root() + "'"));
  if (*text == std::string(kFormatPrefix) + std::to_string(kFormatVersion) + "\n") return true;
  std::string found = text->starts_with(kFormatPrefix) ? text->substr(kFormatPrefix.size()) : *text;
  while (!found.empty() && (found.back() == '\n' || found.back() == ' ')) found.pop_back();
  return fail(ErrorCode::kNotSupported, "cache folder '" + disk_->root() + "' has format '" + found +
                                            "', this program writes format " + std::to_string(kFormatVersion) +
                                            "; choose another folder with --cache, or empty this one (it holds only copies)");
}

Result<void> Tier::make_bucket(const VersionId& version) {
  // Not when the whole folder is gone: then the probe makes all of it anew, with its lock and format.
  TRY(disk_->open(kFormatFile, io::OpenMode::kRead));
  return disk_->make_dirs(bucket_dir(static_cast<unsigned>(version.high >> 56)));
}

Result<bool> Tier::load_records() {
  struct Item {
    VersionId version;
    RecordHead head;
  };
  std::vector<Item> items;
  std::vector<VersionId> malformed;
  const auto scanned = records_.scan([&](const VersionId& version, const std::optional<RecordHead>& head) {
    if (head) items.push_back({version, *head});
    else malformed.push_back(version);
  });
  if (!scanned) {
    log::warn("cache: {}; made anew, what is cached is found again from the sidecars", scanned.error().describe());
    TRY(records_.recreate());
    return false;
  }
  std::sort(items.begin(), items.end(), [](const Item& a, const Item& b) { return a.head.order < b.head.order; });
  for (const auto& item : items) space_.restore(item.version, item.head.charged, item.head.order);
  for (const auto& item : items) {
    // It was being filled: what the record says of it is out of date.
    if (item.head.state == RecordState::kOpen && !adopt(item.version)) (void)drop(item.version);
  }
  for (const auto& version : malformed) (void)drop(version);
  return true;
}

Result<void> Tier::open() {
  TRY_ASSIGN(lock_, lock_folder(*disk_));
  TRY_ASSIGN(const bool existed, check_format());
  TRY(disk_->make_dirs(kObjectsDir));
  const bool clean = disk_->open(kCleanFile, io::OpenMode::kRead).has_value();
  auto opened = records_.open();
  if (!opened) return fail(opened.error().within("cache folder '" + disk_->root() + "'"));
  TRY_ASSIGN(const bool readable, load_records());
  const bool records_complete = readable && *opened == RecordStore::Opened::kExisting;
  TRY(disk_->remove(kCleanFile));
  if (existed && (!clean || !records_complete)) {
    sweep_needed_.store(true, std::memory_order_relaxed);
    strays_.store(true, std::memory_order_relaxed);
    // With a new database nothing is charged for yet: until the sweep has seen everything the limit could not be kept.
    if (!records_complete) charges_known_.store(false, std::memory_order_relaxed);
    log::info("cache: '{}' was not closed in order; {} objects known, looking for others", disk_->root(), space_.objects());
  }
  return {};
}

void Tier::sweep(const std::stop_token& stop) {
  std::array<std::vector<VersionId>, 256> known;
  for (const auto& version : space_.all()) known[version.high >> 56].push_back(version);
  bool all_seen = true;
  for (unsigned bucket = 0; bucket < 256 && !stop.stop_requested(); ++bucket) {
    const auto swept = sweep_bucket(bucket, known[bucket], stop);
    if (swept) continue;
    all_seen = false;
    device_.read_failed(swept.error());
  }
  if (stop.stop_requested()) return;
  strays_.store(false, std::memory_order_relaxed);
  charges_known_.store(true, std::memory_order_relaxed);
  if (all_seen) sweep_needed_.store(false, std::memory_order_relaxed);  // or the next start tries again
  converge();
}

Result<void> Tier::sweep_bucket(unsigned bucket, const std::vector<VersionId>& known, const std::stop_token& stop) {
  const std::string dir = bucket_dir(bucket);
  const auto names = disk_->list(dir);
  if (!names && names.error().code() != ErrorCode::kNotFound) return fail(names.error());
  struct Found {
    bool object = false;
    bool sidecar = false;
  };
  std::map<VersionId, Found> found;
  for (const auto& name : names ? *names : std::vector<std::string>()) {
    const std::string_view base = std::string_view(name).substr(0, std::min<std::size_t>(32, name.size()));
    const auto version = VersionId::from_hex(base);
    const bool object = name.size() == 32;
    const bool sidecar = name.size() == 36 && name.ends_with(kSidecarSuffix);
    if (!version || (!object && !sidecar)) {
      (void)disk_->remove(dir + "/" + name);
      continue;
    }
    auto& item = found[*version];
    item.object |= object;
    item.sidecar |= sidecar;
  }
  for (const auto& [version, files] : found) {
    if (stop.stop_requested()) return {};
    const Claim claim(table_, version);
    if (space_.find(version)) continue;
    if (claim.entry()) {
      // Somebody has it open: the files, if they are its, must be known before nobody looks for strays any more.
      TRY(ensure_loaded(RequestContext(), claim.entry()));
      continue;
    }
    if (files.object && files.sidecar && adopt(version)) continue;
    (void)space_.remove(version);
    (void)records_.remove(version);
    (void)remove_files(version);
  }
  for (const auto& version : known) {
    if (found.contains(version) || stop.stop_requested()) continue;
    const Claim claim(table_, version);
    if (claim.entry()) continue;
    // It may have been filled since the folder was listed.
    const auto object = disk_->open(object_path(version), io::OpenMode::kRead);
    if (object || object.error().code() != ErrorCode::kNotFound) continue;
    (void)records_.remove(version);
    (void)remove_files(version);
    (void)space_.remove(version);
  }
  return {};
}

void Tier::probe_if_due() {
  if (!device_.probe_due()) return;
  const auto result = probe();
  if (result) device_.probe_succeeded();
  else device_.probe_failed(result.error());
}

Result<void> Tier::probe() {
  const auto format = read_text(*disk_, kFormatFile);
  if (!format && format.error().code() == ErrorCode::kNotFound) TRY(start_over());
  TRY(disk_->make_dirs(kObjectsDir));
  constexpr std::string_view kText = "probe\n";
  TRY(write_text(*disk_, kProbeFile, kText));
  TRY_ASSIGN(const std::string back, read_text(*disk_, kProbeFile));
  if (back != kText) return fail(ErrorCode::kIo, "the probe file reads back differently");
  TRY(disk_->remove(kProbeFile));
  return records_.check();
}

Result<void> Tier::start_over() {
  TRY(disk_->make_dirs(""));
  auto lock = lock_folder(*disk_);
  if (!lock) return fail(std::move(lock).error());
  lock_ = std::move(*lock);
  for (const auto& entry : table_.all()) {
    FilesPtr closing;
    MutexLock guard(entry->mutex);
    closing = entry->files;
    entry->forget();
  }
  for (const auto& version : space_.all()) (void)space_.remove(version);
  TRY(records_.recreate());
  TRY(disk_->make_dirs(kObjectsDir));
  TRY(write_format());
  log::info("cache: the folder '{}' was gone and was made anew, empty", disk_->root());
  return {};
}

void Tier::close() {
  for (const auto& entry : table_.all()) settle_record(*entry);
  const auto flushed = records_.flush();
  if (flushed && records_.complete() && device_.may_write() && !needs_sweep()) (void)write_text(*disk_, kCleanFile, "clean\n");
  records_.close();
  lock_.reset();
}

}  // namespace thermo::cache
