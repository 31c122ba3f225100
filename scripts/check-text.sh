#!/usr/bin/env bash
# Checks every file under version control for faults that no formatter finds.
set -euo pipefail
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.."

# The checkout may belong to another user, as in some containers: git refuses that, but here it only reads.
git() { command git -c safe.directory='*' --no-pager "$@"; }

if ! git rev-parse --is-inside-work-tree >/dev/null 2>&1; then
    echo 'This is not a git checkout: trailing blanks, tabs and paths are not checked.' >&2
    exit 0
fi

failed=0

# refuse WHAT PATTERN [PATHSPEC...]: reports every line that matches.
refuse() {
    local what=$1 pattern=$2
    shift 2
    # git grep: 0 for a match, 1 for none.
    if git grep --color=never -nIE -e "$pattern" -- . "$@"; then
        echo "error: $what" >&2
        failed=1
    elif [ $? -ne 1 ]; then
        exit 1
    fi
}

refuse 'blanks at the end of a line' '[[:space:]]$'
refuse 'a tab: indent with spaces' $'\t' ':!Makefile'
refuse 'a conflict marker' '^(<<<<<<<|>>>>>>>)( |$)'
refuse 'a path of one machine' '/(home|root|Users)/[[:alnum:]_.-]'

while IFS= read -r -d '' file; do
    # Text files only (-I), and no link to a folder.
    if [ -f "$file" ] && [ -s "$file" ] && [ -n "$(tail -c 1 -- "$file" | tr -d '\n')" ] && grep -qI . -- "$file"; then
        echo "$file: error: no line feed at the end" >&2
        failed=1
    fi
done < <(git ls-files -z)

exit $failed
