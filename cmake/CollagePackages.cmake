# Debian packages by CPack (docs/packages.md): libcollage0, libcollage-dev and collage. tools/package builds them.
#
# Only with COLLAGE_PACKAGES, which also installs oneDNN beside the library, because no Debian package has it.
find_package(Python3 3.9 REQUIRED COMPONENTS Interpreter)
find_program(COLLAGE_DPKG_GENSYMBOLS dpkg-gensymbols DOC "Writes the symbols of a Debian package; of dpkg-dev")
if(NOT COLLAGE_DPKG_GENSYMBOLS)
  message(FATAL_ERROR "packages need dpkg-gensymbols: install dpkg-dev, or configure with -DCOLLAGE_PACKAGES=OFF.")
endif()
if(NOT (TARGET collage_c AND TARGET collage_program))
  message(FATAL_ERROR "packages need the program and the C library: set COLLAGE_BUILD_PROGRAM and COLLAGE_BUILD_C.")
endif()

set(COLLAGE_MAINTAINER "Collage developers <collage@packages.invalid>" CACHE STRING "Maintainer of the Debian packages")
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(files "${PROJECT_SOURCE_DIR}/cmake/packages")
set(made "${PROJECT_BINARY_DIR}/package-files")
file(MAKE_DIRECTORY "${made}")

# The manual page and the list of symbols need the built program and library; the changelog is there at once.
add_custom_command(OUTPUT "${made}/collage.1.gz"
  COMMAND "${Python3_EXECUTABLE}" "${files}/man_page.py" $<TARGET_FILE:collage_program> "${made}/collage.1.gz"
  DEPENDS collage_program "${files}/man_page.py" VERBATIM)
file(WRITE "${made}/debian/control" "Source: collage\n\nPackage: libcollage0\nArchitecture: any\n")  # for the next program
add_custom_command(OUTPUT "${made}/symbols"
  COMMAND "${COLLAGE_DPKG_GENSYMBOLS}" -q -plibcollage0 "-v${PROJECT_VERSION}" "-e$<TARGET_FILE:collage_c>" -Pnowhere
          "-O${made}/symbols"
  WORKING_DIRECTORY "${made}" DEPENDS collage_c VERBATIM)
add_custom_target(collage_package_files ALL DEPENDS "${made}/collage.1.gz" "${made}/symbols")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/CHANGELOG.md")
execute_process(
  COMMAND "${Python3_EXECUTABLE}" "${files}/changelog.py" "${PROJECT_SOURCE_DIR}/CHANGELOG.md" "${COLLAGE_MAINTAINER}"
          "${CPACK_DEBIAN_PACKAGE_RELEASE}" "${made}"
  COMMAND_ERROR_IS_FATAL ANY)
file(WRITE "${made}/shlibs" "libcollage 0 libcollage0 (>= ${PROJECT_VERSION})\n")

if(TARGET DNNL::dnnl)
  file(MAKE_DIRECTORY "${made}/stripped")
  add_custom_command(TARGET collage_package_files POST_BUILD
    COMMAND "${CMAKE_STRIP}" --strip-unneeded -o "${made}/stripped/$<TARGET_SONAME_FILE_NAME:DNNL::dnnl>" "$<TARGET_FILE:DNNL::dnnl>"
    VERBATIM)
  install(FILES "${made}/stripped/$<TARGET_SONAME_FILE_NAME:DNNL::dnnl>" DESTINATION "${collage_own_dir}" COMPONENT libraries)
endif()
install(FILES "${made}/collage.1.gz" DESTINATION "${CMAKE_INSTALL_MANDIR}/man1" COMPONENT program)
foreach(pair IN ITEMS libraries:libcollage0 development:libcollage-dev program:collage)
  string(REPLACE ":" ";" pair "${pair}")
  list(GET pair 0 component)
  list(GET pair 1 package)
  install(FILES "${files}/copyright" "${made}/changelog.Debian.gz" "${made}/changelog.gz"
          DESTINATION "${CMAKE_INSTALL_DATAROOTDIR}/doc/${package}" COMPONENT ${component})
endforeach()

# Licences that want their text beside the compiled code, as the packages of Debian have them that were read.
foreach(pair IN ITEMS boost:libboost1.81-dev nlohmann-json:nlohmann-json3-dev xbyak:libxbyak-dev cli11:libcli11-dev eigen:libeigen3-dev
                      highway:libhwy-dev)
  string(REPLACE ":" ";" pair "${pair}")
  list(GET pair 0 name)
  list(GET pair 1 package)
  if(EXISTS "/usr/share/doc/${package}/copyright")
    install(FILES "/usr/share/doc/${package}/copyright" RENAME "${name}"
            DESTINATION "${CMAKE_INSTALL_DATAROOTDIR}/doc/libcollage0/licences" COMPONENT libraries)
  else()
    message(STATUS "collage: the packages lack the licence of ${name}: /usr/share/doc/${package}/copyright is missing.")
  endif()
endforeach()

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME collage)
set(CPACK_PACKAGE_CONTACT "${COLLAGE_MAINTAINER}")
set(CPACK_PACKAGE_VENDOR "Collage developers")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "")  # each package has its own
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL libraries development program)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ
                                                WORLD_EXECUTE)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
# Libraries that no Debian package has, where dpkg-shlibdeps finds them: oneDNN is in ours, and OpenVINO is the user's.
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS "")
foreach(target IN ITEMS DNNL::dnnl openvino::runtime)
  if(TARGET ${target})
    get_target_property(location ${target} LOCATION)
    cmake_path(GET location PARENT_PATH folder)
    list(APPEND CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS "${folder}")
  endif()
endforeach()

if(TARGET collage_c_waiting)
  get_target_property(folder collage_c_waiting BINARY_DIR)
  list(APPEND CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS "${folder}")
endif()

set(version "${PROJECT_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE}")
set(about "Collage measures which library runs which part of a neural network
fastest on this machine, and runs the network that way. It reads ONNX
models, and has kernels of oneDNN, OpenBLAS, Eigen, OpenVINO and its own.")

set(CPACK_DEBIAN_LIBRARIES_PACKAGE_NAME libcollage0)
set(CPACK_DEBIAN_LIBRARIES_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_LIBRARIES_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_LIBRARIES_PACKAGE_RECOMMENDS libopenblas0-openmp)
set(CPACK_DEBIAN_LIBRARIES_PACKAGE_CONTROL_EXTRA "${files}/triggers;${made}/shlibs;${made}/symbols")
set(CPACK_COMPONENT_LIBRARIES_DESCRIPTION "placement of neural networks by measurement - C library
${about}
This package has the shared library of the C interface.")

set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME libcollage-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS "libcollage0 (= ${version})")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SUGGESTS
    "g++, cmake, libboost1.81-dev, libsqlite3-dev, nlohmann-json3-dev, libhwy-dev, libonnx-dev, libprotobuf-dev")
set(CPACK_COMPONENT_DEVELOPMENT_DESCRIPTION "placement of neural networks by measurement - development files
${about}
This package has the headers for C and C++, the static libraries, and
files for pkg-config and CMake.")

set(CPACK_DEBIAN_PROGRAM_PACKAGE_NAME collage)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_DEPENDS "libcollage0 (= ${version})")
set(CPACK_DEBIAN_PROGRAM_PACKAGE_RECOMMENDS libopenblas0-openmp)
set(CPACK_COMPONENT_PROGRAM_DESCRIPTION "placement of neural networks by measurement - program
${about}
This package has the program, which tunes, runs, compares and explains.")

include(CPack)
