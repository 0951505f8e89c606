package rankduel;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;

/** The adapter of this client for conformance/check_clients.py: one request and one answer a line. */
public final class Adapter {
    /** A failure of the search that the client calls. */
    private static final class ApplicationException extends Exception {
        private static final long serialVersionUID = 1;
    }

    private Rankduel client;
    private final List<List<String>> asked = new ArrayList<>();

    public static void main(String[] arguments) throws Exception {
        Adapter adapter = new Adapter();
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream answers = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            answers.println(Json.write(adapter.answer(Json.object(Json.read(line)))));
        }
        // the threads of a client would keep the process alive
        System.exit(0);
    }

    private Map<String, Object> answer(Map<String, Object> request) throws Exception {
        try {
            Map<String, Object> given = Json.object(request.get("with"));
            return Map.of("ok", act(Json.string(request.get("do")), given));
        } catch (RankduelException failed) {
            Map<String, Object> error = new LinkedHashMap<>();
            error.put("reason", failed.reason());
            error.put("status", failed.status().isPresent() ? failed.status().getAsInt() : null);
            error.put("retry_after", failed.retryAfterMillis() / 1000);
            error.put("retryable", failed.isRetryable());
            return Map.of("error", error);
        } catch (IllegalArgumentException error) {
            return Map.of("error", Map.of("reason", "usage", "detail", trace(error)));
        } catch (ApplicationException error) {
            return Map.of("error", Map.of("reason", "application"));
        }
    }

    private static String trace(Throwable error) {
        StringWriter trace = new StringWriter();
        error.printStackTrace(new PrintWriter(trace));
        return trace.toString();
    }

    private Map<String, Object> act(String what, Map<String, Object> given) throws Exception {
        String of = (String) given.get("of");
        switch (what) {
            case "connect":
                client = connect(given);
                return Map.of("queue", true);
            case "check":
                return Map.of("rankers", client.check());
            case "next_duel":
                return members(client.nextDuel((String) given.get("unit"), (String) given.get("segment")));
            case "page":
                return asked(page(given));
            case "more":
                return asked(more(Duel.fromJson(of), given));
            case "report_clicks":
                List<Click> clicks = Json.list(given.get("clicks")).stream().map(Adapter::click).toList();
                return status(client.reportClicks(of, clicks, Json.flag(given.get("final"))));
            case "report_outcome":
                String outcome = Json.string(given.get("outcome")).toUpperCase(Locale.ROOT);
                return status(client.reportOutcome(of, Outcome.valueOf(outcome)));
            case "report_metrics":
                return status(client.reportMetrics(of, metrics(given)));
            case "report_orders":
                List<Order> orders = Json.list(given.get("orders")).stream().map(Adapter::order).toList();
                return Map.of("results", client.reportOrders(orders).stream().map(Adapter::result).toList());
            case "queue_clicks":
            case "queue_outcome":
            case "queue_metrics":
                queue(given);
                return Map.of();
            case "flush":
                return Map.of("flushed", client.flush(millis(Json.number(given.get("milliseconds")))));
            case "close":
                return Map.of("flushed", client.close(millis(Json.number(given.get("milliseconds")))));
            case "counts":
                Counts counts = client.counts();
                return Map.of("recorded", counts.recorded(), "duplicate", counts.duplicate(), "refused",
                        counts.refused(), "dropped", counts.dropped(), "waiting", counts.waiting());
            default:
                throw new IllegalStateException("unknown request " + what);
        }
    }

    private static Order order(Object given) {
        Map<String, Object> members = Json.object(given);
        String at = (String) members.get("at");
        List<Order.Line> lines = members.get("lines") == null ? null
                : Json.list(members.get("lines")).stream().map(Adapter::line).toList();
        return new Order(Json.string(members.get("order_id")), (String) members.get("unit"),
                at == null ? null : Instant.parse(at), lines, members.containsKey("cancelled"));
    }

    private static Order.Line line(Object given) {
        Map<String, Object> members = Json.object(given);
        int quantity = (int) Json.number(members.getOrDefault("quantity", 1.0));
        return new Order.Line(Json.string(members.get("document")), (Double) members.get("value"), quantity);
    }

    private static Map<String, Object> result(OrderResult result) {
        Map<String, Object> members = new LinkedHashMap<>();
        members.put("status", result.status());
        members.put("experiments", result.experiments());
        members.put("detail", result.detail());
        members.put("pointer", result.pointer());
        return members;
    }

    private void queue(Map<String, Object> given) {
        String of = (String) given.get("of");
        String duelId = (String) given.get("duel_id");
        if (given.get("outcome") instanceof String name) {
            Outcome outcome = Outcome.valueOf(name.toUpperCase(Locale.ROOT));
            if (of == null) {
                client.queueOutcome(duelId, outcome);
            } else {
                client.queueOutcome(Duel.fromJson(of), outcome);
            }
            return;
        }
        if (given.containsKey("metrics")) {
            if (of == null) {
                client.queueMetrics(duelId, metrics(given));
            } else {
                client.queueMetrics(Duel.fromJson(of), metrics(given));
            }
            return;
        }
        List<Click> clicks = Json.list(given.get("clicks")).stream().map(Adapter::click).toList();
        boolean isFinal = Json.flag(given.get("final"));
        if (of == null) {
            client.queueClicks(duelId, clicks, isFinal);
        } else {
            client.queueClicks(Duel.fromJson(of), clicks, isFinal);
        }
    }

    private static Map<String, Map<String, Double>> metrics(Map<String, Object> given) {
        Map<String, Map<String, Double>> metrics = new HashMap<>();
        Json.object(given.get("metrics")).forEach((ranker, values) -> {
            Map<String, Double> ofRanker = new HashMap<>();
            Json.object(values).forEach((metric, value) -> ofRanker.put(metric, Json.number(value)));
            metrics.put(ranker, ofRanker);
        });
        return metrics;
    }

    private static Rankduel connect(Map<String, Object> given) {
        Duration stockAge = millis(1000 * Json.number(given.get("stock_seconds")));
        return Rankduel.builder(
                        Json.string(given.get("url")),
                        Json.string(given.get("experiment")),
                        Json.string(given.get("control")))
                .key((String) given.get("key"))
                .deadline(millis(Json.number(given.get("deadline_ms"))))
                .reportTime(millis(Json.number(given.get("report_ms"))))
                .stock((int) Json.number(given.get("stock")), stockAge)
                .queue((int) Json.number(given.get("queue")))
                .build();
    }

    private static Duration millis(double millis) {
        return Duration.ofMillis((long) millis);
    }

    private Page page(Map<String, Object> given) throws Exception {
        boolean isPair = given.get("form").equals("pair");
        return isPair ? client.page(making(given), window(given)) : client.page(rankings(given), window(given));
    }

    private Page more(Duel of, Map<String, Object> given) throws Exception {
        boolean isPair = given.get("form").equals("pair");
        return isPair ? client.more(of, making(given), window(given)) : client.more(of, rankings(given), window(given));
    }

    private static Map<String, List<String>> rankings(Map<String, Object> given) {
        Map<String, List<String>> rankings = new HashMap<>();
        Json.object(given.get("rankings")).forEach((ranker, ranking) ->
                rankings.put(ranker, Json.list(ranking).stream().map(Json::string).toList()));
        return rankings;
    }

    private Rankings making(Map<String, Object> given) {
        List<Object> failing = Json.list(given.getOrDefault("failing", List.of()));
        List<Object> missing = Json.list(given.getOrDefault("missing", List.of()));
        List<Object> others = Json.list(given.getOrDefault("others", List.of()));
        asked.clear();
        return rankers -> {
            asked.add(List.copyOf(rankers));
            if (rankers.stream().anyMatch(failing::contains)) {
                throw new ApplicationException();
            }
            Map<String, List<String>> rankings = rankings(given);
            rankings.keySet().removeIf(ranker -> !rankers.contains(ranker) && !others.contains(ranker));
            rankings.keySet().removeAll(missing);
            return rankings;
        };
    }

    private Map<String, Object> asked(Page page) {
        Map<String, Object> members = members(page);
        members.put("asked", List.copyOf(asked));
        return members;
    }

    private static Window window(Map<String, Object> given) {
        Map<Integer, String> pinned = new HashMap<>();
        for (Object pin : Json.list(given.getOrDefault("pinned", List.of()))) {
            Map<String, Object> one = Json.object(pin);
            pinned.put((int) Json.number(one.get("position")), Json.string(one.get("document")));
        }
        int offset = (int) Json.number(given.getOrDefault("offset", 0));
        int length = (int) Json.number(given.get("length"));
        return new Window(length, offset, pinned, (String) given.get("unit"), (String) given.get("segment"));
    }

    private static Click click(Object given) {
        if (given instanceof Double position) {
            return Click.at(position.intValue());
        }
        if (given instanceof String document) {
            return Click.on(document);
        }
        Map<String, Object> members = Json.object(given);
        Click click = members.containsKey("position") ? Click.at((int) Json.number(members.get("position")))
                : members.containsKey("slot") ? Click.onSlot(Json.string(members.get("slot")))
                : Click.on(Json.string(members.get("document")));
        return members.containsKey("event") ? click.as(Json.string(members.get("event"))) : click;
    }

    private static Map<String, Object> members(Duel duel) {
        return members(duel.toJson());
    }

    private static Map<String, Object> members(Page page) {
        return members(Page.fromJson(page.toJson()).toJson());
    }

    private static Map<String, Object> members(String json) {
        Map<String, Object> members = Json.object(Json.read(json));
        members.put("json", json);
        return members;
    }

    private static Map<String, Object> status(Status status) {
        return Map.of("status", status.name().toLowerCase(Locale.ROOT));
    }
}
