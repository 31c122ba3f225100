#!/usr/bin/env bash
# Tests that StallWatch does not compile with another C library than glibc, and says why. The other library is only a
# features.h that does not define __GLIBC__.
set -euo pipefail
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.."

scratch=$(mktemp -d)
trap 'rm -rf -- "$scratch"' EXIT
sentence='StallWatch needs glibc'
failures=0

for header in Sources/CLinux/include/CLinux.h Sources/CUnwind/include/CUnwind.h; do
    if ! clang -fsyntax-only -x c "$header" 2>"$scratch/messages"; then
        echo "$header does not compile with glibc"
        failures=$((failures + 1))
    fi
    : >"$scratch/features.h"
    # -w: dependencies are compiled without warnings.
    if clang -w -fsyntax-only -nostdlibinc -isystem "$scratch" -x c "$header" 2>"$scratch/messages"; then
        echo "$header compiles without glibc"
        failures=$((failures + 1))
    fi
    if ! grep -m 1 'error:' "$scratch/messages" | grep -qF "$sentence"; then
        echo "$header: the first message does not say why:"
        sed 's/^/    | /' "$scratch/messages"
        failures=$((failures + 1))
    fi
    rm "$scratch/features.h"
done

if [ $failures -ne 0 ]; then exit 1; fi
echo 'other C library: all cases passed'
