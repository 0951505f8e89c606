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
 * @param segment a label of 1 to 32 bytes for the part of the traffic that the page belongs to,
 *     such as {@code mobile}; or null
 */
public record Window(int length, int offset, Map<Integer, String> pinned, String unit, String segment) {
    /** Copies the pins. */
    public Window {
        pinned = Map.copyOf(pinned);
    }

    /** The first page of this length. */
    public static Window of(int length) {
        return new Window(length, 0, Map.of(), null, null);
    }

    /** The same with slots before the page. */
    public Window from(int offset) {
        return new Window(length, offset, pinned, unit, segment);
    }

    /** The same with pinned documents. */
    public Window pinning(Map<Integer, String> pinned) {
        return new Window(length, offset, pinned, unit, segment);
    }

    /** The same with the id of a user or a session. */
    public Window forUnit(String unit) {
        return new Window(length, offset, pinned, unit, segment);
    }

    /** The same with the part of the traffic that the page belongs to. */
    public Window inSegment(String segment) {
        return new Window(length, offset, pinned, unit, segment);
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
        body.putAll(visit(unit, segment));
        return body;
    }

    /** The members of a request that say whose page it is, without those that are null. */
    static Map<String, Object> visit(String unit, String segment) {
        Map<String, Object> visit = new LinkedHashMap<>();
        if (unit != null) {
            visit.put("unit", unit);
        }
        if (segment != null) {
            visit.put("segment", segment);
        }
        return visit;
    }
}
