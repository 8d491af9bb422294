#pragma once
// Which program this is.

#include <string_view>

namespace thermo::app {

/// "0.1.0"
[[nodiscard]] std::string_view version();
/// The first 12 digits of the git commit it was built from; "unknown" outside a checkout.
[[nodiscard]] std::string_view commit();

}  // namespace thermo::app
