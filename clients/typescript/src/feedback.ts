import { RankduelError, notRankduel } from "./errors.js";
import { type Transport, encode, isObject } from "./transport.js";

/** Number of feedback items since the client was created, by result. */
export interface Counts {
  /** Stored by the server; they count. */
  readonly recorded: number;
  /** Already stored: an earlier attempt had arrived, but its answer was lost. */
  readonly duplicate: number;
  /** Refused by the server: late, different from an earlier answer, or invalid. `log` gets the reason. */
  readonly refused: number;
  /**
   * Discarded by this client: the duel expired while the server could not be reached, the queue was
   * full, or the client was closed.
   */
  readonly dropped: number;
  /** Not sent yet, or not answered yet. */
  readonly waiting: number;
}

const BATCH = 100;
const SEND_MS = 10_000;
const FIRST_WAIT_MS = 100;
const LONGEST_WAIT_MS = 30_000;
/** Statuses that refuse a whole request, perhaps for one of its items. */
const ABOUT_AN_ITEM = [400, 413, 422];
/** A timer above it ends at once. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;
const LATE = "; if clicks come one by one, pass final: false";

interface Item {
  readonly text: string;
  readonly expiresAt: number;
}

/**
 * Accepts feedback without waiting, and sends it in the background. The server counts each item
 * once, even if it arrives several times.
 */
export class FeedbackQueue {
  readonly #transport: Transport;
  readonly #path: string;
  readonly #most: number;
  readonly #log: (message: string) => void;
  readonly #counts = { recorded: 0, duplicate: 0, refused: 0, dropped: 0 };
  #items: Item[] = [];
  #together = BATCH;
  #sending = 0;
  #running: Promise<void> | null = null;
  #closing = false;
  #endWait: (() => void) | null = null;

  constructor(transport: Transport, path: string, most: number, log: (message: string) => void) {
    this.#transport = transport;
    this.#path = path;
    this.#most = most;
    this.#log = log;
  }

  /**
   * Queue an item. It is sent repeatedly until the server has it, at most until `expiresAt`. An item
   * that has no form in JSON is refused at once.
   */
  put(body: object, expiresAt: number): void {
    let text: string;
    try {
      text = encode(body);
    } catch (error) {
      this.#refused(1, String(error));
      return;
    }
    if (this.#closing) {
      this.#counts.dropped += 1;
      return;
    }
    if (this.#items.length >= this.#most) {
      // drop the oldest item: newer ones have more time left to arrive
      this.#items.shift();
      this.#counts.dropped += 1;
    }
    this.#items.push({ text, expiresAt });
    this.#running ??= this.#run();
  }

  counts(): Counts {
    return { ...this.#counts, waiting: this.#items.length + this.#sending };
  }

  /** Wait at most this long until the queue is empty. Resolves to whether it is. */
  async flush(milliseconds: number): Promise<boolean> {
    if (this.#running === null) return true;
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<false>((resolve) => {
      timer = setTimeout(() => resolve(false), Math.min(milliseconds, LONGEST_TIMER_MS));
    });
    const sent = this.#running.then(() => this.counts().waiting === 0);
    return Promise.race([sent, late]).finally(() => clearTimeout(timer));
  }

  /** `flush`, then accept no more items. */
  async close(milliseconds: number): Promise<boolean> {
    const flushed = await this.flush(milliseconds);
    this.#closing = true;
    this.#endWait?.();
    return flushed;
  }

  async #run(): Promise<void> {
    // items queued in the same turn of the event loop share one request
    await Promise.resolve();
    let failures = 0;
    while (this.#items.length > 0) {
      if (this.#closing) {
        this.#counts.dropped += this.#items.length;
        this.#items = [];
        break;
      }
      const batch = this.#take();
      if (batch.length === 0) continue;
      const waitMs = await this.#send(batch, failures);
      failures = waitMs > 0 ? failures + 1 : 0;
      if (waitMs > 0) await this.#wait(waitMs);
    }
    // in the same turn that found the queue empty: the next item starts a new run
    this.#running = null;
  }

  #refused(number: number, why: string): void {
    this.#counts.refused += number;
    this.#log(`feedback is refused: ${why}`);
  }

  #wait(milliseconds: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, milliseconds);
      this.#endWait = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  #take(): Item[] {
    const now = Date.now();
    const batch: Item[] = [];
    const taken = this.#items.splice(0, this.#together);
    for (const item of taken) {
      if (item.expiresAt <= now) this.#counts.dropped += 1;
      else batch.push(item);
    }
    this.#sending = batch.length;
    return batch;
  }

  /** Send a batch. Resolves to the milliseconds to wait before the next one. */
  async #send(batch: Item[], failures: number): Promise<number> {
    try {
      const content = `{"feedback":[${batch.map((item) => item.text).join(",")}]}`;
      const answer = await this.#transport.post(this.#path, content, SEND_MS);
      const results = answer["results"];
      if (!Array.isArray(results) || results.length !== batch.length) {
        throw notRankduel("it has no result for each item");
      }
      this.#together = Math.min(2 * this.#together, BATCH);
      for (const result of results.map((result) => (isObject(result) ? result : {}))) {
        const status = result["status"];
        if (status === "recorded" || status === "duplicate") this.#counts[status] += 1;
        else {
          this.#refused(1, `${String(status)}: ${String(result["detail"] ?? "")}${status === "late" ? LATE : ""}`);
        }
      }
      return 0;
    } catch (error) {
      const failed = error instanceof RankduelError ? error : new RankduelError("unreachable", String(error));
      if (ABOUT_AN_ITEM.includes(failed.status ?? 0) && batch.length > 1) {
        // send fewer together, until the item that is refused is alone
        this.#together = Math.floor(batch.length / 2);
        this.#items.unshift(...batch);
        return 0;
      }
      if (!failed.retryable) {
        this.#refused(batch.length, failed.message);
        return 0;
      }
      this.#items.unshift(...batch);
      if (failures === 0) this.#log(`feedback is sent again later: ${failed.message}`);
      const wait = Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** failures) * (0.5 + Math.random() / 2);
      return Math.max(wait, Math.min(failed.retryAfterMs ?? 0, LONGEST_WAIT_MS));
    } finally {
      this.#sending = 0;
    }
  }
}
