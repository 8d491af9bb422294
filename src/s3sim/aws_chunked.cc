#include "s3sim/aws_chunked.h"

#include <charconv>

namespace thermo::s3sim {
namespace {

S3Error incomplete() { return {400, "IncompleteBody", "The request body terminated unexpectedly"}; }

/// Up to the line break, which is removed too. Real clients end trailer lines with \r\n; the last trailer may lack it.
std::string_view take_line(std::string_view& text, bool& found) {
  const std::size_t end = text.find("\r\n");
  found = end != std::string_view::npos;
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(found ? end + 2 : text.size());
  return line;
}

}  // namespace

S3Result<AwsChunkedBody> decode_aws_chunked(std::string_view framed) {
  AwsChunkedBody out;
  for (;;) {
    bool found = false;
    const std::string_view head = take_line(framed, found);
    if (!found) return tl::unexpected<S3Error>(incomplete());
    const std::string_view size_text = head.substr(0, head.find(';'));
    std::uint64_t size = 0;
    const auto [ptr, ec] = std::from_chars(size_text.data(), size_text.data() + size_text.size(), size, 16);
    if (size_text.empty() || ec != std::errc() || ptr != size_text.data() + size_text.size())
      return refuse(400, "InvalidChunkSizeError", fmt::format("'{}' is not the size of a chunk", size_text));
    if (size == 0) break;
    if (framed.size() < size || framed.size() - size < 2 || framed.substr(size, 2) != "\r\n")
      return tl::unexpected<S3Error>(incomplete());
    out.data += framed.substr(0, size);
    framed.remove_prefix(size + 2);
  }
  while (!framed.empty()) {
    bool found = false;
    const std::string_view line = take_line(framed, found);
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos) continue;
    std::string name(line.substr(0, colon));
    for (char& c : name) {
      if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    }
    std::string_view value = line.substr(colon + 1);
    while (value.starts_with(' ')) value.remove_prefix(1);
    while (value.ends_with(' ') || value.ends_with('\n')) value.remove_suffix(1);
    if (name != "x-amz-trailer-signature") out.trailers.emplace_back(std::move(name), std::string(value));
  }
  return out;
}

}  // namespace thermo::s3sim
