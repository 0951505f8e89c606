package rankduel;

import java.util.LinkedHashMap;
import java.util.Map;

/**
 * The part of the list that a page shows.
 *
 * @param length number of slots of the page
 * @param offset number of slots of the list before the page
 * @param pinned documents at positions (from 0), independent of the rankings
 * @param unit an opaque id of the user or the session, of which the server stores a hash; or null
 */
public record Window(int length, int offset, Map<Integer, String> pinned, String unit) {
    /** Copies the pins. */
    public Window {
        pinned = Map.copyOf(pinned);
    }

    /** The first page of this length. */
    public static Window of(int length) {
        return new Window(length, 0, Map.of(), null);
    }

    /** The same with slots before the page. */
    public Window from(int offset) {
        return new Window(length, offset, pinned, unit);
    }

    /** The same with pinned documents. */
    public Window pinning(Map<Integer, String> pinned) {
        return new Window(length, offset, pinned, unit);
    }

    /** The same with the id of a user or a session. */
    public Window forUnit(String unit) {
        return new Window(length, offset, pinned, unit);
    }

    Map<String, Object> body() {
        Map<String, Object> body = new LinkedHashMap<>();
        body.put("length", length);
        body.put("offset", offset);
        if (!pinned.isEmpty()) {
            body.put("pinned", pinned.entrySet().stream()
                    .map(pin -> Map.of("position", pin.getKey(), "document", pin.getValue()))
                    .toList());
        }
        if (unit != null) {
            body.put("unit", unit);
        }
        return body;
    }
}
