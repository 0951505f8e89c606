package rankduel;

import java.time.Instant;
import java.time.format.DateTimeParseException;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * The two rankers to interleave.
 *
 * @param left the left ranker; the control for a fallback
 * @param right the right ranker
 * @param id sent back with feedback; null for a fallback to the control
 * @param expiresAt Unix seconds; feedback after this time does not count
 * @param fallback the reason for a fallback to the control, or null: {@code timeout},
 *     {@code unreachable}, {@code resting}, {@code not-rankduel}, {@code ranker-failed}, or the slug
 *     of a problem such as {@code experiment-paused}
 */
public record Duel(String left, String right, String id, double expiresAt, String fallback) {
    private static final double NEVER = Instant.parse("2100-01-01T00:00:00Z").getEpochSecond();

    /** Whether both are the same ranker. If so, show its ranking alone. */
    public boolean isSelfDuel() {
        return left.equals(right);
    }

    /** The duel as JSON, for a session or a cache. Keep it on the server: it names the rankers. */
    public String toJson() {
        return Json.write(members());
    }

    /** The duel that {@link #toJson} of a duel or of a page wrote. */
    public static Duel fromJson(String json) {
        return of(Json.object(Json.read(json)));
    }

    Map<String, Object> members() {
        Map<String, Object> members = new LinkedHashMap<>();
        members.put("left", left);
        members.put("right", right);
        members.put("duel_id", id);
        members.put("expires_at", expiresAt);
        members.put("fallback", fallback);
        return members;
    }

    static Duel of(Map<String, Object> members) {
        return new Duel(
                Json.string(members.get("left")),
                Json.string(members.get("right")),
                (String) members.get("duel_id"),
                Json.number(members.get("expires_at")),
                (String) members.get("fallback"));
    }

    static Duel ofAnswer(Map<String, Object> answer, String left, String right) throws RankduelException {
        try {
            // an instant has at most nine digits of a fraction
            String time = Json.string(answer.get("expires_at")).replaceFirst("(\\.\\d{9})\\d+", "$1");
            Instant expiresAt = Instant.parse(time);
            String id = Json.string(answer.get("duel_id"));
            // a page that takes no part in the experiment has no duel
            return new Duel(left, right, id.isEmpty() ? null : id, expiresAt.toEpochMilli() / 1000.0, null);
        } catch (IllegalArgumentException | DateTimeParseException error) {
            throw RankduelException.notRankduel(error.getMessage());
        }
    }

    static Duel ofAnswer(Map<String, Object> answer) throws RankduelException {
        try {
            return ofAnswer(answer, Json.string(answer.get("left")), Json.string(answer.get("right")));
        } catch (IllegalArgumentException error) {
            throw RankduelException.notRankduel(error.getMessage());
        }
    }

    static Duel ofControl(String control, String reason) {
        return new Duel(control, control, null, NEVER, reason);
    }
}
