#!/usr/bin/env bash
# Blocks one of 100 concurrent requests of a Hummingbird and of a NIO server, again and again, and counts the reports that
# name its route, trace, span and task: in a static release build, and in the same without symbols. Then one of 1,000 requests
# waits for a continuation that is resumed only after its report, which has to name the route and the waiting function. Three
# times, a handler of Hummingbird calls getaddrinfo(3) for a name server that does not answer.
#
#   Tests/Programs/context-servers.sh [rounds]
#
# Exit status: 0 if all reports are right, 1 if not.
set -euo pipefail

rounds=${1-100}
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../../Examples/context-servers"
swift build -c release --static-swift-stdlib
programs=$(swift build -c release --static-swift-stdlib --show-bin-path)
strip -o "$programs/context-servers-stripped" "$programs/context-servers"

status=0
for program in context-servers context-servers-stripped; do
    for server in hummingbird nio; do
        printf '%s ' "$program"
        "$programs/$program" "$server" "$rounds" || status=1
    done
done
"$programs/context-servers" leaks "$rounds" || status=1
"$programs/context-servers" resolver 3 || status=1
exit $status
