/**
 * Calls of the member: etcd's JSON gateway, and the console's own. Keys and values are latin1 texts
 * of one character a byte, as btoa and atob take them.
 */

/** A call that failed, with the code of gRPC. */
export class CallError extends Error {
  constructor(message, code) {
    super(message);
    this.code = code;
  }

  /** Whether to log in (again). */
  get needsLogin() {
    return (
      this.code === 16 || /user name is empty|auth token|revision of auth store/.test(this.message)
    );
  }
}

/** Who uses the page. The token is here alone: it ends with the page. */
export const session = { user: undefined, token: undefined, roles: [], isAuthOn: false };

function request(path, body, signal) {
  const headers = { "content-type": "application/json" };
  if (session.token !== undefined) headers.authorization = session.token;
  const init = { method: "POST", headers, body: JSON.stringify(body), signal };
  return fetch(path, { ...init, credentials: "omit", cache: "no-store", redirect: "error" });
}

async function failure(response) {
  const text = await response.text();
  try {
    const { message, error, code } = JSON.parse(text);
    return new CallError(message ?? error?.message ?? text, code ?? error?.code);
  } catch {
    return new CallError(`${response.status} ${text.slice(0, 300)}`, undefined);
  }
}

/** Calls a path; resolves with its response. Rejects with CallError. */
export async function call(path, body = {}, signal = undefined) {
  const response = await request(path, body, signal);
  if (!response.ok) throw await failure(response);
  return response.json();
}

/** A call of the console's own. */
export const own = (name, body, signal) => call(`/console/api/${name}`, body, signal);

/** The messages of a stream. Rejects with CallError. */
export async function* stream(path, body, signal) {
  const response = await request(path, body, signal);
  if (!response.ok) throw await failure(response);
  let rest = "";
  for await (const text of response.body.pipeThrough(new TextDecoderStream())) {
    const lines = (rest + text).split("\n");
    rest = lines.pop();
    for (const line of lines) {
      if (line === "") continue;
      const { result, error } = JSON.parse(line);
      if (error !== undefined) throw new CallError(error.message, error.code);
      yield result;
    }
  }
}

/** Logs in, and finds out what the user may. Without a password: as nobody. */
export async function login(user, password) {
  session.token = undefined;
  const { token } = await call("/v3/auth/authenticate", { name: user, password });
  Object.assign(session, { user, token });
  session.roles = await rolesOf(user);
}

export function logout() {
  Object.assign(session, { user: undefined, token: undefined, roles: [] });
}

/** The roles of a user with their permissions: [{ role, permissions }]. */
export async function rolesOf(user) {
  const { roles = [] } = await call("/v3/auth/user/get", { name: user });
  return Promise.all(roles.map((role) => roleOf(role)));
}

/** A role with its permissions; one that is gone has none. */
export async function roleOf(role) {
  const { perm = [] } = await call("/v3/auth/role/get", { role }).catch((error) => {
    if (/role name not found/.test(error.message)) return {};
    throw error;
  });
  const permissions = perm.map(({ permType = "READ", key = "", range_end = "" }) => ({
    type: permType,
    key: atob(key),
    end: atob(range_end),
  }));
  return { role, permissions };
}

/** The first key after those with a prefix; "\0" where there is none. */
export function endOf(prefix) {
  for (let i = prefix.length - 1; i >= 0; i--) {
    const code = prefix.charCodeAt(i);
    if (code < 0xff) return prefix.slice(0, i) + String.fromCharCode(code + 1);
  }
  return "\0";
}

/** The fields of a request for all keys with a prefix. */
export function prefixRange(prefix) {
  return { key: btoa(prefix || "\0"), range_end: btoa(endOf(prefix)) };
}

function record({ key, value = "", create_revision, mod_revision, version, lease = "0" }) {
  return {
    key: atob(key),
    value: atob(value),
    created: Number(create_revision),
    revision: Number(mod_revision),
    version: Number(version),
    lease,
  };
}

/** Records of this member. @returns { kvs, count, revision } */
export async function range(fields, signal) {
  const body = { serializable: true, ...fields };
  const { kvs = [], count = "0", header } = await call("/v3/kv/range", body, signal);
  return { kvs: kvs.map(record), count: Number(count), revision: Number(header.revision) };
}

/** A key as of a revision (0: the newest); undefined if it did not exist. */
export async function get(key, revision, signal) {
  return (await range({ key: btoa(key), revision }, signal)).kvs[0];
}

/** An event of a watch. */
export function eventOf({ type = "PUT", kv }) {
  return { type, ...record(kv) };
}

/** An id of 64 bits, in hexadecimal, from the gateway's decimal text. */
export function hexId(text) {
  return BigInt.asUintN(64, BigInt(text)).toString(16);
}
