// Create, duel, page, feedback and verdict with the client of @hey-api/openapi-ts.
import assert from "node:assert/strict";
import { client } from "./rankduel_api/client.gen.js";
import { change, create, feedback, interleave, list, nextDuel, read, verdict } from "./rankduel_api/sdk.gen.js";

const [url, name] = process.argv.slice(2) as [string, string];
client.setConfig({ baseUrl: url });
const path = { name };
const throwOnError = true;

const made = await create({
  body: {
    name,
    rankers: ["a", "b", { id: "c", description: "the third" }],
    policy: { kind: "d-ts-verdict" },
    conclude_at: { max_duels: 10_000 },
    control: "a",
    drift: "off",
    metrics: [{ name: "latency_ms", cap: 1000, limit: 400 }],
    owner: "generated",
    answer_window_seconds: 0,
  },
  throwOnError,
});
assert.equal(made.data.status, "running");
assert.equal(made.data.owner, "generated");
assert.equal(made.data.control, "a");
let clicked = 0;
let decided = 0;
while (clicked + decided < 10) {
  const { data: duel } = await nextDuel({ path, throwOnError });
  assert("duel_id" in duel);
  if (duel.self_duel) continue;
  if (decided < clicked) {
    const outcome = duel.left === "a" ? "left" : "right";
    const { data: receipt } = await feedback({ path, body: { duel_id: duel.duel_id, outcome }, throwOnError });
    assert("status" in receipt && receipt.status === "recorded");
    decided += 1;
  } else {
    const lists = { left: ["d1", "d2", "d3"], right: ["d3", "d1", "d2"] };
    const body = { duel_id: duel.duel_id, length: 3, ...lists };
    const { data: page } = await interleave({ path, body, throwOnError });
    assert.equal(page.slots.length, 3);
    const { data: receipt } = await feedback({ path, body: { duel_id: page.duel_id, clicks: [0] }, throwOnError });
    assert("status" in receipt && receipt.status === "recorded");
    clicked += 1;
  }
}
const found = await verdict({ path, throwOnError });
assert.equal(found.data.duels, 10);
assert.equal(found.data.state, "open");
const headers = { "if-match": "*" };
const changed = await change({ path, headers, body: { conclude_at: { max_duels: 10 } }, throwOnError });
assert.notEqual(changed.data.conclude_at, "never");
while ((await read({ path, throwOnError })).data.status !== "concluded");
const { concluded } = (await verdict({ path, throwOnError })).data;
assert.equal(concluded?.automatic, true);
const refused = await list({ query: { cursor: "nowhere" } });
assert.equal(refused.error?.errors?.[0]?.name, "cursor");
const missing = await read({ path: { name: "missing" } });
assert.equal(missing.error?.type, "/problems/experiment-not-found");
