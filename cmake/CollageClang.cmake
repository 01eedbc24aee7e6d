# The second compiler: clang 19 builds the tests of the compile-time core beside the compiler of the build. CMake knows one
# compiler per build, so that clang's objects come from commands of our own.

find_program(COLLAGE_CLANG clang++-19 DOC "The compiler that builds the tests of the core a second time")
if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  set(COLLAGE_CLANG "")  # the build's own compiler is another already
elseif(NOT COLLAGE_CLANG)
  set(COLLAGE_CLANG "")
  message(STATUS "collage: the core is tested with one compiler: clang++-19 was not found (tools/setup installs it).")
endif()
set(collage_core_compilers "${CMAKE_CXX_COMPILER}" ${COLLAGE_CLANG})

# collage_clang_objects(OUT FOLDER_TARGET SOURCE...): compiles with clang, warnings as for our own code, and answers the
# object files. Include folders and definitions are those of FOLDER_TARGET.
function(collage_clang_objects out target)
  set(objects "")
  set(folders "$<TARGET_PROPERTY:${target},INCLUDE_DIRECTORIES>")
  set(definitions "$<TARGET_PROPERTY:${target},COMPILE_DEFINITIONS>")
  foreach(source IN LISTS ARGN)
    cmake_path(RELATIVE_PATH source BASE_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}" OUTPUT_VARIABLE name)
    set(object "${CMAKE_CURRENT_BINARY_DIR}/clang/${name}.o")
    cmake_path(GET object PARENT_PATH folder)
    file(MAKE_DIRECTORY "${folder}")
    add_custom_command(
      OUTPUT "${object}"
      COMMAND ${CMAKE_CXX_COMPILER_LAUNCHER} "${COLLAGE_CLANG}" -std=c++20 -O1 -Wall -Wextra -Wpedantic -Wconversion -Wshadow
              -Wno-dangling-else -Wno-deprecated-declarations $<$<BOOL:${COLLAGE_WERROR}>:-Werror>
              "$<$<BOOL:${folders}>:-I$<JOIN:${folders},;-I>>" "$<$<BOOL:${definitions}>:-D$<JOIN:${definitions},;-D>>"
              -MD -MF "${object}.d" -c "${source}" -o "${object}"
      DEPENDS "${source}"
      DEPFILE "${object}.d"
      COMMENT "Building ${name} with clang"
      COMMAND_EXPAND_LISTS VERBATIM)
    list(APPEND objects "${object}")
  endforeach()
  set(${out} "${objects}" PARENT_SCOPE)
endfunction()
