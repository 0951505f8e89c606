package rankduel;

import java.util.LinkedHashMap;
import java.util.Map;

/** A click, by its position, its document or its slot, and optionally its event. */
public final class Click {
    private final Map<String, Object> members;

    private Click(Map<String, Object> members) {
        this.members = members;
    }

    /** A click on a position, from 0. */
    public static Click at(int position) {
        return new Click(Map.of("position", position));
    }

    /** A click on a document. */
    public static Click on(String document) {
        return new Click(Map.of("document", document));
    }

    /** A click on the slot with this token. */
    public static Click onSlot(String token) {
        return new Click(Map.of("slot", token));
    }

    /** The same with an event such as {@code purchase}. */
    public Click as(String event) {
        Map<String, Object> with = new LinkedHashMap<>(members);
        with.put("event", event);
        return new Click(with);
    }

    Map<String, Object> members() {
        return members;
    }
}
