// swift-tools-version: 6.2
import PackageDescription

// Small programs that once showed a fault of the library. README.md says how to run each, and what is right.
let package = Package(
    name: "Cases",
    dependencies: [
        // With the trait of RealPackages, whose build has the library.
        .package(name: "StallWatch", path: "../../..", traits: ["NIO"])
    ],
    targets: ["case-app", "case-host"].map { name in
        .executableTarget(
            name: name, dependencies: [.product(name: "StallWatch", package: "StallWatch")],
            swiftSettings: [.swiftLanguageMode(.v5)])
    }
)
