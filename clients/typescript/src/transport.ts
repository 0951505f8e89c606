import { RankduelError } from "./errors.js";
import { checkServer, VERSION } from "./version.js";

/** Requests to one server. Each ends at its deadline, even if the answer arrives slowly. */
export class Transport {
  readonly #base: string;
  readonly #headers: Record<string, string>;

  constructor(url: string, key: string | undefined) {
    this.#base = address(url);
    this.#headers = { accept: "application/json", "rankduel-version": VERSION };
    if (key) {
      // the message must not show the key
      const wrong = "key has a character that no key has, such as a space, a line break or a typographic quote";
      if (!/^[!-~]+$/.test(key)) throw new TypeError(wrong);
      this.#headers["authorization"] = `Bearer ${key}`;
    }
  }

  /**
   * The content of an answer with status 200. Rejects with `RankduelError` for any other answer, if
   * there is none within this time, and if the body, an object or its text, has no form in JSON.
   */
  async post(path: string, body: object | string | undefined, milliseconds: number): Promise<Record<string, unknown>> {
    return this.#request("POST", path, typeof body === "object" ? encode(body) : body, milliseconds);
  }

  /**
   * The same for a GET request, which is never part of a search. Rejects also if the server is older
   * than this client.
   */
  get(path: string, milliseconds: number): Promise<Record<string, unknown>> {
    return this.#request("GET", path, undefined, milliseconds);
  }

  async #request(
    method: string,
    path: string,
    body: string | undefined,
    milliseconds: number,
  ): Promise<Record<string, unknown>> {
    const signal = AbortSignal.timeout(Math.max(1, Math.ceil(milliseconds)));
    try {
      const response = await fetch(this.#base + path, {
        method,
        headers: body === undefined ? this.#headers : { ...this.#headers, "content-type": "application/json" },
        ...(body === undefined ? {} : { body }),
        redirect: "manual",
        signal,
      });
      const text = await response.text();
      const found = content(response, text);
      if (method === "GET") checkServer(response.headers.get("rankduel-version"));
      return found;
    } catch (error) {
      if (error instanceof RankduelError) throw error;
      if (signal.aborted) throw new RankduelError("timeout", `no answer within ${milliseconds} ms`);
      throw new RankduelError("unreachable", describe(error));
    }
  }
}

function address(url: string): string {
  // the message must not show a password
  const shown = String(url).includes("@") ? "url" : JSON.stringify(url);
  const wrong = `${shown} is not the address of a server; it must look like http://rankduel.internal:7171`;
  if (!/^https?:\/\/[^@/:][!-?A-~]*$/i.test(url)) throw new TypeError(wrong);
  let parsed: URL;
  try {
    parsed = new URL(url);
  } catch {
    throw new TypeError(wrong);
  }
  if (parsed.search || parsed.hash || parsed.port === "0") throw new TypeError(wrong);
  return parsed.href.replace(/\/+$/, "");
}

function finite(_: string, value: unknown): unknown {
  if (typeof value === "number" && !Number.isFinite(value)) throw new TypeError(`${value} has no form in JSON`);
  return value;
}

/** A body as JSON. Throws `RankduelError` if it has no form in JSON, as a `bigint` and NaN have none. */
export function encode(body: object): string {
  try {
    return JSON.stringify(body, finite);
  } catch (error) {
    throw new RankduelError("invalid-request", describe(error));
  }
}

function content(response: Response, text: string): Record<string, unknown> {
  const type = (response.headers.get("content-type") ?? "none").split(";")[0]?.trim().toLowerCase() ?? "";
  let parsed: unknown;
  try {
    if (type === "application/json" || type.endsWith("+json")) parsed = JSON.parse(text);
  } catch {
    parsed = undefined;
  }
  if (response.status === 200) {
    if (isObject(parsed)) return parsed;
    const detail = `the answer is not from rankduel: its content is not a JSON object, its type is ${type}`;
    throw new RankduelError("not-rankduel", detail, 200);
  }
  const problem = isObject(parsed) ? parsed : {};
  const slug = typeof problem["type"] === "string" ? problem["type"].split("/").pop() : undefined;
  const errors = Array.isArray(problem["errors"]) ? problem["errors"].filter(isObject) : [];
  const where = errors.map((error) => `; ${String(error["pointer"])}: ${String(error["detail"])}`).join("");
  throw new RankduelError(
    slug || `status-${response.status}`,
    String(problem["detail"] ?? problem["title"] ?? `status ${response.status}`) + where,
    response.status,
    retryAfterMs(response.headers),
  );
}

/** What `Retry-After` says: seconds, or a date. By the clock of the server, if it says what that is. */
function retryAfterMs(headers: Headers): number | null {
  const text = headers.get("retry-after") ?? "";
  if (/^\d+$/.test(text)) return Number(text) * 1000;
  const time = (date: string) => (date.endsWith(" GMT") ? Date.parse(date) : NaN);
  const [until, now] = [time(text), time(headers.get("date") ?? "")];
  return Number.isNaN(until) ? null : Math.max(0, until - (Number.isNaN(now) ? Date.now() : now));
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function describe(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error ? `${error.message}: ${error.cause.message}` : error.message;
}
