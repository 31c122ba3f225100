#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <vector>

#include "CxxWords.h"

namespace words {

// Its constructors and assignments are the compiler's.
struct Word {
  std::string text;
  int weight;
};

}  // namespace words

extern "C" long cxx_sort_words(int milliseconds) {
  auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(milliseconds);
  long count = 0;
  while (std::chrono::steady_clock::now() < end) {
    std::vector<words::Word> list;
    for (int number = 0; number < 3000; number++) list.push_back({std::to_string((number * 7919) % 30011), number});
    std::sort(list.begin(), list.end(), [](auto &one, auto &other) { return one.weight % 97 < other.weight % 97; });
    count += static_cast<long>(list.size());
  }
  return count;
}

extern "C" int cxx_wait_for_condition(int milliseconds) {
  std::mutex mutex;
  std::condition_variable condition;
  std::unique_lock<std::mutex> lock(mutex);
  return condition.wait_for(lock, std::chrono::milliseconds(milliseconds)) == std::cv_status::timeout ? 1 : 0;
}
