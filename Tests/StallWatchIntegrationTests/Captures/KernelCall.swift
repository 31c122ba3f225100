import CUnwindTestSupport

/// A call that moves or copies so much at once that the thread stays in the kernel.
enum KernelCall: String, CaseIterable {
    case read, write
    case copyFileRange = "copy_file_range"
    case munmap
    case fork = "clone"

    var kind: cunwind_test_big_call {
        switch self {
        case .read: CUNWIND_TEST_BIG_READ
        case .write: CUNWIND_TEST_BIG_WRITE
        case .copyFileRange: CUNWIND_TEST_BIG_COPY
        case .munmap: CUNWIND_TEST_BIG_MUNMAP
        case .fork: CUNWIND_TEST_BIG_FORK
        }
    }

    var length: Int {
        switch self {
        case .read, .write, .copyFileRange: KernelCallFiles.length
        case .munmap: 3 << 30
        case .fork: 32 << 30
        }
    }

    /// Returns the memory for one call, and brings both files to their beginning.
    func prepare(_ files: KernelCallFiles) -> UnsafeMutableRawPointer? {
        files.rewind()
        switch self {
        case .read, .copyFileRange: return cunwind_test_map_small_pages(length, false, false)
        case .write: return cunwind_test_map_small_pages(length, true, false)
        case .munmap: return cunwind_test_map_small_pages(length, false, true)
        case .fork: return cunwind_test_map_small_pages(length, true, false)
        }
    }

    /// Whether the call returned what it does if nothing disturbs it.
    func isWhole(_ result: Int) -> Bool {
        switch self {
        case .read, .write, .copyFileRange: result == length
        case .munmap: result == 0
        case .fork: result > 0
        }
    }
}
