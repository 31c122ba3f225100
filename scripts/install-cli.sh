#!/usr/bin/env bash
# Builds the tool and installs it with its man page and its completions for bash, zsh and fish.
#
#   scripts/install-cli.sh PREFIX [CONFIGURATION [OPTION...]]
#
# PREFIX is a directory such as ~/.local or /usr/local; it is created if it is missing. CONFIGURATION is release, the
# default, or debug. Each OPTION goes to swift build, such as those of a build that is there. Prints the paths of the
# installed files.
#
# Exit status: 0 if everything is installed, 64 for a wrong argument, 73 if PREFIX cannot be written, else that of the
# failed command.
set -euo pipefail
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.."

readonly wrong_usage=64 cannot_create=73
readonly prefix=${1-} configuration=${2-release}

if [[ $prefix != /* ]] || [[ $configuration != release && $configuration != debug ]] || [[ ${3---} != --* ]]; then
    echo "usage: $0 PREFIX [release|debug [--option...]]; PREFIX is an absolute path" >&2
    exit $wrong_usage
fi
if ! (umask 022 && mkdir -p -- "$prefix/bin") || ! [ -w "$prefix/bin" ]; then
    echo "$prefix/bin cannot be written: choose another directory with PREFIX=…, or run make as root" >&2
    exit $cannot_create
fi

readonly build=(swift build --configuration "$configuration" "${@:3}")
for product in stallwatch StallWatchAgent StallWatchPreload; do
    "${build[@]}" --product "$product" >&2
done
# swift-argument-parser's own generator of man pages; its package plugin finds no tool whose target has another name.
"${build[@]}" --product generate-manual >&2
products=$("${build[@]}" --show-bin-path)
readonly products tool=$products/stallwatch

scratch=$(mktemp -d)
trap 'rm -rf -- "$scratch"' EXIT
"$products/generate-manual" "$tool" --section 1 --output-directory "$scratch" >&2

# put MODE FROM TO: installs a file under PREFIX, and prints its path.
put() {
    install -D --mode "$1" -- "$2" "$prefix/$3"
    echo "$prefix/$3"
}

# complete SHELL TO: installs the completions for a shell.
complete() {
    "$tool" --generate-completion-script "$1" >"$scratch/completions"
    put 644 "$scratch/completions" "$2"
}

put 755 "$tool" bin/stallwatch
# What `stallwatch test` and `stallwatch run` load into other programs.
for library in libStallWatchAgent.so libStallWatchPreload.so; do
    put 644 "$products/$library" "lib/$library"
done
put 644 "$scratch/stallwatch.1" share/man/man1/stallwatch.1
complete bash share/bash-completion/completions/stallwatch
complete zsh share/zsh/site-functions/_stallwatch
complete fish share/fish/vendor_completions.d/stallwatch.fish
