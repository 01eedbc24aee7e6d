#!/bin/sh
# by_clang.sh LAUNCHER CLANG COMPILER ARGUMENT...: has clang do what the build's compiler was asked for. The compiler does it itself
# if OpenMP is asked for: clang writes that for LLVM's library, and a program has one library.
launcher=$1 clang=$2
shift 2
export CCACHE_SLOPPINESS=pch_defines,time_macros

before= made= is_header= sanitized=
for argument; do
  case $argument in
    -fopenmp) exec "$launcher" "$@" ;;
    -fsanitize=*undefined*) sanitized=yes ;;
  esac
  case $before in
    -o) made=$argument ;;
    -x) [ "$argument" != c++-header ] || is_header=yes ;;
  esac
  before=$argument
done
shift

# g++ writes a precompiled header anew; clang would first read the old one.
[ -z "$is_header" ] || { rm -f "$made" && set -- "$@" -fpch-instantiate-templates -Xclang -fno-pch-timestamp; }
# GNU's libraries have nothing for the check of calls through pointers.
[ -z "$sanitized" ] || set -- "$@" -fno-sanitize=function
# Warnings that g++ does not know, or has by other names.
exec "$launcher" "$clang" "$@" -Wno-unknown-warning-option -Wno-sign-conversion -Wno-deprecated-declarations
