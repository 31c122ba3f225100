#include <coroutine>

#include "common.h"
struct Task {
  struct promise_type {
    Task get_return_object() { return {std::coroutine_handle<promise_type>::from_promise(*this)}; }
    std::suspend_always initial_suspend() { return {}; }
    std::suspend_always final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() {}
  };
  std::coroutine_handle<promise_type> h;
};
namespace mail {
Task fetchInbox(int n) {
  co_await std::suspend_always{};
  nap(600);
  sink += n;
  co_await std::suspend_always{};
  SPIN(600);
  sink++;
  co_return;
}
}  // namespace mail
static Task *task;
extern "C" void start(void) {
  task = new Task(mail::fetchInbox(3));
  task->h.resume();
}
extern "C" void run(void) {
  if (!task) start();
  task->h.resume();
  sink++;
}
