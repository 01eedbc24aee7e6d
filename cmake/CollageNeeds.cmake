# collage_missing(SOURCE RESULT): the components that a source file asks for in a line `// needs: eigen onednn` and this build
# lacks.
function(collage_missing source result)
  file(STRINGS "${source}" needs REGEX "^// needs: ")
  string(REGEX REPLACE "^// needs: " "" needs "${needs}")
  separate_arguments(needs)
  set(missing "")
  foreach(component IN LISTS needs)
    if(NOT TARGET collage_${component})
      list(APPEND missing ${component})
    endif()
  endforeach()
  set(${result} "${missing}" PARENT_SCOPE)
endfunction()
