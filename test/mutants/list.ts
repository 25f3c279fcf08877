/**
 * All planted bugs of members and of what packages have beside their tests. The catalogue is in
 * packages/sim/src/planted.
 */
import { type CatalogueBug, SOURCE_BUGS } from "@quorate/sim";
import { contributed } from "../../scripts/contributed.ts";

/** A bug with its name: words that say what the product does wrong. */
export interface Mutant extends CatalogueBug {
  readonly name: string;
}

const ofPackages = await contributed<{ BUGS: typeof SOURCE_BUGS }>("mutants");

export const MUTANTS: readonly Mutant[] = [SOURCE_BUGS, ...ofPackages.map(({ BUGS }) => BUGS)]
  .flatMap((bugs) => Object.entries(bugs))
  .map(([name, bug]) => ({ ...bug, name }));
