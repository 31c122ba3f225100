// A program without StallWatch: prints what its exceptions cost, in nanoseconds.

#include <CThrowCost.h>

#include <cstdio>

int main() {
  throw_cost(1000);
  std::printf("%f\n", throw_cost(100000));
}
