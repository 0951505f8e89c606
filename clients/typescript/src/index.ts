/**
 * Client of rankduel: requests the two rankings to interleave for a query, and sends the clicks.
 *
 * ```ts
 * const rankduel = new Rankduel({ url: "http://127.0.0.1:7171", experiment: "search", control: "bm25" });
 * await rankduel.check();
 * const page = await rankduel.page({ bm25: bm25Ids, neural: neuralIds });
 * show(documents(page));
 * rankduel.clicked(page.duelId, [0, 3]);
 * ```
 *
 * `page` always resolves within the deadline. If the service does not answer in time, it resolves to
 * the control's ranking.
 */
export { Rankduel, type Metrics, type Options, type Outcome, type Rankings } from "./client.js";
export { RankduelError } from "./errors.js";
export { type Counts } from "./feedback.js";
export type { Order, OrderLine, OrderResult } from "./orders.js";
export { type Click, type Duel, type Page, type Pin, type Slot, type Visit, type Window, documents } from "./pages.js";
