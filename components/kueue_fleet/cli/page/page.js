"use strict";
// Everything from clusters gets into the page as text, never as markup.
const at = (id) => document.getElementById(id);
const span = (seconds) => {
  for (const [size, unit] of [[86400, "d"], [3600, "h"], [60, "min"]]) if (seconds >= 2 * size) return `${Math.round(seconds / size)} ${unit}`;
  return `${Math.round(seconds)} s`;
};
const known = (value) => (value === null || value === undefined ? "not known" : value === "" ? "-" : String(value));
const short = (text) => (text.length > 300 ? `${text.slice(0, 300)} ...` : text);
const ask = (path) => fetch(path).catch(() => undefined);
const element = (name, text) => {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  return made;
};

// columns: [heading, row => text or element]
function table(caption, columns, rows) {
  const made = element("table"), head = element("tr"), body = element("tbody");
  made.append(element("caption", caption));
  for (const [name] of columns) {
    const cell = element("th", name);
    cell.scope = "col";
    head.append(cell);
  }
  const top = element("thead");
  top.append(head);
  for (const row of rows) {
    const line = element("tr");
    for (const [name, of] of columns) {
      const value = of(row), cell = element("td");
      cell.dataset.of = name;
      cell.append(value instanceof Node ? value : known(value));
      line.append(cell);
    }
    body.append(line);
  }
  made.append(top, body);
  return made;
}

function section(id, title, caption, columns, rows) {
  const place = at(id);
  place.replaceChildren();
  if (rows.length) place.append(element("h2", title), table(caption, columns, rows));
}

function bad(text) {
  const made = element("span", text);
  made.className = "bad";
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
    ["state", (c) => (!c.reachable || c.connected === false ? bad(c.message || "not connected") : c.connected ? "connected" : "ready")],
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
    ["queue", (q) => q.name], ["cluster", (q) => q.cluster], ["flavor", (q) => q.flavor], ["resource", (q) => q.resource], ["used", (q) => q.used],
    ["borrowed", (q) => q.borrowed], ["quota", (q) => q.nominal], ["pending", (q) => q.pending], ["state", (q) => (q.active ? "active" : bad(q.reason || "inactive"))],
  ], uses);
  section("teams", "Teams", "What each team has, and what it waits for", [
    ["team", (t) => t.team], ["jobs", (t) => t.jobs], ["GPUs", (t) => t.gpus], ["borrowed", (t) => t.borrowed], ["jobs that wait", (t) => t.waitingJobs], ["GPUs they ask for", (t) => t.waitingGpus],
  ], found.teams);
  section("budgets", "Budgets", "What each team used of its budget", [
    ["team", (b) => b.team], ["of", (b) => b.of], ["used", (b) => (Object.keys(b.unpriced).length ? "at least " : "") + b.used.toFixed(0)], ["limit", (b) => b.limit], ["per", (b) => b.per],
  ], found.budgets);
  jobs();
}

let asked = 0;
async function jobs() {
  const mine = ++asked, query = new URLSearchParams({ q: at("search").value, state: at("which").value });
  const answer = await ask(`live/jobs?${query}`);
  if (!answer?.ok || mine !== asked) return;
  const found = await answer.json();
  at("count").textContent = found.count > found.jobs.length ? `The first ${found.jobs.length} of ${found.count}` : known(found.count);
  const focused = document.activeElement?.dataset?.job;
  at("jobs").replaceChildren(table("Jobs that have not ended; choose one to see why it waits", [
    ["job", (j) => {
      const made = element("button", `${j.namespace}/${j.name}`);
      made.type = "button";
      made.dataset.job = `${j.namespace}/${j.name}`;
      made.addEventListener("click", () => show(j));
      return made;
    }],
    ["queue", (j) => j.queue], ["state", (j) => j.state], ["cluster", (j) => j.cluster], ["since", (j) => span(j.seconds)],
    ["why it waits", (j) => (j.reason ? short(`${j.reason}: ${j.message}`) : "")],
  ], found.jobs));
  if (focused) [...document.querySelectorAll("[data-job]")].find((one) => one.dataset.job === focused)?.focus();
}

let shown = 0;
async function show(job) {
  const mine = ++shown;
  at("job").hidden = false;
  at("job-title").textContent = `${job.namespace}/${job.name}: ${job.state}${job.cluster ? ` on ${job.cluster}` : ""}, since ${job.since}`;
  at("says").textContent = [job.reason && `${job.reason}: ${job.message}`, job.says].filter(Boolean).join("\n\n");
  at("why").textContent = "What would change it is being tried ...";
  at("job-title").focus();
  const answer = await ask(`live/job?${new URLSearchParams({ namespace: job.namespace, name: job.name })}`);
  const text = answer?.ok ? (await answer.json()).text : answer?.status === 404 ? "The job has ended." : "Not known: kueue-fleet ui does not answer.";
  if (mine === shown) at("why").textContent = text;
}

at("close").addEventListener("click", () => { at("job").hidden = true; at("search").focus(); });
at("search").addEventListener("input", jobs);
at("which").addEventListener("change", jobs);
const events = new EventSource("live/events");
events.onmessage = (event) => draw(JSON.parse(event.data));
events.onerror = () => { at("state").textContent = "The connection to kueue-fleet ui is lost; start it again, or wait."; at("state").className = "bad"; };
