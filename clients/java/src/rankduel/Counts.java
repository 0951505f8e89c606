package rankduel;

/**
 * Number of queued items of feedback since the client was created, by result.
 *
 * @param recorded stored by the server; they count
 * @param duplicate stored already: an earlier attempt had arrived, but its answer was lost
 * @param refused late, different from an earlier answer, or invalid; the log has the reason
 * @param dropped discarded by this client: the duel expired while the server could not be reached,
 *     the queue was full, or the client was closed
 * @param waiting not sent yet, or not answered yet
 */
public record Counts(int recorded, int duplicate, int refused, int dropped, int waiting) {}
