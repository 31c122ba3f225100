// SwiftPM builds no target without a source. The functions are in the StallWatch library.
#include "CStallWatch.h"
