#include <mutex>

#include "CDemo.h"

void *demo_cxx_make(void) { return new std::mutex; }

void demo_cxx_free(void *mutex) { delete static_cast<std::mutex *>(mutex); }

void demo_cxx_lock(void *mutex) { static_cast<std::mutex *>(mutex)->lock(); }

void demo_cxx_unlock(void *mutex) { static_cast<std::mutex *>(mutex)->unlock(); }
