# Run at every build: writes OUTPUT (a header with the commit of SOURCE) only when its content changes, so that nothing is rebuilt for it.
execute_process(COMMAND git -C ${SOURCE} rev-parse --short=12 HEAD OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET
                RESULT_VARIABLE failed)
if(failed OR NOT commit)
  set(commit "unknown")
endif()
set(text "#pragma once\n#define THERMO_VERSION \"${VERSION}\"\n#define THERMO_COMMIT \"${commit}\"\n")
set(old "")
if(EXISTS ${OUTPUT})
  file(READ ${OUTPUT} old)
endif()
if(NOT old STREQUAL text)
  file(WRITE ${OUTPUT} "${text}")
endif()
