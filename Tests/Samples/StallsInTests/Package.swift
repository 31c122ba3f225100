// swift-tools-version: 6.2
import PackageDescription

let package = Package(
    name: "StallsInTests",
    dependencies: [
        .package(name: "StallWatch", path: "../../..")
    ],
    targets: [
        // The app under test. A comment marks each line that stalls.
        .target(name: "Notes", swiftSettings: [.swiftLanguageMode(.v6)]),
        // 20 tests, of which 8 stall.
        .testTarget(
            name: "NotesTests",
            dependencies: ["Notes", .product(name: "StallWatchTesting", package: "StallWatch")],
            swiftSettings: [.swiftLanguageMode(.v6)]
        ),
        // The tests of docs/guides/StallsInTests.md.
        .testTarget(
            name: "GuideTests",
            dependencies: ["Notes", .product(name: "StallWatchTesting", package: "StallWatch")],
            swiftSettings: [.swiftLanguageMode(.v6)]
        ),
        // Tests that run at the same time.
        .testTarget(
            name: "ParallelTests",
            dependencies: ["Notes", .product(name: "StallWatchTesting", package: "StallWatch")],
            swiftSettings: [.swiftLanguageMode(.v6)]
        ),
        // The same check in XCTest.
        .testTarget(
            name: "NotesXCTests",
            dependencies: ["Notes", .product(name: "StallWatchTesting", package: "StallWatch")],
            swiftSettings: [.swiftLanguageMode(.v6)]
        ),
        // Tests that hang, without StallWatch: `stallwatch test` says where.
        .testTarget(name: "HangingTests", swiftSettings: [.swiftLanguageMode(.v6)]),
        // A test that takes too long, with the trait .hangDump.
        .testTarget(
            name: "SlowTests",
            dependencies: [.product(name: "StallWatchTesting", package: "StallWatch")],
            swiftSettings: [.swiftLanguageMode(.v6)]
        ),
    ]
)
