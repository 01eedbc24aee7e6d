# Makes a source file that holds the published files: cmake -DFOLDER=... -DOUTPUT=... -P embed.cmake
set(names
  operator-cost-desktop-b.json
  operator-cost-rtx2070-3d.json
  placement-rtx2070-bert.gv
  placement-rtx2070-nasneta.gv
  placement-rtx2070-resnet50_3d.gv
  placement-rtx2070-resnext50_32x4d.gv)
set(text "// Made by embed.cmake.\n#include \"${CMAKE_CURRENT_LIST_DIR}/data_files.hpp\"\n\nnamespace program::replay {\nnamespace {\n")
set(entries "")
foreach(name IN LISTS names)
  file(READ "${FOLDER}/${name}" content)
  string(MAKE_C_IDENTIFIER "${name}" identifier)
  string(APPEND text "constexpr const char* ${identifier}[] = {\n")
  string(LENGTH "${content}" length)
  set(at 0)
  while(at LESS length)
    string(SUBSTRING "${content}" ${at} 16000 piece)
    string(APPEND text "R\"piece(${piece})piece\",\n")
    math(EXPR at "${at} + 16000")
  endwhile()
  string(APPEND text "};\n")
  string(APPEND entries "    {\"${name}\", ${identifier}},\n")
endforeach()
string(APPEND text "constexpr embedded_file files[] = {\n${entries}};\n}  // namespace\n\n"
                   "std::span<const embedded_file> embedded_files() { return files; }\n\n}  // namespace program::replay\n")
file(WRITE "${OUTPUT}" "${text}")
