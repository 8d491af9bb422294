// /_sim/: counters, faults and options of a running server. Neither delayed nor counted.

#include <nlohmann/json.hpp>

#include <charconv>

#include "base/units.h"
#include "s3sim/checksum.h"
#include "s3sim/simulator.h"

namespace thermo::s3sim {
namespace {

using Json = nlohmann::json;
constexpr std::uint64_t kMaxAdminBody = 1 << 20;
constexpr std::uint64_t kMaxBulk = 10'000'000;

/// A rate as number of bytes per second or as "90MB/s".
Result<std::uint64_t> rate_of(const Json& value) {
  if (value.is_number_unsigned()) return value.get<std::uint64_t>();
  if (value.is_string()) return parse_rate(value.get<std::string>());
  return fail(ErrorCode::kInvalidArgument, "a rate is a number of bytes per second or a text such as \"90MB/s\"");
}

std::uint64_t number_or(const S3Request& request, std::string_view name, std::uint64_t otherwise) {
  const auto* text = request.param(name);
  std::uint64_t value = 0;
  if (!text || std::from_chars(text->data(), text->data() + text->size(), value).ptr != text->data() + text->size())
    return otherwise;
  return value;
}

void reply(net::Exchange& exchange, int status, const Json& document) {
  // Keys of any bytes must not break the page: what is no UTF-8 is shown as U+FFFD.
  const std::string text = document.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
  (void)exchange.respond(status, {{"Content-Type", "application/json"}}, text);
}

void reply_error(net::Exchange& exchange, const Error& error) { reply(exchange, 400, {{"error", std::string(error.message())}}); }

}  // namespace

std::string Simulator::stats_json() {
  Json requests = Json::object(), faults = Json::object(), ranges = Json::array();
  std::uint64_t sum = 0;
  for (int i = 0; i < kOps; ++i) {
    const auto op = static_cast<Op>(i);
    requests[std::string(to_string(op))] = stats_.requests(op);
    sum += stats_.requests(op);
  }
  for (int i = 0; i < kFaultKinds; ++i) {
    const auto kind = static_cast<FaultKind>(i);
    if (stats_.faults(kind) > 0) faults[std::string(to_string(kind))] = stats_.faults(kind);
  }
  for (auto& record : stats_.records())
    ranges.push_back({{"key", std::move(record.key)}, {"offset", record.offset}, {"length", record.length}});
  const Json all{{"requests", requests},
                 {"total", sum},
                 {"bytes_in", stats_.bytes_in()},
                 {"bytes_out", stats_.bytes_out()},
                 {"faults", faults},
                 {"list_pages", stats_.requests(Op::kList)},
                 {"in_flight", stats_.in_flight()},
                 {"in_flight_max", stats_.in_flight_max()},
                 {"ranges", ranges}};
  return all.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Result<void> Simulator::set_options(std::string_view text) {
  const Json document = Json::parse(text, nullptr, false);
  if (!document.is_object()) return fail(ErrorCode::kInvalidArgument, "the options are not a JSON object");
  LiveOptions next = live();
  for (const auto& [name, value] : document.items()) {
    if (name == "first_byte_ms" && value.is_number()) {
      next.first_byte = Nanos(static_cast<std::int64_t>(value.get<double>() * 1e6));
    } else if (name == "clock_offset_s" && value.is_number()) {
      next.clock_offset = Nanos(static_cast<std::int64_t>(value.get<double>() * 1e9));
    } else if (name == "per_connection") {
      TRY_ASSIGN(next.per_connection, rate_of(value));
    } else if (name == "total") {
      TRY_ASSIGN(next.total, rate_of(value));
    } else {
      return fail(
          ErrorCode::kInvalidArgument,
          fmt::format("option '{}' is unknown or not a number; there are first_byte_ms, per_connection, total, clock_offset_s",
                      name));
    }
  }
  MutexLock lock(mutex_);
  live_ = next;
  return {};
}

Result<std::uint64_t> Simulator::bulk(const S3Request& request) {
  if (options_.mode != Options::Mode::kMemory) return fail(ErrorCode::kNotSupported, "bulk works in memory mode only");
  const auto* bucket = request.param("bucket");
  if (!bucket || bucket->empty()) return fail(ErrorCode::kInvalidArgument, "bulk needs bucket=NAME&count=N");
  const std::uint64_t count = number_or(request, "count", 0);
  if (count == 0 || count > kMaxBulk) return fail(ErrorCode::kInvalidArgument, fmt::format("count must be 1 to {}", kMaxBulk));
  const auto* prefix = request.param("prefix");
  (void)backend_->create_bucket(*bucket);
  // All keys share one body: the point of bulk keys is their number.
  Object object;
  object.data = std::make_shared<const std::string>(number_or(request, "size", 0), 'x');
  object.etag = "\"" + hex(md5(*object.data)) + "\"";
  for (std::uint64_t i = 0; i < count; ++i) {
    auto stored = backend_->put(*bucket, fmt::format("{}{:08}", prefix ? *prefix : "", i), object, {});
    if (!stored) return fail(ErrorCode::kInternal, stored.error().message);
  }
  return count;
}

void Simulator::admin(net::Exchange& exchange, std::string_view path) {
  const std::string& method = exchange.request().method;
  const std::string_view what = path.substr(0, path.find('?'));
  const auto body = exchange.read_all(kMaxAdminBody);
  if (!body) return reply_error(exchange, body.error());
  if (what == "stats" && method == "GET") {
    (void)exchange.respond(200, {{"Content-Type", "application/json"}}, stats_json());
  } else if (what == "reset" && method == "POST") {
    stats_.reset();
    reply(exchange, 200, Json::object());
  } else if (what == "faults" && method == "PUT") {
    auto rules = parse_faults(*body);
    if (!rules) return reply_error(exchange, rules.error());
    const std::size_t count = rules->size();
    faults_.replace(std::move(*rules), options_.seed);
    reply(exchange, 200, {{"rules", count}});
  } else if (what == "options" && method == "PUT") {
    if (auto set = set_options(*body); !set) return reply_error(exchange, set.error());
    reply(exchange, 200, Json::object());
  } else if (what == "bulk" && method == "POST") {
    const auto request = parse_s3_request(exchange.request(), [](const std::string&) { return false; });
    if (!request) return reply(exchange, 400, {{"error", request.error().message}});
    const auto made = bulk(*request);
    if (!made) return reply_error(exchange, made.error());
    reply(exchange, 200, {{"created", *made}});
  } else {
    reply(exchange, 404,
          {{"error", "there are GET stats, POST reset, PUT faults, PUT options, POST bulk?bucket=B&prefix=P&count=N&size=S"}});
  }
}

}  // namespace thermo::s3sim
