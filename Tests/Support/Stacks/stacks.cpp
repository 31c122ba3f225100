// Deep stacks in C++. Each `stack_` function is the first function of a thread and never returns.

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "ends.h"

namespace {

void keep(const volatile void *local) { asm volatile("" ::"r"(local) : "memory"); }

struct Shape {
  virtual ~Shape() = default;
  virtual double area(int depth) const = 0;
};

template <int Size>
struct Box : Shape {
  std::unique_ptr<Shape> inner;
  double area(int depth) const override {
    std::string padding(Size, 'x');
    if (depth == 0) end_in_condition();
    double result = inner ? inner->area(depth - 1) : Box<Size + 1>().area(depth - 1);
    keep(padding.data());
    return result;
  }
};

template <>
struct Box<12> : Shape {
  double area(int) const override {
    end_in_read();
    return 12;
  }
};

[[gnu::noinline]] void throw_at(int depth) {
  std::string local(static_cast<size_t>(depth), 'y');
  if (depth == 0) throw std::runtime_error("bottom");
  throw_at(depth - 1);
  keep(local.data());
}

struct EndsWhenDestroyed {
  ~EndsWhenDestroyed() { end_in_sleep(); }
};

}  // namespace

extern "C" {

void stack_cpp_virtual_templates() {
  double area = Box<1>().area(100);
  keep(&area);
}

void stack_cpp_catch() {
  try {
    throw_at(12);
  } catch (const std::exception &error) {
    keep(&error);
    end_spinning();
  }
}

void stack_cpp_unwinding() {
  try {
    EndsWhenDestroyed guard;
    throw_at(3);
  } catch (const std::exception &error) {
    keep(&error);
  }
}

void stack_cpp_sort_lambda() {
  std::vector<std::string> words(300, "word");
  int comparisons = 0;
  std::sort(words.begin(), words.end(), [&](const std::string &left, const std::string &right) {
    if (++comparisons == 40) end_in_read();
    return left < right;
  });
  keep(&comparisons);
}

void stack_cpp_functions() {
  std::function<int(int)> step = [&](int depth) {
    if (depth == 0) end_in_condition();
    int result = step(depth - 1) + 1;
    keep(&result);
    return result;
  };
  std::map<int, std::function<int(int)>> steps = {{1, step}};
  int result = steps.at(1)(25);
  keep(&result);
}
}
