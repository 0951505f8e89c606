import { Failed, isObject, type Transport } from "./transport.js";

/** What became of feedback since the client was made. */
export interface Counts {
  /** Durable in the server, and counts. */
  readonly recorded: number;
  /** The server had it already: an earlier attempt had arrived, though its answer was lost. */
  readonly duplicate: number;
  /** The server does not take it: it came late, contradicts an earlier answer, or is not valid. `log` is told more. */
  readonly refused: number;
  /** Given up here: its duel expired while the server could not be reached, or the queue was full. */
  readonly dropped: number;
  /** Still to be sent. */
  readonly waiting: number;
}

const BATCH = 100;
const SEND_MS = 10_000;
const FIRST_WAIT_MS = 100;
const LONGEST_WAIT_MS = 30_000;

interface Item {
  readonly body: unknown;
  readonly expiresAt: number;
}

/** Whether another attempt may succeed: always, unless the server has understood and refused. */
function retried({ status }: Failed): boolean {
  return status === null || status >= 500 || [401, 403, 408, 429].includes(status);
}

/** Takes feedback without waiting, and sends it in the background. The server counts each once however often it comes. */
export class FeedbackQueue {
  readonly #transport: Transport;
  readonly #path: string;
  readonly #most: number;
  readonly #log: (message: string) => void;
  readonly #counts = { recorded: 0, duplicate: 0, refused: 0, dropped: 0 };
  #items: Item[] = [];
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

  /** Send this; until `expiresAt` it is tried again. */
  put(body: unknown, expiresAt: number): void {
    if (this.#closing) {
      this.#counts.dropped += 1;
      return;
    }
    if (this.#items.length >= this.#most) {
      // what is newest still has the longest time to arrive
      this.#items.shift();
      this.#counts.dropped += 1;
    }
    this.#items.push({ body, expiresAt });
    this.#running ??= this.#run();
  }

  counts(): Counts {
    return { ...this.#counts, waiting: this.#items.length + this.#sending };
  }

  /** Wait until everything is sent; whether it was within so many milliseconds. */
  async flush(milliseconds: number): Promise<boolean> {
    if (this.#running === null) return true;
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<false>((resolve) => {
      timer = setTimeout(() => resolve(false), milliseconds);
    });
    const sent = this.#running.then(() => this.counts().waiting === 0);
    return Promise.race([sent, late]).finally(() => clearTimeout(timer));
  }

  /** `flush`, then take nothing more. */
  async close(milliseconds: number): Promise<boolean> {
    const flushed = await this.flush(milliseconds);
    this.#closing = true;
    this.#endWait?.();
    return flushed;
  }

  async #run(): Promise<void> {
    // what is put in the same turn goes in one request
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
    // in the turn that has found nothing more: what is put from now on starts anew
    this.#running = null;
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
    const taken = this.#items.splice(0, BATCH);
    for (const item of taken) {
      if (item.expiresAt <= now) this.#counts.dropped += 1;
      else batch.push(item);
    }
    this.#sending = batch.length;
    return batch;
  }

  /** Milliseconds to wait before the next. */
  async #send(batch: Item[], failures: number): Promise<number> {
    try {
      const answer = await this.#transport.post(this.#path, { feedback: batch.map((item) => item.body) }, SEND_MS);
      const results = isObject(answer) ? answer["results"] : undefined;
      if (!Array.isArray(results) || results.length !== batch.length) {
        throw new Failed("not-rankduel", "the answer is not one of rankduel", 200);
      }
      for (const result of results.map((result) => (isObject(result) ? result : {}))) {
        const status = result["status"];
        if (status === "recorded" || status === "duplicate") this.#counts[status] += 1;
        else {
          this.#counts.refused += 1;
          this.#log(`feedback is not taken (${String(status)}): ${String(result["detail"] ?? "")}`);
        }
      }
      return 0;
    } catch (error) {
      const failed = error instanceof Failed ? error : new Failed("unreachable", String(error));
      if (!retried(failed)) {
        this.#counts.refused += batch.length;
        this.#log(`feedback is given up: ${failed.message}`);
        return 0;
      }
      this.#items.unshift(...batch);
      if (failures === 0) this.#log(`feedback waits: ${failed.message}`);
      const wait = Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** failures) * (0.5 + Math.random() / 2);
      return Math.max(wait, Math.min(failed.retryAfterMs ?? 0, LONGEST_WAIT_MS));
    } finally {
      this.#sending = 0;
    }
  }
}
