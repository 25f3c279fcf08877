/** A built-in kind's tables as the registry uses them. */
import { mustBuiltinKind } from "../../codec/builtin-kind.ts";
import type { GroupVersionKind } from "../../meta/kinds.ts";
import type { KindSource } from "../kind-source.ts";

/** The source of a built-in kind. Throws RangeError where there is none. */
export function builtinSource(kind: GroupVersionKind): KindSource {
  const builtin = mustBuiltinKind(kind);
  return {
    kind,
    codec: builtin.storageCodec,
    get schema() {
      return builtin.schema;
    },
    decode: (value) => builtin.decode(value),
    protobuf: builtin.protobuf,
  };
}
