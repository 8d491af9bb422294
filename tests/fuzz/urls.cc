// What names a store: store URLs, buckets, endpoints, regions; keys inside of a URL. First line: store; second: endpoint; third:
// region; fourth: a key.

#include "app/store_url.h"
#include "base/units.h"
#include "fuzz/fuzz.h"
#include "net/sigv4.h"
#include "store/s3/s3_address.h"

namespace thermo::fuzz {
namespace {

void check_store_url(std::string_view text, bool bare) {
  const auto url = app::parse_store_url(text, bare);
  if (!url) {
    FUZZ_CHECK(url.error().code() == ErrorCode::kInvalidArgument);
    return;
  }
  const auto again = app::parse_store_url(url->text(), false);
  FUZZ_CHECK(again && *again == *url);
  if (url->kind == app::StoreUrl::Kind::kFile) {
    FUZZ_CHECK(url->path.starts_with('/'));
  } else {
    FUZZ_CHECK(url->prefix.empty() || url->prefix.ends_with('/'));
  }
}

void check_address(const std::string& bucket, const std::string& endpoint, const std::string& region, std::string_view key) {
  for (const auto style : {store::Addressing::kAuto, store::Addressing::kPath, store::Addressing::kVirtualHost}) {
    store::S3Options options;
    options.bucket = bucket;
    options.endpoint = endpoint;
    options.region = region;
    options.addressing = style;
    const auto address = store::S3Address::make(options);
    if (!address) {
      FUZZ_CHECK(address.error().code() == ErrorCode::kInvalidArgument);
      continue;
    }
    const auto host = address->host(address->first_region());
    FUZZ_CHECK(!host.empty() && host.find_first_of("/?#@ \r\n") == std::string::npos);
    FUZZ_CHECK(!address->first_region().empty());
    // The same bucket, written another way, is the same store.
    options.endpoint = address->origin(address->first_region());
    if (style == store::Addressing::kPath) {
      const auto again = store::S3Address::make(options);
      FUZZ_CHECK(again && again->id() == address->id() && again->tls() == address->tls());
    }
    const auto path = address->path(key);
    const auto decoded = net::uri_decode(path);
    FUZZ_CHECK(decoded && decoded->starts_with('/') && decoded->ends_with(key));
    FUZZ_CHECK(path.find_first_of("?# \r\n") == std::string::npos);
  }
}

}  // namespace
}  // namespace thermo::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace thermo;
  fuzz::Input input(fuzz::text_of(data, size));
  const auto store = input.line();
  const auto endpoint = input.line();
  const auto region = input.line();
  const auto key = input.rest();
  fuzz::check_store_url(store, false);
  fuzz::check_store_url(store, true);
  const auto url = app::parse_store_url(store, true);
  fuzz::check_address(url ? url->bucket : std::string(store), std::string(endpoint), std::string(region), key);

  FUZZ_CHECK(net::uri_decode(net::uri_encode(key, false)) == key);
  FUZZ_CHECK(net::uri_decode(net::uri_encode(key, true)) == key);
  FUZZ_CHECK(net::uri_decode(net::uri_encode(key, false), true) == key);
  if (const auto decoded = net::uri_decode(key)) FUZZ_CHECK(decoded->size() <= key.size());
  for (const auto text : {store, region, key}) {
    if (const auto bytes = parse_size(text)) FUZZ_CHECK(*bytes <= std::uint64_t{1} << 63);
    if (const auto time = parse_duration(text)) FUZZ_CHECK(*time >= Nanos(0));
    (void)parse_rate(text);
  }
  return 0;
}
