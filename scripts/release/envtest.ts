/**
 * Archives of a release as setup-envtest takes them (controller-runtime: tools/setup-envtest), and
 * their index.
 *
 *     controller-tools/envtest/kube-apiserver, etcd   one script, by the name it is called
 *     controller-tools/envtest/quorate.tar.gz         the release's archive, unpacked at first
 *
 * setup-envtest drops directories, links and all modes but reading and executing, and makes the
 * place read-only: so the release stays packed, and is unpacked into the user's cache.
 */
import { createHash } from "node:crypto";
import { envtestScript } from "@quorate/quorate/node";
import type { Platform } from "./platform.ts";
import { type Entry, tar, withDirectories } from "./tar.ts";

const PLACE = "controller-tools/envtest";

/** Names of processors as Go has them, which are Debian's. */
const PROCESSORS: Readonly<Record<string, string>> = { x64: "amd64", arm64: "arm64" };

/** Such as envtest-v1.36.3-linux-amd64.tar.gz. @param kubernetes its version, such as 1.36.3 */
export function envtestName({ name }: Platform, kubernetes: string): string {
  const [system = "", processor = ""] = name.split("-");
  return `envtest-v${kubernetes}-${system}-${PROCESSORS[processor] ?? processor}.tar.gz`;
}

/** @param release the platform's archive, gzipped, all of whose files are below one directory */
export function envtestArchive(release: Uint8Array, mtimeSeconds: number): Uint8Array {
  const digest = createHash("sha256").update(release).digest("hex").slice(0, 12);
  const script = envtestScript('"$home/bin/quorate"', unpacking(digest));
  const entries: Entry[] = [
    { path: `${PLACE}/etcd`, mode: 0o755, content: Buffer.from(script) },
    { path: `${PLACE}/kube-apiserver`, mode: 0o755, content: Buffer.from(script) },
    { path: `${PLACE}/quorate.tar.gz`, mode: 0o644, content: release },
  ];
  return tar(withDirectories(entries), mtimeSeconds);
}

/** Words for the shell that set `home`. Several processes may be the first at the same time. */
function unpacking(digest: string): string {
  return `case $0 in */*) here=\${0%/*} ;; *) here=. ;; esac
cache=\${XDG_CACHE_HOME:-\${HOME:?has to name a directory, or XDG_CACHE_HOME one for a cache}/.cache}/quorate
home=$cache/release-${digest}
if [ ! -x "$home/bin/quorate" ]; then
  mkdir -p "$cache" && made=$(mktemp -d "$home.XXXXXX") || exit 1
  tar -xzf "$here/quorate.tar.gz" -C "$made" || { rm -rf "$made"; exit 1; }
  if [ ! -e "$home" ]; then mv "$made"/* "$home" || exit 1; fi
  rm -rf "$made"
fi
`;
}

/**
 * setup-envtest's index (envtest-releases.yaml).
 * @param archives as written, by name
 * @param url of the directory that will have them
 */
export function envtestIndex(
  kubernetes: string,
  archives: ReadonlyMap<string, Uint8Array>,
  url: string,
): string {
  const entries = [...archives].map(([name, content]) => {
    const hash = createHash("sha512").update(content).digest("hex");
    const link = new URL(name, url.endsWith("/") ? url : `${url}/`);
    return `    ${name}:\n      hash: ${hash}\n      selfLink: ${link}\n`;
  });
  return `releases:\n  v${kubernetes}:\n${entries.join("")}`;
}
