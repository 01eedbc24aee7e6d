# Finds a Python for the tests of the package in python/: COLLAGE_PYTHON, version 3.9 or newer with numpy 1.22 or newer. It is empty if
# there is none. The interpreter that CMake finds goes first; the distribution's may have the packages that another one lacks.
if(NOT COLLAGE_PYTHON)
  foreach(candidate IN ITEMS "${Python3_EXECUTABLE}" /usr/bin/python3)
    execute_process(COMMAND "${candidate}" -c "import sys, numpy
sys.exit(sys.version_info < (3, 9) or tuple(map(int, numpy.__version__.split('.')[:2])) < (1, 22))"
                    RESULT_VARIABLE failed OUTPUT_QUIET ERROR_QUIET)
    if(failed EQUAL 0)
      set(COLLAGE_PYTHON "${candidate}" CACHE FILEPATH "A Python with numpy, for the tests of the Python package")
      break()
    endif()
  endforeach()
  if(NOT COLLAGE_PYTHON)
    message(STATUS "collage: without the tests of the Python package: no Python 3.9 with numpy 1.22 was found; install "
                   "python3-numpy (tools/setup does).")
  endif()
endif()
