import { type Counts, FeedbackQueue } from "./feedback.js";
import { type Click, type Duel, NEVER, type Page, type Slot, type Window, controlPage } from "./pages.js";
import { Failed, Transport, isObject } from "./transport.js";

/** So many requests without an answer, one after another, and the service is left alone for a while. */
const FAILURES_TO_REST = 5;
const REST_MS = 1000;
const LOG_EVERY_MS = 60_000;

/** Every ranker's document ids, best first; or a function that makes those of one ranker. */
export type Rankings =
  | Readonly<Record<string, readonly string[]>>
  | ((ranker: string) => readonly string[] | Promise<readonly string[]>);

export interface Options {
  /** Where the server is, such as `http://rankduel.internal:7171`. */
  readonly url: string;
  readonly experiment: string;
  /** The ranker to show when rankduel does not answer in time. */
  readonly control: string;
  /** An API key, where the server wants one. */
  readonly key?: string;
  /** How long a request for a page may take, connecting included; 50 unless given. */
  readonly deadlineMs?: number;
  /** Feedback that may wait for the server; 10,000 unless given. Beyond that the oldest is dropped. */
  readonly queue?: number;
  /** Called whenever the control is shown, with the reason. */
  readonly onFallback?: (reason: string) => void;
  /** Takes what people should read, at most once a minute for each reason that the control is shown; `console.warn` unless given. */
  readonly log?: (message: string) => void;
}

/** One experiment of a rankduel server. */
export class Rankduel {
  readonly #control: string;
  readonly #deadlineMs: number;
  readonly #onFallback: (reason: string) => void;
  readonly #log: (message: string) => void;
  readonly #path: string;
  readonly #transport: Transport;
  readonly #feedback: FeedbackQueue;
  readonly #loggedAt = new Map<string, number>();
  #closed = false;
  #failures = 0;
  #restUntil = 0;

  constructor(options: Options) {
    this.#control = options.control;
    this.#deadlineMs = options.deadlineMs ?? 50;
    if (!(this.#deadlineMs > 0)) throw new RangeError(`deadlineMs is ${this.#deadlineMs}; it is a number above 0`);
    const queue = options.queue ?? 10_000;
    if (!(queue >= 1)) throw new RangeError(`queue is ${queue}; it is at least 1`);
    this.#onFallback = options.onFallback ?? (() => undefined);
    const log = options.log ?? ((message: string) => console.warn(message));
    this.#log = (message) => log(`rankduel: ${message}`);
    this.#path = `/v1/experiments/${encodeURIComponent(options.experiment)}`;
    this.#transport = new Transport(options.url, options.key);
    this.#feedback = new FeedbackQueue(this.#transport, `${this.#path}/feedback`, queue, this.#log);
  }

  /** Which two rankers to interleave; the control twice when rankduel does not answer in time. */
  async nextDuel(): Promise<Duel> {
    return this.#orControl(
      async () => asDuel(await this.#ask("/next-duel", undefined, this.#deadlineMs)),
      (reason) => ({
        left: this.#control,
        right: this.#control,
        selfDuel: true,
        duelId: null,
        expiresAt: NEVER,
        fallback: reason,
      }),
    );
  }

  /**
   * A page of two interleaved rankings; of the control alone when rankduel does not answer in time. Where `rankings` is a function,
   * it is called for the two rankers that rankduel chooses. A page further down is `more`.
   */
  async page(rankings: Rankings, window: Window = {}): Promise<Page> {
    if (typeof rankings !== "function") {
      const control = rankings[this.#control];
      if (control === undefined) {
        throw new TypeError(
          `rankings lack the control, ${JSON.stringify(this.#control)}: it is what is shown when rankduel does not answer`,
        );
      }
      return this.#orControl(
        async () => asPage(await this.#ask("/next-duel", { ...inFull(window), rankings }, this.#deadlineMs)),
        (reason) => controlPage(control, reason, window),
      );
    }
    const started = performance.now();
    const duel = await this.nextDuel();
    if (duel.duelId === null) return controlPage(await rankings(this.#control), duel.fallback, window);
    const left = this.#deadlineMs - (performance.now() - started);
    const [leftRanking, rightRanking] = await Promise.all([rankings(duel.left), duel.selfDuel ? [] : rankings(duel.right)]);
    const body = { ...inFull(window), duel_id: duel.duelId, left: leftRanking, right: rightRanking };
    return this.#orControl(
      async () => asPage(await this.#ask("/interleave", body, Math.max(left, this.#deadlineMs / 2))),
      async (reason) => controlPage(await rankings(this.#control), reason, window),
    );
  }

  /**
   * A page of a duel that was asked for before: the first one of `nextDuel`, or one further down, with the same rankings and pins.
   * `control` is shown when rankduel does not answer in time, or did not before.
   */
  async more(
    of: Duel | Page,
    left: readonly string[],
    right: readonly string[],
    control: readonly string[],
    window: Window = {},
  ): Promise<Page> {
    if (of.duelId === null) return controlPage(control, of.fallback, window);
    const body = { ...inFull(window), duel_id: of.duelId, left, right };
    return this.#orControl(
      async () => asPage(await this.#ask("/interleave", body, this.#deadlineMs)),
      (reason) => controlPage(control, reason, window),
    );
  }

  /**
   * What was clicked on a page (nothing: `[]`). Returns at once; it is sent in the background until the server has it. With
   * `final: false` more may follow, in any order; what was sent counts together, once.
   */
  clicked(page: Page, clicks: readonly Click[], options: { readonly final?: boolean } = {}): void {
    this.#put(page, { clicks, final: options.final ?? true });
  }

  /** Who won, where pages are merged and clicks credited elsewhere. */
  outcome(of: Duel | Page, outcome: "left" | "right" | "tie" | "none"): void {
    this.#put(of, { outcome });
  }

  #put(of: Duel | Page, item: object): void {
    if (of.duelId !== null) this.#feedback.put({ duel_id: of.duelId, ...item }, of.expiresAt);
  }

  /** What became of feedback so far. */
  counts(): Counts {
    return this.#feedback.counts();
  }

  /** Wait until all feedback is with the server; whether it was within so many milliseconds. */
  flush(milliseconds = 10_000): Promise<boolean> {
    return this.#feedback.flush(milliseconds);
  }

  /** `flush`, and end. Pages are those of the control from here on. */
  close(milliseconds = 10_000): Promise<boolean> {
    this.#closed = true;
    return this.#feedback.close(milliseconds);
  }

  async #ask(path: string, body: unknown, milliseconds: number): Promise<unknown> {
    if (this.#closed) throw new Failed("closed", "the client was closed");
    const now = performance.now();
    if (now < this.#restUntil) {
      throw new Failed("resting", "the last requests had no answer, so the server is left alone for a moment");
    }
    // this one tries; the others rest until it knows
    if (this.#failures >= FAILURES_TO_REST) this.#restUntil = now + REST_MS;
    try {
      const answer = await this.#transport.post(this.#path + path, body, milliseconds);
      this.#failures = 0;
      this.#restUntil = 0;
      return answer;
    } catch (error) {
      const answered = error instanceof Failed && error.status !== null && error.status < 500;
      this.#failures = answered ? 0 : this.#failures + 1;
      this.#restUntil = this.#failures >= FAILURES_TO_REST ? performance.now() + REST_MS : 0;
      throw error;
    }
  }

  async #orControl<T>(ask: () => Promise<T>, control: (reason: string) => T | Promise<T>): Promise<T> {
    try {
      return await ask();
    } catch (error) {
      if (!(error instanceof Failed)) throw error;
      const now = performance.now();
      if (now - (this.#loggedAt.get(error.reason) ?? -LOG_EVERY_MS) >= LOG_EVERY_MS) {
        this.#loggedAt.set(error.reason, now);
        this.#log(`the control is shown: ${error.message}`);
      }
      this.#onFallback(error.reason);
      return control(error.reason);
    }
  }
}

function inFull({ length = 10, offset = 0, pinned = [] }: Window): object {
  return { length, offset, ...(pinned.length > 0 ? { pinned } : {}) };
}

/** The members of an answer, each checked. */
class Answer {
  readonly #members: Record<string, unknown>;

  constructor(answer: unknown) {
    if (!isObject(answer)) throw new Failed("not-rankduel", "the answer is not one of rankduel: no object");
    this.#members = answer;
  }

  text(name: string): string {
    return this.#of(name, (value): value is string => typeof value === "string");
  }

  number(name: string): number {
    return this.#of(name, (value): value is number => typeof value === "number");
  }

  flag(name: string): boolean {
    return this.#of(name, (value): value is boolean => typeof value === "boolean");
  }

  list(name: string): unknown[] {
    return this.#of(name, (value): value is unknown[] => Array.isArray(value));
  }

  time(name: string): number {
    const time = Date.parse(this.text(name));
    if (Number.isNaN(time)) throw new Failed("not-rankduel", `the answer is not one of rankduel: ${name} is no time`);
    return time;
  }

  #of<T>(name: string, is: (value: unknown) => value is T): T {
    const value = this.#members[name];
    if (!is(value)) throw new Failed("not-rankduel", `the answer is not one of rankduel: ${name} is ${typeof value}`);
    return value;
  }
}

function asDuel(answer: unknown): Duel {
  const of = new Answer(answer);
  const [left, right] = [of.text("left"), of.text("right")];
  const selfDuel = left === right;
  return { left, right, selfDuel, duelId: of.text("duel_id"), expiresAt: of.time("expires_at"), fallback: null };
}

function asPage(answer: unknown): Page {
  const of = new Answer(answer);
  const slots = of.list("slots").map((slot): Slot => {
    const members = new Answer(slot);
    return { position: members.number("position"), document: members.text("document"), token: members.text("token") };
  });
  return {
    slots,
    duelId: of.text("duel_id"),
    expiresAt: of.time("expires_at"),
    total: of.number("total"),
    informative: of.flag("informative"),
    fallback: null,
  };
}
