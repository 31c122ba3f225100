// A program without StallWatch that loads the same system libraries. Prints the cost of its exceptions in nanoseconds.

import CThrowCost
import Foundation

_ = throw_cost(1000)
// Printed with Foundation, so that the linker keeps Foundation.
FileHandle.standardOutput.write(
    Data("\(throw_cost(Int32(CommandLine.arguments.dropFirst().first ?? "") ?? 20_000))\n".utf8))
