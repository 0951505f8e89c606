package rankduel;

import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.logging.Level;
import java.util.logging.Logger;

/** Tests without a server. A failure ends the program with an error. */
public final class Tests {
    public static void main(String[] arguments) throws Exception {
        String text = "{\"a\":[1,-2.5,1e3,true,false,null],\"b\":{},\"c\":[],\"d\":\"\\\"\\\\ \\u00e9 \u96ea \\ud83d\\ude00\\n\"}";
        Map<String, Object> read = Json.object(Json.read(" " + text + "\n"));
        same(List.of(1.0, -2.5, 1000.0, true, false), Json.list(read.get("a")).subList(0, 5));
        same(null, Json.list(read.get("a")).get(5));
        same("\"\\ \u00e9 \u96ea \ud83d\ude00\n", read.get("d"));
        same(read, Json.read(Json.write(read)));
        same("\"\\u0001\\\"\"", Json.write("\u0001\""));
        same("[4102444800,0.5]", Json.write(List.of(4102444800.0, 0.5)));
        List<String> wrong = List.of(
                "", "{", "[", "[1", "[1,]", "{\"a\"}", "{\"a\":}", "{a:1}", "\"", "\"\\", "\"\\u12", "\"\\x\"",
                "tru", "1 2", "-", "<html>", "[".repeat(100_000));
        for (String one : wrong) {
            try {
                throw new AssertionError(one + " is read as " + Json.read(one));
            } catch (IllegalArgumentException expected) {
                same(true, expected.getMessage().contains("JSON"));
            }
        }
        keepsAPageForAnotherRequest();
        refusesWrongArguments();
        keepsWhatAWindowHas();
        showsAPageWhateverHappens();
        System.out.println("java: all passed");
    }

    private static void keepsAPageForAnotherRequest() {
        Duel duel = new Duel("bm25", "neural", "AQ", 1.5, null);
        Page page = new Page(duel, List.of(new Slot(0, "d\"1", "t"), new Slot(1, "d2", null)), 2, true);
        same(page, Page.fromJson(page.toJson()));
        same(duel, Duel.fromJson(page.toJson()));
        same(duel, Duel.fromJson(duel.toJson()));
    }

    private static void refusesWrongArguments() {
        for (String url : List.of("rankduel:7171", "ftp://rankduel", "http://", "http://host/?a=b", "a b")) {
            try {
                Rankduel.builder(url, "search", "bm25").build();
            } catch (IllegalArgumentException expected) {
                continue;
            }
            throw new AssertionError(url + " is accepted");
        }
        for (Duration wrong : List.of(Duration.ZERO, Duration.ofSeconds(-1), Duration.ofSeconds(Long.MAX_VALUE))) {
            try {
                Rankduel.builder("http://127.0.0.1", "search", "bm25").deadline(wrong);
            } catch (IllegalArgumentException expected) {
                continue;
            }
            throw new AssertionError(wrong + " is accepted");
        }
        Map<Integer, String> pinned = new HashMap<>(Map.of(0, "ad"));
        Window window = Window.of(10).pinning(pinned);
        pinned.clear();
        same(Map.of(0, "ad"), window.pinned());
    }

    private static void keepsWhatAWindowHas() {
        Window window = Window.of(3).forUnit("user-1").inSegment("mobile").from(6).pinning(Map.of(7, "ad"));
        same(new Window(3, 6, Map.of(7, "ad"), "user-1", "mobile"), window);
        same(window, window.inSegment("de").inSegment("mobile").forUnit("user-2").forUnit("user-1"));
        same(Map.of("length", 3, "offset", 0), Window.of(3).body());
        same(Map.of("length", 3, "offset", 0, "unit", "user-1"), Window.of(3).forUnit("user-1").body());
        same(Map.of("length", 3, "offset", 0, "segment", "mobile"), Window.of(3).inSegment("mobile").body());
    }

    @SuppressWarnings({"unchecked", "rawtypes"})
    private static void showsAPageWhateverHappens() throws Exception {
        Logger.getLogger("rankduel").setLevel(Level.OFF);
        // nobody listens at this port
        Rankduel client = Rankduel.builder("http://127.0.0.1:1", "search", "bm25")
                .deadline(Duration.ofSeconds(60))
                .onFallback(error -> {
                    throw new IllegalStateException("a callback that fails");
                })
                .build();
        Map<String, List<String>> rankings = new HashMap<>(Map.of("bm25", List.of("a", "b")));
        same(List.of("b"), client.page(rankings, Window.of(Integer.MAX_VALUE).from(1)).documents());
        rankings.put("neural", (List) List.of(UUID.randomUUID()));
        Page page = client.page(rankings, Window.of(10));
        same(List.of("a", "b"), page.documents());
        same("invalid-request", page.duel().fallback());
        rankings.put("neural", null);
        same(List.of("a", "b"), client.more(new Duel("bm25", "neural", "AQ", 1.5, null), rankings, Window.of(10)).documents());
        client.queueClicks("AQ", List.of(Click.on("a")));
        client.queueClicks("", List.of());
        same(1, client.counts().waiting());
    }

    private static void same(Object wanted, Object found) {
        if (wanted == null ? found != null : !wanted.equals(found)) {
            throw new AssertionError(found + " is not " + wanted);
        }
    }
}
