/**
 * What the server takes away of Services that change their type, and what it keeps of those that
 * do not (kubernetes: registry/core/service). service-hooks.ts gives addresses and ports.
 *
 *     clusterIP "10.0.0.9"     clusterIPs ["10.0.0.9"]
 *     an update without them   what the present object has
 *     type ExternalName        no addresses, no ports of nodes
 */
import { type KubeObject, type Strategy, semanticEqual } from "@quorate/kube-storage";
import { listOf, numberOf, type ObjectFields, objectOf, textOf } from "./rules/rules.ts";
import { needsHealthCheck } from "./rules/services.ts";

export function needsClusterIp(spec: ObjectFields): boolean {
  return spec["type"] !== "ExternalName";
}

export function needsNodePort(spec: ObjectFields): boolean {
  return spec["type"] === "NodePort" || spec["type"] === "LoadBalancer";
}

/** The list of addresses that goes with the first one. */
export function withClusterIps(spec: ObjectFields): ObjectFields {
  const ip = textOf(spec["clusterIP"]);
  return ip !== "" && listOf(spec["clusterIPs"]).length === 0
    ? { ...spec, clusterIPs: [ip] }
    : spec;
}

/** The addresses and ports that the present object was given, where the update has none. */
export function withAllocated(spec: ObjectFields, old: ObjectFields): ObjectFields {
  let result = spec;
  if (needsClusterIp(spec) && needsClusterIp(old)) {
    const clusterIP = textOf(spec["clusterIP"]) || old["clusterIP"];
    const own = listOf(spec["clusterIPs"]);
    let clusterIPs = own.length > 0 ? own : listOf(old["clusterIPs"]);
    const same = semanticEqual(clusterIPs, old["clusterIPs"]);
    if (same && clusterIP !== old["clusterIP"]) clusterIPs = [clusterIP as ObjectFields];
    const ipFamilyPolicy = spec["ipFamilyPolicy"] ?? old["ipFamilyPolicy"];
    result = { ...result, clusterIP, clusterIPs, ipFamilyPolicy };
  }
  if (needsNodePort(spec) && needsNodePort(old)) {
    const byName = new Map(listOf(old["ports"]).map((port) => [port["name"], port["nodePort"]]));
    const used = new Set(listOf(spec["ports"]).map((port) => port["nodePort"]));
    const ports = listOf(spec["ports"]).map((port) => {
      const nodePort = byName.get(port["name"]);
      const isFree = numberOf(port["nodePort"]) === 0 && !used.has(nodePort);
      if (!isFree || nodePort === undefined) return port;
      used.add(nodePort);
      return { ...port, nodePort };
    });
    result = { ...result, ports };
  }
  if (needsHealthCheck(spec) && needsHealthCheck(old)) {
    const port = numberOf(spec["healthCheckNodePort"]) || old["healthCheckNodePort"];
    result = { ...result, healthCheckNodePort: port };
  }
  return result;
}

/** Without what only the former type has, unless the update changes it. */
function withoutFormerType(spec: ObjectFields, old: ObjectFields): ObjectFields {
  const left: Record<string, unknown> = { ...spec };
  const drop = (...names: readonly string[]): void => {
    if (names.every((name) => semanticEqual(spec[name], old[name]))) {
      for (const name of names) delete left[name];
    }
  };
  if (needsClusterIp(old) && !needsClusterIp(spec)) {
    drop("clusterIP", "clusterIPs");
    drop("ipFamilies");
    drop("ipFamilyPolicy");
    drop("internalTrafficPolicy");
  }
  if (needsNodePort(old) && !needsNodePort(spec)) {
    const had = new Set(listOf(old["ports"]).map((port) => numberOf(port["nodePort"])));
    const ports = listOf(spec["ports"]);
    if (
      ports.every((port) => numberOf(port["nodePort"]) === 0 || had.has(numberOf(port["nodePort"])))
    ) {
      left["ports"] = ports.map(({ nodePort: _, ...port }) => port);
    }
    if (spec["type"] !== "ClusterIP" || listOf(spec["externalIPs"]).length === 0) {
      drop("externalTrafficPolicy");
    }
  }
  if (needsHealthCheck(old) && !needsHealthCheck(spec)) drop("healthCheckNodePort");
  if (old["type"] === "LoadBalancer" && spec["type"] !== "LoadBalancer") {
    drop("allocateLoadBalancerNodePorts");
    drop("loadBalancerClass");
  }
  return left;
}

/** The strategy, with what the server does to a changed Service before it looks at it. */
export function serviceStrategy(strategy: Strategy): Strategy {
  const specOf = (object: KubeObject): ObjectFields => objectOf(object["spec"]);
  return {
    ...strategy,
    prepareForUpdate(ctx, object, old) {
      const prepared = strategy.prepareForUpdate(ctx, object, old);
      const before = withClusterIps(specOf(old));
      return { ...prepared, spec: withoutFormerType(specOf(prepared), before) };
    },
  };
}
