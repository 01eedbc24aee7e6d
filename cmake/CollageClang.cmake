# The second compiler: clang 19 builds the tests of the compile-time core beside the compiler of the build. CMake knows one
# compiler per build, so that clang's objects come from commands of our own, or from the compiler's launcher.
include_guard()

find_program(COLLAGE_CLANG clang++-19 DOC "The compiler that builds the tests of the core a second time")
if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  set(COLLAGE_CLANG "")  # the build's own compiler is another already
elseif(NOT COLLAGE_CLANG)
  set(COLLAGE_CLANG "")
  message(STATUS "collage: the core is tested with one compiler: clang++-19 was not found (tools/setup installs it).")
endif()
set(collage_core_compilers "${CMAKE_CXX_COMPILER}" ${COLLAGE_CLANG})

# collage_clang(OUT MODE FOLDER_TARGET SOURCE...): has clang read each source, with warnings as for our own code. OUT gets the files
# that it makes: objects (MODE is OBJECTS), or empty files that say that a source is valid (MODE is SYNTAX). Include folders and
# definitions are those of FOLDER_TARGET.
function(collage_clang out mode target)
  set(made "")
  set(folders "$<TARGET_PROPERTY:${target},INCLUDE_DIRECTORIES>")
  set(definitions "$<TARGET_PROPERTY:${target},COMPILE_DEFINITIONS>")
  foreach(source IN LISTS ARGN)
    cmake_path(ABSOLUTE_PATH source OUTPUT_VARIABLE source)
    cmake_path(GET source STEM LAST_ONLY name)
    cmake_path(GET source PARENT_PATH folder)
    string(SHA1 folder "${folder}")
    string(SUBSTRING "${folder}" 0 8 folder)  # sources of several folders may have one name
    set(folder "${CMAKE_CURRENT_BINARY_DIR}/clang/${folder}")
    file(MAKE_DIRECTORY "${folder}")
    if(mode STREQUAL "SYNTAX")
      set(file "${folder}/${name}.valid")
      set(action -fsyntax-only "${source}")
      set(finish COMMAND "${CMAKE_COMMAND}" -E touch "${file}")
    else()
      set(file "${folder}/${name}.o")
      set(action -c "${source}" -o "${file}")
      set(finish "")
    endif()
    add_custom_command(
      OUTPUT "${file}"
      COMMAND ${CMAKE_CXX_COMPILER_LAUNCHER} "${COLLAGE_CLANG}" -std=c++20 -O1 -Wall -Wextra -Wpedantic -Wconversion -Wshadow
              -Wno-dangling-else -Wno-deprecated-declarations $<$<BOOL:${COLLAGE_WERROR}>:-Werror>
              "$<$<BOOL:${folders}>:-I$<JOIN:${folders},;-I>>" "$<$<BOOL:${definitions}>:-D$<JOIN:${definitions},;-D>>"
              -MD -MF "${file}.d" -MT "${file}" ${action}
      ${finish}
      DEPENDS "${source}"
      DEPFILE "${file}.d"
      COMMENT "Reading ${name} with clang"
      COMMAND_EXPAND_LISTS VERBATIM)
    list(APPEND made "${file}")
  endforeach()
  set(${out} "${made}" PARENT_SCOPE)
endfunction()

# collage_by_clang(TARGET...): has clang compile the sources of targets, where it is here. Unoptimised and with sanitizers that takes 40 %
# of g++'s time. What it makes is linked with what g++ makes. Files that are compiled with OpenMP are left to g++.
function(collage_by_clang)
  if(NOT COLLAGE_CLANG)
    return()
  endif()
  set(launcher env)
  if(COLLAGE_CCACHE)
    set(launcher "${COLLAGE_CCACHE}")
  endif()
  set_target_properties(${ARGN} PROPERTIES
    CXX_COMPILER_LAUNCHER "${PROJECT_SOURCE_DIR}/cmake/by_clang.sh;${launcher};${COLLAGE_CLANG}")
endfunction()
