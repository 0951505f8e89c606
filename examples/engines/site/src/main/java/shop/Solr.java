package shop;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;

/** Solr: a request for each ranking, all at the same time. */
final class Solr implements Engine {
    private final String url;

    Solr(String url) {
        this.url = url + "/solr/products";
    }

    @Override
    public void add(List<Map<String, Object>> documents) throws Exception {
        Json.post(url + "/update?commit=true", documents);
    }

    @Override
    public Found search(Set<String> rankers, Query query) throws Exception {
        Map<String, CompletableFuture<JsonNode>> answers = new LinkedHashMap<>();
        for (String ranker : rankers) {
            String body = Json.MAPPER.writeValueAsString(body(ranker, query));
            answers.put(ranker, Json.send("POST", url + "/query", "application/json", body));
        }
        Map<String, List<String>> rankings = new HashMap<>();
        Map<String, Integer> categories = new LinkedHashMap<>();
        for (Map.Entry<String, CompletableFuture<JsonNode>> answer : answers.entrySet()) {
            try {
                JsonNode response = answer.getValue().get();
                if (response.get("responseHeader").path("partialResults").asBoolean()) {
                    continue;
                }
                List<String> found = new ArrayList<>();
                response.get("response").get("docs").forEach(document -> found.add(document.get("style").asText()));
                rankings.put(answer.getKey(), found);
                response.path("facets").path("category").path("buckets")
                        .forEach(bucket -> categories.put(bucket.get("val").asText(), bucket.get("count").asInt()));
            } catch (ExecutionException error) {
                System.err.println(answer.getKey() + " failed: " + error.getCause().getMessage());
            }
        }
        return new Found(rankings, categories);
    }

    private static Map<String, Object> body(String ranker, Query query) {
        Map<String, Object> parameters = new HashMap<>();
        // the text is a parameter of its own, so that it cannot become part of the query language
        parameters.put("text", query.text());
        parameters.put("qf", ranker.equals("bm25-title") ? "title^3 description" : "title description");
        parameters.put("timeAllowed", MILLISECONDS);
        List<String> filters = new ArrayList<>(List.of("{!collapse field=style}"));
        if (query.category() != null) {
            filters.add("{!term f=category v=$category}");
            parameters.put("category", query.category());
        }
        Map<String, Object> body = new HashMap<>();
        body.put("query", "{!edismax v=$text}");
        body.put("filter", filters);
        body.put("fields", "style");
        body.put("sort", "score desc, style asc");
        body.put("limit", DEPTH);
        body.put("params", parameters);
        if (ranker.equals(CONTROL)) {
            body.put("facet", Map.of("category", Map.of("type", "terms", "field", "category")));
        }
        return body;
    }

    @Override
    public Map<String, Product> products(List<String> keys) throws Exception {
        Map<String, Object> body = Map.of(
                "query", "{!terms f=style v=$keys}",
                "filter", List.of("{!collapse field=style}"),
                "fields", "style,title,category",
                "limit", keys.size(),
                "params", Map.of("keys", String.join(",", keys)));
        Map<String, Product> products = new HashMap<>();
        for (JsonNode document : Json.post(url + "/query", body).get("response").get("docs")) {
            Product product = new Product(document.get("title").asText(), document.get("category").asText());
            products.put(document.get("style").asText(), product);
        }
        return products;
    }
}
