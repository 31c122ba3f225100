#!/usr/bin/env bash
# Tests scripts/install-cli.sh: installs the debug build of the tool into a new directory and uses what is there.
set -euo pipefail

script=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd)/scripts/install-cli.sh
scratch=$(mktemp -d)
trap 'rm -rf -- "$scratch"' EXIT
prefix=$scratch/a\ prefix
failures=0

fail() {
    echo "install-cli: $1"
    failures=$((failures + 1))
}

# exits_with STATUS COMMAND...
exits_with() {
    local expected=$1 status=0
    shift
    "$@" >"$scratch/output" 2>&1 || status=$?
    [ "$status" -eq "$expected" ] || fail "exit status $status, not $expected: $* $(cat "$scratch/output")"
}

exits_with 64 "$script"
exits_with 64 "$script" relative
exits_with 64 "$script" /tmp release more
exits_with 73 "$script" /proc/none debug
# As in make test, so that nothing is compiled again: a build of nothing takes seconds, too, so it is only noted.
export SWIFT_DETERMINISTIC_HASHING=1
mkdir "$scratch/bin"
cat >"$scratch/bin/swift" <<EOF
#!/usr/bin/env bash
case \$* in
*generate-manual | *--show-bin-path) exec "$(command -v swift)" "\$@" ;;
*) echo "\${!#}" >>"$scratch/built" ;;
esac
EOF
chmod +x "$scratch/bin/swift"
exits_with 0 env PATH="$scratch/bin:$PATH" "$script" "$prefix" debug --enable-all-traits
built=$(xargs <"$scratch/built")
[ "$built" = 'stallwatch StallWatchAgent StallWatchPreload' ] || fail "it built $built"

for file in bin/stallwatch share/man/man1/stallwatch.1 share/bash-completion/completions/stallwatch \
    lib/libStallWatchAgent.so lib/libStallWatchPreload.so share/zsh/site-functions/_stallwatch share/fish/vendor_completions.d/stallwatch.fish; do
    [ -s "$prefix/$file" ] || fail "$file is missing or empty"
done
exits_with 0 "$prefix/bin/stallwatch" --version
# LD_PRELOAD cannot name the library there, and elsewhere it is found.
exits_with 1 "$prefix/bin/stallwatch" test -- true
cp -r "$prefix" "$scratch/elsewhere"
exits_with 0 "$scratch/elsewhere/bin/stallwatch" test -- true

# Each command has its part of the man page.
for command in show top tree diff stats tail symbolicate export html baseline test run doctor health ps state stacks tasks watch; do
    grep -q "^\.It Em $command" "$prefix/share/man/man1/stallwatch.1" || fail "the man page lacks $command"
done

# The completions that bash finds for a word.
complete_word() {
    # shellcheck source=/dev/null
    source "$prefix/share/bash-completion/completions/stallwatch"
    COMP_WORDS=(stallwatch "$1") COMP_CWORD=1 COMP_LINE="stallwatch $1" COMP_POINT=$((11 + ${#1})) COMP_TYPE=9 COMPREPLY=()
    "$(complete -p stallwatch | sed 's/.*-F \([^ ]*\).*/\1/')" stallwatch "$1" stallwatch
    echo "${COMPREPLY[*]}"
}
completed=$(PATH=$prefix/bin:$PATH complete_word sy 2>&1) || true
[[ $completed == *symbolicate* ]] || fail "bash completes sy to '$completed'"

[ "$failures" -eq 0 ] || exit 1
echo "install-cli: passed"
