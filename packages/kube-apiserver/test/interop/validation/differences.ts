/** Cases with another answer than kube-apiserver's, by what they begin with, and why. */
export const DIFFERENCES: readonly (readonly [begin: string, why: string])[] = [
  ["pods create spec.resources", "kube-apiserver fills in requests of the pod from its limits"],
  ["ingresses create spec.rules = []", "an empty list is read as none"],
  ['horizontalpodautoscalers create spec.behavior = {"scaleUp":{"policies":[]', "the same"],
];
