"use strict";
// The jobs of either page; `read`, `refused`, `chose` and `asking` are those of the page.
// Everything from clusters gets into the page as text, never as markup.
const at = (id) => document.getElementById(id);
const span = (seconds) => {
  for (const [size, unit] of [[86400, "d"], [3600, "h"], [60, "min"]]) if (seconds >= 2 * size) return `${Math.round(seconds / size)} ${unit}`;
  return `${Math.round(seconds)} s`;
};
const known = (value) => (value === null || value === undefined ? "not known" : value === "" ? "-" : String(value));
const short = (text) => (text.length > 300 ? `${text.slice(0, 300)} ...` : text);
let credentials = {};
const ask = (path) => fetch(path, { headers: credentials }).catch(() => undefined);
const element = (name, text) => {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  return made;
};

const isNumber = (value) => value === null || value === undefined || (value !== "" && !Number.isNaN(Number(value)));

// columns: [heading, row => text, number or element]; a column of numbers is set flush right.
function table(caption, columns, rows) {
  const made = element("table"), head = element("tr"), body = element("tbody");
  made.append(element("caption", caption));
  const numbers = columns.map(([, of]) => rows.some((row) => known(of(row)) !== "not known") && rows.every((row) => isNumber(of(row))));
  columns.forEach(([name], column) => {
    const cell = element("th", name);
    cell.scope = "col";
    cell.classList.toggle("number", numbers[column]);
    head.append(cell);
  });
  const top = element("thead");
  top.append(head);
  for (const row of rows) {
    const line = element("tr");
    columns.forEach(([name, of], column) => {
      const value = of(row), cell = element("td");
      cell.dataset.of = name;
      cell.classList.toggle("number", numbers[column]);
      cell.append(value instanceof Node ? value : known(value));
      line.append(cell);
    });
    body.append(line);
  }
  made.append(top, body);
  return made;
}

function marked(text) {
  const made = element("span", text);
  made.className = "bad";
  return made;
}

// Our sentence and the next step; Kueue's own words are folded below them, and stay open where somebody opened them.
const opened = new Set();
function why(job) {
  if (!job.why) return "";
  const made = element("div"), key = `${job.namespace}/${job.name}`;
  made.append(job.wrong ? marked(short(job.why)) : short(job.why), " ", short(job.next));
  if (job.reason) {
    const more = element("details");
    more.open = opened.has(key);
    more.addEventListener("toggle", () => (more.open ? opened.add(key) : opened.delete(key)));
    more.append(element("summary", "Kueue"), short(`${job.reason}: ${job.message}`));
    made.append(more);
  }
  return made;
}

// A choice that stays as it is is not touched: somebody may be at it.
function offerTeams(teams) {
  const chosen = at("team").value;
  if (JSON.stringify(teams) === at("team").dataset.of) return;
  at("team").dataset.of = JSON.stringify(teams);
  at("team").replaceChildren(...["", ...teams].map((team) => {
    const made = element("option", team || "all");
    made.value = team;
    return made;
  }));
  if (teams.includes(chosen)) at("team").value = chosen;
}

let asked = 0;
async function jobs() {
  const mine = ++asked, query = new URLSearchParams({ q: at("search").value, state: at("which").value, team: at("team").value });
  const answer = await ask(`live/jobs?${query}`);
  if (mine !== asked) return;
  if (!answer?.ok) return refused(answer);
  const found = await answer.json();
  read(found, answer);
  offerTeams(found.teams);
  at("count").textContent = found.count > found.jobs.length ? `The first ${found.jobs.length} of ${found.count} jobs` : `Jobs: ${known(found.count)}`;
  const focused = document.activeElement?.dataset?.job;
  at("jobs").replaceChildren(table("Jobs that have not ended; choose one to see why it waits", [
    ["job", (j) => {
      const made = element("button", `${j.namespace}/${j.name}`);
      made.type = "button";
      made.dataset.job = `${j.namespace}/${j.name}`;
      made.addEventListener("click", () => show(j));
      return made;
    }],
    ["queue", (j) => j.queue], ["GPUs", (j) => j.gpus], ["state", (j) => (j.wrong ? marked(j.state) : j.state)], ["cluster", (j) => j.cluster],
    ["since", (j) => span(j.seconds)], ["place", (j) => j.place], ["expected start", (j) => j.start], ["why it waits", why],
  ], found.jobs));
  if (focused) [...document.querySelectorAll("[data-job]")].find((one) => one.dataset.job === focused)?.focus();
}

async function detail(what, asked) {
  const answer = await ask(`live/${what}?${new URLSearchParams(asked)}`);
  return answer?.ok ? (await answer.json()).text : answer?.status === 404 ? "The job has ended." : "Not known: the page does not answer.";
}

let shown = 0;
async function show(job) {
  const mine = ++shown;
  chose(job);
  at("job").hidden = false;
  at("job-title").textContent = `${job.namespace}/${job.name}: ${job.state}${job.cluster ? ` on ${job.cluster}` : ""}, since ${job.since}`;
  at("says").textContent = job.says || [job.why, job.next && `Next: ${job.next}`].filter(Boolean).join("\n");
  at("kueue").hidden = !job.reason;
  at("kueue-says").textContent = `${job.reason}: ${job.message}`;
  at("why").textContent = asking;
  at("job-title").focus();
  const text = await detail("job", { namespace: job.namespace, name: job.name });
  if (mine === shown) at("why").textContent = text;
}

at("close").addEventListener("click", () => { at("job").hidden = true; at("search").focus(); });
at("search").addEventListener("input", jobs);
at("which").addEventListener("change", jobs);
at("team").addEventListener("change", jobs);
