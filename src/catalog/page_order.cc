#include "catalog/page_order.h"

#include <algorithm>
#include <iterator>

namespace thermo::catalog {
namespace {

Error out_of_order(const Coverage& coverage, std::string_view key) {
  return Error(ErrorCode::kCorrupt, "listing of '" + coverage.prefix + "' is out of order at '" + std::string(key) + "'");
}

}  // namespace

Result<void> check_order(const Coverage& coverage, const store::ListPage& page) {
  if (page.reordered) return fail(ErrorCode::kCorrupt, "listing of '" + coverage.prefix + "' came in another order");
  std::string_view last;
  for (const auto& object : page.objects) {
    if (!object.key.starts_with(coverage.prefix) || (!last.empty() && object.key <= last) || object.key < coverage.after) {
      return fail(out_of_order(coverage, object.key));
    }
    last = object.key;
  }
  last = {};
  for (const auto& group : page.prefixes) {
    // A stretch that begins inside of a group lists that group again.
    const bool behind = group < coverage.after && !coverage.after.starts_with(group);
    if (!group.starts_with(coverage.prefix) || group.size() == coverage.prefix.size() || (!last.empty() && group <= last) ||
        behind) {
      return fail(out_of_order(coverage, group));
    }
    last = group;
  }
  return {};
}

Error unordered_error() { return Error(ErrorCode::kNotSupported, "the store does not list in the order of keys"); }

bool ends_in_doubt(const Coverage& coverage, const store::ListPage& page) {
  return std::any_of(page.prefixes.begin(), page.prefixes.end(), [&](std::string_view group) {
    return group > coverage.until && coverage.until.starts_with(group.substr(0, group.size() - 1));
  });
}

bool is_in_doubt(const Coverage& coverage, std::string_view key) {
  if (!coverage.deep) return false;
  const std::string& last = coverage.until;
  for (auto slash = last.find('/', coverage.prefix.size()); slash != std::string::npos; slash = last.find('/', slash + 1)) {
    if (key.size() > slash && key[slash] < '/' && key.substr(0, slash) == std::string_view(last).substr(0, slash)) return true;
  }
  return false;
}

std::vector<store::ListPage> pages_in_order(store::ListPage all, std::size_t size) {
  std::stable_sort(all.objects.begin(), all.objects.end(), [](const auto& a, const auto& b) { return a.key < b.key; });
  // Listed twice means written meanwhile: the later answer counts.
  const auto kept =
      std::unique(all.objects.rbegin(), all.objects.rend(), [](const auto& a, const auto& b) { return a.key == b.key; });
  all.objects.erase(all.objects.begin(), kept.base());
  std::sort(all.prefixes.begin(), all.prefixes.end());
  all.prefixes.erase(std::unique(all.prefixes.begin(), all.prefixes.end()), all.prefixes.end());

  std::vector<store::ListPage> pages(1);
  auto object = all.objects.begin();
  auto group = all.prefixes.begin();
  while (object != all.objects.end() || group != all.prefixes.end()) {
    if (pages.back().objects.size() + pages.back().prefixes.size() == size) {
      pages.back().truncated = true;
      pages.emplace_back();
    }
    if (group == all.prefixes.end() || (object != all.objects.end() && object->key < *group)) {
      pages.back().objects.push_back(std::move(*object++));
    } else {
      pages.back().prefixes.push_back(std::move(*group++));
    }
  }
  return pages;
}

}  // namespace thermo::catalog
