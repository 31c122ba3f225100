// A number for this process that no child of fork(2) has, for each C target that includes this. The process's id alone
// is no such number: each PID namespace has a process 1.

#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

/// The bit of numbers that are made of a process's id, which is shorter.
#define MADE_OF_ID (UINT32_C(1) << 31)

/// The number, and before it the id of the process that has it, in a page that the kernel empties in a child; NULL
/// where it cannot (before Linux 4.14).
static uint64_t *process_page;
/// The last number that was given; a child has it from its parent, and gives itself a greater one.
static uint32_t last_process_number;

// Before the constructors of the program, which may start a monitor.
__attribute__((constructor(101))) static void map_process_page(void) {
  size_t bytes = (size_t)sysconf(_SC_PAGESIZE);
  void *page = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return;
  if (madvise(page, bytes, MADV_WIPEONFORK) == 0) process_page = (uint64_t *)page;
  else munmap(page, bytes);
}

/// Returns the number, never 0. Async-signal-safe: yes.
static uint32_t process_number(void) {
  uint32_t id = (uint32_t)getpid();
  if (!process_page) return id | MADE_OF_ID;
  uint64_t known = __atomic_load_n(process_page, __ATOMIC_ACQUIRE);
  if (known == 0) {
    uint64_t own = (uint64_t)id << 32 | __atomic_add_fetch(&last_process_number, 1, __ATOMIC_ACQ_REL);
    if (__atomic_compare_exchange_n(process_page, &known, own, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) known = own;
  }
  // A child of vfork(2) has its parent's page, and so has one under an emulator that ignores the advice.
  return known >> 32 == id ? (uint32_t)known : id | MADE_OF_ID;
}
