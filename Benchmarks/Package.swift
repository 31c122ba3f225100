// swift-tools-version: 6.2
import PackageDescription

let package = Package(
    name: "StallWatchBenchmarks",
    dependencies: [.package(name: "StallWatch", path: "..")],
    targets: [
        .target(name: "CCaptureCost", dependencies: [.product(name: "StallWatch", package: "StallWatch")]),
        .target(name: "CThrowCost"),
        // A program of its own, because what is measured is the absence of StallWatch.
        .executableTarget(name: "throw-cost", dependencies: ["CThrowCost"]),
        .executableTarget(
            name: "stallwatch-bench",
            dependencies: ["CCaptureCost", "CThrowCost", .product(name: "StallWatch", package: "StallWatch")],
            swiftSettings: [
                .swiftLanguageMode(.v6),
                .enableUpcomingFeature("ExistentialAny"),
                .enableUpcomingFeature("MemberImportVisibility"),
                .enableUpcomingFeature("InternalImportsByDefault"),
            ]
        ),
    ]
)
