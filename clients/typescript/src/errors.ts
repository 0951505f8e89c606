/** A request without a successful answer. */
export class RankduelError extends Error {
  constructor(
    /**
     * `timeout`, `unreachable`, `not-rankduel`, `server-too-old`, `resting`, `closed`,
     * `control-unknown`, `ranker-failed`, the slug of the problem such as `duel-expired`, or else `status-502`.
     */
    readonly reason: string,
    readonly detail: string,
    /** The status of the answer, if there was one. */
    readonly status: number | null = null,
    readonly retryAfterMs: number | null = null,
  ) {
    super(`${reason}: ${detail}`);
    this.name = "RankduelError";
  }

  /** Whether the server did not answer, or failed: the same request may succeed in a moment. */
  get isTransient(): boolean {
    if (this.status === null) return this.reason === "timeout" || this.reason === "unreachable";
    return this.reason === "not-rankduel" || this.status >= 500 || this.status === 408 || this.status === 429;
  }

  /**
   * Whether the same request may succeed later. Besides transient errors, these are 401 and 403: the
   * key may be corrected.
   */
  get retryable(): boolean {
    return this.isTransient || this.status === 401 || this.status === 403;
  }
}

export function notRankduel(detail: string): RankduelError {
  return new RankduelError("not-rankduel", `the answer is not from rankduel: ${detail}`, 200);
}
