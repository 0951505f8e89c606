import { RankduelError, notRankduel } from "./errors.js";
import { type Order, type OrderResult, isResult } from "./orders.js";
import { type Transport, encode, isObject } from "./transport.js";

/** After this many consecutive requests without an answer, the client pauses for `REST_MS`. */
const FAILURES_TO_REST = 5;
const REST_MS = 1000;
/** Longest pause that a `Retry-After` of the server causes. */
const LONGEST_REST_MS = 5000;
/** A report has this share of its time for one attempt. */
const ATTEMPTS = 5;
const FIRST_WAIT_MS = 100;

/** One experiment of a server: the pause after failures, and the attempts to send feedback. */
export class Server {
  readonly path: string;
  readonly #transport: Transport;
  #closed = false;
  #failures = 0;
  #restUntil = 0;

  constructor(transport: Transport, experiment: string) {
    this.#transport = transport;
    this.path = `/v1/experiments/${encodeURIComponent(experiment)}`;
  }

  /** Request a duel or a page, in one attempt: a search waits for the answer. */
  async ask(path: string, body: object | undefined, milliseconds: number): Promise<Record<string, unknown>> {
    if (this.#closed) throw new RankduelError("closed", "the client was closed");
    const now = performance.now();
    if (now < this.#restUntil) {
      throw new RankduelError("resting", "the last requests failed, so the client sends none for a moment");
    }
    // this request probes the server; the others fall back until it has a result
    if (this.#failures >= FAILURES_TO_REST) this.#restUntil = now + REST_MS;
    try {
      const answer = await this.#transport.post(this.path + path, body, milliseconds);
      this.#failures = 0;
      this.#restUntil = 0;
      return answer;
    } catch (error) {
      const failed = error instanceof RankduelError && error.isTransient ? error : null;
      this.#failures = failed ? this.#failures + 1 : 0;
      const rest = this.#failures >= FAILURES_TO_REST ? REST_MS : 0;
      this.#restUntil = performance.now() + Math.max(rest, Math.min(failed?.retryAfterMs ?? 0, LONGEST_REST_MS));
      throw error;
    }
  }

  /**
   * Send one item of feedback. Transient errors are followed by another attempt while there is time
   * for a whole one; the server counts the item once.
   */
  report(item: object, milliseconds: number): Promise<string> {
    return this.#repeated("/feedback", item, milliseconds, ({ status }) => {
      if (typeof status !== "string") throw notRankduel("it has no status");
      return status;
    });
  }

  /** Send orders, like `report`. Resolves to a result for each. */
  orders(orders: readonly Order[], milliseconds: number): Promise<OrderResult[]> {
    return this.#repeated("/orders", { orders }, milliseconds, ({ results }) => {
      if (!Array.isArray(results) || results.length !== orders.length || !results.every(isResult)) {
        throw notRankduel("it has no result for each order");
      }
      return results;
    });
  }

  async #repeated<T>(
    path: string,
    body: object,
    milliseconds: number,
    read: (answer: Record<string, unknown>) => T,
  ): Promise<T> {
    const content = encode(body);
    const limit = milliseconds / ATTEMPTS;
    const last = performance.now() + milliseconds - limit;
    for (let attempt = 0; ; attempt += 1) {
      try {
        return read(await this.#transport.post(this.path + path, content, limit));
      } catch (error) {
        if (!(error instanceof RankduelError) || !error.isTransient) throw error;
        const doubled = FIRST_WAIT_MS * 2 ** Math.min(attempt, 10) * (0.5 + Math.random() / 2);
        const wait = Math.max(doubled, error.retryAfterMs ?? 0);
        if (performance.now() + wait > last) throw error;
        await new Promise((resolve) => setTimeout(resolve, wait));
      }
    }
  }

  /** The rankers of the experiment. */
  async rankers(milliseconds: number): Promise<string[]> {
    const { rankers } = await this.#transport.get(this.path, milliseconds);
    if (!Array.isArray(rankers)) throw notRankduel("it has no rankers");
    return rankers.map((ranker: unknown) => {
      if (!isObject(ranker) || typeof ranker["id"] !== "string") throw notRankduel("a ranker has no id");
      return ranker["id"];
    });
  }

  /** Answer all later requests with the error `closed`. */
  close(): void {
    this.#closed = true;
  }
}
