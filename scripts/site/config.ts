/** The configuration of the documentation site, for VitePress. */
import { join } from "node:path";
import { sidebar } from "./pages.ts";

/** This file, which VitePress loads by its path. */
export const CONFIG_FILE = import.meta.filename;

/** A picture of three members, so that browsers ask for none. */
const ICON = `data:image/svg+xml,${encodeURIComponent(
  '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16" fill="#3451b2">' +
    '<circle cx="8" cy="4" r="3"/><circle cx="4" cy="11" r="3"/><circle cx="12" cy="11" r="3"/></svg>',
)}`;

/** Room for tables, most of which have four columns or more. */
const STYLE = `
  :root { --vp-layout-max-width: 1680px; }
  .VPDoc.has-aside .content-container { max-width: none !important; }
  .vp-doc table { font-size: 13px; }
  .vp-doc :is(td, th) { line-height: 20px; padding: 5px 9px; }
`;

/**
 * The configuration for a source directory.
 *
 * @param root the repository's root
 * @param directory the source of the site
 * @param outDir the directory for the built site
 */
export function siteConfig(root: string, directory: string, outDir: string) {
  return {
    title: "Quorate",
    description: "A clustered key-value store that etcd's programs can use unchanged",
    head: [
      ["link", { rel: "icon", href: ICON }],
      ["style", {}, STYLE],
    ] as ([string, Record<string, string>] | [string, Record<string, string>, string])[],
    outDir,
    cacheDir: join(directory, ".vitepress/cache"),
    cleanUrls: false,
    lastUpdated: false,
    themeConfig: {
      search: { provider: "local" as const },
      sidebar: sidebar(root),
      outline: { level: [2, 3] as [number, number] },
      docFooter: { prev: "Before", next: "Next" },
    },
    markdown: { anchor: { slugify: anchorOf } },
    vite: { logLevel: "warn" as const, build: { target: "es2022", chunkSizeWarningLimit: 4_096 } },
  };
}

/** The anchor of a title, as GitHub makes it. */
export function anchorOf(title: string): string {
  return title
    .toLowerCase()
    .replace(/[^\w\- ]/g, "")
    .replaceAll(" ", "-");
}
