/** One result of a page. */
export interface Slot {
  /** In the whole list, from 0; page 2 goes on counting. */
  readonly position: number;
  /** Its id, as it was given. */
  readonly document: string;
  /** Names the slot in feedback, and does not tell whose it is. `null` on a page of the control. */
  readonly token: string | null;
}

/** Which two rankers to interleave. */
export interface Duel {
  readonly left: string;
  readonly right: string;
  /** Whether both are one ranker: show its ranking alone. */
  readonly selfDuel: boolean;
  /** To be sent back with feedback. `null` where the control is shown without rankduel. */
  readonly duelId: string | null;
  /** Unix milliseconds, as the clock of this machine has them; feedback after that does not count. */
  readonly expiresAt: number;
  /**
   * Why this is the control and not what rankduel has chosen: `timeout`, `unreachable`, `resting`, `closed`, or the slug of a problem
   * such as `paused`. `null` where rankduel has chosen.
   */
  readonly fallback: string | null;
}

/** One page of results. */
export interface Page {
  readonly slots: readonly Slot[];
  /** To be sent back with feedback. `null` where the control is shown without rankduel. */
  readonly duelId: string | null;
  /** Unix milliseconds, as the clock of this machine has them; feedback after that does not count. */
  readonly expiresAt: number;
  /** Slots of all pages together. */
  readonly total: number;
  /** Whether clicks on it can say anything. */
  readonly informative: boolean;
  /** As `Duel.fallback`. */
  readonly fallback: string | null;
}

/** A document that is shown at a position (from 0) whatever the rankings say. */
export interface Pin {
  readonly position: number;
  readonly document: string;
}

/** Which part of the list. */
export interface Window {
  /** Slots of the page; 10 unless given. */
  readonly length?: number;
  /** Slots of the list before the page; 0 unless given. */
  readonly offset?: number;
  readonly pinned?: readonly Pin[];
}

/** A position, a document's id, or an object with one of `position`, `document` and `slot`, and an `event` such as `purchase`. */
export type Click =
  | number
  | string
  | ({ readonly event?: string } & ({ readonly position: number } | { readonly document: string } | { readonly slot: string }));

/** The ids to show, best first. */
export function documents(page: Page): string[] {
  return page.slots.map((slot) => slot.document);
}

/** A time that never comes, for pages that rankduel knows nothing of. */
export const NEVER = Date.UTC(2100, 0, 1);

/** The control's ranking, without repeats, with what is pinned where it is pinned. */
export function controlPage(ranking: readonly string[], reason: string | null, window: Window): Page {
  const pins = new Map((window.pinned ?? []).map((pin) => [pin.position, pin.document]));
  const pinned = new Set(pins.values());
  const shown: string[] = [];
  const placePins = (): void => {
    for (let pin = pins.get(shown.length); pin !== undefined; pin = pins.get(shown.length)) {
      pins.delete(shown.length);
      shown.push(pin);
    }
  };
  for (const document of new Set(ranking)) {
    if (pinned.has(document)) continue;
    placePins();
    shown.push(document);
  }
  for (const position of [...pins.keys()].sort((a, b) => a - b)) shown.push(pins.get(position) as string);
  const offset = window.offset ?? 0;
  const slots = shown
    .slice(offset, offset + (window.length ?? 10))
    .map((document, at) => ({ position: offset + at, document, token: null }));
  return { slots, duelId: null, expiresAt: NEVER, total: shown.length, informative: false, fallback: reason };
}
