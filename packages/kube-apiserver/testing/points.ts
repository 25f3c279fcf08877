/**
 * Points of all objects to which tests return. Only the difference is written, and revisions go on:
 * watches see it as changes, and objects have their uids again.
 */
import { type Client, opDelete, opPut, type RequestOp } from "@quorate/client";
import { toLatin1 } from "@quorate/proto";

interface Kept {
  readonly key: Uint8Array;
  readonly value: Uint8Array;
  /** At which it has this value; changed by a return. */
  revision: number;
}

export type Point = Map<string, Kept>;

/** Operations of a transaction, as members allow. */
const MAX_OPS = 128;
/** Elections of the server's own controllers go on. */
const NOT_KEPT = ["/registry/leases/kube-system/", "/registry/events/", "/registry/masterleases/"];

const isKept = (key: string): boolean => !NOT_KEPT.some((prefix) => key.startsWith(prefix));

export async function pointOf(store: Client): Promise<Point> {
  const { kvs } = await store.get("/registry/", { prefix: true });
  const point: Point = new Map();
  for (const { key, value, modRevision } of kvs) {
    const name = toLatin1(key);
    if (isKept(name)) point.set(name, { key, value, revision: modRevision });
  }
  return point;
}

/** Resolves when all is as it was at the point. What others write meanwhile may stay. */
export async function returnTo(store: Client, point: Point): Promise<void> {
  const { kvs } = await store.get("/registry/", { prefix: true, keysOnly: true });
  const present = new Map(kvs.map(({ key, modRevision }) => [toLatin1(key), { key, modRevision }]));
  const steps: { readonly op: RequestOp; readonly kept: Kept | undefined }[] = [];
  for (const [name, { key }] of present)
    if (isKept(name) && !point.has(name)) steps.push({ op: opDelete(key), kept: undefined });
  for (const [name, kept] of point)
    if (present.get(name)?.modRevision !== kept.revision)
      steps.push({ op: opPut(kept.key, kept.value), kept });
  for (let at = 0; at < steps.length; at += MAX_OPS) {
    const some = steps.slice(at, at + MAX_OPS);
    const { header } = await store.txn({ success: some.map(({ op }) => op) });
    for (const { kept } of some) if (kept !== undefined) kept.revision = header.revision;
  }
}
