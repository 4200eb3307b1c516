package byname.hadoop;

import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;

/** Threads of a file system for what is read in the background. */
final class ReadThreads {
  private static final int QUEUE_MAX = 1024;
  private static final long IDLE_SECONDS = 60;

  private ReadThreads() {}

  // What finds neither a thread nor room in the queue is done by whoever asks, also at the end.
  static ThreadPoolExecutor make(int wanted) {
    int threads = Math.max(wanted, 1);
    AtomicInteger made = new AtomicInteger();
    ThreadPoolExecutor executor =
        new ThreadPoolExecutor(
            threads,
            threads,
            IDLE_SECONDS,
            TimeUnit.SECONDS,
            new ArrayBlockingQueue<>(QUEUE_MAX),
            task -> {
              Thread thread = new Thread(task, "ndn-read-" + made.incrementAndGet());
              thread.setDaemon(true);
              return thread;
            },
            (task, full) -> task.run());
    executor.allowCoreThreadTimeOut(true);
    return executor;
  }
}
