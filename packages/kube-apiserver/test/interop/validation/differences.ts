/** Cases with another answer than kube-apiserver's, by what they begin with, and why. */
export const DIFFERENCES: readonly (readonly [begin: string, why: string])[] = [
  ["ingresses create spec.rules = []", "the text shows an empty list as none"],
];
