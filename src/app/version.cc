#include "app/version.h"

#include "thermo_version.h"  // written by cmake/WriteVersion.cmake

namespace thermo::app {

std::string_view version() { return THERMO_VERSION; }
std::string_view commit() { return THERMO_COMMIT; }

}  // namespace thermo::app
