/**
 * Client of rankduel: which two rankings to interleave for the next query, and what was clicked.
 *
 * ```ts
 * const rankduel = new Rankduel({ url: "http://127.0.0.1:7171", experiment: "search", control: "bm25" });
 * const page = await rankduel.page({ bm25: bm25Ids, neural: neuralIds });
 * show(documents(page));
 * rankduel.clicked(page, [0, 3]);
 * ```
 *
 * Whatever happens to the service, `page` answers within the deadline: with the control's ranking when it must.
 */
export { Rankduel, type Options, type Rankings } from "./client.js";
export { type Counts } from "./feedback.js";
export { type Click, type Duel, type Page, type Pin, type Slot, type Window, documents } from "./pages.js";
