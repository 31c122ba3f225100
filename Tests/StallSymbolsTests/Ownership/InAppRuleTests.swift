import Testing

@testable import StallReports
@testable import StallSymbols

@Suite struct InAppRuleTests {
    private func isInApp(_ path: String, isExecutable: Bool = false, among others: [String] = []) -> Bool {
        InAppRule(InAppSettings(), imagePaths: [path] + others).isInApp(imageAt: path, isExecutable: isExecutable)
    }

    @Test(arguments: ["/opt/notes/bin/notes", "/usr/lib/notes/notes", "/usr/bin/notes", "notes"])
    func theExecutableIsInAppInAnyDirectory(path: String) {
        #expect(isInApp(path, isExecutable: true))
    }

    @Test(arguments: [
        "/opt/notes/lib/libNotes.so", "/srv/libs/libNotes.so", "/usr/library/libNotes.so", "/lib6/libNotes.so",
        "/usr/libexec/notes/libNotes.so",
    ])
    func aLibraryOfTheAppsOwnIsInApp(path: String) {
        #expect(isInApp(path))
    }

    @Test(arguments: [
        "/lib/x86_64-linux-gnu/libc.so.6", "/lib64/ld-linux-x86-64.so.2", "/usr/lib/x86_64-linux-gnu/libc.so.6",
        "/usr/lib/swift/linux/libFoundation.so", "/usr/local/lib/libz.so",
    ])
    func aLibraryOfTheSystemIsNotInApp(path: String) {
        #expect(!isInApp(path))
    }

    @Test(arguments: ["linux-vdso.so.1", "[vdso]", ""])
    func anImageWithoutAFileIsNotInApp(path: String) {
        #expect(!isInApp(path))
    }

    @Test func theToolchainsLibrariesAreNeverInApp() {
        let core = "/opt/swift/usr/lib/swift/linux/libswiftCore.so"
        #expect(isInApp("/opt/swift/usr/lib/swift/linux/libFoundation.so"))
        #expect(!isInApp("/opt/swift/usr/lib/swift/linux/libFoundation.so", among: [core]))
        #expect(isInApp("/opt/swift/usr/lib/swift/linux-app/libNotes.so", among: [core]))
        #expect(isInApp("/opt/notes/lib/libNotes.so", among: [core]))
    }
}
