import LinuxSupport

/// How much the machine's tasks were held up lately, in percent of the last ten seconds: pressure stall information
/// (the kernel's Documentation/accounting/psi.rst), the `some avg10` values.
struct Pressure: Equatable, Sendable {
    var cpu: Double?
    var io: Double?
    var memory: Double?

    /// The values now; `nil` where the kernel keeps none.
    ///
    /// Takes some 20 us.
    static func current() -> Pressure? {
        let pressure = Pressure(cpu: average("cpu"), io: average("io"), memory: average("memory"))
        return pressure == Pressure() ? nil : pressure
    }

    private static func average(_ resource: String) -> Double? {
        readSmallFile("/proc/pressure/\(resource)").flatMap(average(in:))
    }

    static func average(in text: String) -> Double? {
        let line = text.split(separator: "\n").first { $0.hasPrefix("some ") }
        return line?.split(separator: " ").first { $0.hasPrefix("avg10=") }.flatMap { Double($0.dropFirst(6)) }
    }
}
