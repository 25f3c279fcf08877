/** The versions that the tools print. */
import manifest from "../../package.json" with { type: "json" };

/** This program's own. */
export const programVersion: string = manifest.version;

/** The etcd release whose API the tools use. */
export const apiVersion = "3.7";
