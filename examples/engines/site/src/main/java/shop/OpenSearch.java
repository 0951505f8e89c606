package shop;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ExecutionException;

/** OpenSearch or Elasticsearch: all rankings come from one `_msearch`. */
final class OpenSearch implements Engine {
    private static final String LINES = "application/x-ndjson";
    private final String url;

    OpenSearch(String url) {
        this.url = url;
    }

    @Override
    public void add(List<Map<String, Object>> documents) throws Exception {
        Map<String, Object> text = Map.of("type", "text", "analyzer", "english");
        Map<String, Object> key = Map.of("type", "keyword");
        Map<String, Object> fields = Map.of("id", key, "title", text, "description", text, "style", key, "category",
                key, "popularity", Map.of("type", "integer"));
        Map<String, Object> index = Map.of(
                "settings", Map.of("number_of_shards", 1, "number_of_replicas", 0),
                "mappings", Map.of("properties", fields));
        try {
            Json.send("PUT", url + "/products", "application/json", Json.MAPPER.writeValueAsString(index)).get();
        } catch (ExecutionException error) {
            if (!error.getMessage().contains("resource_already_exists_exception")) {
                throw error;
            }
        }
        StringBuilder lines = new StringBuilder();
        for (Map<String, Object> document : documents) {
            line(lines, Map.of("index", Map.of("_id", document.get("id"))));
            line(lines, document);
        }
        JsonNode answer = Json.send("POST", url + "/products/_bulk?refresh=true", LINES, lines.toString()).get();
        if (answer.get("errors").asBoolean()) {
            throw new IllegalStateException("not all products were added");
        }
    }

    @Override
    public Found search(Set<String> rankers, Query query) throws Exception {
        StringBuilder lines = new StringBuilder();
        for (String ranker : rankers) {
            line(lines, Map.of("preference", query.unit()));
            line(lines, body(ranker, query));
        }
        JsonNode responses = Json.send("POST", url + "/products/_msearch", LINES, lines.toString()).get().get("responses");
        Map<String, List<String>> rankings = new HashMap<>();
        Map<String, Integer> categories = new LinkedHashMap<>();
        int next = 0;
        for (String ranker : rankers) {
            JsonNode response = responses.get(next++);
            // each search fails or is cut short by itself
            if (!response.has("hits") || response.get("timed_out").asBoolean()) {
                continue;
            }
            List<String> found = new ArrayList<>();
            response.get("hits").get("hits").forEach(hit -> found.add(hit.get("fields").get("style").get(0).asText()));
            rankings.put(ranker, found);
            response.path("aggregations").path("category").path("buckets")
                    .forEach(bucket -> categories.put(bucket.get("key").asText(), bucket.get("doc_count").asInt()));
        }
        return new Found(rankings, categories);
    }

    private static Map<String, Object> body(String ranker, Query query) {
        List<String> fields = List.of(ranker.equals("bm25-title") ? "title^3" : "title", "description");
        Map<String, Object> match = Map.of("multi_match", Map.of("query", query.text(), "fields", fields));
        List<Object> filter = query.category() == null ? List.of()
                : List.of(Map.of("term", Map.of("category", query.category())));
        Map<String, Object> body = new LinkedHashMap<>();
        body.put("query", Map.of("bool", Map.of("must", match, "filter", filter)));
        // the key of a product, not the id of its best size, which differs between rankers
        body.put("collapse", Map.of("field", "style"));
        body.put("sort", List.of("_score", Map.of("style", "asc")));
        body.put("_source", false);
        body.put("size", DEPTH);
        body.put("timeout", MILLISECONDS + "ms");
        if (ranker.equals(CONTROL)) {
            body.put("aggs", Map.of("category", Map.of("terms", Map.of("field", "category"))));
        }
        return body;
    }

    @Override
    public Map<String, Product> products(List<String> keys) throws Exception {
        Map<String, Object> body = Map.of(
                "query", Map.of("terms", Map.of("style", keys)),
                "collapse", Map.of("field", "style"),
                "_source", List.of("style", "title", "category"),
                "size", keys.size());
        Map<String, Product> products = new HashMap<>();
        for (JsonNode hit : Json.post(url + "/products/_search", body).get("hits").get("hits")) {
            JsonNode source = hit.get("_source");
            Product product = new Product(source.get("title").asText(), source.get("category").asText());
            products.put(source.get("style").asText(), product);
        }
        return products;
    }

    /** Every line ends with a newline, the last one too. */
    private static void line(StringBuilder lines, Object value) throws Exception {
        lines.append(Json.MAPPER.writeValueAsString(value)).append('\n');
    }
}
