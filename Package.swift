// swift-tools-version: 6.2
import PackageDescription

let settings: [SwiftSetting] = [
    .swiftLanguageMode(.v6),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableUpcomingFeature("InternalImportsByDefault"),
]

// Off Linux the library has the same interface and does nothing (the folders Inert). The manifest knows the machine that
// builds, but not the platform that it builds for, so a variable decides where the two differ: `STALLWATCH_INERT=0` compiles
// for Linux on another platform, and `STALLWATCH_INERT=1` compiles the interface alone on Linux, as the tests do.
#if os(Linux)
    let isInert = Context.environment["STALLWATCH_INERT"] == "1"
#else
    let isInert = Context.environment["STALLWATCH_INERT"] != "0"
#endif

// What the library needs of other packages.
let integrations: [Target.Dependency] = [
    .product(name: "Logging", package: "swift-log"),
    .product(name: "Metrics", package: "swift-metrics", condition: .when(traits: ["Metrics"])),
    .product(name: "NIOCore", package: "swift-nio", condition: .when(traits: ["NIO"])),
    .product(
        name: "ServiceLifecycle", package: "swift-service-lifecycle", condition: .when(traits: ["ServiceLifecycle"])
    ),
    .product(name: "Tracing", package: "swift-distributed-tracing", condition: .when(traits: ["Tracing"])),
]

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
    targets: [
        // GNU functions and runtime entry points that Swift's own modules do not show.
        .target(name: "CLinux"),
        // Captures and unwinds stacks. Needs only the C library. It links no system unwinder, so C++ exceptions of the
        // program still go through libgcc_s.
        .target(name: "CUnwind", cSettings: [.headerSearchPath(".")]),
        // Reads debug information with libdw. It loads libdw on first use, so the build needs only libdw's headers.
        .target(name: "CSymbols"),
        // The system interfaces that the other modules need: clocks, threads, files, /proc, memory.
        .target(name: "LinuxSupport", dependencies: ["CLinux"], swiftSettings: settings),
        // The report: model, JSON, validation, fingerprint, sentences. Pure values.
        .target(name: "StallReports", swiftSettings: settings),
        // Names and lines of addresses, and whose code they are.
        .target(
            name: "StallSymbols", dependencies: ["CLinux", "CSymbols", "LinuxSupport", "StallReports"],
            swiftSettings: settings
        ),
        // Stacks of this process's threads.
        .target(name: "StackCapture", dependencies: ["CUnwind", "LinuxSupport"], swiftSettings: settings),
        .target(
            name: "StallWatch",
            dependencies: ["CLinux", "LinuxSupport", "StackCapture", "StallReports", "StallSymbols"] + integrations,
            exclude: ["Inert"], swiftSettings: settings
        ),
        // Stalls as issues of tests, for Swift Testing and XCTest.
        .target(
            name: "StallWatchTesting", dependencies: ["LinuxSupport", "StallReports", "StallSymbols", "StallWatch"],
            exclude: ["Inert"], swiftSettings: settings
        ),
        // What `stallwatch test` loads into test processes: a thread that waits for requests, and on a request the monitor.
        .target(name: "CPreload"),
        .target(
            name: "StallWatchAgent", dependencies: ["LinuxSupport", "StallReports", "StallWatch"],
            swiftSettings: settings
        ),
        // The header for loops in C and C++. What it declares is in StallWatch.
        .target(name: "CStallWatch"),
        // Text for terminals: tables, columns, colors.
        .target(name: "TextOutput", swiftSettings: settings),
        // HTTP requests with the system's libcurl, which is loaded on first use: the build needs no headers of it.
        .target(name: "CCurl"),
        // The tool `stallwatch`. Its folder has another name: on a case-insensitive disk that name is the library's.
        .executableTarget(
            name: "StallWatchCLI",
            dependencies: [
                "CCurl", "LinuxSupport", "StallReports", "StallSymbols", "TextOutput",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ],
            resources: [.embedInCode("HTML/Page")],
            swiftSettings: settings
        ),
        // System calls for the demo's scenarios.
        .target(name: "CDemo"),
        .executableTarget(
            name: "stallwatch-demo",
            dependencies: [
                "CDemo", "CStallWatch", "LinuxSupport", "StallReports", "StallWatch", "TextOutput",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
                .product(name: "NIOPosix", package: "swift-nio", condition: .when(traits: ["NIO"])),
            ],
            swiftSettings: settings
        ),
        // Threads in every state that the capture engine supports, in C. Part of the tests.
        .target(
            name: "CUnwindTestSupport", dependencies: ["CUnwind"], path: "Tests/CUnwindTestSupport",
            cSettings: [.headerSearchPath("."), .headerSearchPath("../../Sources/CUnwind")],
            cxxSettings: [.headerSearchPath(".")]
        ),
        // Helpers that the test targets share.
        .target(
            name: "TestSupport",
            dependencies: ["CUnwindTestSupport", "LinuxSupport", "StackCapture", "StallReports"],
            path: "Tests/TestSupport",
            swiftSettings: settings
        ),
        // A small app whose stalls tests can kill, starve of disk or abort.
        .executableTarget(
            name: "stallwatch-test-host", dependencies: ["CDemo", "StallWatch"], path: "Tests/Support/TestHost",
            swiftSettings: settings
        ),
        // Holds still in deep stacks for gdb. Part of the tests.
        .executableTarget(
            name: "stack-host",
            dependencies: ["CUnwind", "CUnwindTestSupport"],
            path: "Tests/Support/StackHost",
            swiftSettings: settings
        ),
        .testTarget(
            name: "CUnwindTests",
            dependencies: ["CLinux", "CUnwind", "CUnwindTestSupport"],
            swiftSettings: settings
        ),
        .testTarget(name: "LinuxSupportTests", dependencies: ["LinuxSupport", "TestSupport"], swiftSettings: settings),
        .testTarget(name: "StallReportsTests", dependencies: ["StallReports", "TestSupport"], swiftSettings: settings),
        .testTarget(
            name: "StallSymbolsTests", dependencies: ["LinuxSupport", "StallReports", "StallSymbols", "TestSupport"],
            swiftSettings: settings
        ),
        .testTarget(
            name: "StackCaptureTests", dependencies: ["CLinux", "LinuxSupport", "StackCapture", "TestSupport"],
            swiftSettings: settings
        ),
        .testTarget(
            name: "StallWatchTests",
            dependencies: [
                "CLinux", "LinuxSupport", "StackCapture", "StallReports", "StallSymbols", "StallWatch", "TestSupport",
                .product(name: "Logging", package: "swift-log"),
                .product(name: "InMemoryLogging", package: "swift-log"),
                .product(name: "MetricsTestKit", package: "swift-metrics", condition: .when(traits: ["Metrics"])),
                .product(name: "NIOPosix", package: "swift-nio", condition: .when(traits: ["NIO"])),
                .product(
                    name: "ServiceLifecycle", package: "swift-service-lifecycle",
                    condition: .when(traits: ["ServiceLifecycle"])
                ),
                .product(name: "Tracing", package: "swift-distributed-tracing", condition: .when(traits: ["Tracing"])),
            ],
            swiftSettings: settings
        ),
        .testTarget(
            name: "StallWatchTestingTests",
            dependencies: ["LinuxSupport", "StallReports", "StallWatch", "StallWatchTesting", "TestSupport"],
            swiftSettings: settings
        ),
        .testTarget(
            name: "StallWatchIntegrationTests",
            dependencies: [
                "CLinux", "LinuxSupport", "StackCapture", "StallReports", "StallSymbols", "StallWatch",
                "CUnwindTestSupport", "StallWatchCLI", "TestSupport", "TextOutput", "stallwatch-demo",
                "stallwatch-test-host", "stack-host",
                .product(name: "NIOPosix", package: "swift-nio", condition: .when(traits: ["NIO"])),
            ],
            swiftSettings: settings
        ),
        .testTarget(name: "TextOutputTests", dependencies: ["TextOutput"], swiftSettings: settings),
        .testTarget(
            name: "StallWatchCLITests",
            dependencies: [
                "LinuxSupport", "StallReports", "StallSymbols", "StallWatchCLI", "TestSupport", "TextOutput",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ],
            exclude: ["Texts"],
            swiftSettings: settings
        ),
        .testTarget(
            name: "StallWatchDemoTests",
            dependencies: ["CDemo", "LinuxSupport", "StallReports", "StallWatch", "TestSupport", "stallwatch-demo"],
            swiftSettings: settings
        ),
    ]
)

if isInert {
    package.products = [
        .library(name: "StallWatch", targets: ["StallWatch", "CStallWatch"]),
        .library(name: "StallWatchTesting", targets: ["StallWatchTesting"]),
    ]
    let inert = settings + [.define("STALLWATCH_INERT", .when(platforms: [.linux]))]
    package.targets = [
        .target(name: "StallReports", swiftSettings: settings),
        // The settings of API, and Inert in place of everything else.
        .target(
            name: "StallWatch", dependencies: ["StallReports"] + integrations,
            exclude: [
                "API/Configuration+Watchdog.swift", "API/ControlJob.swift", "API/ControlJobs.swift",
                "API/ControlService.swift", "API/Exports.swift",
                "API/HangDump.swift", "API/LoopProbe.swift",
                "API/ProbeSource.swift", "API/ReportSink.swift", "API/Contexts/StallContext+CString.swift",
                "API/Contexts/StallContext+Calibration.swift", "API/Contexts/StallContext+Scope.swift",
                "API/StallMonitor.swift",
                "API/StallMonitor+Capabilities.swift", "API/StallMonitor+Control.swift",
                "API/StallMonitor+Health.swift",
                "API/StallMonitor+Pauses.swift", "API/Statistics+Counts.swift", "API/WatchedLoop.swift", "Detection",
                "Diagnosis", "Documentation.docc", "Integrations", "Loops", "Reporting", "Sinks",
            ],
            swiftSettings: inert
        ),
        .target(
            name: "StallWatchTesting", dependencies: ["StallWatch"], path: "Sources/StallWatchTesting/Inert",
            swiftSettings: inert
        ),
        .target(name: "CStallWatch"),
        .testTarget(
            name: "InertTests",
            dependencies: integrations + [
                "CStallWatch", "StallWatch", "StallWatchTesting",
                .product(name: "InMemoryLogging", package: "swift-log"),
            ],
            swiftSettings: settings
        ),
    ]
}
