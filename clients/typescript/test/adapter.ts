/** The adapter of this client for conformance/check_clients.py: one request and one answer a line. */
import { createInterface } from "node:readline";
import { inspect } from "node:util";

import { type Duel, type Options, type Page, Rankduel, RankduelError, type Window } from "../src/index.js";

/** A failure of the search that the client calls. */
class ApplicationError extends Error {}

interface Arguments extends Window {
  readonly rankings: Record<string, string[]>;
  readonly form: "all" | "pair";
  readonly failing?: string[];
  readonly missing?: string[];
  readonly others?: string[];
  readonly of?: string;
}

let client: Rankduel;
let milliseconds = 0;
/** The rankers that each call of the last function asked for. */
let asked: string[][] = [];

function asJson(result: Duel | Page): object {
  const { duelId: duel_id, expiresAt, ...others } = result;
  return { ...others, duel_id, expires_at: expiresAt / 1000, json: JSON.stringify(result) };
}

function rankings({ rankings, form, failing = [], missing = [], others = [] }: Arguments) {
  asked = [];
  if (form === "all") return rankings;
  return async (rankers: readonly string[]): Promise<Record<string, string[]>> => {
    asked.push([...rankers]);
    if (failing.some((ranker) => rankers.includes(ranker))) throw new ApplicationError();
    const made = [...rankers, ...others].filter((ranker) => !missing.includes(ranker));
    return Object.fromEntries(made.map((ranker) => [ranker, rankings[ranker] ?? []]));
  };
}

/** The requests of the driver. */
const actions: Record<string, (given: any) => Promise<object>> = {
  async connect({ deadline_ms, report_ms, stock_seconds, ...given }) {
    await client?.close(0);
    const options: Options = { ...given, deadlineMs: deadline_ms, stockSeconds: stock_seconds, log: () => undefined };
    client = new Rankduel(options);
    milliseconds = report_ms;
    return { queue: true };
  },
  check: async () => ({ rankers: await client.check() }),
  next_duel: async (given) => asJson(await client.nextDuel(given)),
  page: async (given: Arguments) => ({ ...asJson(await client.page(rankings(given), given)), asked }),
  more: async (given) => ({
    ...asJson(await client.more(JSON.parse(given.of), rankings(given), given)),
    asked,
  }),
  report_clicks: async ({ of, clicks, final }) => ({
    status: await client.reportClicks(of, clicks, { final, milliseconds }),
  }),
  report_outcome: async ({ of, outcome }) => ({ status: await client.reportOutcome(of, outcome, { milliseconds }) }),
  report_metrics: async ({ of, metrics }) => ({ status: await client.reportMetrics(of, metrics, { milliseconds }) }),
  report_orders: async ({ orders }) => ({ results: await client.reportOrders(orders, { milliseconds }) }),
  queue_clicks: async ({ of, duel_id, clicks, final }) => {
    client.clicked(of === undefined ? duel_id : JSON.parse(of), clicks, { final });
    return {};
  },
  queue_outcome: async ({ of, duel_id, outcome }) => {
    client.outcome(of === undefined ? duel_id : JSON.parse(of), outcome);
    return {};
  },
  queue_metrics: async ({ of, duel_id, metrics }) => {
    client.measured(of === undefined ? duel_id : JSON.parse(of), metrics);
    return {};
  },
  flush: async ({ milliseconds }) => ({ flushed: await client.flush(milliseconds) }),
  close: async ({ milliseconds }) => ({ flushed: await client.close(milliseconds) }),
  counts: async () => client.counts(),
};

async function answer(request: { do: string; with: unknown }): Promise<object> {
  try {
    return { ok: await actions[request.do]?.(request.with) };
  } catch (error) {
    if (error instanceof RankduelError) {
      const { reason, status, retryAfterMs, retryable } = error;
      return { error: { reason, status, retry_after: retryAfterMs === null ? null : retryAfterMs / 1000, retryable } };
    }
    if (error instanceof ApplicationError) return { error: { reason: "application" } };
    if (error instanceof TypeError || error instanceof RangeError) {
      return { error: { reason: "usage", detail: inspect(error) } };
    }
    throw error;
  }
}

for await (const line of createInterface({ input: process.stdin })) {
  console.log(JSON.stringify(await answer(JSON.parse(line))));
}
process.exit();
