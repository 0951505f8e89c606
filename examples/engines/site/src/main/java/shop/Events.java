package shop;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.io.Writer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import rankduel.Click;
import rankduel.Rankduel;

/** What searchers do after a page: clicks, User Behavior Insights events, and orders. */
final class Events {
    private final Rankduel rankduel;
    private final String experiment;
    private final Path orders;
    private final AtomicInteger number = new AtomicInteger();

    /** `experiment` is the address of the experiment; `orders` the file that the nightly job sends. */
    Events(Rankduel rankduel, String experiment, Path orders) {
        this.rankduel = rankduel;
        this.experiment = experiment;
        this.orders = orders;
    }

    /** The client sends the clicks until the server has them. A page may get more clicks later. */
    void click(JsonNode told) {
        List<Click> clicks = new ArrayList<>();
        told.get("clicks").forEach(position -> clicks.add(Click.at(position.asInt())));
        rankduel.queueClicks(told.path("duel_id").asText(null), clicks, false);
    }

    /** The collector posts a list of events. The page put its `duel_id` into their attributes. */
    JsonNode ubi(JsonNode events) throws Exception {
        return Json.post(experiment + "/feedback/ubi", Map.of("events", events));
    }

    /** The shop's own record of an order, one a line. */
    synchronized void order(JsonNode told) throws IOException {
        Map<String, Object> line = Map.of("document", told.get("id"), "value", 49.9, "quantity", 1);
        Map<String, Object> order = Map.of("order_id", "A-" + number.incrementAndGet(), "unit", told.get("user"), "at",
                Instant.now().toString(), "lines", List.of(line));
        try (Writer file = Files.newBufferedWriter(orders, StandardCharsets.UTF_8, StandardOpenOption.CREATE,
                StandardOpenOption.APPEND)) {
            file.write(Json.MAPPER.writeValueAsString(order) + "\n");
        }
    }
}
