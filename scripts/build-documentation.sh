#!/usr/bin/env bash
# Builds the documentation of StallWatch from Documentation.docc and its public declarations, with those of the modules that
# it re-exports. A warning is an error.
#
#     scripts/build-documentation.sh BUILD_DIRECTORY OUTPUT_DIRECTORY
#
# BUILD_DIRECTORY is the directory of a finished debug build (swift build --show-bin-path).
set -euo pipefail
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.."

if [ $# -ne 2 ]; then
    echo 'usage: scripts/build-documentation.sh BUILD_DIRECTORY OUTPUT_DIRECTORY' >&2
    exit 64
fi
build=$1 output=$2
scratch=$(mktemp -d)
trap 'rm -rf -- "$scratch"' EXIT
symbols=$scratch/symbols catalog=$scratch/Documentation.docc
mkdir "$symbols"

# The pages link to each other as GitHub follows links, to files. DocC wants names.
cp -R Sources/StallWatch/Documentation.docc "$catalog"
sed -i -E 's/^- \[[^]]*\]\((\w+)\.md\)$/- <doc:\1>/; s/\]\((\w+)\.md\)/](doc:\1)/g' "$catalog"/*.md

module_maps=()
for module in CLinux CSymbols CUnwind; do
    module_maps+=(-Xcc "-fmodule-map-file=$build/$module.build/module.modulemap")
done
swift-symbolgraph-extract -module-name StallWatch -target "$(uname -m)-unknown-linux-gnu" -I "$build/Modules" \
    "${module_maps[@]}" -minimum-access-level public -skip-inherited-docs \
    -experimental-allowed-reexported-modules=StallReports,StallSymbols -output-dir "$symbols"
docc convert "$catalog" --additional-symbol-graph-dir "$symbols" --warnings-as-errors \
    --fallback-display-name StallWatch --fallback-bundle-identifier org.stallwatch --output-path "$output"
echo "The documentation is in $output: docc preview or any web server shows it."
