/** What an update or a deletion knows of the present object. */
import { equals } from "@quorate/proto";
import type { KubeObject } from "../meta/object.ts";

/** The present object of an update or deletion, as far as it is known. */
export interface PresentState {
  /** 0 where there is none. */
  readonly revision: number;
  /** The encoded object; made when it is wanted. */
  data(): Uint8Array | undefined;
  /** Length of `data`, where it is known without that. */
  readonly dataBytes: number | undefined;
  readonly object: KubeObject | undefined;
  readonly stale: boolean;
  /** Read from the cluster by this call, not from a cache. */
  readonly isCurrent: boolean;
}

/** There is none, and the caller wants to know. */
export const NO_OBJECT: PresentState = {
  revision: 0,
  data: () => undefined,
  dataBytes: undefined,
  object: undefined,
  stale: false,
  isCurrent: true,
};

/** Most changes change the length too, and then the present object is not encoded again. */
export function isUnchanged(state: PresentState, data: Uint8Array): boolean {
  if (state.dataBytes !== undefined && state.dataBytes !== data.length) return false;
  const present = state.data();
  return present !== undefined && equals(present, data);
}
