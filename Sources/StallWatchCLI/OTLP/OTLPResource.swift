import StallReports

/// The source of log records and metrics: the message `Resource`.
struct OTLPResource: Sendable, Hashable {
    var attributes: OTLPAttributes

    /// The resource as a message.
    func bytes() -> [UInt8] {
        var writer = ProtobufWriter()
        attributes.write(1, to: &writer)
        return writer.bytes
    }
}

extension OTLPResource {
    /// The process of a report.
    ///
    /// - Parameters:
    ///   - report: The report.
    ///   - common: Attributes of all reports, from the environment. The report's own take precedence, except the service's
    ///     name, which is the process's name only if nothing else names it.
    init(_ report: StallReport, common: OTLPAttributes = OTLPAttributes()) {
        let process = report.process
        let metadata = report.metadata
        var attributes = common
        if let service = metadata["service.name"] {
            attributes.set("service.name", service)
        } else if attributes["service.name"] == nil {
            attributes.set("service.name", process.name)
        }
        attributes.set("service.version", metadata["service.version"] ?? metadata["version"])
        attributes.set("host.name", process.hostname)
        attributes.set("host.arch", Self.architecture(process.architecture))
        attributes.set("os.type", "linux")
        attributes.set("os.description", process.operatingSystem)
        attributes.set("os.version", process.kernel)
        attributes.set("process.pid", Int(process.pid))
        attributes.set("process.executable.name", process.name)
        attributes.set("process.executable.path", process.executable.isEmpty ? nil : process.executable)
        attributes.set("process.creation.time", process.startedAt?.description)
        attributes.set("stallwatch.boot_id", process.bootID)
        self.init(attributes: attributes)
    }

    /// The conventions' word for an architecture of uname(2).
    private static func architecture(_ machine: String) -> String {
        switch machine {
        case "x86_64": "amd64"
        case "aarch64": "arm64"
        default: machine
        }
    }
}
