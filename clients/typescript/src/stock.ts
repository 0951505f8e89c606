import { asDuel } from "./answers.js";
import { notRankduel } from "./errors.js";
import { type Duel } from "./pages.js";

type Ask = (body: object, milliseconds: number) => Promise<Record<string, unknown>>;

interface Kept {
  readonly duel: Duel;
  readonly requestedAt: number;
}

/** Up to `size` duels, each used once, and not later than `maxAgeMs` after the request. */
export class Stock {
  readonly #ask: Ask;
  readonly #size: number;
  readonly #maxAgeMs: number;
  #duels: Kept[] = [];

  constructor(ask: Ask, size: number, maxAgeMs: number) {
    this.#ask = ask;
    this.#size = size;
    this.#maxAgeMs = maxAgeMs;
  }

  /** The oldest fresh duel. If there is none, the stock is filled first, within this time. */
  async take(milliseconds: number): Promise<Duel> {
    for (let kept = this.#duels.shift(); kept !== undefined; kept = this.#duels.shift()) {
      const isFresh = performance.now() - kept.requestedAt <= this.#maxAgeMs;
      if (isFresh && kept.duel.expiresAt > Date.now()) return kept.duel;
    }
    const requestedAt = performance.now();
    const [first, ...others] = await this.#request(milliseconds);
    // several searches may have filled the stock at the same time: keep the youngest duels
    this.#duels = [...this.#duels, ...others.map((duel) => ({ duel, requestedAt }))].slice(-2 * this.#size);
    return first;
  }

  async #request(milliseconds: number): Promise<[Duel, ...Duel[]]> {
    const { duels } = await this.#ask({ count: this.#size }, milliseconds);
    const [first, ...others] = Array.isArray(duels) ? duels.map(asDuel) : [];
    if (first === undefined) throw notRankduel("it has no duels");
    return [first, ...others];
  }
}
