// swift-tools-version: 6.2
import PackageDescription

// Off Linux the library has the same interface and does nothing. The manifest knows the machine that builds, but not the
// platform that it builds for: `STALLWATCH_INERT=0` compiles for Linux elsewhere, `STALLWATCH_INERT=1` the interface alone.
#if os(Linux)
    let isInert = Context.environment["STALLWATCH_INERT"] == "1"
#else
    let isInert = Context.environment["STALLWATCH_INERT"] != "0"
#endif

/// Returns another package's product, which a package trait may have to bring.
func product(_ name: String, _ package: String, trait: String? = nil) -> Target.Dependency {
    .product(name: name, package: package, condition: trait.flatMap { .when(traits: [$0]) })
}
let arguments = product("ArgumentParser", "swift-argument-parser")
let eventLoops = product("NIOPosix", "swift-nio", trait: "NIO")
let inMemoryLogging = product("InMemoryLogging", "swift-log")
let integrations = [
    product("Logging", "swift-log"), product("Metrics", "swift-metrics", trait: "Metrics"),
    product("NIOCore", "swift-nio", trait: "NIO"), product("Tracing", "swift-distributed-tracing", trait: "Tracing"),
    product("ServiceLifecycle", "swift-service-lifecycle", trait: "ServiceLifecycle"), eventLoops,
]
let engine: [Target.Dependency] = isInert ? [] : ["CLinux", "LinuxSupport", "StackCapture", "StallSymbols"]
let elsewhere = isInert ? ["Linux"] : []
// Lists of their own: Swift 6.2 cannot type-check sums of lists within the list of targets in time.
let parts: [Target.Dependency] = ["StallReports"] + engine + integrations
let testKits = [inMemoryLogging, product("MetricsTestKit", "swift-metrics", trait: "Metrics")]
let tested: [Target.Dependency] = parts + ["StallWatch", "TestSupport"] + testKits
let inertParts: [Target.Dependency] = ["CStallWatch", "StallWatchTesting", inMemoryLogging] + integrations
let hosts: [Target.Dependency] = ["stack-host", "stallwatch-scenarios", "stallwatch-test-host", "TestSupport"]
let stalling: [Target.Dependency] = ["CStalls", "CUnwindTestSupport", "StallWatch"]
// CONTRIBUTING.md says what each module is for.
let portable: [Target] = [
    .target(name: "CStallWatch"), .target(name: "StallReports"),
    .target(name: "StallWatch", dependencies: parts, exclude: elsewhere),
    .target(name: "StallWatchTesting", dependencies: ["StallReports", "StallWatch"] + engine, exclude: elsewhere),
]
let unitTests: [Target] = [
    "CUnwind", "LinuxSupport", "StackCapture", "StallReports", "StallSymbols", "StallWatchTesting", "TextOutput",
].map { .testTarget(name: "\($0)Tests", dependencies: ["CLinux", "TestSupport", .target(name: $0)]) }
let linux: [Target] = [
    .target(name: "CLinux"), .target(name: "CPreload"), .target(name: "TextOutput"),
    .target(name: "CSymbols", dependencies: ["CLinux"]),
    .target(name: "CUnwind", cSettings: [.headerSearchPath(".")]),
    .target(name: "LinuxSupport", dependencies: ["CLinux"]),
    .target(name: "StallSymbols", dependencies: ["CLinux", "CSymbols", "LinuxSupport", "StallReports"]),
    .target(name: "StackCapture", dependencies: ["CUnwind", "LinuxSupport", "StallReports"]),
    .target(name: "StallWatchAgent", dependencies: ["LinuxSupport", "StallReports", "StallWatch"]),
    // The tool `stallwatch`. Its folder has another name: on a case-insensitive disk that name is the library's.
    .executableTarget(
        name: "StallWatchCLI",
        dependencies: ["LinuxSupport", "StackCapture", "StallReports", "StallSymbols", "TextOutput", arguments],
        resources: [.embedInCode("HTML/Page"), .embedInCode("Explain/Pages")]),
    .executableTarget(name: "stallwatch-demo", dependencies: ["StallReports", "StallWatch", "TextOutput", arguments]),
    .plugin(name: "Stalls", capability: .command(intent: .custom(verb: "stalls", description: "Shows what stalled."))),
    .target(name: "CStalls", path: "Tests/ScenarioKit/CStalls"),
    .target(name: "TailCalls", path: "Tests/ScenarioKit/TailCalls"),
    .executableTarget(
        name: "stallwatch-scenarios",
        dependencies: stalling + ["CStallWatch", "TailCalls", "TextOutput", arguments, eventLoops],
        path: "Tests/ScenarioKit", exclude: ["CStalls", "TailCalls"]),
    .target(
        name: "CUnwindTestSupport", dependencies: ["CUnwind"], path: "Tests/CUnwindTestSupport",
        cSettings: [.headerSearchPath("."), .headerSearchPath("../../Sources/CUnwind")],
        cxxSettings: [.headerSearchPath(".")]),
    .target(name: "TestSupport", dependencies: ["CUnwindTestSupport", "StackCapture"], path: "Tests/TestSupport"),
    .executableTarget(
        name: "stallwatch-test-host", dependencies: ["CStalls", "StallWatch"], path: "Tests/Support/TestHost"),
    .executableTarget(name: "stack-host", dependencies: ["CUnwindTestSupport"], path: "Tests/Support/StackHost"),
    .testTarget(name: "StallWatchTests", dependencies: tested),
    .testTarget(
        name: "StallWatchCLITests", dependencies: ["StallWatchCLI", "stallwatch-demo", "TestSupport"],
        exclude: ["Texts"]),
    .testTarget(name: "ScenarioKitTests", dependencies: ["stallwatch-scenarios", "TestSupport"]),
    .testTarget(
        name: "ProgramTests", dependencies: hosts + ["StallWatchCLI", "stallwatch-demo", inMemoryLogging]),
    .testTarget(name: "ClockTests", dependencies: hosts + ["CStalls", "StallWatch", eventLoops]),
]
let programs: [Product] = [
    .library(name: "StallWatchAgent", type: .dynamic, targets: ["StallWatchAgent"]),
    .library(name: "StallWatchPreload", type: .dynamic, targets: ["CPreload"]),
    .executable(name: "stallwatch", targets: ["StallWatchCLI"]),
    .executable(name: "stallwatch-demo", targets: ["stallwatch-demo"]), .plugin(name: "Stalls", targets: ["Stalls"]),
]
let package = Package(
    name: "StallWatch",
    platforms: [.macOS(.v13), .iOS(.v16), .tvOS(.v16), .watchOS(.v9), .visionOS(.v1)],
    products: [
        .library(name: "StallWatch", targets: ["StallWatch", "CStallWatch"]),
        .library(name: "StallWatchTesting", targets: ["StallWatchTesting"]),
    ] + (isInert ? [] : programs),
    traits: [
        .trait(name: "Metrics", description: "A sink for swift-metrics"),
        .trait(name: "NIO", description: "Watches event loops and thread pools of SwiftNIO"),
        .trait(name: "ServiceLifecycle", description: "StallMonitor as a service of swift-service-lifecycle"),
        .trait(name: "Tracing", description: "The current span of swift-distributed-tracing in a StallContext"),
    ],
    dependencies: [
        .package(url: "https://github.com/apple/swift-log", from: "1.6.0"),
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.5.0"),
        .package(url: "https://github.com/apple/swift-metrics", from: "2.5.0"),
        .package(url: "https://github.com/apple/swift-nio", from: "2.80.0"),
        .package(url: "https://github.com/swift-server/swift-service-lifecycle", from: "2.6.0"),
        .package(url: "https://github.com/apple/swift-distributed-tracing", from: "1.2.0"),
    ],
    targets: portable + (isInert ? [.testTarget(name: "InertTests", dependencies: inertParts)] : linux + unitTests)
)

let features = ["ExistentialAny", "MemberImportVisibility", "InternalImportsByDefault"]
let interface: [SwiftSetting] = Context.environment["STALLWATCH_INERT"] == "1" ? [.define("STALLWATCH_INERT")] : []
for target in package.targets where target.type != .plugin {
    target.swiftSettings = [.swiftLanguageMode(.v6)] + features.map { .enableUpcomingFeature($0) } + interface
}
