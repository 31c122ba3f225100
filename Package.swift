// swift-tools-version: 6.2
import PackageDescription

// Off Linux the library has the same interface and does nothing. The manifest knows the machine that builds, but not the
// platform that it builds for: `STALLWATCH_INERT=0` compiles for Linux elsewhere, `STALLWATCH_INERT=1` the interface alone.
#if os(Linux)
    let isInert = Context.environment["STALLWATCH_INERT"] == "1"
#else
    let isInert = Context.environment["STALLWATCH_INERT"] != "0"
#endif

let argumentParser = Target.Dependency.product(name: "ArgumentParser", package: "swift-argument-parser")
let logging = Target.Dependency.product(name: "Logging", package: "swift-log")
let inMemoryLogging = Target.Dependency.product(name: "InMemoryLogging", package: "swift-log")

/// Returns a product that only a package trait brings.
func optional(_ name: String, of package: String, trait: String) -> Target.Dependency {
    .product(name: name, package: package, condition: .when(traits: [trait]))
}

let eventLoops = optional("NIOPosix", of: "swift-nio", trait: "NIO")
let metricsTestKit = optional("MetricsTestKit", of: "swift-metrics", trait: "Metrics")
let integrations: [Target.Dependency] = [
    logging,
    optional("Metrics", of: "swift-metrics", trait: "Metrics"),
    optional("NIOCore", of: "swift-nio", trait: "NIO"),
    optional("ServiceLifecycle", of: "swift-service-lifecycle", trait: "ServiceLifecycle"),
    optional("Tracing", of: "swift-distributed-tracing", trait: "Tracing"),
]
let engine: [Target.Dependency] = isInert ? [] : ["CLinux", "LinuxSupport", "StackCapture", "StallSymbols"]
let elsewhere = isInert ? ["Linux"] : []
let programs: [Target.Dependency] = ["stack-host", "stallwatch-scenarios", "stallwatch-test-host"]
// Lists of their own: Swift 6.2 cannot type-check sums of lists within the list of targets in time.
let parts: [Target.Dependency] = ["StallReports"] + engine + integrations
let testKits = [inMemoryLogging, metricsTestKit, eventLoops]
let tested: [Target.Dependency] = parts + ["StallWatch", "TestSupport"] + testKits
let inertParts: [Target.Dependency] = ["CStallWatch", "StallWatchTesting", inMemoryLogging] + integrations

let package = Package(
    name: "StallWatch",
    platforms: [.macOS(.v13), .iOS(.v16), .tvOS(.v16), .watchOS(.v9), .visionOS(.v1)],
    products: [
        .library(name: "StallWatch", targets: ["StallWatch", "CStallWatch"]),
        .library(name: "StallWatchTesting", targets: ["StallWatchTesting"]),
        .library(name: "StallWatchAgent", type: .dynamic, targets: ["StallWatchAgent"]),
        .library(name: "StallWatchPreload", type: .dynamic, targets: ["CPreload"]),
        .executable(name: "stallwatch", targets: ["StallWatchCLI"]),
        .executable(name: "stallwatch-demo", targets: ["stallwatch-demo"]),
    ],
    traits: [
        .trait(name: "Metrics", description: "A sink for swift-metrics"),
        .trait(name: "NIO", description: "Watches event loops of SwiftNIO"),
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
    // CONTRIBUTING.md says what each module is for.
    targets: [
        .target(name: "CLinux"), .target(name: "CSymbols"), .target(name: "CPreload"),
        .target(name: "CStallWatch"), .target(name: "StallReports"), .target(name: "TextOutput"),
        .target(name: "CUnwind", cSettings: [.headerSearchPath(".")]),
        .target(name: "LinuxSupport", dependencies: ["CLinux"]),
        .target(name: "StallSymbols", dependencies: ["CLinux", "CSymbols", "LinuxSupport", "StallReports"]),
        .target(name: "StackCapture", dependencies: ["CUnwind", "LinuxSupport", "StallReports"]),
        .target(name: "StallWatch", dependencies: parts, exclude: elsewhere),
        .target(name: "StallWatchTesting", dependencies: ["StallReports", "StallWatch"] + engine, exclude: elsewhere),
        .target(name: "StallWatchAgent", dependencies: ["LinuxSupport", "StallReports", "StallWatch"]),
        // The tool `stallwatch`. Its folder has another name: on a case-insensitive disk that name is the library's.
        .executableTarget(
            name: "StallWatchCLI",
            dependencies: [
                "LinuxSupport", "StackCapture", "StallReports", "StallSymbols", "TextOutput", argumentParser,
            ],
            resources: [.embedInCode("HTML/Page")]),
        .executableTarget(name: "stallwatch-demo", dependencies: ["StallReports", "StallWatch", argumentParser]),
        .target(name: "CStalls", path: "Tests/ScenarioKit/CStalls"),
        .target(
            name: "ScenarioKit",
            dependencies: [
                "CStalls", "LinuxSupport", "StackCapture", "StallReports", "StallWatch", "TextOutput", argumentParser,
            ],
            path: "Tests/ScenarioKit", exclude: ["CStalls", "Command", "Scenarios"]),
        .executableTarget(
            name: "stallwatch-scenarios",
            dependencies: [
                "CStalls", "CStallWatch", "LinuxSupport", "ScenarioKit", "StallWatch", argumentParser, eventLoops,
            ],
            path: "Tests/ScenarioKit",
            exclude: ["CStalls", "Generating", "Judging", "Running", "Soak", "TailCalls"]),
        .target(
            name: "CUnwindTestSupport", dependencies: ["CUnwind"], path: "Tests/CUnwindTestSupport",
            cSettings: [.headerSearchPath("."), .headerSearchPath("../../Sources/CUnwind")],
            cxxSettings: [.headerSearchPath(".")]),
        .target(
            name: "TestSupport", dependencies: ["CUnwindTestSupport", "LinuxSupport", "StackCapture", "StallReports"],
            path: "Tests/TestSupport"),
        .executableTarget(
            name: "stallwatch-test-host", dependencies: ["CStalls", "StallWatch"], path: "Tests/Support/TestHost"),
        .executableTarget(
            name: "stack-host", dependencies: ["CUnwind", "CUnwindTestSupport"], path: "Tests/Support/StackHost"),
        .testTarget(name: "CUnwindTests", dependencies: ["CLinux", "CUnwind", "CUnwindTestSupport"]),
        .testTarget(name: "LinuxSupportTests", dependencies: ["TestSupport"]),
        .testTarget(name: "StallReportsTests", dependencies: ["TestSupport"]),
        .testTarget(name: "StallSymbolsTests", dependencies: ["StallSymbols", "TestSupport"]),
        .testTarget(name: "StackCaptureTests", dependencies: ["CLinux", "TestSupport"]),
        .testTarget(name: "StallWatchTests", dependencies: tested),
        .testTarget(name: "StallWatchTestingTests", dependencies: ["StallWatchTesting", "TestSupport"]),
        .testTarget(name: "TextOutputTests", dependencies: ["TestSupport", "TextOutput"]),
        .testTarget(name: "StallWatchCLITests", dependencies: ["StallWatchCLI", "TestSupport"], exclude: ["Texts"]),
        .testTarget(name: "ScenarioKitTests", dependencies: ["stallwatch-scenarios", "TestSupport"]),
        .testTarget(name: "ProgramTests", dependencies: programs + ["StallWatchCLI", "TestSupport"]),
        .testTarget(name: "ClockTests", dependencies: programs + ["CStalls", "StallWatch", "TestSupport", eventLoops]),
        .testTarget(name: "InertTests", dependencies: inertParts),
    ]
)

let portable = ["CStallWatch", "InertTests", "StallReports", "StallWatch", "StallWatchTesting"]
package.products.removeAll { isInert && !portable.contains($0.name) }
package.targets.removeAll { isInert ? !portable.contains($0.name) : $0.name == "InertTests" }
var settings: [SwiftSetting] = [.swiftLanguageMode(.v6)]
for feature in ["ExistentialAny", "MemberImportVisibility", "InternalImportsByDefault"] {
    settings.append(.enableUpcomingFeature(feature))
}
if Context.environment["STALLWATCH_INERT"] == "1" { settings.append(.define("STALLWATCH_INERT")) }
for target in package.targets {
    target.swiftSettings = settings
}
