#!/usr/bin/env bash
# Installs the Python packages that the tests need and Debian does not have. Prints nothing if they are installed.
#
#   scripts/install-python-packages.sh        for the readers of the tests, in .build/python
#   scripts/install-python-packages.sh fleet  for `make fleet-queries`, in .build/python-fleet
#
# Exit status (sysexits.h): 0 if they are installed, 64 for a wrong argument, 69 if they cannot be.
set -euo pipefail
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.."

readonly unavailable=69
case "${1-}" in
'')
    # gprof2dot reads collapsed stacks; markdown-it-py, which needs mdurl, reads Markdown; axe-core-python carries axe, which
    # finds faults of pages; pyte, which needs wcwidth, is a terminal emulator. All are pure Python.
    packages=(
        gprof2dot==2025.4.14 markdown-it-py==4.3.0 mdurl==0.1.2 axe-core-python==0.1.0 pyte==0.8.2 wcwidth==0.2.13
    )
    target=.build/python
    ;;
fleet)
    # DuckDB and ClickHouse (chdb) run the queries; grafana-foundation-sdk has Grafana's schema of dashboards.
    packages=(duckdb==2.0.0 chdb==4.4.0 chdb-core==26.9.0 'grafana-foundation-sdk==1769699998!10.1.0')
    target=.build/python-fleet
    ;;
*)
    echo "usage: $0 [fleet]" >&2
    exit 64
    ;;
esac
readonly packages target

# Some have modules for one version of Python only.
wanted="$(python3 --version 2>/dev/null || true): ${packages[*]}"
readonly wanted

installed() { [ "$(cat "$target/packages" 2>/dev/null)" = "$wanted" ]; }

if installed; then exit 0; fi
for python in python3 /usr/bin/python3; do
    if "$python" -m pip --version >/dev/null 2>&1; then
        echo "Installing Python packages in $target: ${packages[*]}" >&2
        rm -rf -- "$target"
        # For root, pip warns about system packages; with a target directory it changes none.
        "$python" -m pip install --quiet --disable-pip-version-check --root-user-action=ignore --no-deps \
            --target "$target" "${packages[@]}" >&2 || break
        echo "$wanted" >"$target/packages"
        exit 0
    fi
done
echo "Python packages could not be installed: ${packages[*]}. The index is not reachable, or pip is missing." >&2
exit $unavailable
