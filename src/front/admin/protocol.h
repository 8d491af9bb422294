#pragma once
// What the lines of the admin protocol say. A request is one JSON object with the member "command"; the answer is any number of
// {"progress":{...}} lines and then one {"ok":...} or {"error":{"code":...,"message":...}} line.

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "base/result.h"

namespace thermo::admin {

[[nodiscard]] std::string ok_line(const nlohmann::json& value);
[[nodiscard]] std::string progress_line(const nlohmann::json& value);
[[nodiscard]] std::string error_line(const Error& error);

/// A request: a JSON object whose "command" is a string. kInvalidArgument says what is wrong with the line.
[[nodiscard]] Result<nlohmann::json> parse_request(std::string_view line);

/// Optional members of a request. kInvalidArgument names one that is there and is no boolean, or no whole number from `least` to
/// `most`.
[[nodiscard]] Result<bool> flag_member(const nlohmann::json& request, std::string_view name, bool fallback);
[[nodiscard]] Result<std::int64_t> number_member(const nlohmann::json& request, std::string_view name, std::int64_t fallback,
                                                 std::int64_t least, std::int64_t most);

enum class AnswerKind : std::uint8_t { kProgress, kOk };
/// One line of an answer into `value`; an error line comes back as that Error, garbage as kCorrupt.
[[nodiscard]] Result<AnswerKind> parse_answer(std::string_view line, nlohmann::json& value);

/// One line of JSON for machines and people alike; bytes that are not UTF-8 become U+FFFD. `indent` < 0: compact.
[[nodiscard]] std::string to_text(const nlohmann::json& value, int indent = -1);

}  // namespace thermo::admin
