package shop;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;

/** JSON over HTTP. */
final class Json {
    static final ObjectMapper MAPPER = new ObjectMapper();
    private static final HttpClient CLIENT = HttpClient.newHttpClient();
    private static final Duration LIMIT = Duration.ofSeconds(10);

    private Json() {}

    static JsonNode post(String url, Object body) throws Exception {
        return send("POST", url, "application/json", MAPPER.writeValueAsString(body)).get();
    }

    /** Fails with what the server says unless it answers 200. */
    static CompletableFuture<JsonNode> send(String method, String url, String type, String body) {
        HttpRequest request = HttpRequest.newBuilder(URI.create(url))
                .header("content-type", type)
                .timeout(LIMIT)
                .method(method, HttpRequest.BodyPublishers.ofString(body))
                .build();
        return CLIENT.sendAsync(request, HttpResponse.BodyHandlers.ofString()).thenApply(response -> {
            try {
                if (response.statusCode() != 200) {
                    throw new IOException(url + ": " + response.statusCode() + " " + response.body());
                }
                return MAPPER.readTree(response.body());
            } catch (IOException error) {
                throw new IllegalStateException(error);
            }
        });
    }
}
