import { asDuel, asPage, given, inFull } from "./answers.js";
import { RankduelError } from "./errors.js";
import { type Counts, FeedbackQueue } from "./feedback.js";
import type { Order, OrderResult } from "./orders.js";
import { type Click, type Duel, NEVER, type Page, type Visit, type Window, controlPage } from "./pages.js";
import { Server } from "./server.js";
import { Stock } from "./stock.js";
import { Transport } from "./transport.js";

const LOG_EVERY_MS = 60_000;
/** Feedback for which only the `duelId` is known is repeated at most this long. */
const KEPT_MS = 24 * 3_600_000;
/** Above any useful time limit, and below what a timer accepts. */
const DAY_MS = 24 * 3_600_000;
/** The server issues no more duels at once. */
const MOST_DUELS = 1000;
const OUTCOMES = ["left", "right", "tie", "none"] as const;

/** The document ids of some rankers, best first. */
type Lists = Readonly<Record<string, readonly string[]>>;
type Search = (rankers: readonly string[]) => Lists | Promise<Lists>;

/**
 * The document ids of every ranker, best first; or a function that returns those of the rankers that
 * it is called with.
 */
export type Rankings = Lists | Search;

/** Values by ranker and metric. */
export type Metrics = Readonly<Record<string, Readonly<Record<string, number>>>>;

export type Outcome = (typeof OUTCOMES)[number];

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
  /** Number of duels to request at once; default 0, for single requests. */
  readonly stock?: number;
  /** Seconds for which a duel of the stock may be used; default 5. */
  readonly stockSeconds?: number;
  /** Called with the reason for each fallback to the control. */
  readonly onFallback?: (reason: string) => void;
  /**
   * Receives warnings, those about fallbacks at most once a minute for each reason; default
   * `console.warn`.
   */
  readonly log?: (message: string) => void;
}

interface ReportOptions {
  /** Time for all attempts; default 10,000. */
  readonly milliseconds?: number;
}

/** One experiment of a rankduel server. */
export class Rankduel {
  readonly #options: Options;
  readonly #control: string;
  readonly #deadlineMs: number;
  readonly #log: (message: string) => void;
  readonly #server: Server;
  readonly #stock: Stock | null;
  readonly #feedback: FeedbackQueue;
  readonly #loggedAt = new Map<string, number>();

  constructor(options: Options) {
    this.#options = options;
    this.#control = options.control;
    this.#deadlineMs = options.deadlineMs ?? 50;
    const { queue = 10_000, stock = 0, stockSeconds = 5 } = options;
    limit("deadlineMs", this.#deadlineMs, DAY_MS);
    limit("stockSeconds", stockSeconds, DAY_MS / 1000);
    whole("queue", queue, 1, Number.MAX_SAFE_INTEGER);
    whole("stock", stock, 0, MOST_DUELS);
    for (const name of ["experiment", "control"] as const) {
      if (typeof options[name] !== "string" || !options[name]) throw new TypeError(`${name} must be a name`);
    }
    const log = options.log ?? ((message: string) => console.warn(message));
    this.#log = (message) => {
      try {
        log(`rankduel: ${message}`);
      } catch {
        // a page and the queue go on without it
      }
    };
    const transport = new Transport(options.url, options.key);
    this.#server = new Server(transport, options.experiment);
    const ask = (body: object, milliseconds: number) => this.#server.ask("/next-duel", body, milliseconds);
    this.#stock = stock > 0 ? new Stock(ask, stock, stockSeconds * 1000) : null;
    this.#feedback = new FeedbackQueue(transport, `${this.#server.path}/feedback`, queue, this.#log);
  }

  /**
   * The rankers of the experiment. Call it when your service starts: it rejects with `RankduelError`
   * if the server, the experiment or the key is wrong, or if the control is not one of the rankers,
   * which otherwise shows only in an outage. A key needs the scope `read` for it.
   */
  async check(milliseconds = 5000): Promise<string[]> {
    const rankers = await this.#server.rankers(milliseconds);
    if (!rankers.includes(this.#control)) {
      const { experiment } = this.#options;
      const detail = `control is "${this.#control}", but the rankers of "${experiment}" are ${rankers.join(", ")}`;
      throw new RankduelError("control-unknown", detail);
    }
    return rankers;
  }

  /**
   * The two rankers to interleave. If rankduel does not answer in time, both are the control. A
   * duel with a unit or a segment is requested by itself, not taken from the stock.
   */
  async nextDuel(visit: Visit = {}): Promise<Duel> {
    const ask = async (): Promise<Duel> => {
      const body = given(visit);
      const isEmpty = Object.keys(body).length === 0;
      if (this.#stock !== null && isEmpty) return this.#stock.take(this.#deadlineMs);
      return asDuel(await this.#server.ask("/next-duel", isEmpty ? undefined : body, this.#deadlineMs));
    };
    const duel = await this.#orReason(ask);
    if (typeof duel !== "string") return duel;
    const control = this.#control;
    return { left: control, right: control, selfDuel: true, duelId: null, expiresAt: NEVER, fallback: duel };
  }

  /**
   * A page of two interleaved rankings. If rankduel does not answer in time, it has the control's
   * ranking only. If `rankings` is a function, it is called once, with the one or two rankers that
   * rankduel selects. If it fails, or one of these is missing or not a list, the page has the
   * control's ranking. For that, the function is called again with the control, unless it had
   * returned the control's ids, too. The page rejects only if there is nothing to show: the
   * control's ranking is missing (`TypeError`), is not a list (`TypeError`), or fails itself. For
   * later pages of the same list, use `more`.
   */
  async page(rankings: Rankings, window: Window = {}): Promise<Page> {
    if (typeof rankings !== "function") {
      const control = this.#controlOf(rankings);
      const page = await this.#orReason(async () => {
        const all = Object.keys(rankings).map((ranker) => [ranker, sent(ranker, rankings)]);
        const body = { ...inFull(window), rankings: Object.fromEntries(all) };
        const answer = await this.#server.ask("/next-duel", body, this.#deadlineMs);
        const { left, right } = asDuel(answer);
        return asPage(answer, left, right);
      });
      return typeof page === "string" ? controlPage(this.#control, control, page, window) : page;
    }
    // with a stock, the unit and the segment go with the rankings alone
    const duel = await this.nextDuel(this.#stock === null ? window : {});
    return this.#pageOfPair(duel, rankings, window);
  }

  /**
   * A page of an earlier duel: the first page of a duel from `nextDuel`, or a later page of the
   * same list. Pass the same rankings and pins for every page of a duel. If rankduel does not
   * answer in time, or did not answer for the duel, the page has the control's ranking.
   */
  async more(of: Duel | Page, rankings: Rankings, window: Window = {}): Promise<Page> {
    if (typeof rankings === "function") return this.#pageOfPair(of, rankings, window);
    this.#controlOf(rankings);
    return this.#pageOfPair(of, () => rankings, window);
  }

  #controlOf(rankings: Lists): readonly string[] {
    const control = rankings[this.#control];
    if (control !== undefined) return ids(this.#control, control);
    const name = JSON.stringify(this.#control);
    throw new TypeError(`rankings lack the control, ${name}, which is shown if rankduel does not answer`);
  }

  async #pageOfPair(of: Duel | Page, search: Search, window: Window): Promise<Page> {
    let made: Lists = {};
    const interleaved = async (): Promise<Page> => {
      const rankers = [...new Set([of.left, of.right])];
      try {
        made = (await search(rankers)) ?? {};
      } catch (error) {
        throw new RankduelError("ranker-failed", `${rankers.join(", ")}: ${String(error)}`);
      }
      const sides = { left: sent(of.left, made), right: sent(of.right, made) };
      const body = { ...inFull(window), duel_id: of.duelId, ...sides };
      return asPage(await this.#server.ask("/interleave", body, this.#deadlineMs), of.left, of.right);
    };
    const page = of.duelId === null ? of.fallback : await this.#orReason(interleaved);
    if (page !== null && typeof page !== "string") return page;
    if (!Array.isArray(made[this.#control])) made = await search([this.#control]);
    return controlPage(this.#control, this.#controlOf(made), page, window);
  }

  /**
   * Report the clicks on a page, or on the page of a `duelId`; `[]` if there were none. Returns at
   * once. The clicks are sent in the background until the server has them.
   *
   * A call is final unless it says otherwise: clicks that come after it are late and do not count.
   * If you call it once for each click, pass `final: false`: more clicks can then follow, in any
   * order, and all clicks of a duel together count as one outcome.
   */
  clicked(of: Page | string | null, clicks: readonly Click[], options: { readonly final?: boolean } = {}): void {
    this.#put(of, { clicks, final: options.final ?? true });
  }

  /** Report the outcome, if your own code merges the pages and credits the clicks. */
  outcome(of: Duel | Page | string | null, outcome: Outcome): void {
    this.#put(of, { outcome: checked(outcome) });
  }

  /**
   * Report values of the experiment's metrics, by ranker and metric, such as
   * `{ bm25: { latency_ms: 12 }, neural: { latency_ms: 41 } }`. Call it for every page, whether it is
   * clicked or not: a value that does not come counts as the worst. Returns at once.
   */
  measured(of: Duel | Page | string | null, metrics: Metrics): void {
    this.#put(of, { metrics });
  }

  /**
   * The same as `clicked`, but resolves to the result: `recorded`, `duplicate`, `late` (after a
   * final call), or `ignored` for a fallback page. Transient failures are repeated while there is
   * time. Rejects with `RankduelError`; if its `retryable` is true, the same feedback may be accepted later.
   */
  async reportClicks(
    of: Page | string | null,
    clicks: readonly Click[],
    options: ReportOptions & { readonly final?: boolean } = {},
  ): Promise<string> {
    return this.#report(of, { clicks, final: options.final ?? true }, options);
  }

  /** The same as `outcome`, but resolves to the result like `reportClicks`. */
  async reportOutcome(of: Duel | Page | string | null, outcome: Outcome, options: ReportOptions = {}): Promise<string> {
    return this.#report(of, { outcome: checked(outcome) }, options);
  }

  /** The same as `measured`, but resolves to the result like `reportClicks`. */
  async reportMetrics(of: Duel | Page | string | null, metrics: Metrics, options: ReportOptions = {}): Promise<string> {
    return this.#report(of, { metrics }, options);
  }

  /**
   * Send orders, at most 1,000, to an experiment that orders decide. Resolves to the result of each.
   * Transient failures are repeated like those of `reportClicks`; a repeat never counts twice.
   */
  async reportOrders(orders: readonly Order[], { milliseconds = 10_000 }: ReportOptions = {}): Promise<OrderResult[]> {
    limit("milliseconds", milliseconds, DAY_MS);
    if (!Array.isArray(orders)) throw new TypeError(`orders is ${typeof orders}; it must be a list`);
    return this.#server.orders(orders, milliseconds);
  }

  async #report(of: Duel | Page | string | null, item: object, options: ReportOptions): Promise<string> {
    const duelId = typeof of === "object" ? of?.duelId : of;
    const milliseconds = options.milliseconds ?? 10_000;
    limit("milliseconds", milliseconds, DAY_MS);
    return duelId ? this.#server.report({ duel_id: duelId, ...item }, milliseconds) : "ignored";
  }

  #put(of: Duel | Page | string | null, item: object): void {
    const { duelId, expiresAt } = typeof of === "object" && of ? of : { duelId: of, expiresAt: Date.now() + KEPT_MS };
    if (duelId) this.#feedback.put({ duel_id: duelId, ...item }, expiresAt);
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
    this.#server.close();
    return this.#feedback.close(milliseconds);
  }

  /** What `ask` resolves to, or the reason for a fallback. */
  async #orReason<T>(ask: () => Promise<T>): Promise<T | string> {
    try {
      return await ask();
    } catch (failed) {
      // whatever it is, the search must get a page
      const error = failed instanceof RankduelError ? failed : new RankduelError("unreachable", String(failed));
      const now = performance.now();
      if (now - (this.#loggedAt.get(error.reason) ?? -LOG_EVERY_MS) >= LOG_EVERY_MS) {
        this.#loggedAt.set(error.reason, now);
        this.#log(`the control is shown: ${error.message}`);
      }
      try {
        this.#options.onFallback?.(error.reason);
      } catch (failed) {
        this.#log(`onFallback failed: ${String(failed)}`);
      }
      return error.reason;
    }
  }
}

/** A ranking, if it is a list. */
function ids(ranker: string, ranking: readonly string[] | undefined): readonly string[] {
  if (Array.isArray(ranking)) return ranking;
  throw new TypeError(`the ranking of ${JSON.stringify(ranker)} is ${typeof ranking}; it must be a list of document ids`);
}

function sent(ranker: string, rankings: Lists): readonly string[] {
  try {
    return ids(ranker, rankings[ranker]);
  } catch (error) {
    throw new RankduelError("ranker-failed", `${ranker}: ${String(error)}`);
  }
}

function limit(name: string, value: number, most: number): void {
  if (typeof value === "number" && value > 0 && value <= most) return;
  throw new RangeError(`${name} is ${value}; it must be a number above 0 and at most ${most}`);
}

function whole(name: string, value: number, least: number, most: number): void {
  if (Number.isInteger(value) && value >= least && value <= most) return;
  throw new RangeError(`${name} is ${value}; it must be a whole number from ${least} to ${most}`);
}

function checked(outcome: Outcome): Outcome {
  if (OUTCOMES.includes(outcome)) return outcome;
  throw new TypeError(`outcome is ${JSON.stringify(outcome)}; it must be left, right, tie or none`);
}
