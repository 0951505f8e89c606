import { type Counts, FeedbackQueue } from "./feedback.js";
import { type Click, type Duel, NEVER, type Page, type Slot, type Window, controlPage } from "./pages.js";
import { Failed, Transport, isObject } from "./transport.js";

/** After this many consecutive requests without an answer, the client pauses for `REST_MS`. */
const FAILURES_TO_REST = 5;
const REST_MS = 1000;
const LOG_EVERY_MS = 60_000;

/** The document ids of every ranker, best first; or a function that returns those of one ranker. */
export type Rankings =
  | Readonly<Record<string, readonly string[]>>
  | ((ranker: string) => readonly string[] | Promise<readonly string[]>);

export interface Options {
  /** The address of the server, such as `http://rankduel.internal:7171`. */
  readonly url: string;
  readonly experiment: string;
  /** The ranker to show if rankduel does not answer in time. */
  readonly control: string;
  /** An API key, if the server requires one. */
  readonly key?: string;
  /** Time limit of a request for a page, including connecting; default 50. */
  readonly deadlineMs?: number;
  /** Maximum number of waiting feedback items; default 10,000. Beyond it, the oldest is dropped. */
  readonly queue?: number;
  /** Called with the reason for each fallback to the control. */
  readonly onFallback?: (reason: string) => void;
  /**
   * Receives warnings, those about fallbacks at most once a minute for each reason; default
   * `console.warn`.
   */
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
    if (!(this.#deadlineMs > 0)) throw new RangeError(`deadlineMs is ${this.#deadlineMs}; it must be a number above 0`);
    const queue = options.queue ?? 10_000;
    if (!(queue >= 1)) throw new RangeError(`queue is ${queue}; it must be at least 1`);
    this.#onFallback = options.onFallback ?? (() => undefined);
    const log = options.log ?? ((message: string) => console.warn(message));
    this.#log = (message) => log(`rankduel: ${message}`);
    this.#path = `/v1/experiments/${encodeURIComponent(options.experiment)}`;
    this.#transport = new Transport(options.url, options.key);
    this.#feedback = new FeedbackQueue(this.#transport, `${this.#path}/feedback`, queue, this.#log);
  }

  /** The two rankers to interleave. If rankduel does not answer in time, both are the control. */
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
   * A page of two interleaved rankings. If rankduel does not answer in time, it has the control's
   * ranking only. If `rankings` is a function, it is called for the two rankers that rankduel
   * selects. For later pages of the same list, use `more`.
   */
  async page(rankings: Rankings, window: Window = {}): Promise<Page> {
    if (typeof rankings !== "function") {
      const control = rankings[this.#control];
      if (control === undefined) {
        throw new TypeError(
          `rankings lack the control, ${JSON.stringify(this.#control)}, which is shown if rankduel does not answer`,
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
   * A page of an earlier duel: the first page of a duel from `nextDuel`, or a later page of the
   * same list. Pass the same rankings and pins for every page of a duel. If rankduel does not
   * answer in time, or did not answer for the duel, the page has the ranking `control`.
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
   * Report the clicks on a page; `[]` if there were none. Returns at once. The clicks are sent in
   * the background until the server has them. With `final: false`, more clicks can follow, in any
   * order; all clicks of a duel together count as one outcome.
   */
  clicked(page: Page, clicks: readonly Click[], options: { readonly final?: boolean } = {}): void {
    this.#put(page, { clicks, final: options.final ?? true });
  }

  /** Report the outcome, if your own code merges the pages and credits the clicks. */
  outcome(of: Duel | Page, outcome: "left" | "right" | "tie" | "none"): void {
    this.#put(of, { outcome });
  }

  #put(of: Duel | Page, item: object): void {
    if (of.duelId !== null) this.#feedback.put({ duel_id: of.duelId, ...item }, of.expiresAt);
  }

  /** Number of feedback items so far, by result. */
  counts(): Counts {
    return this.#feedback.counts();
  }

  /** Wait at most this long until the server has all feedback. Resolves to whether it has. */
  flush(milliseconds = 10_000): Promise<boolean> {
    return this.#feedback.flush(milliseconds);
  }

  /** `flush`, and close the client. All later pages are fallbacks to the control. */
  close(milliseconds = 10_000): Promise<boolean> {
    this.#closed = true;
    return this.#feedback.close(milliseconds);
  }

  async #ask(path: string, body: unknown, milliseconds: number): Promise<unknown> {
    if (this.#closed) throw new Failed("closed", "the client was closed");
    const now = performance.now();
    if (now < this.#restUntil) {
      throw new Failed("resting", "the last requests had no answer, so the client sends none for a moment");
    }
    // this request probes the server; the others fall back until it has a result
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

/** The members of an answer, with checked types. */
class Answer {
  readonly #members: Record<string, unknown>;

  constructor(answer: unknown) {
    if (!isObject(answer)) throw new Failed("not-rankduel", "the answer is not from rankduel: it is not an object");
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
    if (Number.isNaN(time)) throw new Failed("not-rankduel", `the answer is not from rankduel: ${name} is not a time`);
    return time;
  }

  #of<T>(name: string, is: (value: unknown) => value is T): T {
    const value = this.#members[name];
    if (!is(value)) throw new Failed("not-rankduel", `the answer is not from rankduel: ${name} is ${typeof value}`);
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
