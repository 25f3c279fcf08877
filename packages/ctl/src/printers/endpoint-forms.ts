/** Forms of lists with one response per endpoint: health, status and hashes. */

import { humanBytes, type JsonValue } from "@quorate/cli";
import { HashKVResponse, idToHex, StatusResponse } from "@quorate/proto";
import {
  type FieldLine,
  type Form,
  headerFields,
  messageJson,
  present,
  textField,
} from "./form.ts";

/** The health of one endpoint. */
export interface EndpointHealth {
  readonly endpoint: string;
  readonly health: boolean;
  /** A duration as Go prints it. */
  readonly took: string;
  /** Empty if the endpoint is healthy. */
  readonly error: string;
}

/** A response with the endpoint that it came from. */
export interface EndpointResponse<T> {
  readonly endpoint: string;
  readonly response: T;
}

export const healthForm: Form<readonly EndpointHealth[]> = {
  simple: (list) =>
    list.map(({ endpoint, took, error }) =>
      error === ""
        ? {
            stream: "stdout",
            text: `${endpoint} is healthy: successfully committed proposal: took = ${took}\n`,
          }
        : {
            stream: "stderr",
            text: `${endpoint} is unhealthy: failed to commit proposal: ${error}\n`,
          },
    ),
  table: (list) => ({
    header: ["endpoint", "health", "took", "error"],
    rows: list.map((one) => [one.endpoint, String(one.health), one.took, one.error]),
  }),
  fields: (list) =>
    list.flatMap((one): FieldLine[] => [
      textField("Endpoint", one.endpoint),
      ["Health", one.health],
      ["Took", one.took],
      ["Error", one.error],
      "",
    ]),
  json: (list) => list.map((one) => ({ ...one, error: present(one.error) })),
};

const STATUS_COLUMNS = [
  "endpoint",
  "ID",
  "version",
  "storage version",
  "db size",
  "in use",
  "percentage not in use",
  "quota",
  "is leader",
  "is learner",
  "raft term",
  "raft index",
  "raft applied index",
  "errors",
  "downgrade target version",
  "downgrade enabled",
] as const;

export const statusForm: Form<readonly EndpointResponse<StatusResponse>[]> = {
  table: (list) => ({
    header: STATUS_COLUMNS,
    rows: list.map(({ endpoint, response }) => [
      endpoint,
      idToHex(response.header?.memberId ?? 0n),
      response.version,
      response.storageVersion,
      humanBytes(response.dbSize),
      humanBytes(response.dbSizeInUse),
      `${unusedPercentage(response)}%`,
      humanBytes(response.dbSizeQuota),
      String(response.leader === (response.header?.memberId ?? 0n)),
      String(response.isLearner),
      String(response.raftTerm),
      String(response.raftIndex),
      String(response.raftAppliedIndex),
      response.errors.join(", "),
      response.downgradeInfo?.targetVersion ?? "",
      String(response.downgradeInfo?.enabled ?? false),
    ]),
  }),
  fields: (list, style) =>
    list.flatMap(({ endpoint, response }): FieldLine[] => [
      ...headerFields(response.header, style),
      textField("Version", response.version),
      textField("StorageVersion", response.storageVersion),
      ["DBSize", response.dbSize],
      ["DBSizeInUse", response.dbSizeInUse],
      ["DBSizeQuota", response.dbSizeQuota],
      ["Leader", response.leader],
      ["IsLearner", response.isLearner],
      ["RaftIndex", response.raftIndex],
      ["RaftAppliedIndex", response.raftAppliedIndex],
      ["Errors", `[${response.errors.join(" ")}]`],
      textField("Endpoint", endpoint),
      textField("DowngradeTargetVersion", response.downgradeInfo?.targetVersion ?? ""),
      ["DowngradeEnabled", response.downgradeInfo?.enabled ?? false],
      "",
    ]),
  json: (list) =>
    nullIfEmpty(
      list.map(({ endpoint, response }) => ({
        Endpoint: endpoint,
        Status: messageJson(StatusResponse.typeName, response),
      })),
    ),
};

function unusedPercentage({ dbSize, dbSizeInUse }: StatusResponse): number {
  // LevelDB compresses its files, so they may be smaller than the live records.
  return dbSize === 0 ? 0 : Math.max(0, 100 - Math.trunc((dbSizeInUse * 100) / dbSize));
}

export const hashForm: Form<readonly EndpointResponse<HashKVResponse>[]> = {
  table: (list) => ({
    header: ["endpoint", "hash", "hash_revision"],
    rows: list.map(({ endpoint, response }) => [
      endpoint,
      String(response.hash),
      String(response.hashRevision),
    ]),
  }),
  fields: (list, style) =>
    list.flatMap(({ endpoint, response }): FieldLine[] => [
      ...headerFields(response.header, style),
      textField("Endpoint", endpoint),
      ["Hash", response.hash],
      ["HashRevision", response.hashRevision],
      "",
    ]),
  json: (list) =>
    nullIfEmpty(
      list.map(({ endpoint, response }) => ({
        Endpoint: endpoint,
        HashKV: messageJson(HashKVResponse.typeName, response),
      })),
    ),
};

/** etcdctl prints an empty list as null: its Go slice was never made. */
function nullIfEmpty(list: readonly JsonValue[]): JsonValue {
  return list.length === 0 ? null : list;
}
