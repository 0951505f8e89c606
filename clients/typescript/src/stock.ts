import { asDuel } from "./answers.js";
import { RankduelError } from "./errors.js";
import { type Duel } from "./pages.js";

type Ask = (body: object, milliseconds: number) => Promise<Record<string, unknown>>;

interface Kept {
  readonly duel: Duel;
  readonly requestedAt: number;
}

/**
 * Up to `size` duels, each used once, and not later than `maxAgeMs` after the request. A server that
 * does not know `count` refuses it once; from then on the stock makes single requests, as many as
 * the deadline allows.
 */
export class Stock {
  readonly #ask: Ask;
  readonly #size: number;
  readonly #maxAgeMs: number;
  #knowsCount = true;
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
    const [first, ...others] = await this.#request(requestedAt + milliseconds);
    // several searches may have filled the stock at the same time: keep the youngest duels
    this.#duels = [...this.#duels, ...others.map((duel) => ({ duel, requestedAt }))].slice(-2 * this.#size);
    return first;
  }

  async #request(end: number): Promise<[Duel, ...Duel[]]> {
    if (this.#knowsCount) {
      try {
        const answer = await this.#ask({ count: this.#size }, end - performance.now());
        const several = answer["duels"];
        if (!Array.isArray(several)) return await this.#singles(asDuel(answer), end);
        const [first, ...others] = several.map(asDuel);
        if (first !== undefined) return [first, ...others];
      } catch (error) {
        if (!(error instanceof RankduelError) || error.status !== 422) throw error;
        this.#knowsCount = false;
      }
    }
    return this.#singles(asDuel(await this.#ask({}, end - performance.now())), end);
  }

  async #singles(first: Duel, end: number): Promise<[Duel, ...Duel[]]> {
    const duels: [Duel, ...Duel[]] = [first];
    while (duels.length < this.#size && performance.now() < end) {
      try {
        duels.push(asDuel(await this.#ask({}, end - performance.now())));
      } catch (error) {
        if (error instanceof RankduelError) break;
        throw error;
      }
    }
    return duels;
  }
}
