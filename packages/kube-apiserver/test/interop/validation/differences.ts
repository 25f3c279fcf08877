/** Cases with another answer than kube-apiserver's, by what they begin with, and why. */
export const DIFFERENCES: readonly (readonly [begin: string, why: string])[] = [
  ["pods create spec.priorityClassName", "kube-apiserver's admission looks for the class first"],
  ["pods create spec.runtimeClassName", "kube-apiserver's admission looks for the class first"],
  ["pods create spec.preemptionPolicy", "kube-apiserver's admission sets it from the class"],
  ["pods create spec.resources", "kube-apiserver fills in requests of the pod from its limits"],
  ["ingresses create spec.rules = []", "an empty list is read as none"],
  ['horizontalpodautoscalers create spec.behavior = {"scaleUp":{"policies":[]', "the same"],
];
