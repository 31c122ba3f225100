import StallReports

/// The reports of several files, in batches.
struct ReportDocuments {
    private var files: ArraySlice<ReportFile>
    private var stream: (documents: DocumentStream, path: String)?
    /// The bytes read so far.
    private(set) var bytesRead = 0

    init(_ files: [ReportFile]) {
        self.files = files[...]
    }

    /// The next reports: as many as `reports` or `bytes` allows, and at least one; `nil` at the end.
    mutating func next(reports: Int, bytes: Int) throws(CommandFailure) -> [ReportDocument]? {
        var batch: [ReportDocument] = []
        var size = 0
        while batch.count < reports, size < bytes, let document = try next() {
            batch.append(document)
            size += document.size
        }
        bytesRead += size
        return batch.isEmpty ? nil : batch
    }

    private mutating func next() throws(CommandFailure) -> ReportDocument? {
        while true {
            if let (documents, path) = stream {
                if let document = try documents.next() {
                    return ReportDocument(
                        origin: ReportOrigin(path: path, line: document.line), content: document.bytes,
                        size: document.bytes.count
                    )
                }
                stream = nil
            }
            guard let file = files.popFirst() else { return nil }
            guard file.kind != .report else {
                return ReportDocument(origin: ReportOrigin(path: file.path), content: nil, size: file.size)
            }
            let reader = try FileReader(path: file.path)
            let documents = DocumentStream(isLines: file.kind == .lines) { count throws(CommandFailure) in
                try reader.read(count)
            }
            stream = (documents, file.path)
        }
    }
}
