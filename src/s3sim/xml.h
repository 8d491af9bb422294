#pragma once
// Private to s3sim: the little XML that S3 speaks. Writing escapes; reading takes the elements that requests hold.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace thermo::s3sim {

/// Escaped for element content. Control characters become character references, as S3 sends them (no XML 1.0 parser takes them:
/// that is why clients ask for encoding-type=url).
[[nodiscard]] std::string xml_escape(std::string_view text);
/// "<Name>escaped</Name>".
[[nodiscard]] std::string xml_element(std::string_view name, std::string_view text);

/// Inner texts (still escaped) of all elements of that name, in order. Elements of one name must not nest; attributes and a
/// namespace prefix of the tag are ignored.
[[nodiscard]] std::vector<std::string_view> xml_inner(std::string_view document, std::string_view name);
/// Unescaped text of the first element of that name.
[[nodiscard]] std::optional<std::string> xml_text(std::string_view document, std::string_view name);

}  // namespace thermo::s3sim
