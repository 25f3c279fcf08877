/**
 * The variable "authorizer": what a user may do (apiserver: pkg/cel/library/authz.go). Authorizers
 * take their time, and expressions do not wait: an expression that needs a decision is interrupted,
 * and runs again once the decision is there.
 *
 *     authorizer.group("apps").resource("deployments").namespace("a").check("get").allowed()
 *     authorizer.path("/healthz").check("get").allowed()
 *     authorizer.requestResource.check("approve").reason()
 */
import { isDns1123Label, isDns1123Subdomain, textOf, type UserInfo } from "@quorate/kube-storage";
import { serviceAccountGroups, serviceAccountUsername } from "../../../authn/user-names.ts";
import type { Authorizer, AuthorizerAttributes, Decision } from "../../../authz/authorizer.ts";
import { Interruption } from "../base/budget.ts";
import type { Environment } from "../lang/environment.ts";
import { LibraryValue } from "../lang/library.ts";
import { opaque, type Type } from "../lang/types.ts";
import { EvaluationError } from "../lang/values.ts";

const PREFIX = "kubernetes.authorization.";

export const AUTHORIZER: Type = opaque(`${PREFIX}Authorizer`);
const PATH_CHECK = opaque(`${PREFIX}PathCheck`);
const GROUP_CHECK = opaque(`${PREFIX}GroupCheck`);
export const RESOURCE_CHECK: Type = opaque(`${PREFIX}ResourceCheck`);
const DECISION = opaque(`${PREFIX}Decision`);

/** A decision that an evaluation needs first. */
export class PendingDecision extends Interruption {
  readonly attributes: AuthorizerAttributes;

  constructor(attributes: AuthorizerAttributes) {
    super("a decision is needed");
    this.attributes = attributes;
  }
}

/** A decision, or why there is none. */
type Answer = Decision | { readonly error: string };

/** The decisions about one request. */
export class Decisions {
  readonly #authorizer: Authorizer;
  readonly #known = new Map<string, Answer>();

  constructor(authorizer: Authorizer) {
    this.#authorizer = authorizer;
  }

  /** Throws PendingDecision where the authorizer has to be asked. */
  get(attributes: AuthorizerAttributes): Answer {
    const known = this.#known.get(JSON.stringify(attributes));
    if (known === undefined) throw new PendingDecision(attributes);
    return known;
  }

  /** Asks the authorizer. */
  async ask({ attributes }: PendingDecision): Promise<void> {
    let answer: Answer;
    try {
      answer = await this.#authorizer.authorize(attributes);
    } catch (error) {
      answer = { error: textOf(error) };
    }
    this.#known.set(JSON.stringify(attributes), answer);
  }
}

abstract class Value extends LibraryValue {
  readonly celType: Type;

  constructor(type: Type) {
    super();
    this.celType = type;
  }

  equals(other: unknown): boolean {
    return other === this;
  }
}

class AuthorizerValue extends Value {
  readonly decisions: Decisions;
  readonly user: UserInfo;

  constructor(decisions: Decisions, user: UserInfo) {
    super(AUTHORIZER);
    this.decisions = decisions;
    this.user = user;
  }
}

/** What is asked: a path, a group, or a resource of it. */
class CheckValue extends Value {
  readonly of: AuthorizerValue;
  readonly asked: Partial<AuthorizerAttributes>;

  constructor(type: Type, of: AuthorizerValue, asked: Partial<AuthorizerAttributes>) {
    super(type);
    this.of = of;
    this.asked = asked;
  }

  with(type: Type, more: Partial<AuthorizerAttributes>): CheckValue {
    return new CheckValue(type, this.of, { ...this.asked, ...more });
  }

  check(verb: string): DecisionValue {
    const { user, decisions } = this.of;
    const nothing = { group: "", resource: "", subresource: "", namespace: "", name: "", path: "" };
    const isResourceRequest = this.celType === RESOURCE_CHECK;
    const version = isResourceRequest ? "*" : "";
    return new DecisionValue(
      decisions.get({ ...nothing, ...this.asked, user, verb, version, isResourceRequest }),
    );
  }
}

class DecisionValue extends Value {
  readonly answer: Answer;

  constructor(answer: Answer) {
    super(DECISION);
    this.answer = answer;
  }

  get error(): string {
    return "error" in this.answer ? this.answer.error : "";
  }
}

/** The values of "authorizer" and "authorizer.requestResource". @param request its resource */
export function authorizerValues(
  decisions: Decisions,
  user: UserInfo,
  request: Pick<AuthorizerAttributes, "group" | "resource" | "subresource" | "namespace" | "name">,
): { readonly authorizer: unknown; readonly requestResource: unknown } {
  const authorizer = new AuthorizerValue(decisions, user);
  const { group, resource, subresource, namespace, name } = request;
  const asked = { group, resource, subresource, namespace, name };
  return { authorizer, requestResource: new CheckValue(RESOURCE_CHECK, authorizer, asked) };
}

function nonEmpty(text: string, what: string): string {
  if (text.trim() === "") throw new EvaluationError(`${what} must not be empty`);
  return text;
}

function serviceAccount({ decisions }: AuthorizerValue, namespace: string, name: string) {
  if (isDns1123Subdomain(name).length > 0)
    throw new EvaluationError("Invalid service account name");
  if (isDns1123Label(namespace).length > 0)
    throw new EvaluationError("Invalid service account namespace");
  return new AuthorizerValue(decisions, {
    name: serviceAccountUsername(namespace, name),
    uid: "",
    groups: serviceAccountGroups(namespace),
    extra: {},
  });
}

export function registerAuthorization(environment: Environment): void {
  for (const type of [AUTHORIZER, PATH_CHECK, GROUP_CHECK, RESOURCE_CHECK, DECISION])
    environment.type(type);
  const [resource, decision] = [RESOURCE_CHECK.name, DECISION.name];
  const builder = (name: "subresource" | "namespace" | "name"): void => {
    environment.function(`${resource}.${name}(string): ${resource}`, (it: CheckValue, text) =>
      it.with(RESOURCE_CHECK, { [name]: text }),
    );
  };
  for (const name of ["subresource", "namespace", "name"] as const) builder(name);
  // RBAC does not look at selectors, so they change nothing.
  for (const name of ["fieldSelector", "labelSelector"])
    environment.function(`${resource}.${name}(string): ${resource}`, (it: CheckValue) => it);
  for (const { name } of [PATH_CHECK, RESOURCE_CHECK])
    environment.function(`${name}.check(string): ${decision}`, (it: CheckValue, verb: string) =>
      it.check(verb),
    );
  environment
    .function(
      `${AUTHORIZER.name}.path(string): ${PATH_CHECK.name}`,
      (it: AuthorizerValue, path: string) =>
        new CheckValue(PATH_CHECK, it, { path: nonEmpty(path, "path") }),
    )
    .function(
      `${AUTHORIZER.name}.group(string): ${GROUP_CHECK.name}`,
      (it: AuthorizerValue, group: string) => new CheckValue(GROUP_CHECK, it, { group }),
    )
    .function(
      `${AUTHORIZER.name}.serviceAccount(string, string): ${AUTHORIZER.name}`,
      serviceAccount,
    )
    .function(`${GROUP_CHECK.name}.resource(string): ${resource}`, (it: CheckValue, name: string) =>
      it.with(RESOURCE_CHECK, { resource: nonEmpty(name, "resource") }),
    )
    .function(`${decision}.errored(): bool`, (it: DecisionValue) => it.error !== "")
    .function(`${decision}.error(): string`, (it: DecisionValue) => it.error)
    .function(
      `${decision}.allowed(): bool`,
      ({ answer }: DecisionValue) => "decision" in answer && answer.decision === "allow",
    )
    .function(`${decision}.reason(): string`, ({ answer }: DecisionValue) =>
      "reason" in answer ? answer.reason : "",
    );
}
