import Testing

@testable import StallSymbols

@Suite struct CodeLocationTests {
    @Test(arguments: [
        ("Sources/engine/engine.cpp", "/src/notes", "/src/notes/Sources/engine/engine.cpp"),
        (".build/checkouts/CFoo/foo.c", "/src/notes", "/src/notes/.build/checkouts/CFoo/foo.c"),
        ("/src/a.c", "/src/notes", "/src/a.c"), ("<stdin>", "/src/notes", "<stdin>"), ("a.c", ".", "a.c"),
        ("a.c", nil, "a.c"),
    ])
    func relativePathIsOfTheCompilersDirectory(file: String, directory: String?, path: String) {
        #expect(CodeLocation.sourcePath(file, compiledIn: directory) == path)
    }
}
