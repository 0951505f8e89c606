package shop;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.URLDecoder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Executors;
import rankduel.Rankduel;

/** The site as a process. Arguments: opensearch or solr, its address, rankduel's, and the file of orders. */
public final class Main {
    private static final String EXPERIMENT = "shop";
    private static final Duration DEADLINE = Duration.ofMillis(Integer.getInteger("deadline", 50));

    private static final int TOGETHER = 5_000;

    private interface Action {
        Object act(HttpExchange exchange) throws Exception;
    }

    private Main() {}

    public static void main(String[] arguments) throws Exception {
        Engine engine = arguments[0].equals("solr") ? new Solr(arguments[1]) : new OpenSearch(arguments[1]);
        String url = arguments[2];
        List<Map<String, Object>> documents = Catalogue.documents(Integer.getInteger("products", 400));
        for (int from = 0; from < documents.size(); from += TOGETHER) {
            engine.add(documents.subList(from, Math.min(from + TOGETHER, documents.size())));
        }
        Rankduel rankduel = Rankduel.builder(url, EXPERIMENT, Engine.CONTROL)
                .deadline(DEADLINE)
                .log(System.err::println)
                .build();
        rankduel.check();
        Shop shop = new Shop(engine, rankduel);
        Events events = new Events(rankduel, url + "/v1/experiments/" + EXPERIMENT, Path.of(arguments[3]));

        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", 0), 100);
        route(server, "/search", exchange -> {
            Map<String, String> query = query(exchange);
            String user = query.getOrDefault("user", "nobody");
            int page = Integer.parseInt(query.getOrDefault("page", "0"));
            return shop.page(new Engine.Query(query.get("q"), query.get("category"), user), page);
        });
        route(server, "/click", exchange -> {
            events.click(Json.MAPPER.readTree(exchange.getRequestBody()));
            return Map.of("status", "accepted");
        });
        route(server, "/ubi_events", exchange -> events.ubi(Json.MAPPER.readTree(exchange.getRequestBody())));
        route(server, "/order", exchange -> {
            events.order(Json.MAPPER.readTree(exchange.getRequestBody()));
            return Map.of("status", "accepted");
        });
        server.setExecutor(Executors.newFixedThreadPool(8));
        server.start();
        Runtime.getRuntime().addShutdownHook(new Thread(rankduel::close));
        System.out.println("site http://127.0.0.1:" + server.getAddress().getPort());
    }

    private static void route(HttpServer server, String path, Action action) {
        server.createContext(path, exchange -> {
            try (exchange) {
                Object answer;
                int status = 200;
                try {
                    answer = action.act(exchange);
                } catch (Exception error) {
                    error.printStackTrace();
                    status = 502;
                    answer = Map.of("error", String.valueOf(error));
                }
                byte[] body = Json.MAPPER.writeValueAsBytes(answer);
                exchange.getResponseHeaders().set("content-type", "application/json");
                exchange.sendResponseHeaders(status, body.length);
                exchange.getResponseBody().write(body);
            }
        });
    }

    private static Map<String, String> query(HttpExchange exchange) throws IOException {
        Map<String, String> query = new HashMap<>();
        for (String part : exchange.getRequestURI().getRawQuery().split("&")) {
            String[] pair = part.split("=", 2);
            query.put(pair[0], URLDecoder.decode(pair[1], StandardCharsets.UTF_8));
        }
        return query;
    }
}
