package rankduel;

import java.util.OptionalInt;

/** A request without a successful answer. */
public final class RankduelException extends Exception {
    private static final long serialVersionUID = 1;

    private final String reason;
    private final int status;
    private final long retryAfterMillis;

    RankduelException(String reason, String detail, int status, long retryAfterMillis, Throwable cause) {
        super(reason + ": " + detail, cause);
        this.reason = reason;
        this.status = status;
        this.retryAfterMillis = retryAfterMillis;
    }

    RankduelException(String reason, String detail, Throwable cause) {
        this(reason, detail, 0, 0, cause);
    }

    static RankduelException notRankduel(String detail) {
        return new RankduelException("not-rankduel", "the answer is not from rankduel: " + detail, 200, 0, null);
    }

    /**
     * {@code timeout}, {@code unreachable}, {@code not-rankduel}, {@code server-too-old},
     * {@code resting}, {@code control-unknown}, {@code ranker-failed}, the slug of the problem such
     * as {@code duel-expired}, or else {@code status-502}.
     */
    public String reason() {
        return reason;
    }

    /** The status of the answer, if there was one. */
    public OptionalInt status() {
        return status == 0 ? OptionalInt.empty() : OptionalInt.of(status);
    }

    /** What the answer's {@code Retry-After} says, or 0. */
    public long retryAfterMillis() {
        return retryAfterMillis;
    }

    /** Whether the server did not answer, or failed: the same request may succeed in a moment. */
    public boolean isTransient() {
        if (status == 0) {
            return reason.equals("timeout") || reason.equals("unreachable");
        }
        return reason.equals("not-rankduel") || status >= 500 || status == 408 || status == 429;
    }

    /**
     * Whether the same request may succeed later. Besides transient errors, these are 401 and 403:
     * the key may be corrected.
     */
    public boolean isRetryable() {
        return isTransient() || status == 401 || status == 403;
    }
}
