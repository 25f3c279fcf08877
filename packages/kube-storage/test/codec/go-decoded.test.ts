/**
 * Bodies of clients with a random change each (another type, null, an unknown field, a field
 * twice), and what Kubernetes 1.36's decoder and defaults made of them: an error, or an object and
 * the strict errors.
 */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, it } from "node:test";
import { gunzipSync } from "node:zlib";
import { kindSource } from "../../src/codec/builtin-kind.ts";
import { parseJson, statedKind } from "../../src/codec/json-parser.ts";

interface Decoded {
  readonly group: string;
  readonly kind: string;
  readonly body: string;
  readonly error?: string;
  readonly strict?: readonly string[];
  readonly json?: unknown;
}

const file = new URL("./go-decoded.jsonl.gz", import.meta.url);
const cases = gunzipSync(readFileSync(file))
  .toString()
  .trim()
  .split("\n")
  .map((line) => JSON.parse(line) as Decoded);

/** What ours makes of a body, in the form of the file. */
function decode({ group, kind, body }: Decoded): Partial<Decoded> {
  try {
    const value = parseJson(body);
    statedKind(value);
    const { object, strictErrors } = kindSource(group, "v1", kind).decode(value);
    const strict = strictErrors.length > 0 ? { strict: strictErrors } : {};
    return { ...strict, json: JSON.parse(JSON.stringify(object)) };
  } catch (error) {
    const prefix = `${kind} in version "v1" cannot be handled as a ${kind}: `;
    return { error: (error as Error).message.replace(prefix, "") };
  }
}

describe("bodies that Go decoded", () => {
  const kinds = [...new Set(cases.map(({ group, kind }) => `${group}/${kind}`))];
  for (const name of kinds) {
    const own = cases.filter(({ group, kind }) => `${group}/${kind}` === name);
    it(`${name}: ${own.length} bodies`, () => {
      for (const each of own) {
        const { group: _, kind: __, body, ...expected } = each;
        const error = expected.error?.replace("couldn't get version/kind; json parse error: ", "");
        const wanted = error === undefined ? expected : { ...expected, error };
        assert.deepEqual(decode(each), wanted, body);
      }
    });
  }
});
