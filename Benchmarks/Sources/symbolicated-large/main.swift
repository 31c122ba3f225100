import Benchmark
import NIOHTTP1
import NIOPosix
import StallWatch
import SymbolicatedStack

// A large program, with the debug information of a server's usual libraries, which are linked into it.
if CommandLine.arguments.count > 10 {
    print(Benchmark.self, HTTPRequestDecoder.self, MultiThreadedEventLoopGroup.self, StallMonitor.self)
}
printSymbolicatedStack()
