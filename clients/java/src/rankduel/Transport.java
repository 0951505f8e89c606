package rankduel;

import java.net.URI;
import java.net.URISyntaxException;
import java.net.http.HttpClient;
import java.net.http.HttpHeaders;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.time.DateTimeException;
import java.time.Instant;
import java.time.format.DateTimeFormatter;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/** Requests to one server. Each ends at its deadline, even if the answer arrives slowly. */
final class Transport {
    private final String base;
    private final String key;
    private final HttpClient client;

    Transport(String url, String key) {
        if (!isAddress(url)) {
            // the message must not show a password
            String shown = url.contains("@") ? "the url" : '"' + url + '"';
            throw new IllegalArgumentException(
                    shown + " is not the address of a server; it must look like http://rankduel.internal:7171");
        }
        if (key != null && !key.matches("[!-~]*")) {
            // nor must this one show the key
            throw new IllegalArgumentException("the key has a character that no key has,"
                    + " such as a space, a line break or a typographic quote");
        }
        this.base = url.replaceAll("/+$", "");
        this.key = key;
        // a redirect is not followed: a key must not reach another server
        this.client = HttpClient.newBuilder()
                .version(HttpClient.Version.HTTP_1_1)
                .followRedirects(HttpClient.Redirect.NEVER)
                .build();
    }

    private static boolean isAddress(String url) {
        try {
            URI parsed = new URI(url);
            int port = parsed.getPort();
            return ("http".equals(parsed.getScheme()) || "https".equals(parsed.getScheme()))
                    && parsed.getHost() != null
                    && parsed.getUserInfo() == null
                    && (port == -1 || port > 0 && port < 65536)
                    && parsed.getQuery() == null
                    && parsed.getFragment() == null
                    && url.matches("[!-~]+");
        } catch (URISyntaxException error) {
            return false;
        }
    }

    Map<String, Object> post(String path, Map<String, Object> body, long millis) throws RankduelException {
        return post(path, encode(body), millis);
    }

    Map<String, Object> post(String path, String body, long millis) throws RankduelException {
        return send(path, "POST", HttpRequest.BodyPublishers.ofString(body), millis);
    }

    /** A body as JSON. */
    static String encode(Map<String, Object> body) throws RankduelException {
        try {
            return Json.write(body);
        } catch (RuntimeException error) {
            throw new RankduelException("invalid-request", String.valueOf(error.getMessage()), error);
        }
    }

    Map<String, Object> get(String path, long millis) throws RankduelException {
        return send(path, "GET", HttpRequest.BodyPublishers.noBody(), millis);
    }

    private Map<String, Object> send(String path, String method, HttpRequest.BodyPublisher body, long millis)
            throws RankduelException {
        HttpRequest.Builder request = HttpRequest.newBuilder(URI.create(base + path))
                .method(method, body)
                .header("accept", "application/json")
                .header("rankduel-version", Version.CLIENT)
                .header("content-type", "application/json");
        if (key != null && !key.isEmpty()) {
            request.header("authorization", "Bearer " + key);
        }
        // the time limit of HttpRequest covers the headers of the answer alone
        CompletableFuture<HttpResponse<String>> sent =
                client.sendAsync(request.build(), HttpResponse.BodyHandlers.ofString());
        try {
            HttpResponse<String> response = sent.get(Math.max(millis, 1), TimeUnit.MILLISECONDS);
            Map<String, Object> content = content(response);
            // never part of a search
            if (method.equals("GET")) {
                Version.checkServer(response.headers().firstValue("rankduel-version").orElse(""));
            }
            return content;
        } catch (TimeoutException error) {
            sent.cancel(true);
            throw new RankduelException("timeout", "no answer within " + millis + " ms", error);
        } catch (InterruptedException error) {
            sent.cancel(true);
            Thread.currentThread().interrupt();
            throw new RankduelException("interrupted", "the thread was interrupted", error);
        } catch (ExecutionException error) {
            // whatever it is, the search must get a page
            throw new RankduelException("unreachable", String.valueOf(error.getCause()), error.getCause());
        }
    }

    private static Map<String, Object> content(HttpResponse<String> response) throws RankduelException {
        String type = response.headers().firstValue("content-type").orElse("none");
        type = type.split(";")[0].strip().toLowerCase(Locale.ROOT);
        Map<String, Object> content = null;
        if (type.equals("application/json") || type.endsWith("+json")) {
            try {
                content = Json.object(Json.read(response.body()));
            } catch (IllegalArgumentException error) {
                content = null;
            }
        }
        if (response.statusCode() != 200) {
            throw problem(response, content == null ? Map.of() : content);
        }
        if (content == null) {
            throw RankduelException.notRankduel("its content is not a JSON object, its type is " + type);
        }
        return content;
    }

    private static RankduelException problem(HttpResponse<String> response, Map<String, Object> problem) {
        int status = response.statusCode();
        String type = String.valueOf(problem.getOrDefault("type", ""));
        String slug = type.substring(type.lastIndexOf('/') + 1);
        StringBuilder detail = new StringBuilder(String.valueOf(problem.getOrDefault("detail", "status " + status)));
        if (problem.get("errors") instanceof Iterable<?> errors) {
            for (Object error : errors) {
                if (error instanceof Map<?, ?> one) {
                    detail.append("; ").append(one.get("pointer")).append(": ").append(one.get("detail"));
                }
            }
        }
        long millis = retryAfterMillis(response.headers());
        return new RankduelException(slug.isEmpty() ? "status-" + status : slug, detail.toString(), status, millis, null);
    }

    /** What Retry-After says: seconds, or a date. By the clock of the server, if it says what that is. */
    private static long retryAfterMillis(HttpHeaders headers) {
        String text = headers.firstValue("retry-after").orElse("");
        if (text.matches("\\d{1,9}")) {
            return Long.parseLong(text) * 1000;
        }
        long now = millisOf(headers.firstValue("date").orElse(""), System.currentTimeMillis());
        return Math.max(0, millisOf(text, now) - now);
    }

    private static long millisOf(String date, long otherwise) {
        try {
            return DateTimeFormatter.RFC_1123_DATE_TIME.parse(date, Instant::from).toEpochMilli();
        } catch (DateTimeException noDate) {
            return otherwise;
        }
    }
}
