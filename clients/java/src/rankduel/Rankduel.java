package rankduel;

import java.time.Duration;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.function.Consumer;

/**
 * One experiment of a rankduel server: requests the two rankings to interleave for a query, and sends
 * the clicks. Threads share a client.
 *
 * <pre>{@code
 * Rankduel rankduel = Rankduel.builder("http://127.0.0.1:7171", "search", "bm25").build();
 * Page page = rankduel.page(Map.of("bm25", bm25, "neural", neural), Window.of(10));
 * show(page.documents(), page.duelId());
 * rankduel.reportClicks(duelId, List.of(Click.at(0)));
 * }</pre>
 *
 * <p>{@code page} always returns within the deadline. If the service does not answer in time, it
 * returns the control's ranking.
 */
public final class Rankduel implements AutoCloseable {
    /** Feedback of which only the id of the duel is known is sent again for a day. */
    private static final double KEPT_SECONDS = 24 * 3600.0;
    private static final Duration CLOSING = Duration.ofSeconds(10);
    private static final Duration LONGEST_LIMIT = Duration.ofDays(1);
    /** The server issues no more at once. */
    private static final int MOST_DUELS = 1000;

    private final String experiment;
    private final String control;
    private final long deadlineMillis;
    private final long reportMillis;
    private final Consumer<RankduelException> onFallback;
    private final Server server;
    private final Stock stock;
    private final FeedbackQueue queue;

    private Rankduel(Builder builder) {
        experiment = builder.experiment;
        control = builder.control;
        deadlineMillis = builder.deadline.toMillis();
        reportMillis = builder.reportTime.toMillis();
        onFallback = builder.onFallback;
        server = new Server(new Transport(builder.url, builder.key), experiment);
        queue = new FeedbackQueue(server, builder.queue, builder.log);
        stock = builder.stock == 0 ? null : new Stock(server, builder.stock, builder.stockAge.toMillis());
    }

    /** Settings of a client that shows the ranker {@code control} if rankduel does not answer. */
    public static Builder builder(String url, String experiment, String control) {
        return new Builder(url, experiment, control);
    }

    /** Settings of a client. */
    public static final class Builder {
        private final String url;
        private final String experiment;
        private final String control;
        private String key;
        private Duration deadline = Duration.ofMillis(50);
        private Duration reportTime = Duration.ofSeconds(10);
        private int stock;
        private Duration stockAge = Duration.ofSeconds(5);
        private int queue = 10_000;
        private Consumer<String> log = message -> {};
        private Consumer<RankduelException> onFallback = reason -> {};

        private Builder(String url, String experiment, String control) {
            this.url = Objects.requireNonNull(url, "url");
            this.experiment = name("experiment", experiment);
            this.control = name("control", control);
        }

        private static String name(String what, String name) {
            if (name == null || name.isEmpty()) {
                throw new IllegalArgumentException("the " + what + " has no name");
            }
            return name;
        }

        /** An API key, if the server requires one. */
        public Builder key(String key) {
            this.key = key;
            return this;
        }

        /** Time limit of a request for a duel or a page; 50 ms by default. */
        public Builder deadline(Duration deadline) {
            this.deadline = positive(deadline);
            return this;
        }

        /** Time limit of a report, with all attempts; 10 s by default. */
        public Builder reportTime(Duration reportTime) {
            this.reportTime = positive(reportTime);
            return this;
        }

        /** Number of duels to request at once, and the time for which one may be used. */
        public Builder stock(int stock, Duration stockAge) {
            if (stock < 0 || stock > MOST_DUELS) {
                throw new IllegalArgumentException("stock is " + stock + "; it must be from 0 to " + MOST_DUELS);
            }
            this.stock = stock;
            this.stockAge = positive(stockAge);
            return this;
        }

        /**
         * Number of items of feedback that may wait to be sent; 10,000 by default. If there are more,
         * the oldest are dropped.
         */
        public Builder queue(int queue) {
            if (queue < 1) {
                throw new IllegalArgumentException("queue is " + queue + "; it must be at least 1");
            }
            this.queue = queue;
            return this;
        }

        /** Called with each message about queued feedback that is refused or sent again. */
        public Builder log(Consumer<String> log) {
            this.log = whatever(log);
            return this;
        }

        /** Called with the error behind each fallback to the control. */
        public Builder onFallback(Consumer<RankduelException> onFallback) {
            this.onFallback = whatever(onFallback);
            return this;
        }

        /** Goes on if the consumer fails: a page and the queue do not depend on it. */
        private static <T> Consumer<T> whatever(Consumer<T> consumer) {
            Objects.requireNonNull(consumer);
            return value -> {
                try {
                    consumer.accept(value);
                } catch (RuntimeException error) {
                    System.getLogger("rankduel").log(System.Logger.Level.WARNING, "a callback failed", error);
                }
            };
        }

        /** The client. */
        public Rankduel build() {
            return new Rankduel(this);
        }

        private static Duration positive(Duration duration) {
            if (duration.compareTo(LONGEST_LIMIT) <= 0 && duration.toMillis() > 0) {
                return duration;
            }
            throw new IllegalArgumentException(
                    "a time limit is " + duration + "; it must be at least 1 ms and at most a day");
        }
    }

    /**
     * The rankers of the experiment. Call it when your service starts: it throws if the server, the
     * experiment or the key is wrong, or if the control is not one of the rankers, which otherwise
     * shows only in an outage. A key needs the scope {@code read} for it.
     */
    public List<String> check() throws RankduelException {
        List<String> rankers = server.rankers(reportMillis);
        if (rankers.contains(control)) {
            return rankers;
        }
        String listed = String.join(", ", rankers);
        String detail = "control is " + control + ", but the rankers of " + experiment + " are " + listed;
        throw new RankduelException("control-unknown", detail, null);
    }

    /** The two rankers to interleave. If rankduel does not answer in time, both are the control. */
    public Duel nextDuel() {
        return nextDuel(null, null);
    }

    /** The same for a unit, an opaque id of the user or the session, or null. */
    public Duel nextDuel(String unit) {
        return nextDuel(unit, null);
    }

    /**
     * The same for a unit and a segment, each of which may be null. The segment is a label of 1 to
     * 32 bytes for the part of the traffic that the page belongs to, such as {@code mobile}. A duel
     * with a unit or a segment is requested by itself, not taken from the stock.
     */
    public Duel nextDuel(String unit, String segment) {
        try {
            Map<String, Object> body = Window.visit(unit, segment);
            if (stock != null && body.isEmpty()) {
                return stock.take(deadlineMillis);
            }
            return Duel.ofAnswer(server.ask("/next-duel", body, deadlineMillis));
        } catch (RankduelException failed) {
            return Duel.ofControl(control, fellBack(failed));
        }
    }

    /**
     * A page of two interleaved rankings, from the document ids of every ranker, best first. If
     * rankduel does not answer in time, it has the control's ranking.
     *
     * @throws IllegalArgumentException if the rankings lack the control: there is nothing to show
     */
    public Page page(Map<String, List<String>> rankings, Window window) {
        List<String> controls = controlOf(rankings);
        try {
            Map<String, Object> body = window.body();
            body.put("rankings", rankings);
            Map<String, Object> answer = server.ask("/next-duel", body, deadlineMillis);
            Duel duel = Duel.ofAnswer(answer);
            return Page.ofAnswer(answer, duel.left(), duel.right());
        } catch (RankduelException failed) {
            return Page.ofControl(control, controls, fellBack(failed), window);
        }
    }

    /**
     * The same for expensive rankings: calls for those of the two rankers that rankduel selects, at
     * once. If they fail or one is missing, the page has the control's ranking, for which there is a
     * second call unless the first one had it.
     *
     * @throws Exception that of the second call
     */
    public Page page(Rankings rankings, Window window) throws Exception {
        // with a stock, the unit and the segment go with the rankings alone
        Duel duel = stock == null ? nextDuel(window.unit(), window.segment()) : nextDuel();
        return more(duel, rankings, window);
    }

    /**
     * A page of an earlier duel: the first page of a duel from {@link #nextDuel()}, or a later page
     * of the same list. Pass the same rankings and pins for every page of a duel. If rankduel does not
     * answer in time, or did not answer for the duel, the page has the control's ranking.
     */
    public Page more(Duel of, Map<String, List<String>> rankings, Window window) {
        controlOf(rankings);
        try {
            return more(of, rankers -> rankings, window);
        } catch (Exception error) {
            throw new IllegalStateException(error);
        }
    }

    /**
     * The same for expensive rankings.
     *
     * @throws Exception that of the control's ranking
     */
    public Page more(Duel of, Rankings rankings, Window window) throws Exception {
        Map<String, List<String>> made = Map.of();
        String reason = of.fallback();
        if (of.id() != null) {
            try {
                made = madeFor(of, rankings);
                return interleaved(of, made, window);
            } catch (RankduelException failed) {
                reason = fellBack(failed);
            }
        }
        if (made.get(control) == null) {
            made = rankings.of(Set.of(control));
        }
        return Page.ofControl(control, controlOf(made), reason, window);
    }

    private static Map<String, List<String>> madeFor(Duel of, Rankings rankings) throws RankduelException {
        // in this order, without repeats
        Set<String> rankers = new LinkedHashSet<>(List.of(of.left(), of.right()));
        try {
            return new HashMap<>(rankings.of(rankers));
        } catch (Exception error) {
            throw new RankduelException("ranker-failed", String.join(", ", rankers) + ": " + error, error);
        }
    }

    private Page interleaved(Duel of, Map<String, List<String>> made, Window window) throws RankduelException {
        Map<String, Object> body = window.body();
        body.put("duel_id", of.id());
        body.put("left", rankingOf(of.left(), made));
        body.put("right", rankingOf(of.right(), made));
        return Page.ofAnswer(server.ask("/interleave", body, deadlineMillis), of.left(), of.right());
    }

    private static List<String> rankingOf(String ranker, Map<String, List<String>> made) throws RankduelException {
        List<String> ranking = made.get(ranker);
        if (ranking == null || ranking.stream().anyMatch(Objects::isNull)) {
            throw new RankduelException("ranker-failed", "rankings lack " + ranker + ", or one of its ids", null);
        }
        return ranking;
    }

    private List<String> controlOf(Map<String, List<String>> rankings) {
        List<String> found = rankings.get(control);
        if (found == null) {
            throw new IllegalArgumentException(
                    "rankings lack the control, " + control + ", which is shown if rankduel does not answer");
        }
        return found;
    }

    /** Reports all clicks on the page of a duel; an empty list if there were none. */
    public Status reportClicks(String duelId, List<Click> clicks) throws RankduelException {
        return reportClicks(duelId, clicks, true);
    }

    /**
     * Reports clicks on the page of a duel. Transient failures are repeated while the time of a report
     * lasts. The id of a fallback page is null; its clicks are ignored.
     *
     * <p>Clicks after a final call are late and do not count. If you call it once for each click, let
     * no call be final: more clicks can then follow, in any order, and all clicks of a duel together
     * count as one outcome.
     *
     * @throws RankduelException if its {@code isRetryable} is true, the same feedback may be accepted
     *     later
     */
    public Status reportClicks(String duelId, List<Click> clicks, boolean isFinal) throws RankduelException {
        return report(duelId, clicksItem(clicks, isFinal));
    }

    /** Reports the outcome, if your own code merges the pages and credits the clicks. */
    public Status reportOutcome(String duelId, Outcome outcome) throws RankduelException {
        return report(duelId, outcomeItem(outcome));
    }

    /**
     * Reports values of the experiment's metrics, by ranker and metric. Report them for every page,
     * whether it is clicked or not: a value that does not come counts as the worst.
     */
    public Status reportMetrics(String duelId, Map<String, Map<String, Double>> metrics) throws RankduelException {
        return report(duelId, metricsItem(metrics));
    }

    /**
     * Sends orders, at most 1,000, to an experiment that orders decide. Returns the result of each.
     * Transient failures are repeated like those of {@code reportClicks}; a repeat never counts twice.
     */
    public List<OrderResult> reportOrders(List<Order> orders) throws RankduelException {
        return server.orders(List.copyOf(orders), reportMillis);
    }

    /** Reports all clicks on the page of a duel without waiting; an empty list if there were none. */
    public void queueClicks(String duelId, List<Click> clicks) {
        queueClicks(duelId, clicks, true);
    }

    /**
     * The same as {@link #reportClicks(String, List, boolean)}, but returns at once: a daemon thread
     * sends the clicks again until the server has them, for at most a day.
     */
    public void queueClicks(String duelId, List<Click> clicks, boolean isFinal) {
        put(duelId, clicksItem(clicks, isFinal), System.currentTimeMillis() / 1000.0 + KEPT_SECONDS);
    }

    /** The same, for at most as long as the duel lasts. */
    public void queueClicks(Duel of, List<Click> clicks, boolean isFinal) {
        put(of.id(), clicksItem(clicks, isFinal), of.expiresAt());
    }

    /** The same as {@link #reportOutcome}, but returns at once, like {@code queueClicks}. */
    public void queueOutcome(String duelId, Outcome outcome) {
        put(duelId, outcomeItem(outcome), System.currentTimeMillis() / 1000.0 + KEPT_SECONDS);
    }

    /** The same, for at most as long as the duel lasts. */
    public void queueOutcome(Duel of, Outcome outcome) {
        put(of.id(), outcomeItem(outcome), of.expiresAt());
    }

    /** The same as {@link #reportMetrics}, but returns at once, like {@code queueClicks}. */
    public void queueMetrics(String duelId, Map<String, Map<String, Double>> metrics) {
        put(duelId, metricsItem(metrics), System.currentTimeMillis() / 1000.0 + KEPT_SECONDS);
    }

    /** The same, for at most as long as the duel lasts. */
    public void queueMetrics(Duel of, Map<String, Map<String, Double>> metrics) {
        put(of.id(), metricsItem(metrics), of.expiresAt());
    }

    /** Number of queued items of feedback so far, by result. */
    public Counts counts() {
        return queue.counts();
    }

    /**
     * Waits at most this long until the server has all queued feedback. Returns whether it has.
     */
    public boolean flush(Duration limit) {
        return queue.flush(limit.toMillis());
    }

    /** {@code flush}, and drops all later feedback for the queue. Call it before the process ends. */
    public boolean close(Duration limit) {
        return queue.close(limit.toMillis());
    }

    /** {@code close} with a limit of ten seconds. */
    @Override
    public void close() {
        close(CLOSING);
    }

    private static Map<String, Object> clicksItem(List<Click> clicks, boolean isFinal) {
        Map<String, Object> item = new LinkedHashMap<>();
        item.put("clicks", clicks.stream().map(Click::members).toList());
        item.put("final", isFinal);
        return item;
    }

    private static Map<String, Object> outcomeItem(Outcome outcome) {
        return new LinkedHashMap<>(Map.of("outcome", outcome.wireName()));
    }

    private static Map<String, Object> metricsItem(Map<String, Map<String, Double>> metrics) {
        Map<String, Object> copies = new LinkedHashMap<>();
        metrics.forEach((ranker, values) -> values.forEach((metric, value) -> {
            if (!Double.isFinite(value)) {
                throw new IllegalArgumentException(metric + " of " + ranker + " is " + value + "; it must be finite");
            }
        }));
        metrics.forEach((ranker, values) -> copies.put(ranker, new LinkedHashMap<>(values)));
        return new LinkedHashMap<>(Map.of("metrics", copies));
    }

    private void put(String duelId, Map<String, Object> item, double expiresAt) {
        if (duelId != null && !duelId.isEmpty()) {
            item.put("duel_id", duelId);
            queue.put(item, expiresAt);
        }
    }

    private Status report(String duelId, Map<String, Object> item) throws RankduelException {
        if (duelId == null || duelId.isEmpty()) {
            return Status.IGNORED;
        }
        item.put("duel_id", duelId);
        return server.report(item, reportMillis);
    }

    private String fellBack(RankduelException failed) {
        onFallback.accept(failed);
        return failed.reason();
    }
}
