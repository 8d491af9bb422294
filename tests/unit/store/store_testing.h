#pragma once
// Small helpers of the store tests.

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "store/object_store.h"

namespace thermo::store::testing {

/// A listing request in one line.
inline ListRequest listing(std::string prefix, std::string delimiter = {}, std::string start_after = {},
                           std::uint32_t max_keys = 1000, std::string continuation = {}) {
  return {std::move(prefix), std::move(delimiter), std::move(start_after), std::move(continuation), max_keys};
}

inline std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text.data(), text.size())); }

/// Collects a body; fails at `fail_at` bytes when that is set.
class StringSink final : public BodySink {
 public:
  [[nodiscard]] Result<void> write(std::span<const std::byte> bytes) override {
    text.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    ++pieces;
    if (text.size() >= fail_at) return fail(ErrorCode::kNoSpace, "the sink is full");
    return {};
  }
  std::string text;
  std::size_t pieces = 0;
  std::size_t fail_at = static_cast<std::size_t>(-1);
};

inline std::string put_ok(ObjectStore& store, const std::string& key, std::string_view body, const PutOptions& options = {}) {
  const auto info = store.put({}, key, bytes_of(body), options);
  EXPECT_TRUE(info) << key << ": " << (info ? "" : info.error().describe());
  return info ? info->etag : std::string();
}

/// The whole object or "!<error code>".
inline std::string get_all(ObjectStore& store, const std::string& key, const std::string& if_match = {}) {
  const auto info = store.head({}, key);
  if (!info) return "!" + std::string(to_string(info.error().code()));
  StringSink sink;
  const auto got = store.get_range({}, key, if_match, info->size, {0, info->size}, sink);
  if (!got) return "!" + std::string(to_string(got.error().code()));
  return sink.text;
}

/// One page as text: keys and prefixes merged in order, "+" at the end when truncated.
inline std::vector<std::string> names(const ListPage& page) {
  std::vector<std::string> all;
  std::size_t p = 0;
  for (const auto& object : page.objects) {
    while (p < page.prefixes.size() && page.prefixes[p] < object.key) all.push_back("<" + page.prefixes[p++] + ">");
    all.push_back(object.key);
  }
  while (p < page.prefixes.size()) all.push_back("<" + page.prefixes[p++] + ">");
  if (page.truncated) all.emplace_back("+");
  return all;
}

/// All pages after one another, without the marks of truncation; counts the pages.
inline std::vector<std::string> list_all(ObjectStore& store, ListRequest request, std::size_t* pages = nullptr) {
  std::vector<std::string> all;
  for (int i = 0; i < 100'000; ++i) {
    const auto page = store.list_page({}, request);
    EXPECT_TRUE(page) << (page ? "" : page.error().describe());
    if (!page) return all;
    EXPECT_LE(page->objects.size() + page->prefixes.size(), request.max_keys);
    EXPECT_EQ(page->truncated, !page->continuation.empty());
    for (auto& name : names(*page)) {
      if (name != "+") all.push_back(name);
    }
    if (pages != nullptr) ++*pages;
    if (!page->truncated) return all;
    request.continuation = page->continuation;
  }
  ADD_FAILURE() << "the listing does not end";
  return all;
}

using Names = std::vector<std::string>;

}  // namespace thermo::store::testing
