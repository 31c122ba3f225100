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
        .package(name: "StallWatch", path: ".."),
        // Without its traits: they preload libraries that count allocations, which is not what is measured here.
        .package(url: "https://github.com/ordo-one/benchmark", from: "1.38.1", traits: []),
        .package(url: "https://github.com/apple/swift-nio", from: "2.101.2"),
    ],
    targets: [
        .target(name: "CCaptureCost", dependencies: [.product(name: "StallWatch", package: "StallWatch")]),
        .target(name: "CThrowCost"),
        // The clock, and what a program that was run says.
        .target(name: "Measuring", swiftSettings: settings),
        // A program of its own, because what is measured is the absence of StallWatch.
        .executableTarget(name: "throw-cost", dependencies: ["CThrowCost"]),
        // The same program twice, without and with StallWatch.
        .executableTarget(name: "resident-without", dependencies: ["Measuring"], swiftSettings: settings),
        .executableTarget(
            name: "resident-with",
            dependencies: ["Measuring", .product(name: "StallWatch", package: "StallWatch")],
            swiftSettings: settings
        ),
        // A stack of its own, symbolicated by the Runtime module, in a small program and in a large one.
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
        // What can be repeated as often as one likes: `swift package benchmark`.
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
        // What needs time to pass, or other processes.
        .executableTarget(
            name: "stallwatch-bench",
            dependencies: ["Measuring", .product(name: "StallWatch", package: "StallWatch")],
            swiftSettings: settings
        ),
    ]
)
