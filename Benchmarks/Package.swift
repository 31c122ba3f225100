// swift-tools-version: 6.2
import PackageDescription

let settings: [SwiftSetting] = [
    .swiftLanguageMode(.v6),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableUpcomingFeature("InternalImportsByDefault"),
]

let package = Package(
    name: "StallWatchBenchmarks",
    dependencies: [
        .package(name: "StallWatch", path: "..", traits: ["NIO"]),
        // Without its traits, which preload libraries that count allocations. These benchmarks measure time.
        .package(url: "https://github.com/ordo-one/benchmark", from: "1.38.1", traits: []),
        .package(url: "https://github.com/apple/swift-nio", from: "2.101.2"),
    ],
    targets: [
        .target(name: "CCaptureCost", dependencies: [.product(name: "StallWatch", package: "StallWatch")]),
        .target(name: "CThrowCost"),
        // The clock, child programs and their output, tables.
        .target(name: "Measuring", swiftSettings: settings),
        // A separate program, because it measures exceptions without StallWatch.
        .executableTarget(name: "throw-cost", dependencies: ["CThrowCost"]),
        // The same program without and with StallWatch.
        .executableTarget(name: "resident-without", dependencies: ["Measuring"], swiftSettings: settings),
        .executableTarget(
            name: "resident-with",
            dependencies: ["Measuring", .product(name: "StallWatch", package: "StallWatch")],
            swiftSettings: settings
        ),
        // Event loops and queues without work.
        .executableTarget(
            name: "resting-loops",
            dependencies: [
                .product(name: "NIOPosix", package: "swift-nio"), .product(name: "StallWatch", package: "StallWatch"),
            ],
            swiftSettings: settings
        ),
        // Symbolicates its own stack with the Runtime module, in a small and in a large program.
        .target(name: "SymbolicatedStack", swiftSettings: settings),
        .executableTarget(name: "symbolicated-small", dependencies: ["SymbolicatedStack"], swiftSettings: settings),
        .executableTarget(
            name: "symbolicated-large",
            dependencies: [
                "SymbolicatedStack",
                .product(name: "Benchmark", package: "benchmark"),
                .product(name: "NIOHTTP1", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
                .product(name: "StallWatch", package: "StallWatch"),
            ],
            swiftSettings: settings
        ),
        // The measurements that can be repeated in one process: `swift package benchmark`.
        .executableTarget(
            name: "StallWatchCosts",
            dependencies: [
                "CCaptureCost", "CThrowCost", "Measuring",
                .product(name: "Benchmark", package: "benchmark"),
                .product(name: "StallWatch", package: "StallWatch"),
            ],
            path: "Benchmarks/StallWatchCosts",
            swiftSettings: settings,
            plugins: [.plugin(name: "BenchmarkPlugin", package: "benchmark")]
        ),
        // The measurements that need idle time or other processes.
        .executableTarget(
            name: "stallwatch-bench",
            dependencies: [
                "CCaptureCost", "CThrowCost", "Measuring", .product(name: "StallWatch", package: "StallWatch"),
            ],
            swiftSettings: settings
        ),
    ]
)
