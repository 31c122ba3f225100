// The program without StallWatch.

import Measuring

let program = StallingProgram()
try program.run { $0 }
try program.finish()
