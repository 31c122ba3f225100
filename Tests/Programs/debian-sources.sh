#!/usr/bin/env bash
# Copies the sources and the resolved packages into a root file system of scripts/debian-root.sh, which then needs no network.
#
#   Tests/Programs/debian-sources.sh ROOT
#
# /StallWatch there are the files that git knows or would add, and /packages mirrors of the packages. Folders of builds stay.
set -euo pipefail
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.."
root=$1
# What needs Swift 6.3: API of Swift Testing, and exit tests that capture values.
readonly newer='StallWatchTesting StallWatchTestingTests ProgramTests'

[ -d .build/repositories ] || swift package resolve
packages=$root/packages
for repository in .build/repositories/*; do
    # Not `git remote`, which shows the address of a local mirror.
    address=$(git -C "$repository" config --get remote.origin.url)
    copy=$packages/${address#https://}
    [ -e "$copy" ] || git clone --quiet --mirror "file://$PWD/$repository" "$copy"
    # Not from `origin`, which names the folder that made the copy.
    git -C "$copy" fetch --quiet --prune "file://$PWD/$repository" '+refs/*:refs/*'
    # Packages name their dependencies with and without the suffix.
    [ "$copy" != "${copy%.git}" ] && ln -sfn "$(basename -- "$copy")" "${copy%.git}" ||
        ln -sfn "$(basename -- "$copy")" "$copy.git"
done
printf '[%s]\n    %s\n' safe 'directory = *' 'url "file:///packages/"' 'insteadOf = https://' >"$root/etc/gitconfig"
copied=$root/StallWatch
mkdir -p "$copied"
find "$copied" -mindepth 1 -maxdepth 1 ! -name '.build*' -exec rm -rf {} +
git ls-files -z --cached --others --exclude-standard | while IFS= read -rd '' file; do
    if [ -e "$file" ]; then printf '%s\0' "$file"; fi
done | tar --create --null --files-from=- | tar --extract --directory "$copied"
cp Package.resolved "$copied/"
cat >>"$copied/Package.swift" <<MANIFEST

let newer = Set("$newer".split(separator: " ").map(String.init))
package.products.removeAll { newer.contains(\$0.name) }
package.targets.removeAll { newer.contains(\$0.name) }
MANIFEST
