# Finds Xbyak by its headers: Debian's package, libxbyak-dev, has nothing else. Sets Xbyak_FOUND, Xbyak_INCLUDE_DIR and
# Xbyak_VERSION.
find_path(Xbyak_INCLUDE_DIR xbyak/xbyak.h DOC "The folder that holds xbyak/xbyak.h")
mark_as_advanced(Xbyak_INCLUDE_DIR)

# VERSION = 0xABCD is version A.BC(.D); up to 5 it had other forms.
set(Xbyak_VERSION "")
if(Xbyak_INCLUDE_DIR)
  file(STRINGS "${Xbyak_INCLUDE_DIR}/xbyak/xbyak.h" found REGEX "VERSION = 0x[0-9A-Fa-f][0-9A-Fa-f][0-9A-Fa-f]")
  if(found MATCHES "VERSION = 0x([0-9A-Fa-f])([0-9A-Fa-f][0-9A-Fa-f])")
    set(Xbyak_VERSION "${CMAKE_MATCH_1}.${CMAKE_MATCH_2}")
  endif()
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Xbyak REQUIRED_VARS Xbyak_INCLUDE_DIR VERSION_VAR Xbyak_VERSION)
