import { RankduelError } from "./errors.js";

/** The version of this client. */
export const VERSION = "0.1.0";

/** Throws `RankduelError` if the server, with the version of its answer, is older than this client. */
export function checkServer(version: string | null): void {
  if (version !== null && release(version) < release(VERSION)) {
    const detail = `the server has version ${version}, and this client ${VERSION}: upgrade the server`;
    throw new RankduelError("server-too-old", detail, 200);
  }
}

/** Major and minor version as one number; changes of the third number always fit. */
function release(version: string): number {
  const found = /^(\d{1,6})\.(\d{1,6})\./.exec(version);
  return found === null ? Infinity : Number(found[1]) * 1e6 + Number(found[2]);
}
