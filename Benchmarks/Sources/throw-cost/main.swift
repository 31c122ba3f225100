// A program without StallWatch, which loads what StallWatch loads beside itself: prints what its exceptions cost, in
// nanoseconds.

import CThrowCost
import Foundation

_ = throw_cost(1000)
// Written by Foundation, so that it is needed and stays linked.
FileHandle.standardOutput.write(
    Data("\(throw_cost(Int32(CommandLine.arguments.dropFirst().first ?? "") ?? 20_000))\n".utf8))
