/** Requests that act as another user, with what attackers send. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { impersonatedUser, MAX_IMPERSONATED_VALUES } from "../../src/authn/impersonation.ts";
import type { Authorizer, AuthorizerAttributes } from "../../src/authz/authorizer.ts";
import { headOf } from "./heads.ts";
import { userOf } from "./world.ts";

const REQUEST: AuthorizerAttributes = {
  user: userOf("admin"),
  verb: "list",
  isResourceRequest: true,
  namespace: "",
  group: "",
  version: "v1",
  resource: "configmaps",
  subresource: "",
  name: "",
  path: "/api/v1/configmaps",
};

/** Allows "verb resource[/subresource] name". */
function allowing(...allowed: readonly string[]): Authorizer & { readonly asked: string[] } {
  const asked: string[] = [];
  return {
    asked,
    async authorize({ verb, resource, subresource, name }) {
      const what = `${verb} ${resource}${subresource === "" ? "" : `/${subresource}`} ${name}`;
      asked.push(what);
      return { decision: allowed.includes(what) ? "allow" : "no-opinion", reason: "" };
    },
  };
}

test("impersonation needs a permission for each value", async () => {
  const headers = {
    "impersonate-user": "jane",
    "impersonate-group": "dev, ops",
    "impersonate-extra-scopes": "view",
    "impersonate-uid": "7",
  };
  const all = ["impersonate users jane", "impersonate groups dev", "impersonate groups ops"];
  const rest = ["impersonate userextras/scopes view", "impersonate uids 7"];
  const found = await impersonatedUser(headOf(headers), REQUEST, allowing(...all, ...rest));
  assert.equal(found!.constraint, "");
  assert.deepEqual(found!.user, {
    name: "jane",
    uid: "7",
    groups: ["dev", "ops", "system:authenticated"],
    extra: { __proto__: null, scopes: ["view"] },
  });
  for (const missing of [...all, ...rest]) {
    const some = [...all, ...rest].filter((one) => one !== missing);
    await assert.rejects(impersonatedUser(headOf(headers), REQUEST, allowing(...some)), {
      httpStatus: 403,
    });
  }
  assert.equal(await impersonatedUser(headOf({}), REQUEST, allowing()), undefined);
  const groupsAlone = headOf({ "impersonate-group": "system:masters" });
  await assert.rejects(impersonatedUser(groupsAlone, REQUEST, allowing()), { httpStatus: 400 });
  const many = Array.from({ length: MAX_IMPERSONATED_VALUES + 1 }, (_, i) => `g${i}`).join(", ");
  const flood = headOf({ "impersonate-user": "x", "impersonate-group": many });
  await assert.rejects(impersonatedUser(flood, REQUEST, allowing()), { httpStatus: 400 });
});

test("constrained impersonation allows single verbs, and never system:masters", async () => {
  const constrained = [
    "impersonate-on:user-info:list configmaps ",
    "impersonate:user-info users jane",
  ];
  const jane = headOf({ "impersonate-user": "jane" });
  const found = await impersonatedUser(jane, REQUEST, allowing(...constrained));
  assert.equal(found!.user.name, "jane");
  assert.equal(found!.constraint, "impersonate:user-info");
  const other = { ...REQUEST, verb: "delete" };
  await assert.rejects(impersonatedUser(jane, other, allowing(...constrained)), {
    httpStatus: 403,
  });
  const masters = headOf({ "impersonate-user": "jane", "impersonate-group": "system:masters" });
  const wide = allowing(...constrained, "impersonate:user-info groups system:masters");
  await assert.rejects(
    impersonatedUser(masters, REQUEST, wide),
    /system:masters group is not allowed/,
  );
  const account = headOf({ "impersonate-user": "system:serviceaccount:n:sa" });
  const asked = allowing("impersonate serviceaccounts sa");
  const sa = await impersonatedUser(account, REQUEST, asked);
  assert.deepEqual(sa!.user.groups, [
    "system:serviceaccounts",
    "system:serviceaccounts:n",
    "system:authenticated",
  ]);
  assert.equal(asked.asked[0], "impersonate-on:serviceaccount:list configmaps ");
  const anonymous = headOf({ "impersonate-user": "system:anonymous" });
  const none = await impersonatedUser(
    anonymous,
    REQUEST,
    allowing("impersonate users system:anonymous"),
  );
  assert.deepEqual(none!.user.groups, ["system:unauthenticated"]);
});
