// The program as it is without StallWatch.

import Measuring

let program = StallingProgram()
try program.run { $0 }
try program.finish()
