import { notRankduel } from "./errors.js";
import { type Duel, type Page, type Slot, type Visit, type Window } from "./pages.js";
import { isObject } from "./transport.js";

/** The members of a request for this part of the list. */
export function inFull({ length = 10, offset = 0, pinned = [], ...visit }: Window): object {
  return { length, offset, ...(pinned.length > 0 ? { pinned } : {}), ...given(visit) };
}

/** The members of a request that say whose page it is, without those that are empty. */
export function given({ unit = "", segment = "" }: Visit): Visit {
  return { ...(unit === "" ? {} : { unit: String(unit) }), ...(segment === "" ? {} : { segment: String(segment) }) };
}

/** The members of an answer, with checked types. */
class Answer {
  readonly #members: Record<string, unknown>;

  constructor(answer: unknown) {
    if (!isObject(answer)) throw notRankduel("it is not an object");
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
    if (Number.isNaN(time)) throw notRankduel(`${name} is not a time`);
    return time;
  }

  #of<T>(name: string, is: (value: unknown) => value is T): T {
    const value = this.#members[name];
    if (!is(value)) throw notRankduel(`${name} is ${typeof value}`);
    return value;
  }
}

/** The duel of an answer. */
export function asDuel(answer: unknown): Duel {
  const of = new Answer(answer);
  const [left, right] = [of.text("left"), of.text("right")];
  const selfDuel = left === right;
  // a page that takes no part in the experiment has no duel
  const duelId = of.text("duel_id") || null;
  return { left, right, selfDuel, duelId, expiresAt: of.time("expires_at"), fallback: null };
}

/** The page of an answer. */
export function asPage(answer: unknown, left: string, right: string): Page {
  const of = new Answer(answer);
  const slots = of.list("slots").map((slot): Slot => {
    const members = new Answer(slot);
    return { position: members.number("position"), document: members.text("document"), token: members.text("token") };
  });
  return {
    slots,
    duelId: of.text("duel_id") || null,
    left,
    right,
    expiresAt: of.time("expires_at"),
    total: of.number("total"),
    informative: of.flag("informative"),
    fallback: null,
  };
}
