import { isObject } from "./transport.js";

/** One product of an order. */
export interface OrderLine {
  /** The document's id, as in the rankings. */
  readonly document: string;
  /** The price of one piece. All orders have the same currency. */
  readonly value?: number;
  /** Default 1. */
  readonly quantity?: number;
}

/** An order, or the cancellation of one: `{ order_id, cancelled: true }`. */
export type Order =
  | {
      readonly order_id: string;
      /** That of the pages. */
      readonly unit: string;
      /** The time of the order, such as `2026-11-21T18:03:11Z`. */
      readonly at: string | Date;
      readonly lines: readonly OrderLine[];
    }
  | { readonly order_id: string; readonly cancelled: true };

/** The result of an order. */
export interface OrderResult {
  readonly status: "recorded" | "duplicate" | "late" | "conflict" | "invalid";
  /** Number of experiments that have it. */
  readonly experiments?: number;
  /** The reason why it was refused. */
  readonly detail?: string;
  /** The member that is wrong, if one is. */
  readonly pointer?: string;
}

export function isResult(value: unknown): value is OrderResult {
  return isObject(value) && typeof value["status"] === "string";
}
