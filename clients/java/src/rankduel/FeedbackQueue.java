package rankduel;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Deque;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ThreadLocalRandom;
import java.util.function.Consumer;

/**
 * Accepts feedback without waiting, and sends it in a daemon thread that ends when the queue is
 * empty. The server counts each item once, even if it arrives several times.
 */
final class FeedbackQueue {
    private static final int BATCH = 100;
    private static final long SEND_MILLIS = 10_000;
    private static final long FIRST_WAIT_MILLIS = 100;
    private static final long LONGEST_WAIT_MILLIS = 30_000;

    private record Item(Map<String, Object> body, double expiresAt) {}

    private final Server server;
    private final int most;
    private final Consumer<String> log;
    private final Deque<Item> items = new ArrayDeque<>();
    private int sending;
    private boolean isRunning;
    private boolean isClosing;
    private int recorded;
    private int duplicate;
    private int refused;
    private int dropped;

    FeedbackQueue(Server server, int most, Consumer<String> log) {
        this.server = server;
        this.most = most;
        this.log = log;
    }

    /** Queues an item. It is sent again until the server has it, at most until the duel expires. */
    synchronized void put(Map<String, Object> body, double expiresAt) {
        if (isClosing) {
            dropped += 1;
            return;
        }
        if (items.size() >= most) {
            // drop the oldest item: newer ones have more time left to arrive
            items.removeFirst();
            dropped += 1;
        }
        items.addLast(new Item(body, expiresAt));
        if (!isRunning) {
            isRunning = true;
            Thread thread = new Thread(this::run, "rankduel-feedback");
            thread.setDaemon(true);
            thread.start();
        }
    }

    synchronized Counts counts() {
        return new Counts(recorded, duplicate, refused, dropped, items.size() + sending);
    }

    /** Waits until nothing waits any more. Returns whether that came in time. */
    synchronized boolean flush(long millis) {
        long end = now() + millis;
        while (isRunning) {
            long left = end - now();
            if (left <= 0 || !waits(left)) {
                return false;
            }
        }
        return true;
    }

    /** Flushes, and accepts no more items. */
    synchronized boolean close(long millis) {
        boolean flushed = flush(millis);
        isClosing = true;
        notifyAll();
        return flushed;
    }

    private static long now() {
        return System.nanoTime() / 1_000_000;
    }

    /** Waits for a change. Returns false if the thread was interrupted. */
    private boolean waits(long millis) {
        try {
            wait(millis);
            return true;
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
            return false;
        }
    }

    private void run() {
        int failures = 0;
        for (List<Item> batch = take(); !batch.isEmpty(); batch = take()) {
            long millis = send(batch, failures);
            failures = millis > 0 ? failures + 1 : 0;
            pause(millis);
        }
    }

    private synchronized void pause(long millis) {
        long end = now() + millis;
        for (long left = millis; left > 0 && !isClosing; left = end - now()) {
            if (!waits(left)) {
                isClosing = true;
            }
        }
    }

    /** The next items to send; empty if there are none, or if the queue was closed. */
    private synchronized List<Item> take() {
        if (isClosing) {
            dropped += items.size();
            items.clear();
        }
        double now = System.currentTimeMillis() / 1000.0;
        List<Item> batch = new ArrayList<>();
        while (!items.isEmpty() && batch.size() < BATCH) {
            Item item = items.removeFirst();
            if (item.expiresAt > now) {
                batch.add(item);
            } else {
                dropped += 1;
            }
        }
        sending = batch.size();
        if (batch.isEmpty()) {
            isRunning = false;
            notifyAll();
        }
        return batch;
    }

    /** Sends a batch. Returns the time to wait before the next one; 0 if this one has its results. */
    private long send(List<Item> batch, int failures) {
        try {
            List<Object> results = server.feedback(batch.stream().map(Item::body).toList(), SEND_MILLIS);
            List<String> statuses = results.stream().map(FeedbackQueue::status).toList();
            for (int at = 0; at < statuses.size(); at += 1) {
                if (statuses.get(at).equals("refused")) {
                    log.accept("feedback is refused: " + Json.write(results.get(at)));
                }
            }
            settle(statuses);
            return 0;
        } catch (RankduelException failed) {
            if (!failed.isRetryable()) {
                return discard(batch, failed);
            }
            if (failures == 0) {
                log.accept("feedback is sent again later: " + failed.getMessage());
            }
            putBack(batch);
            long longest = Math.min(LONGEST_WAIT_MILLIS, FIRST_WAIT_MILLIS << Math.min(failures, 10));
            long wait = ThreadLocalRandom.current().nextLong(longest / 2, longest);
            return Math.max(wait, Math.min(failed.retryAfterMillis(), LONGEST_WAIT_MILLIS));
        } catch (RuntimeException error) {
            // the thread must go on for the other items
            return discard(batch, error);
        }
    }

    private long discard(List<Item> batch, Exception error) {
        log.accept("feedback is discarded: " + error);
        settle(Collections.nCopies(batch.size(), "refused"));
        return 0;
    }

    private static String status(Object result) {
        Object status = result instanceof Map<?, ?> members ? members.get("status") : null;
        return "recorded".equals(status) || "duplicate".equals(status) ? (String) status : "refused";
    }

    private synchronized void settle(List<String> statuses) {
        recorded += Collections.frequency(statuses, "recorded");
        duplicate += Collections.frequency(statuses, "duplicate");
        refused += Collections.frequency(statuses, "refused");
        sending = 0;
    }

    private synchronized void putBack(List<Item> batch) {
        for (int at = batch.size() - 1; at >= 0; at -= 1) {
            items.addFirst(batch.get(at));
        }
        sending = 0;
    }
}
