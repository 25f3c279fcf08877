/**
 * Bundles the programs of bin/ where a source has changed (release/checkout.ts): before all tests,
 * which start hundreds of members, so that they cover what a release has; and before members are
 * started from a checkout.
 */
import { bundleCheckout } from "./release/checkout.ts";

if (!(await bundleCheckout()))
  console.error(`no bundle for ${process.platform} ${process.arch}: the sources are started`);
