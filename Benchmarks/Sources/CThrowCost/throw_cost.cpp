#include <chrono>
#include <stdexcept>

#include "CThrowCost.h"

namespace {

[[gnu::noinline]] void throw_below(int depth) {
  volatile char frame[64];
  frame[0] = 1;
  if (depth == 0) throw std::runtime_error("thrown");
  throw_below(depth - 1);
  frame[1] = 1;
}

}  // namespace

double throw_cost(int count) {
  auto began = std::chrono::steady_clock::now();
  for (int index = 0; index < count; index++) {
    try {
      throw_below(10);
    } catch (const std::runtime_error &) {
    }
  }
  std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - began;
  return took.count() / count;
}
