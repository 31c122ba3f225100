// swift-tools-version: 6.2
import PackageDescription

let checked: [Target.Dependency] = ["Notes", .product(name: "StallWatchTesting", package: "StallWatch")]

let package = Package(
    name: "StallsInTests",
    dependencies: [.package(name: "StallWatch", path: "../../..")],
    targets: [
        // The app under test. A comment marks each line that stalls.
        .target(name: "Notes"),
        // 20 tests, of which 8 stall.
        .testTarget(name: "NotesTests", dependencies: checked),
        // The tests of docs/guides/StallsInTests.md.
        .testTarget(name: "GuideTests", dependencies: checked),
        // Tests that run at the same time.
        .testTarget(name: "ParallelTests", dependencies: checked),
        // A timer of the main run loop, which Swift Testing does not run.
        .testTarget(name: "NotRunTests", dependencies: checked),
        // The same check in XCTest.
        .testTarget(name: "NotesXCTests", dependencies: checked),
        // Tests that hang, without StallWatch: `stallwatch test` says where.
        .testTarget(name: "HangingTests"),
        // Tests that hang with one thread in the task pool, and healthy ones, without StallWatch.
        .testTarget(name: "OneThreadTests"),
        // A test that takes too long, with the trait .hangDump.
        .testTarget(name: "SlowTests", dependencies: checked),
    ]
)
