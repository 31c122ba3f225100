// swift-tools-version: 6.2
import PackageDescription

let settings: [SwiftSetting] = [
    .swiftLanguageMode(.v6),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableUpcomingFeature("InternalImportsByDefault"),
]

let package = Package(
    name: "StallWatch",
    products: [
        .library(name: "StallWatch", targets: ["StallWatch"]),
        .executable(name: "stallwatch-demo", targets: ["stallwatch-demo"]),
    ],
    dependencies: [
        .package(url: "https://github.com/apple/swift-log", from: "1.6.0"),
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.5.0"),
    ],
    targets: [
        // GNU functions and runtime entry points that Swift's own modules do not show.
        .target(name: "CLinux"),
        // `unwind-generic` is libunwind's remote unwinder for the machine's architecture. Never `unwind`: that library
        // exports `_Unwind_RaiseException` and so would take the host program's C++ exceptions away from libgcc_s.
        .target(name: "CUnwind", linkerSettings: [.linkedLibrary("unwind-generic")]),
        .target(
            name: "StallWatch",
            dependencies: ["CLinux", "CUnwind", .product(name: "Logging", package: "swift-log")],
            swiftSettings: settings
        ),
        .executableTarget(
            name: "stallwatch-demo",
            dependencies: [
                "StallWatch",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ],
            swiftSettings: settings
        ),
        // Threads in every state that the capture engine has to get right, in C. Part of the tests.
        .target(name: "CUnwindTestSupport", dependencies: ["CUnwind"], path: "Tests/CUnwindTestSupport"),
        .testTarget(
            name: "CUnwindTests",
            dependencies: ["CUnwind", "CUnwindTestSupport"],
            swiftSettings: settings
        ),
        .testTarget(
            name: "StallWatchIntegrationTests",
            dependencies: ["StallWatch", "CLinux", "CUnwindTestSupport", "stallwatch-demo"],
            swiftSettings: settings
        ),
        .testTarget(
            name: "StallWatchTests",
            dependencies: ["StallWatch", .product(name: "Logging", package: "swift-log")],
            swiftSettings: settings
        ),
        .testTarget(
            name: "StallWatchDemoTests",
            dependencies: ["StallWatch", "stallwatch-demo"],
            swiftSettings: settings
        ),
    ]
)
