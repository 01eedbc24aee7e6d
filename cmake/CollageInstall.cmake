# Installs the headers, the small static libraries, the C library and a package with one component per target.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(collage_package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/collage")
install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/collage" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}"
        FILES_MATCHING PATTERN "*.hpp")
if(TARGET collage_c)
  install(FILES "${PROJECT_SOURCE_DIR}/include/collage.h" "${PROJECT_SOURCE_DIR}/include/collage_session.h"
                "${PROJECT_SOURCE_DIR}/include/collage_trace.h"
          DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
endif()
if(TARGET collage_c_worker)
  install(TARGETS collage_c_worker RUNTIME DESTINATION "${CMAKE_INSTALL_LIBEXECDIR}/collage")
endif()
if(TARGET collage_openvino_module)
  install(TARGETS collage_openvino_module LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}")
endif()
install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" DESTINATION "${CMAKE_INSTALL_DOCDIR}")

# One export set per component: a consumer reads only those it asks for, so that it needs only their third parties.
get_property(collage_components GLOBAL PROPERTY COLLAGE_COMPONENTS)
get_property(collage_backends GLOBAL PROPERTY COLLAGE_BACKENDS)
foreach(component IN LISTS collage_components)
  install(TARGETS collage_${component} EXPORT collage-${component}
          ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}"
          LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}"
          INCLUDES DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
  install(EXPORT collage-${component} NAMESPACE collage:: FILE collage-${component}.cmake
          DESTINATION "${collage_package_dir}")
endforeach()

# Where oneDNN was found, so that a consumer on this machine need not say it again.
if(COLLAGE_HAS_ONEDNN)
  cmake_path(GET dnnl_DIR PARENT_PATH collage_onednn_prefix)     # <prefix>/lib/cmake
  cmake_path(GET collage_onednn_prefix PARENT_PATH collage_onednn_prefix)
  cmake_path(GET collage_onednn_prefix PARENT_PATH collage_onednn_prefix)
endif()
configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/collage-config.cmake.in" collage-config.cmake
                              INSTALL_DESTINATION "${collage_package_dir}"
                              NO_SET_AND_CHECK_MACRO NO_CHECK_REQUIRED_COMPONENTS_MACRO)
# Before 1.0 every minor version may change the interface.
write_basic_package_version_file(collage-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/collage-config.cmake" "${CMAKE_CURRENT_BINARY_DIR}/collage-config-version.cmake"
              "${PROJECT_SOURCE_DIR}/cmake/CollageFindOneDNN.cmake" "${PROJECT_SOURCE_DIR}/cmake/FindOnnxProto.cmake"
        DESTINATION "${collage_package_dir}")

if(COLLAGE_BUILD_PROGRAM)
  install(TARGETS collage_program RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
endif()
