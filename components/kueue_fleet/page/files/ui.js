"use strict";
const asking = "What would change it is being tried ...";
const read = () => {}, refused = () => {};  // The events say how it is.

function section(id, title, caption, columns, rows) {
  const place = at(id);
  place.replaceChildren();
  if (rows.length) place.append(element("h2", title), table(caption, columns, rows));
}

// How far an amount is used up, as a bar beside its numbers; nothing where one of them is not a plain number.
function bar(used, limit) {
  if (!isNumber(used) || !isNumber(limit) || used === null || !Number(limit)) return "";
  const made = element("meter");
  made.max = Number(limit);
  made.high = Number(limit) * 0.999;
  made.value = Number(used);
  made.setAttribute("aria-label", `${used} of ${limit}`);
  return made;
}

function draw(found) {
  document.title = at("fleet").textContent = found.fleet || "Fleet";
  const unread = found.clusters.filter((c) => !c.reachable).map((c) => c.name);
  const missing = unread.length ? `; what is on ${unread.join(", ")} is not known` : "";
  at("state").textContent = found.problem ? `Not read again since ${found.at}: ${found.problem}` : `As of ${found.at}, jobs: ${known(found.jobs)}${missing}`;
  at("state").className = found.problem || missing ? "bad" : "";
  section("clusters", "Clusters", "Every cluster of the file, and its Workloads", [
    ["cluster", (c) => c.name], ["role", (c) => c.role], ["pending", (c) => c.pending], ["with quota", (c) => c.reserved], ["admitted", (c) => c.admitted],
    ["state", (c) => (!c.reachable || c.connected === false ? marked(c.message || "not connected") : c.connected ? "connected" : "ready")],
  ], found.clusters);
  section("stuck", "Stuck", "What does not go on by itself", [
    ["job", (s) => `${s.namespace}/${s.name}`], ["cluster", (s) => s.cluster], ["for", (s) => span(s.seconds)], ["why", (s) => `${s.why}: ${s.message}`],
  ], found.stuck);
  section("requests", "DWS requests", "ProvisioningRequests without capacity", [
    ["request", (r) => `${r.namespace}/${r.name}`], ["cluster", (r) => r.cluster], ["age", (r) => span(r.ageSeconds)], ["state", (r) => r.state], ["message", (r) => r.message],
  ], found.requests);
  section("flavors", "Flavors", "Accelerators of each flavor, and their nodes", [
    ["flavor", (f) => f.flavor], ["cluster", (f) => f.cluster], ["of", (f) => f.resource], ["ready nodes", (f) => f.nodes], ["at most", (f) => f.most_nodes],
    ["on them", (f) => f.on_nodes], ["used", (f) => f.used],
  ], found.flavors);
  const uses = found.queues.flatMap((q) => (q.use.length ? q.use : [{ flavor: "", resource: "", used: "", nominal: "", borrowed: "" }]).map((use) => ({ ...q, ...use })));
  section("queues", "Queues", "Use against quota, by flavor and resource", [
    ["queue", (q) => q.name], ["cluster", (q) => q.cluster], ["flavor", (q) => q.flavor], ["resource", (q) => q.resource], ["use", (q) => bar(q.used, q.nominal)], ["used", (q) => q.used],
    ["borrowed", (q) => q.borrowed], ["quota", (q) => q.nominal], ["pending", (q) => q.pending], ["state", (q) => (q.active ? "active" : marked(q.reason || "inactive"))],
  ], uses);
  offer(uses);
  section("teams", "Teams", "What each team has, and what it waits for", [
    ["team", (t) => t.team], ["jobs", (t) => t.jobs], ["GPUs", (t) => t.gpus], ["borrowed", (t) => t.borrowed], ["jobs that wait", (t) => t.waitingJobs], ["GPUs they ask for", (t) => t.waitingGpus],
  ], found.teams);
  section("budgets", "Budgets", "What each team used of its budget", [
    ["team", (b) => b.team], ["of", (b) => b.of], ["use", (b) => bar(b.used.toFixed(0), b.limit)], ["used", (b) => (Object.keys(b.unpriced).length ? "at least " : "") + b.used.toFixed(0)], ["limit", (b) => b.limit], ["per", (b) => b.per],
  ], found.budgets);
  section("goals", "Goals", "How the last seven days met each goal", [
    ["goal", (g) => g.path], ["state", (g) => (g.standing === "met" ? g.standing : marked(g.standing))], ["why", (g) => g.why],
  ], found.goals);
  section("hours", "Last hours", "What happened in each hour, by the history", [
    ["hour", (h) => h.hour], ["jobs that came", (h) => h.arrived], ["began", (h) => h.began], ["ended", (h) => h.ended],
    ["had waited, in the middle", (h) => (h.wait === null ? "-" : span(h.wait))],
  ], found.hours);
  jobs();
}

const logs = element("button", "Logs of its pods"), log = element("pre");
[logs.id, log.id, logs.type] = ["logs", "log", "button"];
at("close").before(logs, log);
function chose(job) {
  log.textContent = "";
  logs.onclick = async () => {
    const mine = shown;
    log.textContent = "The logs are being read ...";
    const text = await detail("logs", { namespace: job.namespace, name: job.name });
    if (mine === shown) log.textContent = text;
  };
}

// Choices that stay as they are are not touched: somebody may be at them.
function offer(uses) {
  const quotas = uses.filter((use) => use.flavor).map((use) => [use.cluster, use.name, use.flavor, use.resource]);
  at("what-if").hidden = !quotas.length;
  if (JSON.stringify(quotas) === at("quota").dataset.of) return;
  const chosen = at("quota").value;
  at("quota").dataset.of = JSON.stringify(quotas);
  at("quota").replaceChildren(...quotas.map((quota) => {
    const made = element("option", `${quota[1]} on ${quota[0]}: ${quota[3]} in ${quota[2]}`);
    made.value = JSON.stringify(quota);
    return made;
  }));
  if (quotas.some((quota) => JSON.stringify(quota) === chosen)) at("quota").value = chosen;
}

at("change").addEventListener("submit", async (event) => {
  event.preventDefault();
  const [cluster, queue, flavor, resource] = JSON.parse(at("quota").value);
  at("answer").textContent = "It is being tried ...";
  at("answer").textContent = await detail("what-if", { cluster, queue, flavor, resource, limit: at("limit").value, amount: at("amount").value });
});
const events = new EventSource("live/events");
events.onmessage = (event) => draw(JSON.parse(event.data));
events.onerror = () => { at("state").textContent = "The connection to kueue-fleet status --page is lost; start it again, or wait."; at("state").className = "bad"; };
