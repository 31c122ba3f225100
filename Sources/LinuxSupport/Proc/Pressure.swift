/// Pressure stall information: the share of the last ten seconds in which some task was delayed, in percent.
///
/// The `some avg10` values of the kernel's Documentation/accounting/psi.rst.
package struct Pressure: Equatable, Sendable {
    package var cpu: Double?
    package var io: Double?
    package var memory: Double?

    /// Reads the current values; `nil` if the kernel provides none.
    ///
    /// Takes about 20 us.
    package static func current() -> Pressure? {
        let pressure = Pressure(cpu: average("cpu"), io: average("io"), memory: average("memory"))
        return pressure == Pressure() ? nil : pressure
    }

    private static func average(_ resource: String) -> Double? {
        readSmallFile("/proc/pressure/\(resource)").flatMap(average(in:))
    }

    /// Parses the `some avg10` value of a /proc/pressure file; `nil` if it is missing.
    static func average(in text: String) -> Double? {
        let line = text.split(separator: "\n").first { $0.hasPrefix("some ") }
        return line?.split(separator: " ").first { $0.hasPrefix("avg10=") }.flatMap { Double($0.dropFirst(6)) }
    }
}
