/// The library's version, which every report carries.
enum StallWatchVersion {
    static let current = "0.1.0"
}
