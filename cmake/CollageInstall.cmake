# Installs the headers, the small static libraries, the C library and a package with one component per target.
#
# Parts (CMake's install components, which are the Debian packages): `libraries`, which programs need that were linked with the C
# library; `development`, for compiling; `program`.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(collage_package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/collage")
install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/collage" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" COMPONENT development
        FILES_MATCHING PATTERN "*.hpp")
if(TARGET collage_c)
  install(FILES "${PROJECT_SOURCE_DIR}/include/collage.h" "${PROJECT_SOURCE_DIR}/include/collage_session.h"
                "${PROJECT_SOURCE_DIR}/include/collage_precision.h"
                "${PROJECT_SOURCE_DIR}/include/collage_trace.h"
          DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" COMPONENT development)
  # Relative to the file, so that the installed tree can be moved; Debian's tools want /usr.
  set(collage_pc_prefix "${CMAKE_INSTALL_PREFIX}")
  if(NOT COLLAGE_PACKAGES)
    cmake_path(RELATIVE_PATH CMAKE_INSTALL_PREFIX BASE_DIRECTORY "${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig" OUTPUT_VARIABLE up)
    set(collage_pc_prefix "\${pcfiledir}/${up}")
  endif()
  # The folders may be absolute, which some distributions give: then they do not move with the tree.
  foreach(folder IN ITEMS LIBDIR INCLUDEDIR)
    set(collage_pc_${folder} "${CMAKE_INSTALL_${folder}}")
    if(NOT IS_ABSOLUTE "${CMAKE_INSTALL_${folder}}")
      string(PREPEND collage_pc_${folder} "\${prefix}/")
    endif()
  endforeach()
  configure_file("${PROJECT_SOURCE_DIR}/cmake/collage.pc.in" collage.pc @ONLY)
  install(FILES "${CMAKE_CURRENT_BINARY_DIR}/collage.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig" COMPONENT development)
endif()
# Libraries that no other package has, and that no other program should find: oneDNN, and the module that is opened on demand.
set(collage_own_dir "${CMAKE_INSTALL_LIBDIR}")
if(COLLAGE_PACKAGES)
  string(APPEND collage_own_dir "/collage")  # CollagePackages puts oneDNN there
else()
  install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" DESTINATION "${CMAKE_INSTALL_DOCDIR}" COMPONENT development)
endif()
if(TARGET collage_c_worker)
  install(TARGETS collage_c_worker RUNTIME DESTINATION "${CMAKE_INSTALL_LIBEXECDIR}/collage" COMPONENT libraries)
endif()
if(TARGET collage_c_waiting)
  install(TARGETS collage_c_waiting LIBRARY DESTINATION "${collage_own_dir}" COMPONENT libraries NAMELINK_SKIP)
endif()
if(TARGET collage_openvino_module)
  install(TARGETS collage_openvino_module LIBRARY DESTINATION "${collage_own_dir}" COMPONENT libraries)
endif()

# One export set per component: a consumer reads only those it asks for, so that it needs only their third parties.
get_property(collage_components GLOBAL PROPERTY COLLAGE_COMPONENTS)
get_property(collage_backends GLOBAL PROPERTY COLLAGE_BACKENDS)
foreach(component IN LISTS collage_components)
  install(TARGETS collage_${component} EXPORT collage-${component}
          ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT development
          LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT libraries NAMELINK_COMPONENT development
          INCLUDES DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
  install(EXPORT collage-${component} NAMESPACE collage:: FILE collage-${component}.cmake
          DESTINATION "${collage_package_dir}" COMPONENT development)
endforeach()

# Where oneDNN was found, so that a consumer on this machine need not say it again.
if(COLLAGE_HAS_ONEDNN AND NOT COLLAGE_PACKAGES)
  cmake_path(GET dnnl_DIR PARENT_PATH collage_onednn_prefix)     # <prefix>/lib/cmake
  cmake_path(GET collage_onednn_prefix PARENT_PATH collage_onednn_prefix)
  cmake_path(GET collage_onednn_prefix PARENT_PATH collage_onednn_prefix)
endif()
set(collage_openvino_dir "${OpenVINO_DIR}")
if(COLLAGE_PACKAGES)
  set(collage_openvino_dir "")
endif()
configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/collage-config.cmake.in" collage-config.cmake
                              INSTALL_DESTINATION "${collage_package_dir}"
                              NO_SET_AND_CHECK_MACRO NO_CHECK_REQUIRED_COMPONENTS_MACRO)
# Before 1.0 every minor version may change the interface.
write_basic_package_version_file(collage-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/collage-config.cmake" "${CMAKE_CURRENT_BINARY_DIR}/collage-config-version.cmake"
              "${PROJECT_SOURCE_DIR}/cmake/CollageFindOneDNN.cmake" "${PROJECT_SOURCE_DIR}/cmake/FindOnnxProto.cmake"
        DESTINATION "${collage_package_dir}" COMPONENT development)

if(COLLAGE_BUILD_PROGRAM)
  install(TARGETS collage_program RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}" COMPONENT program)
endif()
