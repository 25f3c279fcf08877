/**
 * Renders the Helm chart for tests, so that what runs the chart's pods needs no helm:
 *
 *     node test/deploy/render-chart.ts      writes test/deploy/rendered/, with the helm on PATH
 *
 * Each file names the chart that it was made from by a hash of the chart's files; the test fails
 * where it is another one.
 */
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const chart = join(import.meta.dirname, "../../deploy/helm/quorate");
const rendered = join(import.meta.dirname, "rendered");

/** The settings that are rendered, by the name of the file. */
export const RENDERINGS = ["install-1", "upgrade-1", "upgrade-3", "upgrade-5"] as const;
export type Rendering = (typeof RENDERINGS)[number];

/** The release that is rendered. */
export const RELEASE = "store";
export const NAMESPACE = "db";

/** A hash of all files of the chart. */
export function chartHash(): string {
  const hash = createHash("sha256");
  const files = readdirSync(chart, { recursive: true, withFileTypes: true }).filter((entry) =>
    entry.isFile(),
  );
  for (const path of files.map((entry) => join(entry.parentPath, entry.name)).sort()) {
    hash
      .update(`${path.slice(chart.length)}\0`)
      .update(readFileSync(path))
      .update("\0");
  }
  return hash.digest("hex");
}

/** What helm makes of the chart, from its documents that the test runs. @param helm the program */
export function render(helm: string, what: Rendering): string {
  const [action, replicas] = what.split("-") as [string, string];
  const release = [
    "template",
    RELEASE,
    chart,
    `--namespace=${NAMESPACE}`,
    "--kube-version=1.31.0",
    `--set=replicaCount=${replicas}`,
  ];
  const text = execFileSync(helm, [...release, ...(action === "upgrade" ? ["--is-upgrade"] : [])], {
    encoding: "utf8",
  });
  const wanted = text
    .split(/^---$/m)
    .filter((document) => /^kind: (?:ConfigMap|Job|StatefulSet)$/m.test(document));
  return `# quorate ${chartHash()}\n${wanted.map((document) => `---${document}`).join("")}`;
}

/** The path of a rendering that is kept. */
export const renderedFile = (what: Rendering): string => join(rendered, `${what}.yaml`);

if (process.argv[1] === import.meta.filename) {
  for (const what of RENDERINGS) writeFileSync(renderedFile(what), render("helm", what));
}
