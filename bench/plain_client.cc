// The alternative that the mount is measured against: a plain client that fetches one object by ranged GETs on parallel
// connections and throws the bytes away. Unsigned; the URL names the object. Prints one JSON line.
//
//   plain_client URL SIZE [CONNECTIONS=16] [RANGE_BYTES=8388608]

#include <curl/curl.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

namespace {

struct Sink {
  std::vector<char> buffer;
  std::size_t filled = 0;
};

std::size_t receive(char* data, std::size_t size, std::size_t count, void* user) {
  auto* sink = static_cast<Sink*>(user);
  const std::size_t bytes = std::min(size * count, sink->buffer.size() - sink->filled);
  std::memcpy(sink->buffer.data() + sink->filled, data, bytes);
  sink->filled += bytes;
  return size * count;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: plain_client URL SIZE [CONNECTIONS] [RANGE_BYTES]\n");
    return 2;
  }
  const std::string url = argv[1];
  const std::uint64_t size = std::strtoull(argv[2], nullptr, 10);
  const int connections = argc > 3 ? std::atoi(argv[3]) : 16;
  const std::uint64_t step = argc > 4 ? std::strtoull(argv[4], nullptr, 10) : 8u << 20;
  curl_global_init(CURL_GLOBAL_ALL);
  std::atomic<std::uint64_t> next{0};
  std::atomic<std::uint64_t> total{0};
  std::atomic<bool> failed{false};
  const auto started = std::chrono::steady_clock::now();
  std::vector<std::thread> threads;
  for (int i = 0; i < connections; ++i) {
    threads.emplace_back([&] {
      CURL* curl = curl_easy_init();
      Sink sink{std::vector<char>(step), 0};
      curl_easy_setopt(curl, CURLOPT_URL, url.c_str());
      curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, receive);
      curl_easy_setopt(curl, CURLOPT_WRITEDATA, &sink);
      curl_easy_setopt(curl, CURLOPT_BUFFERSIZE, 512L * 1024);
      curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
      curl_easy_setopt(curl, CURLOPT_PATH_AS_IS, 1L);
      while (!failed) {
        const std::uint64_t offset = next.fetch_add(step);
        if (offset >= size) break;
        const std::uint64_t end = std::min(size, offset + step);
        const std::string range = std::to_string(offset) + "-" + std::to_string(end - 1);
        curl_easy_setopt(curl, CURLOPT_RANGE, range.c_str());
        sink.filled = 0;
        long status = 0;
        const CURLcode code = curl_easy_perform(curl);
        curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
        if (code != CURLE_OK || status != 206 || sink.filled != end - offset) {
          std::fprintf(stderr, "plain_client: range %s: %s, HTTP %ld, %zu bytes\n", range.c_str(), curl_easy_strerror(code),
                       status, sink.filled);
          failed = true;
        }
        total += sink.filled;
      }
      curl_easy_cleanup(curl);
    });
  }
  for (auto& thread : threads) thread.join();
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  std::printf("{\"seconds\": %.6f, \"bytes\": %llu, \"mb_s\": %.1f}\n", seconds, static_cast<unsigned long long>(total.load()),
              static_cast<double>(total.load()) / seconds / 1e6);
  return failed ? 1 : 0;
}
