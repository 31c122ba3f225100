import CUnwind
import CUnwindTestSupport
import Glibc
import Testing

/// The list of images equals the dynamic linker's, and reading it takes no lock of the dynamic linker.
@Suite(.serialized) struct ImageTests {
    private let engine: OpaquePointer

    init() throws {
        engine = try #require(cunwind_engine_create(SIGURG))
    }

    @Test func `every linked image is listed`() {
        defer { cunwind_engine_destroy(engine) }
        var linked = 0
        #expect(cunwind_test_missing_images(engine, &linked) == 0)
        #expect(linked > 10)
        #expect(cunwind_engine_refresh_images(engine) == linked)
    }

    @Test func `a library is listed from dlopen to dlclose`() throws {
        defer { cunwind_engine_destroy(engine) }
        var counts = [cunwind_engine_refresh_images(engine)]
        var generations = [cunwind_engine_image_generation(engine)]
        // The test program does not use this library otherwise.
        let library = try #require(dlopen("libBrokenLocale.so.1", RTLD_NOW))
        counts.append(cunwind_engine_refresh_images(engine))
        generations.append(cunwind_engine_image_generation(engine))
        #expect(cunwind_engine_refresh_images(engine) == counts[1])
        #expect(cunwind_engine_image_generation(engine) == generations[1], "nothing changed")
        dlclose(library)
        counts.append(cunwind_engine_refresh_images(engine))
        generations.append(cunwind_engine_image_generation(engine))
        #expect(counts == [counts[0], counts[0] + 1, counts[0]])
        #expect(Set(generations).count == 3)
    }

    @Test func aThreadThatHoldsTheLinkersLockDelaysNothing() {
        defer { cunwind_engine_destroy(engine) }
        #expect(cunwind_test_refreshes_beside_held_linker_lock(engine))
    }
    @Test func `an image with a truncated file is left out`() {
        cunwind_engine_destroy(engine)
        #expect(cunwind_test_cut_image() == 0)
    }
}
