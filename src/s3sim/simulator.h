#pragma once
// Private to s3sim: the server behind the sockets. One object, one method per kind of request; each returns the answer, `handle`
// sends it.

#include <functional>
#include <memory>
#include <string>

#include "base/mutex.h"
#include "s3sim/answer.h"
#include "s3sim/backend.h"
#include "s3sim/faults.h"
#include "s3sim/request.h"
#include "s3sim/s3sim.h"
#include "s3sim/stats.h"
#include "s3sim/uploads.h"
#include "s3sim/upstream.h"

namespace thermo::s3sim {

/// What can change while the server runs.
struct LiveOptions {
  Nanos first_byte{0};
  std::uint64_t per_connection = 0;
  std::uint64_t total = 0;
  Nanos clock_offset{0};
};

/// Kept per client connection.
struct Session {
  Pacer pacer;
  std::unique_ptr<Upstream> upstream;  ///< proxy mode: the connection that mirrors this one
};

/// A request on its way through the server.
struct Call {
  net::Exchange& exchange;
  S3Request request;
  LiveOptions live;
  Session& session;
  std::string request_id;
  MonoTime begun{};   ///< when the head was here, or later the whole body: the first-byte delay counts from it
  std::string body;   ///< of a request that stores or says something, framing removed
  Headers checksums;  ///< x-amz-checksum-* of the body, checked
  [[nodiscard]] const std::string* header(std::string_view name) const { return exchange.request().header(name); }
};

/// Thread-safe: `handle` runs on every connection's thread.
class Simulator {
 public:
  Simulator(Options options, std::vector<FaultRule> rules, std::unique_ptr<Backend> backend,
            std::optional<UpstreamAddress> upstream);

  void handle(net::Exchange& exchange);
  void stop() { stopper_.stop(); }

 private:
  // Each answers one Op.
  [[nodiscard]] S3Result<Answer> dispatch(Call& call, Nanos stale_by);
  [[nodiscard]] S3Result<Answer> get_object(Call& call);
  [[nodiscard]] S3Result<Answer> put_object(Call& call);
  [[nodiscard]] S3Result<Answer> copy_object(Call& call);
  [[nodiscard]] S3Result<Answer> delete_object(Call& call);
  [[nodiscard]] S3Result<Answer> delete_many(Call& call);
  [[nodiscard]] S3Result<Answer> list_objects(Call& call, Nanos stale_by);
  [[nodiscard]] S3Result<Answer> list_buckets();
  [[nodiscard]] S3Result<Answer> bucket_op(Call& call);
  [[nodiscard]] S3Result<Answer> create_upload(Call& call);
  [[nodiscard]] S3Result<Answer> upload_part(Call& call);
  [[nodiscard]] S3Result<Answer> complete_upload(Call& call);
  [[nodiscard]] S3Result<Answer> abort_upload(Call& call);
  [[nodiscard]] S3Result<Answer> list_parts(Call& call);
  [[nodiscard]] S3Result<Answer> list_uploads(Call& call);
  [[nodiscard]] S3Result<ObjectPtr> copy_source(Call& call);

  /// Passes the request on and its answer back.
  [[nodiscard]] S3Result<Answer> forward(Call& call);

  void serve(Call& call);
  /// False: the connection was dropped without an answer.
  [[nodiscard]] bool answer_or_fault(Call& call, const std::optional<Fault>& fault, Answer& answer);
  [[nodiscard]] S3Error fault_error(const Call& call, const Fault& fault) const;
  void apply_to_answer(Call& call, const Fault& fault, Answer& answer);
  void record_get(const Call& call, const Answer& answer);
  void finish_headers(const Call& call, Answer& answer) const;
  [[nodiscard]] Answer error_answer(const Call& call, S3Error error) const;
  [[nodiscard]] Delivery delivery(Call& call);

  [[nodiscard]] S3Result<void> authenticate(const Call& call) const;
  /// Reads the body of a request that has one into call.body and checks every digest that came with it.
  [[nodiscard]] S3Result<void> receive_body(Call& call);
  [[nodiscard]] S3Result<std::string> read_body_paced(Call& call);

  void admin(net::Exchange& exchange, std::string_view path);
  [[nodiscard]] std::string stats_json();
  [[nodiscard]] Result<void> set_options(std::string_view json);
  [[nodiscard]] Result<std::uint64_t> bulk(const S3Request& request);

  [[nodiscard]] LiveOptions live() const;
  [[nodiscard]] std::string region() const { return options_.region.empty() ? "us-east-1" : options_.region; }
  [[nodiscard]] WallNanos wall(const Call& call) const { return Clock::system().wall() + call.live.clock_offset.count(); }

  const Options options_;
  mutable Mutex mutex_{LockRank::kLeaf, "s3sim options"};
  LiveOptions live_ GUARDED_BY(mutex_);
  Stopper stopper_;
  Stats stats_;
  FaultInjector faults_;
  SharedPacer total_;
  const std::unique_ptr<Backend> backend_;  ///< null in proxy mode
  const std::optional<UpstreamAddress> upstream_;
  Uploads uploads_;
};

/// A listing that lost its last entry and the word that more follows.
[[nodiscard]] std::string truncate_listing(std::string page);
/// Conditional headers of a write.
[[nodiscard]] S3Result<WriteCondition> write_condition(const net::ServerRequest& request);
/// Headers that are kept with an object and sent back: x-amz-meta-*, cache-control and their kin.
[[nodiscard]] Headers kept_headers(const net::ServerRequest& request);

}  // namespace thermo::s3sim
