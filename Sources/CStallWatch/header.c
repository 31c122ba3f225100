// SwiftPM builds no target without a source file. The StallWatch library defines the functions.
#include "CStallWatch.h"
