#include "s3sim/xml.h"

#include <fmt/core.h>

#include <charconv>
#include <cstdint>

namespace thermo::s3sim {
namespace {

void append_utf8(std::string& out, std::uint32_t code) {
  if (code < 0x80) {
    out += static_cast<char>(code);
  } else if (code < 0x800) {
    out += static_cast<char>(0xC0 | (code >> 6));
    out += static_cast<char>(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    out += static_cast<char>(0xE0 | (code >> 12));
    out += static_cast<char>(0x80 | ((code >> 6) & 0x3F));
    out += static_cast<char>(0x80 | (code & 0x3F));
  } else {
    out += static_cast<char>(0xF0 | ((code >> 18) & 0x07));
    out += static_cast<char>(0x80 | ((code >> 12) & 0x3F));
    out += static_cast<char>(0x80 | ((code >> 6) & 0x3F));
    out += static_cast<char>(0x80 | (code & 0x3F));
  }
}

/// False: not an entity that XML knows.
bool append_entity(std::string& out, std::string_view entity) {
  if (entity == "amp") out += '&';
  else if (entity == "lt") out += '<';
  else if (entity == "gt") out += '>';
  else if (entity == "quot") out += '"';
  else if (entity == "apos") out += '\'';
  else if (entity.size() > 1 && entity[0] == '#') {
    const bool hex = entity[1] == 'x' || entity[1] == 'X';
    const std::string_view digits = entity.substr(hex ? 2 : 1);
    std::uint32_t code = 0;
    const auto [ptr, ec] = std::from_chars(digits.data(), digits.data() + digits.size(), code, hex ? 16 : 10);
    if (ec != std::errc() || ptr != digits.data() + digits.size() || code > 0x10FFFF) return false;
    append_utf8(out, code);
  } else {
    return false;
  }
  return true;
}

constexpr std::size_t kLongestEntity = 16;

std::string unescape(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t amp = text.find('&');
    out += text.substr(0, amp);
    if (amp == std::string_view::npos) break;
    text.remove_prefix(amp + 1);
    // No entity is longer than a code point in digits: a document of bare ampersands must not be searched to its end for each.
    const std::size_t end = text.substr(0, kLongestEntity).find(';');
    if (end == std::string_view::npos || !append_entity(out, text.substr(0, end))) {
      out += '&';
      continue;
    }
    text.remove_prefix(end + 1);
  }
  return out;
}

struct Tag {
  std::size_t begin = 0, end = 0;  ///< of "<...>"
};

/// The next opening (or closing) tag of that name from `at`.
std::optional<Tag> find_tag(std::string_view document, std::string_view name, bool closing, std::size_t at) {
  while ((at = document.find('<', at)) != std::string_view::npos) {
    const std::size_t end = document.find('>', at);
    if (end == std::string_view::npos) return std::nullopt;
    std::string_view tag = document.substr(at + 1, end - at - 1);
    const bool is_closing = tag.starts_with('/');
    if (is_closing) tag.remove_prefix(1);
    tag = tag.substr(0, tag.find_first_of(" \t\r\n/"));
    if (const std::size_t colon = tag.find(':'); colon != std::string_view::npos) tag.remove_prefix(colon + 1);
    if (is_closing == closing && tag == name) return Tag{at, end + 1};
    at = end + 1;
  }
  return std::nullopt;
}

}  // namespace

std::string xml_escape(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      default:
        // A tab or line break would come back as a blank or another line break if it were sent as it is.
        if (static_cast<unsigned char>(c) < 0x20) {
          out += fmt::format("&#x{:x};", static_cast<unsigned>(c));
        } else {
          out += c;
        }
    }
  }
  return out;
}

std::string xml_element(std::string_view name, std::string_view text) {
  return fmt::format("<{}>{}</{}>", name, xml_escape(text), name);
}

std::vector<std::string_view> xml_inner(std::string_view document, std::string_view name) {
  std::vector<std::string_view> out;
  std::size_t at = 0;
  while (const auto open = find_tag(document, name, false, at)) {
    if (document[open->end - 2] == '/') {
      out.push_back(document.substr(open->end, 0));
      at = open->end;
      continue;
    }
    const auto close = find_tag(document, name, true, open->end);
    if (!close) break;
    out.push_back(document.substr(open->end, close->begin - open->end));
    at = close->end;
  }
  return out;
}

std::optional<std::string> xml_text(std::string_view document, std::string_view name) {
  const auto found = xml_inner(document, name);
  if (found.empty()) return std::nullopt;
  return unescape(found.front());
}

}  // namespace thermo::s3sim
