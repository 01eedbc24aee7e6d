# Every choice a user of the build has, in one place.

option(COLLAGE_BUILD_PROGRAM "Build the program `collage`" ${PROJECT_IS_TOP_LEVEL})
option(COLLAGE_BUILD_C "Build the C library, libcollage.so" ${PROJECT_IS_TOP_LEVEL})
option(COLLAGE_BUILD_EXAMPLES "Build the examples" ${PROJECT_IS_TOP_LEVEL})
option(COLLAGE_BUILD_TESTS "Build the tests" ${PROJECT_IS_TOP_LEVEL})
option(COLLAGE_TEST_LONG "Build also what tools/test --long alone runs" OFF)

# Of many files that are only read to see that they compile, some are drawn, and all of them with COLLAGE_TEST_LONG. tools/test
# draws others each time.
if(NOT COLLAGE_DRAW)
  string(RANDOM LENGTH 8 ALPHABET "0123456789abcdef" draw)
  set(COLLAGE_DRAW "${draw}" CACHE STRING "Which headers and benchmarks are read alone, where not all are")
endif()

# collage_draw(RESULT NAME DIGITS): whether NAME is drawn; DIGITS are the hexadecimal digits that draw it, as in 08 for an eighth.
function(collage_draw result name digits)
  string(SHA1 lot "${COLLAGE_DRAW} ${name}")
  if(COLLAGE_TEST_LONG OR lot MATCHES "^[${digits}]")
    set(${result} ON PARENT_SCOPE)
  else()
    set(${result} OFF PARENT_SCOPE)
  endif()
endfunction()

set(COLLAGE_BUILD_BENCHMARKS ${PROJECT_IS_TOP_LEVEL} CACHE STRING
    "Build the benchmarks: ON, OFF, or CHECK (a quarter is read by clang, beside what a test runs)")
set_property(CACHE COLLAGE_BUILD_BENCHMARKS PROPERTY STRINGS ON OFF CHECK)
option(COLLAGE_UNITY "Compile several files of a folder at once: faster from scratch, slower after a change of one file" ON)
option(COLLAGE_INSTALL "Add the install rules" ${PROJECT_IS_TOP_LEVEL})
option(COLLAGE_PACKAGES "Install as Debian packages do: oneDNN in a folder of our own, and no path of this machine" OFF)
option(COLLAGE_WERROR "Treat warnings in the project's own code as errors" OFF)

# AUTO: used if found, otherwise one sentence and a smaller build. ON: an error if missing. OFF: not looked for.
foreach(part IN ITEMS EIGEN OPENBLAS ONEDNN OPENVINO CUDA STACKED JIT PLACE IO ONNX XGBOOST)
  set(COLLAGE_WITH_${part} AUTO CACHE STRING "Build the component ${part}: AUTO (if its libraries are there), ON or OFF")
  set_property(CACHE COLLAGE_WITH_${part} PROPERTY STRINGS AUTO ON OFF)
endforeach()

set(COLLAGE_SANITIZE "" CACHE STRING "Sanitizers for the whole build, separated by commas: address,undefined")

# Only the adapters of other libraries are compiled for a particular processor, each within its own target. A package
# that must run elsewhere sets x86-64-v3 or the like; empty means the compiler's default.
if(PROJECT_IS_TOP_LEVEL)
  set(collage_default_arch native)
else()
  set(collage_default_arch "")
endif()
set(COLLAGE_ARCH "${collage_default_arch}" CACHE STRING "Processor the adapters are compiled for (a value of -march)")

set(COLLAGE_OPTIMISATION "" CACHE STRING "How the libraries are optimised, whatever the build type; empty: -O3, with sanitizers -O1")

option(COLLAGE_WAIT_BRIEFLY "Have libgomp wait briefly where it is loaded with the C library, by a small library beside it" ON)

# A package that brings OpenBLAS along names it by a file name alone, which is searched like a linked library.
set(COLLAGE_OPENBLAS_FILE "" CACHE STRING "What the backend openblas opens first; empty: the file that was found")

# tools/setup unpacks here what the distribution does not have.
if(DEFINED ENV{COLLAGE_DEPS})
  set(collage_default_deps "$ENV{COLLAGE_DEPS}")
else()
  set(collage_default_deps "${PROJECT_SOURCE_DIR}/.deps")
endif()
set(COLLAGE_DEPS "${collage_default_deps}" CACHE PATH "Folder of the libraries that tools/setup fetched")
