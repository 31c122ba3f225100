// case-names DIR CASE: functions with special names
import Foundation
import StallWatch
setvbuf(stdout, nil, _IOLBF, 0)
let directory = CommandLine.arguments[1], name = CommandLine.arguments[2]
func now() -> Double {
    var t = timespec(); clock_gettime(CLOCK_MONOTONIC, &t); return Double(t.tv_sec) * 1e3 + Double(t.tv_nsec) / 1e6
}
let configuration = StallMonitor.Configuration(threshold: .milliseconds(250), outputs: [.directory(directory)])
let monitor = try StallMonitor(configuration)
nonisolated(unsafe) var mark = 0
@inline(never) func spin(_ ms: Int) {
    let end = DispatchTime.now().uptimeNanoseconds + UInt64(ms) * 1_000_000;
    while DispatchTime.now().uptimeNanoseconds < end { mark &+= 1 }
}
enum P<A, B> {}
typealias T1 = P<Int, Int>; typealias T2 = P<T1, T1>; typealias T3 = P<T2, T2>; typealias T4 = P<T3, T3>;
typealias T5 = P<T4, T4>
typealias T6 = P<T5, T5>; typealias T7 = P<T6, T6>; typealias T8 = P<T7, T7>; typealias T9 = P<T8, T8>;
typealias T10 = P<T9, T9>
typealias T11 = P<T10, T10>; typealias T12 = P<T11, T11>; typealias T13 = P<T12, T12>; typealias T14 = P<T13, T13>;
typealias T15 = P<T14, T14>
typealias T16 = P<T15, T15>; typealias T17 = P<T16, T16>; typealias T18 = P<T17, T17>
typealias T19 = P<T18, T18>; typealias T20 = P<T19, T19>; typealias T21 = P<T20, T20>; typealias T22 = P<T21, T21>
typealias T23 = P<T22, T22>; typealias T24 = P<T23, T23>
@inline(never) func layOutEditor24(_ t: T24.Type) { spin(600); mark += 1 }
@inline(never) func layOutEditor20(_ t: T20.Type) { spin(600); mark += 1 }
@inline(never) func layOutEditor22(_ t: T22.Type) { spin(600); mark += 1 }
extension Array { @inline(never) func layOutEach20(_ t: T20.Type) { spin(600); mark += 1 } }
extension P where A == T11, B == T11 { @inline(never) static func layOutBody12() { spin(600); mark += 1 } }
@inline(never) func layOutBody8(_ t: T8.Type) { spin(600); mark += 1 }
@inline(never) func layOutBody12(_ t: T12.Type) { spin(600); mark += 1 }
@inline(never) func layOutBody16(_ t: T16.Type) { spin(600); mark += 1 }
@inline(never) func `save; then (close) 100 %`() { spin(600); mark += 1 }
@inline(never) func größeÄndern_変更() { spin(600); mark += 1 }
struct `My View` { @inline(never) func `draw at 0x10 <all>`() { spin(600); mark += 1 } }
try monitor.watch(.main)
try monitor.start()
DispatchQueue.main.asyncAfter(deadline: .now() + 0.4) {
    let began = now()
    switch name {
    case "t8": layOutBody8(T8.self)
    case "t12": layOutBody12(T12.self)
    case "t16": layOutBody16(T16.self)
    case "e24": layOutEditor24(T24.self)
    case "e20": layOutEditor20(T20.self)
    case "e22": layOutEditor22(T22.self)
    case "a20": [1].layOutEach20(T20.self)
    case "e12": P<T11, T11>.layOutBody12()
    case "raw": `save; then (close) 100 %`()
    case "raw2": `My View`().`draw at 0x10 <all>`()
    case "unicode": größeÄndern_変更()
    default: exit(2)
    }
    print("truth: \(name) \(String(format: "%.1f", now() - began)) ms")
    DispatchQueue.main.asyncAfter(deadline: .now() + 0.7) {
        let t = now(); monitor.stop();
        print("stop took \(String(format: "%.1f", now() - t)) ms; \(monitor.statistics.stalls) stalls"); exit(0)
    }
}
RunLoop.main.run()
