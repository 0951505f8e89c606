/** One result of a page. */
export interface Slot {
  /** Position in the whole list, from 0. Positions on page 2 continue those of page 1. */
  readonly position: number;
  /** The document's id, as in the rankings. */
  readonly document: string;
  /** Identifies the slot in feedback, without revealing its ranker. `null` on a fallback page. */
  readonly token: string | null;
}

/** The two rankers to interleave. `JSON.stringify` and `JSON.parse` keep it for another request. */
export interface Duel {
  readonly left: string;
  readonly right: string;
  /** Whether both are the same ranker. If so, show its ranking alone. */
  readonly selfDuel: boolean;
  /** Sent back with feedback. `null` for a fallback to the control. */
  readonly duelId: string | null;
  /** Unix milliseconds. Feedback after this time does not count. */
  readonly expiresAt: number;
  /**
   * The reason for a fallback to the control: `timeout`, `unreachable`, `resting`, `closed`,
   * `not-rankduel`, or the slug of a problem such as `experiment-paused`. `null` if rankduel selected
   * the rankers.
   */
  readonly fallback: string | null;
}

/**
 * One page of results. `JSON.stringify` and `JSON.parse` keep it for another request. Keep it on the
 * server: it names the rankers.
 */
export interface Page {
  readonly slots: readonly Slot[];
  /** Sent back with feedback. `null` for a fallback to the control. */
  readonly duelId: string | null;
  /** The left ranker of the duel; the control on a fallback page. */
  readonly left: string;
  readonly right: string;
  /** Unix milliseconds. Feedback after this time does not count. */
  readonly expiresAt: number;
  /** Number of slots of all pages of the list. */
  readonly total: number;
  /** Whether clicks on this page can favour one side. */
  readonly informative: boolean;
  /** The same as `Duel.fallback`; also `ranker-failed`, if a ranker raised an error. */
  readonly fallback: string | null;
}

/** A document to show at a position (from 0), independent of the rankings. */
export interface Pin {
  readonly position: number;
  readonly document: string;
}

/** Whose page it is, and to what part of the traffic it belongs. Both may be absent. */
export interface Visit {
  /** An opaque id of the user or the session, of which the server stores a hash. */
  readonly unit?: string | undefined;
  /** A label of 1 to 32 bytes for the part of the traffic that it belongs to, such as `mobile`. */
  readonly segment?: string | undefined;
}

/** The part of the list that a page shows. */
export interface Window extends Visit {
  /** Number of slots of the page; default 10. */
  readonly length?: number;
  /** Number of slots of the list before the page; default 0. */
  readonly offset?: number;
  readonly pinned?: readonly Pin[];
}

/**
 * A position, a document's id, or an object with one of `position`, `document` and `slot`, and
 * optionally an `event` such as `purchase`.
 */
export type Click =
  | number
  | string
  | ({ readonly event?: string } & ({ readonly position: number } | { readonly document: string } | { readonly slot: string }));

/** The ids to show, best first. */
export function documents(page: Page): string[] {
  return page.slots.map((slot) => slot.document);
}

/** An expiry time in the far future, for fallback pages. */
export const NEVER = Date.UTC(2100, 0, 1);

/** The control's ranking without repeats, with the pinned documents at their positions. */
export function controlPage(
  control: string,
  ranking: readonly string[],
  reason: string | null,
  window: Window,
): Page {
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
  return {
    slots,
    duelId: null,
    left: control,
    right: control,
    expiresAt: NEVER,
    total: shown.length,
    informative: false,
    fallback: reason,
  };
}
