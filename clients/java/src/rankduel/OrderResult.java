package rankduel;

import java.util.Map;

/**
 * The result of an order.
 *
 * @param status {@code recorded}, {@code duplicate} or {@code late}, which need no action;
 *     {@code conflict} if another order has this id; or {@code invalid}
 * @param experiments number of experiments that have the order
 * @param detail the reason why the order is refused, or null
 * @param pointer the member that is wrong, or null
 */
public record OrderResult(String status, int experiments, String detail, String pointer) {
    static OrderResult of(Object result) {
        Map<String, Object> members = Json.object(result);
        return new OrderResult(
                Json.string(members.get("status")),
                members.get("experiments") instanceof Number number ? number.intValue() : 0,
                members.get("detail") instanceof String detail ? detail : null,
                members.get("pointer") instanceof String pointer ? pointer : null);
    }
}
