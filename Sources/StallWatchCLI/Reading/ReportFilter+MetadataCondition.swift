import StallReports
import ArgumentParser
import Glibc

extension ReportFilter.MetadataCondition {
    /// Reads `key=value`.
    init(parsing text: String) throws {
        guard let sign = text.firstIndex(of: "="), sign != text.startIndex else {
            throw ValidationError("'\(text)' has no '='. Give a key and its value, such as version=1.4.2.")
        }
        self.init(key: String(text[..<sign]), value: String(text[text.index(after: sign)...]))
    }
}
