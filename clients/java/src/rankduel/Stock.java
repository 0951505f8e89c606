package rankduel;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.Map;

/** Up to {@code size} duels. Each is used once, and not later than the maximum age after the request. */
final class Stock {
    private record Kept(Duel duel, long requestedAtNanos) {}

    private final Server server;
    private final int size;
    private final long maxAgeNanos;
    private final Deque<Kept> duels = new ArrayDeque<>();

    Stock(Server server, int size, long maxAgeMillis) {
        this.server = server;
        this.size = size;
        this.maxAgeNanos = maxAgeMillis * 1_000_000;
    }

    /** The oldest fresh duel. If there is none, the stock is filled first, within this time. */
    Duel take(long millis) throws RankduelException {
        Duel duel = fresh();
        if (duel != null) {
            return duel;
        }
        long requestedAt = System.nanoTime();
        List<Duel> requested = request(millis);
        synchronized (duels) {
            requested.stream().skip(1).forEach(other -> duels.add(new Kept(other, requestedAt)));
            while (duels.size() > 2 * size) {
                // several threads filled the stock at the same time
                duels.remove();
            }
        }
        return requested.get(0);
    }

    private Duel fresh() {
        double now = System.currentTimeMillis() / 1000.0;
        synchronized (duels) {
            for (Kept kept = duels.poll(); kept != null; kept = duels.poll()) {
                boolean isFresh = System.nanoTime() - kept.requestedAtNanos() <= maxAgeNanos;
                if (isFresh && kept.duel().expiresAt() > now) {
                    return kept.duel();
                }
            }
        }
        return null;
    }

    private List<Duel> request(long millis) throws RankduelException {
        Map<String, Object> answer = server.ask("/next-duel", Map.of("count", size), millis);
        if (!(answer.get("duels") instanceof List<?> several) || several.isEmpty()) {
            throw RankduelException.notRankduel("it has no duels");
        }
        List<Duel> found = new ArrayList<>();
        try {
            for (Object one : several) {
                found.add(Duel.ofAnswer(Json.object(one)));
            }
        } catch (IllegalArgumentException error) {
            throw RankduelException.notRankduel(error.getMessage());
        }
        return found;
    }
}
