package rankduel;

import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ThreadLocalRandom;

/** One experiment of a server: the pause after failures, and the attempts to send feedback. */
final class Server {
    /** After this many consecutive requests without an answer, the client pauses. */
    private static final int FAILURES_TO_REST = 5;
    private static final long REST_MILLIS = 1000;
    /** The longest pause that a {@code Retry-After} of the server causes. */
    private static final long LONGEST_REST_MILLIS = 5000;
    /** A report has this share of its time for one attempt. */
    private static final int ATTEMPTS = 5;
    private static final long FIRST_WAIT_MILLIS = 100;

    private final Transport transport;
    private final String path;
    private int failures;
    private long restUntil = now();

    Server(Transport transport, String experiment) {
        this.transport = transport;
        // it writes a space as a plus sign, which a path does not know
        String name = URLEncoder.encode(experiment, StandardCharsets.UTF_8).replace("+", "%20");
        this.path = "/v1/experiments/" + name;
    }

    private static long now() {
        return System.nanoTime() / 1_000_000;
    }

    /** Requests a duel or a page, in one attempt: a search waits for the answer. */
    Map<String, Object> ask(String to, Map<String, Object> body, long millis) throws RankduelException {
        beforeAsking();
        try {
            Map<String, Object> answer = transport.post(path + to, body, millis);
            afterAsking(false, 0);
            return answer;
        } catch (RankduelException failed) {
            afterAsking(failed.isTransient(), failed.retryAfterMillis());
            throw failed;
        }
    }

    private synchronized void beforeAsking() throws RankduelException {
        if (now() < restUntil) {
            String detail = "the last requests failed, so the client sends none for a moment";
            throw new RankduelException("resting", detail, null);
        }
        if (failures >= FAILURES_TO_REST) {
            // this request probes the server; the others fall back until it has a result
            restUntil = now() + REST_MILLIS;
        }
    }

    private synchronized void afterAsking(boolean hasFailed, long retryAfterMillis) {
        failures = hasFailed ? failures + 1 : 0;
        long rest = hasFailed ? Math.min(retryAfterMillis, LONGEST_REST_MILLIS) : 0;
        restUntil = now() + Math.max(rest, failures >= FAILURES_TO_REST ? REST_MILLIS : 0);
    }

    /**
     * Sends one item of feedback. Transient errors are followed by another attempt while there is
     * time for a whole one; the server counts the item once.
     */
    Status report(Map<String, Object> item, long millis) throws RankduelException {
        return repeated("/feedback", item, millis, answer -> Status.of(answer.get("status")));
    }

    /** Sends orders, like {@link #report}. Returns a result for each. */
    List<OrderResult> orders(List<Order> orders, long millis) throws RankduelException {
        Map<String, Object> body = Map.of("orders", orders.stream().map(Order::members).toList());
        return repeated("/orders", body, millis, answer -> {
            try {
                List<OrderResult> results = Json.list(answer.get("results")).stream().map(OrderResult::of).toList();
                if (results.size() == orders.size()) {
                    return results;
                }
            } catch (IllegalArgumentException error) {
                throw RankduelException.notRankduel(error.getMessage());
            }
            throw RankduelException.notRankduel("it has no result for each order");
        });
    }

    /** Reads the result from an answer. */
    private interface Reader<T> {
        T read(Map<String, Object> answer) throws RankduelException;
    }

    private <T> T repeated(String to, Map<String, Object> body, long millis, Reader<T> reader) throws RankduelException {
        String content = Transport.encode(body);
        long limit = millis / ATTEMPTS;
        long last = now() + millis - limit;
        for (int attempt = 0; ; attempt += 1) {
            try {
                return reader.read(transport.post(path + to, content, limit));
            } catch (RankduelException failed) {
                long longest = FIRST_WAIT_MILLIS << Math.min(attempt, 10);
                long wait = ThreadLocalRandom.current().nextLong(longest / 2, longest);
                wait = Math.max(wait, failed.retryAfterMillis());
                if (!failed.isTransient() || now() + wait > last) {
                    throw failed;
                }
                try {
                    Thread.sleep(wait);
                } catch (InterruptedException interrupted) {
                    Thread.currentThread().interrupt();
                    throw failed;
                }
            }
        }
    }

    /** Sends items of feedback, as JSON, together, in one attempt. Returns a result for each. */
    List<Object> feedback(List<String> items, long millis) throws RankduelException {
        String content = "{\"feedback\":[" + String.join(",", items) + "]}";
        Map<String, Object> answer = transport.post(path + "/feedback", content, millis);
        if (answer.get("results") instanceof List<?> results && results.size() == items.size()) {
            return Json.list(results);
        }
        throw RankduelException.notRankduel("it has no result for each item");
    }

    /** The rankers of the experiment. */
    List<String> rankers(long millis) throws RankduelException {
        Map<String, Object> answer = transport.get(path, millis);
        try {
            List<String> rankers = new ArrayList<>();
            for (Object ranker : Json.list(answer.get("rankers"))) {
                rankers.add(Json.string(Json.object(ranker).get("id")));
            }
            return List.copyOf(rankers);
        } catch (IllegalArgumentException error) {
            throw RankduelException.notRankduel(error.getMessage());
        }
    }
}
