package byname.hadoop;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.util.concurrent.atomic.AtomicInteger;

/** A hop on the way to a server that changes one octet wherever a mark goes by. */
final class AlteringRelay implements AutoCloseable {
  private final ServerSocket listener;
  private final int target;
  private final byte[] mark;
  private final AtomicInteger altered = new AtomicInteger();

  AlteringRelay(int target, byte[] mark) throws IOException {
    this.target = target;
    this.mark = mark;
    listener = new ServerSocket(0, 10, InetAddress.getLoopbackAddress());
    start(this::accept);
  }

  int port() {
    return listener.getLocalPort();
  }

  int altered() {
    return altered.get();
  }

  private interface Work {
    void run() throws IOException;
  }

  private static void start(Work work) {
    Thread thread =
        new Thread(
            () -> {
              try {
                work.run();
              } catch (IOException e) {
                // Somebody has closed: the end of a relay.
              }
            });
    thread.setDaemon(true);
    thread.start();
  }

  private void accept() throws IOException {
    while (true) {
      Socket client = listener.accept();
      Socket server = new Socket(InetAddress.getLoopbackAddress(), target);
      start(() -> client.getInputStream().transferTo(server.getOutputStream()));
      start(() -> alter(server.getInputStream(), client.getOutputStream()));
    }
  }

  /** The last octet of the mark is changed, so that all before it could go on already. */
  private void alter(InputStream from, OutputStream to) throws IOException {
    byte[] buffer = new byte[64 << 10];
    int matched = 0;
    int count;
    while ((count = from.read(buffer)) > 0) {
      for (int at = 0; at < count; at++) {
        matched = buffer[at] == mark[matched] ? matched + 1 : (buffer[at] == mark[0] ? 1 : 0);
        if (matched == mark.length) {
          buffer[at] ^= 1;
          altered.incrementAndGet();
          matched = 0;
        }
      }
      to.write(buffer, 0, count);
    }
  }

  @Override
  public void close() throws IOException {
    listener.close();
  }
}
