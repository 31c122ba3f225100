// What a thread of the stack oracle knows of itself. assembly.S uses the offsets.

#ifdef __ASSEMBLER__
#define STEP 8
#define OTHER 16
#define REACHED 24
#define PLAN 32
#define ENTRIES 544
#else

typedef struct thread thread;
typedef void function(thread *);

struct thread {
  long depth;    // The number of entries.
  long step;     // The number of functions of the plan that have been called.
  void *other;   // The top of another stack.
  long reached;  // 1: the innermost function runs.
  function *plan[64];
  // The shadow stack: each function, when it is called, adds its return address and where it begins.
  struct entry {
    void *caller, *owner;
  } entries[128];
  unsigned seed;  // Decides the plan.
  int tid;
};

#endif
