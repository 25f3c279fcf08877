/** Parts of v2 that the tests of other packages look at. */
export { MAX_FORM_FIELDS } from "../src/form.ts";
export { goString, goTime } from "../src/json.ts";
export { MAX_PATH_BYTES, MAX_PATH_NAMES } from "../src/key-request.ts";
export { cleanPath, nodeKey, pathOfKey, subtree, without } from "../src/keys.ts";
export { V2_LIMITS, type V2Limits } from "../src/limits.ts";
export { MAX_MEMBER_BODY_BYTES } from "../src/members-handler.ts";
export { decodeNode, encodeNode } from "../src/record.ts";
export { v2Routes } from "../src/routes.ts";
export { MAX_PLANS, MAX_REVOKED_LEASES } from "../src/writes.ts";
