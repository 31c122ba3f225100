import StallReports

/// A request of OTLP with log records: the message `ExportLogsServiceRequest`.
///
/// Records stay in order; neighbors from the same process share their resource.
struct LogsRequest {
    private var groups: [(resource: OTLPResource, records: [[UInt8]])] = []
    /// The number of records.
    private(set) var count = 0
    /// The number of bytes of all records, without their resources.
    private(set) var size = 0

    /// Adds a record, as a message.
    mutating func add(_ bytes: [UInt8], from resource: OTLPResource) {
        count += 1
        size += bytes.count
        if groups.last?.resource == resource {
            groups[groups.count - 1].records.append(bytes)
        } else {
            groups.append((resource, [bytes]))
        }
    }

    func bytes() -> [UInt8] {
        var writer = ProtobufWriter()
        for group in groups {
            writer.message(1) { logs in
                logs.data(1, group.resource.bytes())
                logs.message(2) { scope in
                    scope.message(1) { $0.scope() }
                    for record in group.records { scope.data(2, record) }
                }
            }
        }
        return writer.bytes
    }
}

extension ProtobufWriter {
    /// The fields of the message `InstrumentationScope`: this tool.
    mutating func scope() {
        string(1, "stallwatch")
        string(2, StallWatchVersion.current)
    }
}
