// A server on SwiftNIO. The block here is in docs/guides/Server.md. It needs the package trait `NIO`.

#if NIO
    import Logging
    import NIOCore
    import StallWatch

    func startMonitor(of group: any EventLoopGroup, logger: Logger) throws -> StallMonitor {
        var configuration = StallMonitor.Configuration(
            threshold: .milliseconds(100), outputs: [.directory("/var/lib/notes/stalls"), .log(logger)])
        configuration.privacy.metadata = ["version": "1.4.2"]
        configuration.privacy.pathStyle = .fileNames
        let monitor = try StallMonitor(configuration)
        try monitor.watch(.eventLoops(of: group, label: "http"))
        try monitor.watch(.cooperativePool(), threshold: .milliseconds(500))
        try monitor.watch(.main)
        try monitor.start()
        return monitor
    }
#endif
