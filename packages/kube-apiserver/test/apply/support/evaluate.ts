/** Runs cases through this implementation; the results have the form of the reference's. */
import { ApiError, type KubeObject } from "@quorate/kube-storage";
import { applyPatch, type PatchType } from "../../../src/apply/apply-patch.ts";
import { FieldManager } from "../../../src/apply/field-manager.ts";
import { fieldSetFromJson, fieldSetToJson } from "../../../src/apply/field-set.ts";
import { type HistoryCase, RESET, type Step } from "./histories.ts";
import { STRATEGIC, THINGS } from "./thing.ts";

/** The times of all entries: they come from a clock. */
const NO_TIME = "2026-01-01T00:00:00Z";
const NOW_MS = Date.parse("2026-06-01T00:00:00Z");

export interface PatchCase {
  readonly type: string;
  readonly document: unknown;
  readonly patch: unknown;
}

export async function evaluate(each: PatchCase | HistoryCase): Promise<unknown> {
  if ("history" in each) return runHistory(each.history.steps);
  try {
    if (each.type === "fields") {
      return { value: JSON.stringify(fieldSetToJson(fieldSetFromJson(each.document as never))) };
    }
    const type = `application/${each.type === "strategic-merge" ? "strategic-merge-patch" : each.type}+json`;
    const document = each.document as KubeObject;
    return {
      value: applyPatch(
        type as Exclude<PatchType, "application/apply-patch+yaml">,
        document,
        each.patch,
        STRATEGIC,
      ),
    };
  } catch (error) {
    if (error instanceof ApiError) return { error: error.message, code: error.httpStatus };
    if (each.type === "fields") return { error: String(error) };
    throw error;
  }
}

async function runHistory(steps: readonly Step[]): Promise<unknown[]> {
  const results: unknown[] = [];
  let live: KubeObject | undefined;
  for (const step of steps) {
    try {
      live = settled(await runStep(live, step));
      results.push({ object: live });
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      results.push(errorOf(error));
    }
  }
  return results;
}

function runStep(present: KubeObject | undefined, step: Step): Promise<KubeObject> {
  const things = THINGS[step.schema];
  const apiVersion = `example.org/${step.version}`;
  const manager = new FieldManager({
    kind: things[step.version].kind,
    schema: things[step.version],
    resetFields: step.subresource === "" ? undefined : RESET,
    versions: {
      schemaOf: (version) => things[version.slice("example.org/".length)],
      convert: async (object, version) => ({ ...object, apiVersion: version }),
    },
  });
  const live = present === undefined ? undefined : { ...present, apiVersion };
  const object = step.object as unknown as KubeObject;
  const { manager: name, subresource, force } = step;
  if (step.op === "update") return manager.update(live, object, name, subresource, NOW_MS);
  return manager.apply(live, object, name, subresource, force, NOW_MS);
}

/** The object as it is stored: with an uid, and with times that do not depend on a clock. */
function settled(object: KubeObject): KubeObject {
  const { managedFields, ...metadata } = object.metadata;
  const entries = managedFields?.map((entry) => (entry.time ? { ...entry, time: NO_TIME } : entry));
  return {
    ...object,
    metadata: { ...metadata, uid: "uid", ...(entries && { managedFields: entries }) },
  };
}

function errorOf(error: ApiError): unknown {
  if (error.httpStatus === 500) return { error: error.message };
  const { httpStatus: code, message, details } = error;
  return { status: { code, message, details } };
}
