package rankduel;

import java.time.Instant;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * An order, or the cancellation of one.
 *
 * @param id its id in the shop
 * @param unit that of the pages; null for a cancellation
 * @param at the time of the order; null for a cancellation
 * @param lines the products; null for a cancellation
 * @param isCancelled whether it cancels the order of this id
 */
public record Order(String id, String unit, Instant at, List<Line> lines, boolean isCancelled) {
    /**
     * One product of an order.
     *
     * @param document the document's id, as in the rankings
     * @param value the price of one piece, or null; all orders have the same currency
     * @param quantity the number of pieces
     */
    public record Line(String document, Double value, int quantity) {
        /** @throws IllegalArgumentException if the value is not finite */
        public Line {
            if (value != null && !Double.isFinite(value)) {
                throw new IllegalArgumentException("the value of " + document + " is " + value + "; it must be finite");
            }
        }

        private Map<String, Object> members() {
            Map<String, Object> members = new LinkedHashMap<>();
            members.put("document", document);
            if (value != null) {
                members.put("value", value);
            }
            members.put("quantity", quantity);
            return members;
        }
    }

    /** An order. */
    public Order(String id, String unit, Instant at, List<Line> lines) {
        this(id, unit, at, lines, false);
    }

    /** The cancellation of the order of this id. */
    public static Order cancelled(String id) {
        return new Order(id, null, null, null, true);
    }

    Map<String, Object> members() {
        Map<String, Object> members = new LinkedHashMap<>();
        members.put("order_id", id);
        if (unit != null) {
            members.put("unit", unit);
        }
        if (at != null) {
            members.put("at", at.toString());
        }
        if (lines != null) {
            members.put("lines", lines.stream().map(Line::members).toList());
        }
        if (isCancelled) {
            members.put("cancelled", true);
        }
        return members;
    }
}
