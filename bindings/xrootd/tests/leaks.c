/* Preloaded into a program that is ended by SIGTERM: looks for leaks first, as AddressSanitizer
 * does when a program ends by itself. */
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <unistd.h>

extern int __lsan_do_recoverable_leak_check(void);

static void *wait_for_the_end(void *unused) {
  sigset_t ends;
  int number;
  sigemptyset(&ends);
  sigaddset(&ends, SIGTERM);
  sigwait(&ends, &number);
  _exit(__lsan_do_recoverable_leak_check() ? 23 : 0);
  return unused;
}

/* Before there are other threads, which so do not get the signal. */
__attribute__((constructor)) static void begin(void) {
  sigset_t ends;
  pthread_t thread;
  sigemptyset(&ends);
  sigaddset(&ends, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &ends, NULL);
  pthread_create(&thread, NULL, wait_for_the_end, NULL);
  pthread_detach(thread);
}
