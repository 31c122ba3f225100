#!/usr/bin/env bash
# Installs the Python packages that the tests need and Debian does not have, in .build/python. Says nothing when they are
# there.
#
# Exit status (sysexits.h): 69 when they cannot be installed here.
set -euo pipefail
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.."

readonly unavailable=69
# Reads collapsed stacks and the output of perf script: a file of Python without dependencies.
readonly packages=(gprof2dot==2025.4.14)
readonly target=.build/python

installed() { [ "$(cat "$target/packages" 2>/dev/null)" = "${packages[*]}" ]; }

if installed; then exit 0; fi
for python in python3 /usr/bin/python3; do
    if "$python" -m pip --version >/dev/null 2>&1; then
        echo "Installing Python packages in $target: ${packages[*]}" >&2
        rm -rf -- "$target"
        # The root user's pip warns of what a target directory makes harmless.
        "$python" -m pip install --quiet --disable-pip-version-check --root-user-action=ignore --no-deps \
            --target "$target" "${packages[@]}" >&2 || break
        echo "${packages[*]}" >"$target/packages"
        exit 0
    fi
done
echo "Python packages could not be installed: ${packages[*]}. Their index is not reached, or there is no pip." >&2
exit $unavailable
