#include "app/load_job.h"

#include <fmt/core.h>

#include <algorithm>
#include <deque>
#include <thread>

#include "app/tree_walk.h"
#include "base/buffer.h"

namespace thermo::app {
namespace {

constexpr std::size_t kMaxWorkers = 16;
constexpr std::size_t kScratchBytes = cache::kPageBytes;
constexpr std::size_t kMaxQueued = 256;  // chunks; the walk waits beyond it
constexpr std::size_t kMaxFailures = 100;
constexpr auto kChunkTimeout = std::chrono::minutes(5);

/// One file on its way; shared by its chunks.
struct FileJob {
  cache::ObjectPtr object;
  std::atomic<std::uint64_t> chunks_left{0};
  std::atomic<bool> failed{false};
};
struct Chunk {
  std::shared_ptr<FileJob> file;
  cache::ByteRange range;
};

class Job {
 public:
  Job(const RequestContext& ctx, Daemon& daemon, const MountPtr& mount)
      : ctx_(ctx.at(Priority::kPrefetch)), daemon_(daemon), mount_(mount) {}

  /// Finds out how much there is, which takes its time in a large tree: the report grows meanwhile.
  Result<void> plan(const std::vector<catalog::Entry>& entries, const std::function<Result<void>(const LoadProgress&)>& report) {
    ReportPace pace(daemon_.clock());
    for (const auto& entry : entries) {
      TRY(walk_files(ctx_, *mount_->vfs, entry, [&](const catalog::File& file) -> Result<void> {
        LoadProgress now;
        {
          MutexLock lock(mutex_);
          ++result_.total.files;
          result_.total.bytes += file.size;
          now = result_.total;
        }
        return pace.due() ? report(now) : Result<void>();
      }));
    }
    return {};
  }

  Result<LoadResult> run(const std::vector<catalog::Entry>& entries,
                         const std::function<Result<void>(const LoadProgress&)>& report) {
    // Scratch may take a quarter of the buffers at most: fills need the rest.
    const std::size_t workers = std::clamp<std::size_t>(daemon_.memory().limit() / 4 / kScratchBytes, 1, kMaxWorkers);
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < workers; ++i) threads.emplace_back([this] { work(); });
    std::thread feeder([&] { feed(entries); });
    Result<void> reported;
    for (;;) {
      LoadProgress now;
      {
        MutexLock lock(mutex_);
        if (!finished()) (void)changed_.wait_until(mutex_, daemon_.clock().now() + ReportPace::kEvery);
        now = result_.total;
        if (finished()) break;
      }
      reported = report(now);
      if (reported && ctx_.stop.stop_requested()) reported = fail(ErrorCode::kCancelled, "the load was stopped");
      if (!reported) break;
    }
    {
      MutexLock lock(mutex_);
      if (!reported) cancelled_ = true;
    }
    changed_.notify_all();
    stop_.request_stop();
    feeder.join();
    for (auto& thread : threads) thread.join();
    if (!reported) return fail(reported.error());
    MutexLock lock(mutex_);
    if (feed_error_) return fail(*feed_error_);
    return std::move(result_);
  }

 private:
  bool finished() const REQUIRES(mutex_) { return fed_ && queue_.empty() && running_ == 0; }

  [[nodiscard]] RequestContext step_context() const {
    auto ctx = ctx_;
    ctx.deadline = daemon_.clock().now() + kChunkTimeout;
    ctx.stop = stop_.get_token();
    return ctx;
  }

  void failure(const std::string& key, std::string message) REQUIRES(mutex_) {
    ++result_.total.files_failed;
    if (result_.failures.size() < kMaxFailures) result_.failures.push_back({key, std::move(message)});
  }

  void feed(const std::vector<catalog::Entry>& entries) {
    Result<void> walked;
    for (const auto& entry : entries) {
      walked = walk_files(ctx_, *mount_->vfs, entry, [&](const catalog::File& file) { return feed_file(file); });
      if (!walked) break;
    }
    {
      MutexLock lock(mutex_);
      fed_ = true;
      if (!walked && !cancelled_) feed_error_ = walked.error();
    }
    changed_.notify_all();
  }

  Result<void> feed_file(const catalog::File& file) {
    if (file.size > cache::kLargestObjectBytes) {
      MutexLock lock(mutex_);
      failure(file.key, "more than 1 PiB cannot be read");
      return {};
    }
    auto job = std::make_shared<FileJob>();
    job->object = daemon_.cache().open(mount_->vfs->object_ref(file), mount_->vfs->source());
    const auto residency = job->object->residency();
    if (residency.resident >= file.size) {
      MutexLock lock(mutex_);
      ++result_.total.files_done;
      result_.total.bytes_done += file.size;
      result_.bytes_present += file.size;
      return {};
    }
    const std::uint64_t chunks = (file.size + cache::kMaxFillBytes - 1) / cache::kMaxFillBytes;
    job->chunks_left.store(chunks);
    for (std::uint64_t i = 0; i < chunks; ++i) {
      const std::uint64_t offset = i * cache::kMaxFillBytes;
      const Chunk chunk{job, {offset, std::min(cache::kMaxFillBytes, file.size - offset)}};
      {
        MutexLock lock(mutex_);
        while (queue_.size() >= kMaxQueued && !cancelled_) changed_.wait(mutex_);
        if (cancelled_) return fail(ErrorCode::kCancelled, "the load was stopped");
        queue_.push_back(chunk);
      }
      changed_.notify_all();
    }
    return {};
  }

  void work() {
    BufferPtr scratch;
    for (;;) {
      Chunk chunk;
      {
        MutexLock lock(mutex_);
        while (queue_.empty() && !fed_ && !cancelled_) changed_.wait(mutex_);
        if (cancelled_ || queue_.empty()) return;
        chunk = std::move(queue_.front());
        queue_.pop_front();
        ++running_;
      }
      changed_.notify_all();
      if (!chunk.file->failed.load()) {
        const auto done = fill(chunk, scratch);
        MutexLock lock(mutex_);
        // One failure a file, whichever chunk meets it first.
        if (!done && !chunk.file->failed.exchange(true))
          failure(chunk.file->object->ref().key, std::string(done.error().message()));
        if (done) result_.total.bytes_done += chunk.range.length;
      }
      if (chunk.file->chunks_left.fetch_sub(1) == 1) finish_file(*chunk.file);
      {
        MutexLock lock(mutex_);
        --running_;
      }
      changed_.notify_all();
    }
  }

  Result<void> fill(const Chunk& chunk, BufferPtr& scratch) {
    const auto ctx = step_context();
    if (!scratch) {
      TRY_ASSIGN(auto room, daemon_.memory().reserve(ctx, kScratchBytes));
      scratch = Buffer::allocate(std::move(room), kScratchBytes);
    }
    chunk.file->object->prefetch(ctx, chunk.range);
    for (std::uint64_t at = chunk.range.offset; at < chunk.range.end(); at += kScratchBytes) {
      const cache::ByteRange piece{at, std::min<std::uint64_t>(kScratchBytes, chunk.range.end() - at)};
      TRY_ASSIGN(const auto reply, chunk.file->object->read(ctx, piece, {scratch->data(), scratch->size()}));
      if (reply.size() != piece.length) return fail(ErrorCode::kIo, "the store sent less than the file's length");
    }
    return {};
  }

  /// Pages are written a moment after they were served: "resident" may come late, "not kept" must not be said too early.
  void finish_file(FileJob& file) {
    const auto& ref = file.object->ref();
    auto residency = file.object->residency();
    const MonoTime patience = daemon_.clock().now() + std::chrono::seconds(10);
    while (!file.failed.load() && residency.resident < ref.size && daemon_.clock().now() < patience && !stop_.stop_requested()) {
      std::this_thread::sleep_for(Millis(5));
      residency = file.object->residency();
      if (residency.filling == 0 && residency.resident < ref.size && daemon_.cache().status().device_state != "ok") break;
    }
    MutexLock lock(mutex_);
    ++result_.total.files_done;
    if (!file.failed.load() && residency.resident < ref.size) {
      failure(ref.key, fmt::format("read, but only {} of {} bytes stayed in the cache (is it full? `thermo status`)",
                                   residency.resident, ref.size));
    }
  }

  const RequestContext ctx_;
  Daemon& daemon_;
  const MountPtr mount_;
  std::stop_source stop_;
  Mutex mutex_{LockRank::kDaemon, "load job"};
  CondVar changed_;
  LoadResult result_ GUARDED_BY(mutex_);
  std::deque<Chunk> queue_ GUARDED_BY(mutex_);
  std::size_t running_ GUARDED_BY(mutex_) = 0;
  bool fed_ GUARDED_BY(mutex_) = false;
  bool cancelled_ GUARDED_BY(mutex_) = false;
  std::optional<Error> feed_error_ GUARDED_BY(mutex_);
};

}  // namespace

Result<LoadResult> run_load(const RequestContext& ctx, Daemon& daemon, const MountPtr& mount,
                            const std::vector<catalog::Entry>& entries,
                            const std::function<Result<void>(const LoadProgress&)>& report) {
  Job job(ctx, daemon, mount);
  TRY(job.plan(entries, report));
  return job.run(entries, report);
}

}  // namespace thermo::app
