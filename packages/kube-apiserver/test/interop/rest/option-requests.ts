/** Parameters of lists and gets: selectors, revisions, limits. */
import {
  CONFIG_MAPS,
  configMap,
  GROUP_EVENTS,
  LEASES,
  NAMESPACES,
  OWN,
  SECRETS,
} from "./objects.ts";
import type { Step } from "./step.ts";

const LABEL_SELECTORS = [
  "a b",
  "a in (b",
  "a===b",
  "a=b c",
  ",a",
  "a,",
  "/a",
  "a=_",
  "a>x",
  "!",
  "a in ()",
  "x=1",
  "x notin (2),y",
];
const FIELD_SELECTORS = [
  "foo=bar",
  "foo",
  "metadata.name=a\\x",
  "metadata.name=a=b",
  "metadata.name=p",
  "metadata.name!=p,metadata.name!=kube-root-ca.crt",
  "metadata.namespace=other",
];
const QUERIES = [
  "limit=abc",
  `limit=-1&${OWN}`,
  "resourceVersionMatch=Exact",
  "resourceVersionMatch=Foo&resourceVersion=1",
  "resourceVersionMatch=Exact&resourceVersion=0",
  "sendInitialEvents=true",
  "resourceVersion=abc",
  "resourceVersion=-1",
  "resourceVersion=99999999999999999999999",
  "continue=abc",
  "timeoutSeconds=x",
  "watch=1&resourceVersionMatch=Exact&timeoutSeconds=1",
  "watch=1&sendInitialEvents=true&timeoutSeconds=1",
  "watch=1&resourceVersion=abc&timeoutSeconds=1",
];
const OTHER_PATHS = [
  `${NAMESPACES}?fieldSelector=metadata.namespace%3Dx`,
  `${NAMESPACES}?fieldSelector=status.phase%3DActive,metadata.name%3Dt`,
  `${SECRETS}?fieldSelector=x%3Dbar`,
  `${LEASES}?fieldSelector=x%3Dbar`,
  `${GROUP_EVENTS}?fieldSelector=x%3Dbar`,
  `${GROUP_EVENTS}?fieldSelector=regarding.kind%3Dbar`,
  `${CONFIG_MAPS}/nope`,
  `${CONFIG_MAPS}/p?resourceVersion=abc`,
];

export function optionRequests(): Step[] {
  const get = (path: string): Step => ({ method: "GET", path });
  const select = (kind: string) => (selector: string) =>
    get(`${CONFIG_MAPS}?${kind}=${encodeURIComponent(selector)}`);
  return [
    { method: "POST", path: CONFIG_MAPS, body: configMap("p", {}, { labels: { x: "1", y: "" } }) },
    ...LABEL_SELECTORS.map(select("labelSelector")),
    ...FIELD_SELECTORS.map(select("fieldSelector")),
    ...QUERIES.map((query) => get(`${CONFIG_MAPS}?${query}`)),
    ...OTHER_PATHS.map(get),
  ];
}
