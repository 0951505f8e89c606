package rankduel;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Deque;
import java.util.List;
import java.util.Map;
import java.util.Set;
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
    /** Statuses that refuse a whole request, perhaps for one of its items. */
    private static final Set<Integer> ABOUT_AN_ITEM = Set.of(400, 413, 422);
    private static final String REFUSED = "feedback is refused: ";
    private static final String LATE = "; if clicks come one by one, queue them as not final";

    private record Item(String json, double expiresAt) {}

    private final Server server;
    private final int most;
    private final Consumer<String> log;
    private final Deque<Item> items = new ArrayDeque<>();
    /** Number of items of a request; only the sending thread uses it. */
    private volatile int together = BATCH;
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

    /**
     * Queues an item. It is sent again until the server has it, at most until the duel expires. An
     * item that has no form in JSON is refused at once.
     */
    void put(Map<String, Object> body, double expiresAt) {
        try {
            put(new Item(Transport.encode(body), expiresAt));
        } catch (RankduelException failed) {
            log.accept(REFUSED + failed.getMessage());
            synchronized (this) {
                refused += 1;
            }
        }
    }

    private synchronized void put(Item item) {
        if (isClosing) {
            dropped += 1;
            return;
        }
        if (items.size() >= most) {
            // drop the oldest item: newer ones have more time left to arrive
            items.removeFirst();
            dropped += 1;
        }
        items.addLast(item);
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
        while (!items.isEmpty() && batch.size() < together) {
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
            List<Object> results = server.feedback(batch.stream().map(Item::json).toList(), SEND_MILLIS);
            together = Math.min(2 * together, BATCH);
            settle(results.stream().map(this::status).toList());
            return 0;
        } catch (RankduelException failed) {
            if (ABOUT_AN_ITEM.contains(failed.status().orElse(0)) && batch.size() > 1) {
                // send fewer together, until the item that is refused is alone
                together = batch.size() / 2;
                putBack(batch);
                return 0;
            }
            if (!failed.isRetryable()) {
                log.accept(REFUSED + failed.getMessage());
                settle(Collections.nCopies(batch.size(), "refused"));
                return 0;
            }
            if (failures == 0) {
                log.accept("feedback is sent again later: " + failed.getMessage());
            }
            putBack(batch);
            long longest = Math.min(LONGEST_WAIT_MILLIS, FIRST_WAIT_MILLIS << Math.min(failures, 10));
            long wait = ThreadLocalRandom.current().nextLong(longest / 2, longest);
            return Math.max(wait, Math.min(failed.retryAfterMillis(), LONGEST_WAIT_MILLIS));
        }
    }

    private String status(Object result) {
        Object status = result instanceof Map<?, ?> members ? members.get("status") : null;
        if ("recorded".equals(status) || "duplicate".equals(status)) {
            return (String) status;
        }
        log.accept(REFUSED + Json.write(result) + ("late".equals(status) ? LATE : ""));
        return "refused";
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
