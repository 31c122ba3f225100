// A program with a run loop and without StallWatch: prints its resident memory.

import Foundation
import Measuring

let timer = Timer(timeInterval: 0.01, repeats: true) { _ in }
RunLoop.main.add(timer, forMode: .default)
RunLoop.main.run(until: Date(timeIntervalSinceNow: 1))
printResident("loop runs")
