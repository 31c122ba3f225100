// swift-tools-version: 6.2
import PackageDescription

// A GLib main loop in C, watched by StallWatch: `swift run --package-path Examples/glib-loop glib-loop`.
let package = Package(
    name: "glib-loop",
    dependencies: [.package(name: "StallWatch", path: "../..")],
    targets: [
        // GLib's headers and library, from pkg-config.
        .systemLibrary(name: "CGLib", pkgConfig: "glib-2.0", providers: [.apt(["libglib2.0-dev"])]),
        // The program's loop, in C.
        .target(name: "GLibLoop", dependencies: ["CGLib", .product(name: "StallWatch", package: "StallWatch")]),
        .executableTarget(
            name: "glib-loop",
            dependencies: ["GLibLoop", .product(name: "StallWatch", package: "StallWatch")],
            swiftSettings: [.swiftLanguageMode(.v6)]
        ),
    ]
)
