#pragma once
// One call of the program, from words to exit code.

#include <string>
#include <vector>

namespace thermo::app {

/// 0 done, 1 failed, 2 not understood. Sentences about failures go to stderr as "thermo: ...".
[[nodiscard]] int run(const std::string& program, const std::vector<std::string>& args);

}  // namespace thermo::app
