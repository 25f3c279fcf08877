/** Object stores on the command line: where a mirror of a backup is, and who may write it. */
import type { ObjectStore } from "@quorate/backup";
import type { S3Credentials } from "@quorate/backup/node";
import {
  badArguments,
  boolFlag,
  durationFlag,
  Exit,
  ExitCode,
  type Flags,
  type Invocation,
  type Io,
  textFlag,
} from "@quorate/cli";

const SCHEME = "s3://";

/** For the help of commands. */
export const ABOUT_CREDENTIALS = `The credentials are AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN, or those of
AWS_PROFILE in ~/.aws/credentials (AWS_SHARED_CREDENTIALS_FILE).`;

export const objectStoreFlags: Flags = {
  "s3-endpoint": textFlag(
    "URL of the object store (default AWS_ENDPOINT_URL, else Amazon's of the region)",
  ),
  "s3-region": textFlag("its region (default AWS_REGION, else us-east-1)"),
  "s3-virtual-host": boolFlag(
    "with an endpoint: the bucket stands in the name of the host, not in the path",
  ),
  "s3-cacert": textFlag(
    "file of the authorities that the object store's certificate is checked with",
  ),
  "encryption-key": textFlag(
    "file of a key, 64 hexadecimal digits, that objects are encrypted with before they leave",
  ),
};

/** Of commands that write: how long objects are locked. */
export const objectLockFlags: Flags = {
  "object-lock": durationFlag(
    "for how long nobody can remove an object (0 for no lock; the bucket needs object lock)",
    "0",
  ),
  "object-lock-mode": textFlag(
    "who can end a lock: GOVERNANCE a special permission, COMPLIANCE nobody",
    "GOVERNANCE",
    { values: ["GOVERNANCE", "COMPLIANCE"] },
  ),
};

/**
 * The object store of a command's flags. Nothing is sent yet. Throws Exit for what is not well
 * formed.
 * @param place s3://bucket/prefix
 * @param lockMs for how long nobody can remove what is written; 0 for no lock
 */
export async function objectStoreOf(
  { flags, io }: Invocation,
  place: string,
  lockMs = 0,
): Promise<ObjectStore> {
  const [bucket = "", ...directories] = place.slice(SCHEME.length).split("/");
  if (!place.startsWith(SCHEME) || !/^[a-z0-9.-]{3,63}$/.test(bucket))
    throw badArguments(`an object store is s3://bucket/prefix, and not ${JSON.stringify(place)}`);
  const prefix = directories.join("/");
  const region = flags.string("s3-region") || io.env["AWS_REGION"] || "us-east-1";
  const given = flags.string("s3-endpoint") || io.env["AWS_ENDPOINT_URL"];
  const endpoint = given || `https://s3.${region}.amazonaws.com`;
  if (!URL.canParse(endpoint) || !/^https?:$/.test(new URL(endpoint).protocol))
    throw badArguments(
      `--s3-endpoint must be an http or https URL, and is ${JSON.stringify(endpoint)}`,
    );
  const [{ parseSealingKey, S3Store, SealedStore }, { nodeClock, nodeRandom }] = await Promise.all([
    import("@quorate/backup/node"),
    import("@quorate/host/node"),
  ]);
  const caFile = flags.string("s3-cacert");
  const store = new S3Store(
    {
      endpoint: new URL(endpoint),
      region,
      bucket,
      prefix: prefix === "" || prefix.endsWith("/") ? prefix : `${prefix}/`,
      isPathStyle: Boolean(given) && !flags.bool("s3-virtual-host"),
      ca: caFile === "" ? undefined : textOf(io, caFile),
      lock:
        lockMs === 0
          ? undefined
          : { mode: lockModeOf(flags.string("object-lock-mode")), ms: lockMs },
    },
    { clock: nodeClock, random: nodeRandom(), credentials: async () => credentialsOf(io) },
  );
  const keyFile = flags.string("encryption-key");
  if (keyFile === "") return store;
  try {
    return new SealedStore(store, parseSealingKey(textOf(io, keyFile)));
  } catch (error) {
    throw new Exit(ExitCode.error, `${keyFile}: ${(error as Error).message}`);
  }
}

const lockModeOf = (text: string): "GOVERNANCE" | "COMPLIANCE" =>
  text === "COMPLIANCE" ? text : "GOVERNANCE";

function textOf(io: Io, path: string): string {
  try {
    return new TextDecoder().decode(io.readFile(path));
  } catch (error) {
    throw new Exit(ExitCode.error, `${path}: ${(error as Error).message}`);
  }
}

/** Read anew for each request. Throws Error that says where they were looked for. */
function credentialsOf({ env, readFile }: Io): S3Credentials {
  const { AWS_ACCESS_KEY_ID: id, AWS_SECRET_ACCESS_KEY: secret } = env;
  if (id && secret)
    return {
      accessKeyId: id,
      secretAccessKey: secret,
      sessionToken: env["AWS_SESSION_TOKEN"] || undefined,
    };
  const path = env["AWS_SHARED_CREDENTIALS_FILE"] || `${env["HOME"] ?? ""}/.aws/credentials`;
  const profile = env["AWS_PROFILE"] || "default";
  let text: string;
  try {
    text = new TextDecoder().decode(readFile(path));
  } catch (error) {
    throw new Error(
      `there are no credentials: neither AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, nor ${path} (${(error as Error).message})`,
    );
  }
  const values = profileOf(text, profile);
  const [accessKeyId, secretAccessKey] = [
    values.get("aws_access_key_id"),
    values.get("aws_secret_access_key"),
  ];
  if (!accessKeyId || !secretAccessKey)
    throw new Error(`${path} has no aws_access_key_id and aws_secret_access_key in [${profile}]`);
  return { accessKeyId, secretAccessKey, sessionToken: values.get("aws_session_token") };
}

/** The values of a section of an INI file. */
function profileOf(text: string, profile: string): ReadonlyMap<string, string> {
  const values = new Map<string, string>();
  let isInside = false;
  for (const line of text.split("\n").map((one) => one.trim())) {
    if (line.startsWith("[")) isInside = line === `[${profile}]`;
    const at = line.indexOf("=");
    if (isInside && at > 0) values.set(line.slice(0, at).trim(), line.slice(at + 1).trim());
  }
  return values;
}
