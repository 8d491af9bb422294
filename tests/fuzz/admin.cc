// Lines of the admin socket: requests, answers, and the description of a mount that `thermo mount` sends.

#include <nlohmann/json.hpp>

#include "app/mount_spec.h"
#include "front/admin/protocol.h"
#include "fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace thermo;
  const auto text = fuzz::text_of(data, size);
  if (const auto request = admin::parse_request(text)) {
    FUZZ_CHECK(request->at("command").is_string());
    if (const auto it = request->find("spec"); it != request->end()) {
      if (const auto spec = app::mount_spec_from_json(*it)) {
        const auto written = admin::to_text(app::to_json(*spec));
        const auto again = app::mount_spec_from_json(nlohmann::json::parse(written));
        FUZZ_CHECK(again && admin::to_text(app::to_json(*again)) == written);
        FUZZ_CHECK(again->store == spec->store && again->mount_point == spec->mount_point && again->ttl == spec->ttl);
      } else {
        FUZZ_CHECK(spec.error().code() == ErrorCode::kInvalidArgument);
      }
    }
  } else {
    FUZZ_CHECK(request.error().code() == ErrorCode::kInvalidArgument);
  }
  nlohmann::json value;
  if (const auto kind = admin::parse_answer(text, value)) {
    nlohmann::json again;
    const auto line = *kind == admin::AnswerKind::kOk ? admin::ok_line(value) : admin::progress_line(value);
    FUZZ_CHECK(line.find('\n') == std::string::npos);
    const auto same = admin::parse_answer(line, again);
    FUZZ_CHECK(same && *same == *kind && again == value);
  }
  return 0;
}
