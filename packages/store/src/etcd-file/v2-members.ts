/**
 * The members of a cluster as etcd's v2 store has them. etcd 3.5 and 3.6 read them from the data of
 * a Raft snapshot and of a .snap file, and 3.5 believes these before the database (etcd:
 * server/etcdserver/api/membership/storev2.go, server/etcdserver/api/v2store).
 *
 *     /0/members/ID/raftAttributes    {"peerURLs":[...],"isLearner":true}
 *     /0/members/ID/attributes        {"name":"...","clientURLs":[...]}
 *     /0/removed_members/ID           empty
 *     /0/version                      3.7.0
 *     /1                              the keys of clients, none
 */
import { fromUtf8, idToHex } from "@quorate/proto";
import type { MembershipRecords } from "../membership/membership.ts";

/** Go's zero time: the node stays for good. */
const NEVER = "0001-01-01T00:00:00Z";
/** The version of the v2 store's form. */
const FORM = 2;

/** A node of the v2 store, in the form in which it is saved. */
interface Node {
  readonly Path: string;
  readonly CreatedIndex: 0;
  readonly ModifiedIndex: 0;
  readonly ExpireTime: string;
  readonly Value: string;
  /** Null for a value. */
  readonly Children: Readonly<Record<string, Node>> | null;
}

const common = { CreatedIndex: 0, ModifiedIndex: 0, ExpireTime: NEVER } as const;

/** A value, or a directory of what its names stand for. */
type Tree = string | { readonly [name: string]: Tree };

function nodeOf(path: string, tree: Tree): Node {
  if (typeof tree === "string") return { Path: path, ...common, Value: tree, Children: null };
  const children = Object.entries(tree).map(([name, below]): [string, Node] => [
    name,
    nodeOf(path === "/" ? `/${name}` : `${path}/${name}`, below),
  ]);
  return { Path: path, ...common, Value: "", Children: Object.fromEntries(children) };
}

/** The v2 store of a membership, as JSON. */
export function encodeV2Members(membership: MembershipRecords): Uint8Array {
  const members: Record<string, Tree> = {};
  for (const { id, name, peerUrls, clientUrls, isLearner } of membership.members) {
    members[idToHex(id)] = {
      raftAttributes: JSON.stringify({ peerURLs: peerUrls, ...(isLearner && { isLearner }) }),
      attributes: JSON.stringify({
        ...(name !== "" && { name }),
        ...(clientUrls.length > 0 && { clientURLs: clientUrls }),
      }),
    };
  }
  const version = membership.clusterVersion;
  const root: Tree = {
    0: {
      members,
      ...(membership.removed.length > 0 && {
        removed_members: Object.fromEntries(membership.removed.map((id) => [idToHex(id), ""])),
      }),
      ...(version !== undefined && { version }),
    },
    1: {},
  };
  const store = { Root: nodeOf("/", root), CurrentIndex: 0, CurrentVersion: FORM };
  return fromUtf8(JSON.stringify(store));
}
