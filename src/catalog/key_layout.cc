#include "catalog/key_layout.h"

namespace thermo::catalog {
namespace {

std::string store_scoped(char kind, StoreNumber store, std::string_view rest) {
  std::string out;
  out.reserve(kStoreHeader + rest.size());
  out.push_back(kind);
  append_be32(out, store);
  out.append(rest);
  return out;
}

}  // namespace

void append_be32(std::string& out, std::uint32_t value) {
  for (int shift = 24; shift >= 0; shift -= 8) out.push_back(static_cast<char>((value >> shift) & 0xff));
}

void append_be64(std::string& out, std::uint64_t value) {
  for (int shift = 56; shift >= 0; shift -= 8) out.push_back(static_cast<char>((value >> shift) & 0xff));
}

std::uint32_t read_be32(std::string_view bytes) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < 4 && i < bytes.size(); ++i) value = (value << 8) | static_cast<unsigned char>(bytes[i]);
  return value;
}

std::uint64_t read_be64(std::string_view bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < 8 && i < bytes.size(); ++i) value = (value << 8) | static_cast<unsigned char>(bytes[i]);
  return value;
}

std::string file_key(StoreNumber store, std::string_view key) { return store_scoped('k', store, key); }
std::string folder_key(StoreNumber store, std::string_view prefix) { return store_scoped('f', store, prefix); }
std::string floor_key(StoreNumber store, std::string_view prefix) { return store_scoped('e', store, prefix); }

std::string number_key(Number number) {
  std::string out(1, 'n');
  append_be64(out, number);
  return out;
}

std::string store_key(std::string_view store_id) { return "s" + std::string(store_id); }
std::string meta_key(std::string_view name) { return "m" + std::string(name); }

std::string unordered_key(StoreNumber store) { return meta_key("unordered-" + std::to_string(store)); }

std::string prefix_end(std::string_view prefix) {
  std::string out(prefix);
  while (!out.empty() && static_cast<unsigned char>(out.back()) == 0xff) out.pop_back();
  if (!out.empty()) out.back() = static_cast<char>(static_cast<unsigned char>(out.back()) + 1);
  return out;
}

std::string_view folder_path(std::string_view prefix) {
  if (!prefix.empty()) prefix.remove_suffix(1);
  return prefix;
}

std::string_view parent_prefix(std::string_view path) {
  if (!path.empty() && path.back() == '/') path.remove_suffix(1);
  const auto slash = path.rfind('/');
  return slash == std::string_view::npos ? std::string_view() : path.substr(0, slash + 1);
}

std::string_view base_name(std::string_view path) {
  if (!path.empty() && path.back() == '/') path.remove_suffix(1);
  const auto slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

bool valid_name(std::string_view component) {
  return !component.empty() && component.size() <= kMaxNameBytes && component != "." && component != ".." &&
         component.find('/') == std::string_view::npos && component.find('\0') == std::string_view::npos;
}

ParsedKey parse_key(std::string_view key, std::size_t prefix_length) {
  ParsedKey parsed;
  parsed.folders_end = prefix_length;
  std::size_t begin = prefix_length;
  while (true) {
    const auto slash = key.find('/', begin);
    if (slash == std::string_view::npos) break;
    if (!valid_name(key.substr(begin, slash - begin))) {
      parsed.shape = KeyShape::kHidden;
      return parsed;
    }
    begin = slash + 1;
    parsed.folders_end = begin;
  }
  if (begin == key.size()) {
    parsed.shape = KeyShape::kMarker;
  } else if (!valid_name(key.substr(begin))) {
    parsed.shape = KeyShape::kHidden;
  }
  return parsed;
}

}  // namespace thermo::catalog
