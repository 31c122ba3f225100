#!/usr/bin/env bash
# Installs the Python packages that the tests need and Debian does not have, in .build/python. Prints nothing if they
# are installed.
#
# Exit status (sysexits.h): 0 if they are installed, 69 if they cannot be.
set -euo pipefail
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.."

readonly unavailable=69
# gprof2dot reads collapsed stacks and the output of perf script; markdown-it-py, which needs mdurl, and junitparser read
# Markdown and JUnit. All are pure Python.
readonly packages=(gprof2dot==2025.4.14 markdown-it-py==4.3.0 mdurl==0.1.2 junitparser==5.0.3)
readonly target=.build/python

installed() { [ "$(cat "$target/packages" 2>/dev/null)" = "${packages[*]}" ]; }

if installed; then exit 0; fi
for python in python3 /usr/bin/python3; do
    if "$python" -m pip --version >/dev/null 2>&1; then
        echo "Installing Python packages in $target: ${packages[*]}" >&2
        rm -rf -- "$target"
        # For root, pip warns about system packages; with a target directory it changes none.
        "$python" -m pip install --quiet --disable-pip-version-check --root-user-action=ignore --no-deps \
            --target "$target" "${packages[@]}" >&2 || break
        echo "${packages[*]}" >"$target/packages"
        exit 0
    fi
done
echo "Python packages could not be installed: ${packages[*]}. The index is not reachable, or pip is missing." >&2
exit $unavailable
