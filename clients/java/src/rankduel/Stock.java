package rankduel;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.Map;

/**
 * Up to {@code size} duels. Each is used once, and not later than the maximum age after the request.
 *
 * <p>A server that does not know {@code count} refuses it once; from then on the stock makes single
 * requests, as many as the deadline allows.
 */
final class Stock {
    private record Kept(Duel duel, long requestedAtNanos) {}

    private final Server server;
    private final int size;
    private final long maxAgeNanos;
    private final Deque<Kept> duels = new ArrayDeque<>();
    private volatile boolean refusesCount;

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
        List<Duel> requested = request(requestedAt + millis * 1_000_000);
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

    private static long millisUntil(long endNanos) {
        return (endNanos - System.nanoTime()) / 1_000_000;
    }

    private List<Duel> request(long endNanos) throws RankduelException {
        List<Duel> found = new ArrayList<>();
        if (!refusesCount) {
            try {
                Map<String, Object> body = Map.of("count", size);
                Map<String, Object> answer = server.ask("/next-duel", body, millisUntil(endNanos));
                if (answer.get("duels") instanceof List<?> several && !several.isEmpty()) {
                    for (Object one : several) {
                        found.add(Duel.ofAnswer(Json.object(one)));
                    }
                    return found;
                }
                found.add(Duel.ofAnswer(answer));
            } catch (IllegalArgumentException error) {
                throw RankduelException.notRankduel(error.getMessage());
            } catch (RankduelException failed) {
                if (failed.status().orElse(0) != 422) {
                    throw failed;
                }
                refusesCount = true;
            }
        }
        addSingles(found, endNanos);
        return found;
    }

    private void addSingles(List<Duel> found, long endNanos) throws RankduelException {
        while (found.size() < size && (found.isEmpty() || millisUntil(endNanos) > 0)) {
            try {
                found.add(Duel.ofAnswer(server.ask("/next-duel", Map.of(), millisUntil(endNanos))));
            } catch (RankduelException failed) {
                if (found.isEmpty()) {
                    throw failed;
                }
                return;
            }
        }
    }
}
