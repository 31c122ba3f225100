import Testing
import TestSupport

@testable import LinuxSupport

@Suite struct EpollWaitTests {
    #if arch(x86_64)
        private static let call = "232"
    #else
        private static let call = "22"
    #endif

    @Test func `a wait without an end is recognized`() {
        let text = "\(Self.call) 0x4 0x7fbc1d0c1ec4 0x1 0xffffffff 0x0 0x0 0x7fbc1d0c1e80 0x7fbc1d1cef36\n"
        #expect(
            EpollWait(ByteCursor(text))
                == EpollWait(descriptor: 4, stackPointer: 0x7fbc_1d0c_1e80, programCounter: 0x7fbc_1d1c_ef36))
    }

    @Test(arguments: [
        "running\n", "", "0 0x4 0x7f 0x1 0xffffffff 0x0 0x0 0x7f 0x7f\n",
        "232 0x4 0x7f 0x1 0x0 0x0 0x0 0x7f 0x7f\n", "22 0x4 0x7f 0x1 0x64 0x0 0x0 0x7f 0x7f\n",
        "232 0x4 0x7f 0x1 0xffffffff 0x0\n", "-1 0x7f 0x7f\n",
        "232 0x1ffffffff 0x7f 0x1 0xffffffff 0x0 0x0 0x7f 0x7f\n",
    ])
    func `anything else is not`(text: String) {
        #expect(EpollWait(ByteCursor(text)) == nil)
    }

    @Test func `a thread in epoll_wait is read again and again`() throws {
        let loop = try EpollThread()
        let reader = try #require(EpollWaitReader(thread: loop.thread))
        let place = try #require(loop.place())
        #expect(place.descriptor == loop.descriptor)
        #expect(reader.read() == place)
        loop.send()
        #expect(eventually { reader.read() == place })
        loop.stop()
        #expect(eventually { reader.read() == nil })
    }

    @Test func `a thread that waits for something else does not`() throws {
        #expect(try ProbedThread.run(isWaiting: true) { EpollWaitReader(thread: $0)?.read() } == nil)
    }
}
