# Compiler checks, warnings, sanitizers and the adapters' instruction set. Nothing here is seen by a consumer.

if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 12)
  message(FATAL_ERROR "collage needs g++ 12 or newer and found ${CMAKE_CXX_COMPILER_VERSION}: install g++-12 and "
                      "configure with -DCMAKE_CXX_COMPILER=g++-12.")
elseif(CMAKE_CXX_COMPILER_ID MATCHES "Clang" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 16)
  message(FATAL_ERROR "collage needs clang 16 or newer and found ${CMAKE_CXX_COMPILER_VERSION}: install a newer one "
                      "and configure with -DCMAKE_CXX_COMPILER=clang++-19.")
endif()

set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)  # so that the small static libraries also fit into a user's shared one

if(PROJECT_IS_TOP_LEVEL)
  set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
  if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
    set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
  endif()
  find_program(COLLAGE_CCACHE ccache DOC "Compiler cache, used if found")
  if(COLLAGE_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
    # It keeps what was compiled with precompiled headers, too, if it may leave their macros and times out of account.
    set(CMAKE_CXX_COMPILER_LAUNCHER "${CMAKE_COMMAND}" -E env CCACHE_SLOPPINESS=pch_defines,time_macros "${COLLAGE_CCACHE}")
  endif()
endif()

# Our own sources are compiled with these; no installed target carries them.
add_library(collage_dev_warnings INTERFACE)
target_compile_options(collage_dev_warnings INTERFACE -Wall -Wextra -Wpedantic -Wconversion -Wshadow
                                                      $<$<BOOL:${COLLAGE_WERROR}>:-Werror>)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # g++ 12 takes `"text" + string` for overlapping copies (GCC bug 105651).
  target_compile_options(collage_dev_warnings INTERFACE -Wno-restrict)
endif()

if(COLLAGE_SANITIZE)
  if(NOT PROJECT_IS_TOP_LEVEL)
    message(FATAL_ERROR "COLLAGE_SANITIZE is for collage's own builds: set the sanitizers in the including project.")
  endif()
  # For every target: an instrumented container handed to code that is not instrumented gives false reports.
  add_compile_options(-fsanitize=${COLLAGE_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${COLLAGE_SANITIZE})
  # Each check of undefined behaviour has addresses in the program: to relocate six millions of them takes half of the time of a
  # start, and most tests are short.
  add_link_options($<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>:-no-pie>)
  add_compile_definitions(_GLIBCXX_ASSERTIONS)
endif()

# COLLAGE_ARCH_FLAGS: what an adapter's one file is compiled with. COLLAGE_ARCH_NAME: the same in words, the compiler's
# name of the processor and the vector extensions in use; it becomes part of every measured cost's key, so that `native`
# is never left to mean two things.
set(COLLAGE_ARCH_FLAGS "")
if(COLLAGE_ARCH)
  include(CheckCXXCompilerFlag)
  string(MAKE_C_IDENTIFIER "COLLAGE_KNOWS_ARCH_${COLLAGE_ARCH}" collage_knows_arch)
  check_cxx_compiler_flag("-march=${COLLAGE_ARCH}" ${collage_knows_arch})
  if(NOT ${collage_knows_arch})
    message(FATAL_ERROR "the compiler does not know -march=${COLLAGE_ARCH}: set COLLAGE_ARCH to a processor it knows.")
  endif()
  set(COLLAGE_ARCH_FLAGS "-march=${COLLAGE_ARCH}")
endif()

set(COLLAGE_ARCH_NAME "${COLLAGE_ARCH}")
if(COLLAGE_ARCH STREQUAL "")
  set(COLLAGE_ARCH_NAME "${CMAKE_SYSTEM_PROCESSOR}")
elseif(COLLAGE_ARCH STREQUAL "native" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  execute_process(COMMAND "${CMAKE_CXX_COMPILER}" -march=native -Q --help=target
                  OUTPUT_VARIABLE collage_target ERROR_QUIET)
  if(collage_target MATCHES "-march=[ \t]+([^ \t\r\n]+)")
    set(COLLAGE_ARCH_NAME "${CMAKE_MATCH_1}")
  endif()
endif()
# The name alone is not enough: g++ 12 calls a newer AMD processor znver3 and yet uses its AVX-512.
execute_process(COMMAND "${CMAKE_CXX_COMPILER}" ${COLLAGE_ARCH_FLAGS} -dM -E -x c++ /dev/null
                OUTPUT_VARIABLE collage_target ERROR_QUIET)
foreach(extension IN ITEMS AVX2 FMA AVX512F AVX512VL AVX512VNNI AVX512BF16 AVX512FP16 AMX_TILE)
  if(collage_target MATCHES "#define __${extension}__ 1")
    string(TOLOWER "+${extension}" extension)
    string(APPEND COLLAGE_ARCH_NAME "${extension}")
  endif()
endforeach()
