/** Tests of the client with a real server, which may be slow, stopped or started again. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { type AddressInfo, type Server as Listener, connect, createServer } from "node:net";
import { after, before, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";

import { type Options, type Page, Rankduel, documents } from "../src/index.js";
import { Server, freePort } from "./server.js";

/** Long limits, because a test machine may be busy. */
const MILLISECONDS = 60_000;
const RANKINGS = { bm25: ["a", "b", "c", "d"], neural: ["d", "c", "x", "y"] };

function clientOf(url: string, experiment: string, more: Partial<Options> = {}): Rankduel {
  return new Rankduel({ url, experiment, control: "bm25", deadlineMs: MILLISECONDS, log: () => undefined, ...more });
}

describe("with a server", () => {
  let server: Server;
  let created = 0;

  before(async () => {
    server = await Server.start();
  });
  after(() => server.stop());

  async function experiment(more: Partial<Options> = {}): Promise<{ name: string; client: Rankduel }> {
    created += 1;
    const name = `search-${created}`;
    await server.create(name);
    return { name, client: clientOf(server.url, name, more) };
  }

  test("a page and its clicks", async () => {
    const { name, client } = await experiment();
    const page = await client.page(RANKINGS, { length: 3 });
    assert.equal(page.fallback, null);
    assert.ok(page.informative);
    assert.deepEqual(page.slots.map((slot) => slot.position), [0, 1, 2]);
    const [first] = page.slots;
    assert.ok(first?.token);
    client.clicked(page, [0, { document: first.document }, { slot: first.token }]);
    assert.ok(await client.flush(MILLISECONDS));
    assert.equal(client.counts().recorded, 1);
    assert.equal(await server.duels(name), 1);
  });

  test("the pair first", async () => {
    const { client } = await experiment();
    const asked: string[][] = [];
    const page = await client.page(async (rankers) => {
      asked.push([...rankers].sort());
      return RANKINGS;
    });
    assert.equal(page.fallback, null);
    assert.deepEqual(asked, [["bm25", "neural"]]);
  });

  test("pages of one list", async () => {
    const { client } = await experiment();
    const duel = await client.nextDuel();
    const first = await client.more(duel, RANKINGS, { length: 2 });
    const second = await client.more(JSON.parse(JSON.stringify(first)) as Page, RANKINGS, { length: 2, offset: 2 });
    const whole = await client.more(duel, RANKINGS, { length: 4 });
    assert.deepEqual([...documents(first), ...documents(second)], documents(whole));
    assert.deepEqual(second.slots.map((slot) => slot.position), [2, 3]);
  });

  test("clicks of another request", async () => {
    const { name, client } = await experiment();
    const { duelId } = await client.page(RANKINGS);
    const other = clientOf(server.url, name);
    other.clicked(duelId, [0]);
    other.clicked(null, [0]);
    assert.ok(await other.flush(MILLISECONDS));
    assert.deepEqual([other.counts().recorded, await server.duels(name)], [1, 1]);
  });

  test("pieces make one outcome", async () => {
    const { name, client } = await experiment();
    const page = await client.page(RANKINGS);
    client.clicked(page, [1], { final: false });
    client.clicked(page, [0], { final: false });
    client.clicked(page, [0], { final: false });
    client.clicked(page, []);
    assert.ok(await client.flush(MILLISECONDS));
    assert.equal(await server.duels(name), 1);
  });

  test("outcomes", async () => {
    const { name, client } = await experiment();
    for (const outcome of ["left", "right", "tie", "none"] as const) client.outcome(await client.nextDuel(), outcome);
    assert.ok(await client.flush(MILLISECONDS));
    assert.equal(client.counts().recorded, 4);
    assert.equal(await server.duels(name), 4);
  });

  test("what the server refuses is the control", async () => {
    const reasons: string[] = [];
    const client = clientOf(server.url, "nobody-made-this", { onFallback: (reason) => reasons.push(reason) });
    const page = await client.page(RANKINGS);
    assert.deepEqual([page.fallback, documents(page)], ["experiment-not-found", RANKINGS.bm25]);
    assert.deepEqual(reasons, ["experiment-not-found"]);
  });

  test("refused feedback is not sent again", async () => {
    const { name, client } = await experiment();
    client.clicked(await client.page(RANKINGS), [999]);
    assert.ok(await client.flush(MILLISECONDS));
    assert.deepEqual([client.counts().refused, await server.duels(name)], [1, 0]);
  });

  test("one bad item spoils no other", async () => {
    const messages: string[] = [];
    const { name, client } = await experiment({ log: (message) => messages.push(message) });
    const bad: unknown[] = [1n, NaN, "x\ud83d", -1];
    for (const page of await Promise.all(Array.from({ length: 20 }, () => client.page(RANKINGS)))) {
      client.clicked(page, [(bad.length > 0 ? bad.shift() : 0) as number]);
    }
    assert.ok(await client.flush(MILLISECONDS));
    assert.deepEqual([client.counts().recorded, client.counts().refused, await server.duels(name)], [16, 4, 16]);
    assert.ok(messages.some((message) => /refused: .*BigInt/.test(message)));
    await assert.rejects(client.reportClicks("id", [1n as unknown as number]), /invalid-request/);
    // no order loses its price
    const lines = [{ document: "d1", value: NaN }];
    await assert.rejects(client.reportOrders([{ order_id: "A", unit: "u", at: "2026-11-21T18:03:11Z", lines }]), /NaN has no form/);
  });

  test("late clicks name the remedy", async () => {
    const messages: string[] = [];
    const { client } = await experiment({ log: (message) => messages.push(message) });
    const page = await client.page(RANKINGS);
    client.clicked(page, [0]);
    client.clicked(page, [1]);
    assert.ok(await client.flush(MILLISECONDS));
    assert.deepEqual([client.counts().recorded, client.counts().refused], [1, 1]);
    assert.match(messages.join(), /late.*final: false/);
  });

  test("a page whatever the rankings have", async () => {
    const { client } = await experiment();
    for (const ranking of [[{ id: "a" }], ["a", null], [1n], [NaN], [17], ["x\ud83d"]]) {
      const rankings = { bm25: ranking as string[], neural: ["a"] };
      for (const form of [rankings, () => ({ bm25: rankings.bm25, neural: rankings.bm25 })]) {
        const page = await client.page(form);
        assert.deepEqual([page.fallback, documents(page)], ["invalid-request", ranking]);
      }
    }
  });

  test("a ranking that is one text", async () => {
    const { client } = await experiment();
    const given = { bm25: ["a", "b"], neural: "neural-1" as unknown as string[] };
    const search = (): typeof given => given;
    for (const form of [given, search]) {
      const page = await client.page(form);
      assert.deepEqual([page.fallback, documents(page)], ["ranker-failed", ["a", "b"]]);
      assert.equal((await client.more(await client.nextDuel(), form)).fallback, "ranker-failed");
    }
    given.bm25 = given.neural;
    for (const form of [given, search]) await assert.rejects(client.page(form), /TypeError: the ranking of "bm25"/);
  });

  test("a hundred at once", async () => {
    const { name, client } = await experiment();
    const search = async (): Promise<void> => client.clicked(await client.page(RANKINGS), [0]);
    await Promise.all(Array.from({ length: 100 }, search));
    assert.ok(await client.flush(MILLISECONDS));
    assert.deepEqual([client.counts().recorded, await server.duels(name)], [100, 100]);
  });

  test("a frozen server", async () => {
    const { name, client } = await experiment();
    const hasty = clientOf(server.url, name, { deadlineMs: 300 });
    const before = await client.page(RANKINGS);
    await server.freeze();
    try {
      const page = await hasty.page(RANKINGS);
      assert.deepEqual([page.fallback, documents(page)], ["timeout", RANKINGS.bm25]);
      client.clicked(page, [0]);
      client.clicked(before, [0]);
    } finally {
      server.thaw();
    }
    assert.ok(await client.flush(MILLISECONDS));
    // clicks on a fallback page teach nothing about the rankers
    assert.deepEqual([client.counts().recorded, await server.duels(name)], [1, 1]);
  });

  test("a server that is down and back", async () => {
    const { name, client } = await experiment();
    const pages = await Promise.all(Array.from({ length: 150 }, () => client.page(RANKINGS)));
    for (const page of pages.slice(0, 10)) client.clicked(page, [0]);
    assert.ok(await client.flush(MILLISECONDS));
    await server.kill();
    for (const page of [...pages.slice(10), ...pages.slice(0, 1)]) client.clicked(page, [0]);
    const fallbacks = new Set<string | null>();
    for (let search = 0; search < 20; search += 1) fallbacks.add((await client.page(RANKINGS)).fallback);
    assert.deepEqual(fallbacks, new Set(["unreachable", "resting"]));
    assert.equal(await client.flush(300), false);
    await server.start();
    assert.ok(await client.flush(MILLISECONDS));
    const { recorded, duplicate, refused, dropped } = client.counts();
    assert.deepEqual([recorded + duplicate, refused, dropped], [151, 0, 0]);
    assert.equal(await server.duels(name), 150);
    for (let attempt = 0; (await client.page(RANKINGS)).fallback !== null; attempt += 1) {
      assert.ok(attempt < 600, "the client still falls back to the control");
      await sleep(50);
    }
  });

  test("an answer that is lost", async () => {
    const { name } = await experiment();
    let cutNextAnswer = false;
    const proxy = createServer((near) => {
      const far = connect(server.port, "127.0.0.1");
      const end = (): void => {
        near.destroy();
        far.destroy();
      };
      near.on("error", end).on("close", end).on("data", (data) => far.write(data));
      far.on("error", end).on("close", end).on("data", (data) => {
        if (!cutNextAnswer) return void near.write(data);
        cutNextAnswer = false;
        end();
      });
    });
    const client = clientOf(await listening(proxy), name);
    const page = await client.page(RANKINGS);
    cutNextAnswer = true;
    client.clicked(page, [0]);
    assert.ok(await client.flush(MILLISECONDS));
    assert.deepEqual([client.counts().duplicate, client.counts().recorded], [1, 0]);
    assert.equal(await server.duels(name), 1);
    proxy.close();
  });

  test("closed", async () => {
    const { client } = await experiment();
    const page = await client.page(RANKINGS);
    assert.ok(await client.close(MILLISECONDS));
    client.clicked(page, [0]);
    assert.deepEqual([(await client.page(RANKINGS)).fallback, client.counts().dropped], ["closed", 1]);
  });
});

async function listening(listener: Listener): Promise<string> {
  listener.listen(0, "127.0.0.1");
  await once(listener, "listening");
  return `http://127.0.0.1:${(listener.address() as AddressInfo).port}`;
}

describe("without a server", () => {
  test("nobody there", async () => {
    const client = clientOf(`http://127.0.0.1:${await freePort()}`, "search");
    const duel = await client.nextDuel();
    assert.deepEqual([duel.left, duel.right, duel.duelId, duel.fallback], ["bm25", "bm25", null, "unreachable"]);
    const pinned = [
      { position: 2, document: "ad" },
      { position: 9, document: "b" },
    ];
    const page = await client.page(RANKINGS, { length: 2, offset: 1, pinned });
    assert.deepEqual(
      page.slots.map((slot) => [slot.position, slot.document]),
      [
        [1, "c"],
        [2, "ad"],
      ],
    );
    assert.equal(page.total, 5);
    client.clicked(page, [0]);
    assert.equal(client.counts().waiting, 0);
  });

  test("an answer that drips ends with the deadline", async () => {
    const listener = createServer((socket) => {
      socket.write("HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n");
      const drip = setInterval(() => socket.write(" "), 20);
      socket.on("error", () => undefined).on("close", () => clearInterval(drip));
    });
    const client = clientOf(await listening(listener), "search", { deadlineMs: 300 });
    // each byte arrives before a timeout per read would end; the whole answer would take 20 s
    assert.equal((await client.nextDuel()).fallback, "timeout");
    listener.close();
  });

  test("an answer of something else", async () => {
    const listener = createServer((socket) => {
      socket.on("error", () => undefined).once("data", () => {
        socket.end('HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n{"hello": "world"}');
      });
    });
    const page = await clientOf(await listening(listener), "search").page(RANKINGS);
    assert.deepEqual([page.fallback, documents(page)], ["not-rankduel", RANKINGS.bm25]);
    listener.close();
  });

  test("misuse", async () => {
    for (const url of ["rankduel", "ftp://rankduel", "http://", "http://host/?a=b"]) {
      assert.throws(() => clientOf(url, "search"), TypeError);
    }
    await assert.rejects(clientOf("http://127.0.0.1:1", "search").page({ neural: ["a"] }), /control/);
    const wrong: unknown[] = [0, -1, NaN, Infinity, 2 ** 31, "50"];
    for (const name of ["deadlineMs", "stockSeconds"]) {
      for (const value of wrong) assert.throws(() => clientOf("http://127.0.0.1:1", "search", { [name]: value }), RangeError);
    }
    for (const more of [{ queue: 0 }, { queue: 1.5 }, { stock: -1 }, { stock: 1001 }, { stock: NaN }]) {
      assert.throws(() => clientOf("http://127.0.0.1:1", "search", more), RangeError);
    }
  });

  test("a limit without an end", async () => {
    const client = clientOf("http://127.0.0.1:1", "search");
    await assert.rejects(client.reportOutcome("id", "left", { milliseconds: Infinity }), RangeError);
    client.clicked("id", [0]);
    const flushed = client.flush(Infinity);
    await client.close(0);
    assert.equal(await flushed, true);
  });

  test("callbacks that fail", async () => {
    const fails = (): never => {
      throw new Error();
    };
    const client = clientOf("http://127.0.0.1:1", "search", { log: fails, onFallback: fails });
    assert.deepEqual(documents(await client.page(RANKINGS)), RANKINGS.bm25);
    client.clicked("id", [1n as unknown as number]);
    assert.equal(client.counts().refused, 1);
  });
});
