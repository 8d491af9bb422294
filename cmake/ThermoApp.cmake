# The `thermo` program. The commit is looked up at every build, so that an incremental one never names an old commit.
add_custom_target(thermo_version_header
  COMMAND ${CMAKE_COMMAND} -DSOURCE=${CMAKE_SOURCE_DIR} -DVERSION=${PROJECT_VERSION}
          -DOUTPUT=${CMAKE_BINARY_DIR}/generated/thermo_version.h -P ${CMAKE_SOURCE_DIR}/cmake/WriteVersion.cmake
  BYPRODUCTS ${CMAKE_BINARY_DIR}/generated/thermo_version.h)
add_dependencies(thermo_app thermo_version_header)
target_include_directories(thermo_app PRIVATE ${CMAKE_BINARY_DIR}/generated)

add_executable(thermo src/app/main.cc)
target_link_libraries(thermo PRIVATE thermo_app)
