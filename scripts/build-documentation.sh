#!/usr/bin/env bash
# Builds the documentation of StallWatch from its public declarations and Documentation.docc; a warning is an error.
#
#     scripts/build-documentation.sh BUILD_DIRECTORY OUTPUT_DIRECTORY
#
# BUILD_DIRECTORY is that of a finished debug build (swift build --show-bin-path).
set -euo pipefail
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.."

if [ $# -ne 2 ]; then
    echo 'usage: scripts/build-documentation.sh BUILD_DIRECTORY OUTPUT_DIRECTORY' >&2
    exit 64
fi
build=$1 output=$2
symbols=$(mktemp -d)
trap 'rm -rf -- "$symbols"' EXIT

module_maps=()
for module in CLinux CSymbols CUnwind; do
    module_maps+=(-Xcc "-fmodule-map-file=$build/$module.build/module.modulemap")
done
swift-symbolgraph-extract -module-name StallWatch -target "$(uname -m)-unknown-linux-gnu" -I "$build/Modules" \
    "${module_maps[@]}" -minimum-access-level public -skip-inherited-docs -output-dir "$symbols"
docc convert Sources/StallWatch/Documentation.docc --additional-symbol-graph-dir "$symbols" --warnings-as-errors \
    --fallback-display-name StallWatch --fallback-bundle-identifier org.stallwatch --output-path "$output"
echo "The documentation is in $output: docc preview or any web server shows it."
