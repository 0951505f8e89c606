import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, readdirSync, rmSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";

const PROGRAM = process.env["RANKDUEL_PROGRAM"] ?? fileURLToPath(new URL("../../../../target/debug/rankduel", import.meta.url));

export async function freePort(): Promise<number> {
  const listener = createServer().listen(0, "127.0.0.1");
  await once(listener, "listening");
  const { port } = listener.address() as AddressInfo;
  listener.close();
  await once(listener, "close");
  return port;
}

/** `rankduel serve` with its own port and database, which it keeps when it is started again. */
export class Server {
  readonly #folder = mkdtempSync(join(tmpdir(), "rankduel-"));
  #process: ChildProcess | undefined;

  private constructor(readonly port: number) {}

  static async start(): Promise<Server> {
    const server = new Server(await freePort());
    await server.start();
    return server;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  async start(): Promise<void> {
    const database = `sqlite://${this.#folder}/rankduel.db`;
    const options = ["serve", "--listen", `127.0.0.1:${this.port}`, "--database-url", database, "--log", "error"];
    this.#process = spawn(PROGRAM, options, { stdio: ["ignore", "ignore", "inherit"] });
    for (let attempt = 0; attempt < 600; attempt += 1) {
      if (this.#process.exitCode !== null) throw new Error(`the server ended with ${this.#process.exitCode}`);
      const ready = await fetch(`${this.url}/readyz`).catch(() => null);
      if (ready?.ok) return;
      await sleep(50);
    }
    throw new Error("the server does not get ready");
  }

  private signal(signal: NodeJS.Signals): void {
    this.#process?.kill(signal);
  }

  /** Suspend all threads of the server. */
  async freeze(): Promise<void> {
    this.signal("SIGSTOP");
    const tasks = `/proc/${this.#process?.pid}/task`;
    const isStopped = (task: string): boolean =>
      readFileSync(`${tasks}/${task}/stat`, "utf8").split(") ").pop()?.startsWith("T") === true;
    // the threads do not stop at the same moment
    while (!readdirSync(tasks).every(isStopped)) await sleep(10);
  }

  thaw(): void {
    this.signal("SIGCONT");
  }

  async kill(): Promise<void> {
    const ended = this.#process && once(this.#process, "exit");
    this.signal("SIGKILL");
    await ended;
  }

  async stop(): Promise<void> {
    await this.kill();
    rmSync(this.#folder, { recursive: true });
  }

  async create(name: string): Promise<void> {
    // pcomp compares all pairs in turn, so no page has a single ranker
    const policy = { kind: "pcomp", horizon: 1_000_000, batches: 1 };
    const body = JSON.stringify({ name, rankers: ["bm25", "neural"], policy });
    const headers = { "content-type": "application/json" };
    const response = await fetch(`${this.url}/v1/experiments`, { method: "POST", body, headers });
    if (!response.ok) throw new Error(await response.text());
  }

  /** Number of answered duels. */
  async duels(name: string): Promise<number> {
    const response = await fetch(`${this.url}/v1/experiments/${name}/standings`);
    return ((await response.json()) as { duels: number }).duels;
  }
}
