#include "front/admin/protocol.h"

#include <fmt/core.h>

#include <cstdint>
#include <nlohmann/json.hpp>

namespace thermo::admin {
namespace {

using nlohmann::json;

ErrorCode code_from(std::string_view name) {
  for (int i = 0; i <= static_cast<int>(ErrorCode::kInternal); ++i) {
    const auto code = static_cast<ErrorCode>(i);
    if (to_string(code) == name) return code;
  }
  return ErrorCode::kInternal;  // a newer daemon's code: the message still says what happened
}

/// Foreign lines are quoted short: a whole one could be megabytes.
std::string_view head(std::string_view line) { return line.substr(0, 60); }

/// Discarded when it is no JSON, or is nested so deep that whoever copies or prints it would run out of stack.
json parse_line(std::string_view line) {
  constexpr int kDeepest = 64;
  bool too_deep = false;
  json value = json::parse(
      line,
      [&](int depth, json::parse_event_t, json&) {
        too_deep |= depth > kDeepest;
        return !too_deep;
      },
      false);
  return too_deep ? json(json::value_t::discarded) : value;
}

}  // namespace

std::string to_text(const json& value, int indent) { return value.dump(indent, ' ', false, json::error_handler_t::replace); }

std::string ok_line(const json& value) { return to_text(json{{"ok", value}}); }
std::string progress_line(const json& value) { return to_text(json{{"progress", value}}); }
std::string error_line(const Error& error) {
  return to_text(json{{"error", {{"code", std::string(to_string(error.code()))}, {"message", std::string(error.message())}}}});
}

Result<json> parse_request(std::string_view line) {
  json value = parse_line(line);
  if (value.is_discarded() || !value.is_object()) {
    return fail(ErrorCode::kInvalidArgument, fmt::format("a request must be one line with a JSON object, not '{}'", head(line)));
  }
  const auto command = value.find("command");
  if (command == value.end() || !command->is_string()) {
    return fail(ErrorCode::kInvalidArgument, "a request needs the member \"command\", a string");
  }
  return value;
}

Result<bool> flag_member(const json& request, std::string_view name, bool fallback) {
  const auto it = request.find(name);
  if (it == request.end()) return fallback;
  if (!it->is_boolean()) return fail(ErrorCode::kInvalidArgument, fmt::format("the member \"{}\" must be true or false", name));
  return it->get<bool>();
}

Result<std::int64_t> number_member(const json& request, std::string_view name, std::int64_t fallback, std::int64_t least,
                                   std::int64_t most) {
  const auto it = request.find(name);
  if (it == request.end()) return fallback;
  // A fraction is no whole number, and what only fits without a sign is too large for any of them.
  const bool whole = it->is_number_integer() && !(it->is_number_unsigned() && it->get<std::uint64_t>() > INT64_MAX);
  const std::int64_t number = whole ? it->get<std::int64_t>() : 0;
  if (whole && number >= least && number <= most) return number;
  return fail(ErrorCode::kInvalidArgument,
              fmt::format("the member \"{}\" must be a whole number from {} to {}", name, least, most));
}

Result<AnswerKind> parse_answer(std::string_view line, json& value) {
  json answer = parse_line(line);
  if (!answer.is_discarded() && answer.is_object()) {
    if (const auto it = answer.find("progress"); it != answer.end()) {
      value = std::move(*it);
      return AnswerKind::kProgress;
    }
    if (const auto it = answer.find("ok"); it != answer.end()) {
      value = std::move(*it);
      return AnswerKind::kOk;
    }
    if (const auto it = answer.find("error"); it != answer.end() && it->is_object()) {
      const auto code = it->find("code");
      const auto message = it->find("message");
      if (code != it->end() && code->is_string() && message != it->end() && message->is_string()) {
        return fail(code_from(code->get_ref<const std::string&>()), message->get<std::string>());
      }
    }
  }
  return fail(ErrorCode::kCorrupt, fmt::format("the daemon's answer is not understood: '{}'", head(line)));
}

}  // namespace thermo::admin
