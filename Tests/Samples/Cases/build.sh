#!/usr/bin/env bash
# Builds the C parts of the cases: libraries that case-host loads, and programs that run beside it.
#
#   Tests/Samples/Cases/build.sh OUTPUT_DIRECTORY
#
# Exit status: 0 if all are built, 69 if a compiler is missing, else that of the compiler.
set -euo pipefail

for program in gcc g++ objcopy python3; do
    command -v "$program" >/dev/null || { echo "$program is not installed" && exit 69; }
done
mkdir -p "$1"
output=$(cd -- "$1" && pwd)
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/C"

# library NAME SOURCE_OR_OPTION...
library() {
    local name=$1
    shift
    gcc -D_GNU_SOURCE -g -O1 -fPIC -shared -I. -o "$output/$name.so" "$@" -lpthread -ldl
}

for name in plain misc pidns jit dlm peers notype onstack; do library "$name" "$name.c"; done
library base plain.c -Wl,-Ttext-segment=0x10000000
library hot1 plain.c -DINNERMOST=render_shadows -Wl,--build-id=none
library hot2 plain.c -DINNERMOST=decode_samples -Wl,--build-id=none
g++ -std=c++20 -g -O2 -fPIC -shared -I. -o "$output/coro.so" coro.cpp
for name in bomb:20 swift:700 long:700; do
    python3 names.py "${name%:*}" "${name#*:}" >"$output/${name/:/}.c"
    library "${name/:/}" "$output/${name/:/}.c"
done
# The same stalls with call frame information in memory, only in the file, and without; with frame pointers; stripped.
no_tables=(-fno-asynchronous-unwind-tables -fno-unwind-tables)
library mix-tables mix.c
library mix-file mix.c "${no_tables[@]}"
library mix-pointers mix.c "${no_tables[@]}" -fno-omit-frame-pointer
library mix-nothing mix.c "${no_tables[@]}" -O2
for name in mix-pointers mix-nothing; do objcopy --remove-section=.debug_frame "$output/$name.so"; done
library mix-stripped mix.c -s
library mix-bare mix.c "${no_tables[@]}" -O2 -s
gcc -D_GNU_SOURCE -g -O1 -DHOLDER -I. -o "$output/holder" pidns.c -lpthread
gcc -D_GNU_SOURCE -g -O1 -fPIC -shared -o "$output/delay.so" delay.c -ldl
