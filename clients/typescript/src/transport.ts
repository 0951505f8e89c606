/** A request without a successful answer. */
export class Failed extends Error {
  constructor(
    /** `timeout`, `unreachable`, or the slug of the problem, among others. */
    readonly reason: string,
    readonly detail: string,
    /** The status of the answer, if there was one. */
    readonly status: number | null = null,
    readonly retryAfterMs: number | null = null,
  ) {
    super(`${reason}: ${detail}`);
  }
}

/** Requests to one server. Each ends at its deadline, even if the answer arrives slowly. */
export class Transport {
  readonly #base: string;
  readonly #headers: Record<string, string>;

  constructor(url: string, key: string | undefined) {
    let parsed: URL;
    try {
      parsed = new URL(url);
    } catch {
      throw new TypeError(`${JSON.stringify(url)} is not the address of a server; it must look like http://rankduel.internal:7171`);
    }
    if (!["http:", "https:"].includes(parsed.protocol) || parsed.search || parsed.hash) {
      throw new TypeError(`${JSON.stringify(url)} is not the address of a server; it must look like http://rankduel.internal:7171`);
    }
    this.#base = parsed.href.replace(/\/$/, "");
    this.#headers = { accept: "application/json" };
    if (key !== undefined) this.#headers["authorization"] = `Bearer ${key}`;
  }

  /**
   * The content of an answer with status 200. Rejects with `Failed` for any other answer, and if there
   * is none within this time.
   */
  async post(path: string, body: unknown, milliseconds: number): Promise<unknown> {
    const signal = AbortSignal.timeout(Math.max(1, Math.ceil(milliseconds)));
    try {
      const response = await fetch(this.#base + path, {
        method: "POST",
        headers: body === undefined ? this.#headers : { ...this.#headers, "content-type": "application/json" },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        redirect: "manual",
        signal,
      });
      const text = await response.text();
      return content(response, text);
    } catch (error) {
      if (error instanceof Failed) throw error;
      if (signal.aborted) throw new Failed("timeout", `no answer within ${milliseconds} ms`);
      throw new Failed("unreachable", describe(error));
    }
  }
}

function content(response: Response, text: string): unknown {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    parsed = undefined;
  }
  if (response.status === 200 && parsed !== undefined) return parsed;
  const problem = isObject(parsed) ? parsed : {};
  const slug = typeof problem["type"] === "string" ? problem["type"].split("/").pop() : undefined;
  const errors = Array.isArray(problem["errors"]) ? problem["errors"].filter(isObject) : [];
  const where = errors.map((error) => `; ${String(error["pointer"])}: ${String(error["detail"])}`).join("");
  const retryAfter = response.headers.get("retry-after");
  throw new Failed(
    slug || `status-${response.status}`,
    String(problem["detail"] ?? problem["title"] ?? `status ${response.status}`) + where,
    response.status,
    retryAfter !== null && /^\d+$/.test(retryAfter) ? Number(retryAfter) * 1000 : null,
  );
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function describe(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error ? `${error.message}: ${error.cause.message}` : error.message;
}
