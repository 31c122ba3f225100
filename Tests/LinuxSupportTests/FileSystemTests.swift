import Glibc
import Testing

@testable import LinuxSupport

@Suite struct DirectoryEntryTests {
    /// The last entry of a full buffer may end where mapped memory ends.
    @Test func anEntryIsReadOnlyToTheEndOfItsName() throws {
        let page = sysconf(Int32(_SC_PAGESIZE))
        let memory = try #require(
            mmap(nil, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
        )
        try #require(memory != MAP_FAILED && mprotect(memory + page, page, PROT_NONE) == 0)
        defer { munmap(memory, 2 * page) }
        // d_ino, d_off, d_reclen and d_type have 19 bytes (getdents(2)); the name and its null have five.
        let entry = memory + page - 24
        entry.storeBytes(of: UInt8(DT_REG), toByteOffset: 18, as: UInt8.self)
        (entry + 19).copyMemory(from: "name", byteCount: 5)
        let read = DirectoryEntry(entry.assumingMemoryBound(to: dirent.self))
        #expect(read.name == "name")
        #expect(read.type == DT_REG)
    }

    @Test func entriesIncludeTheDirectoryItself() throws {
        let names = try #require(directoryEntries("/proc/self/task")).map(\.name)
        #expect(names.contains(".") && names.contains(String(getpid())))
    }

    @Test func anotherFileHasNoEntries() {
        #expect(directoryEntries("/proc/self/stat") == nil)
        #expect(errno == ENOTDIR)
    }
}
