"use strict";
// Draws a report from the data beside it (`report.py`). Text is set as text, never as markup: names of jobs are anybody's.
const data = JSON.parse(document.getElementById("data").textContent);
const now = data.sections[data.sections.length - 1];
const before = data.sections.length > 1 ? data.sections[0] : null;
const root = document.getElementById("report");
// Okabe and Ito's colours and three more, which people with any colour vision can tell apart.
const palette = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#b8a800", "#8c6bb1", "#888888", "#7a4a1e", "#3b8f8f", "#b03a5b"];
const flavors = [...new Set(data.sections.flatMap((one) => [...one.quotas, ...one.runs, ...one.series.filter((s) => s.kind === "own")].map((s) => s.name)))].sort();
const colourOf = (flavor) => (flavors.includes(flavor) ? palette[flavors.indexOf(flavor) % palette.length] : "var(--accent)");
const text = (value) => (typeof value === "number" ? value.toLocaleString("en", { maximumFractionDigits: Math.abs(value) < 1 ? 3 : 2 }) : value);

function element(name, words, parent, className) {
  const made = document.createElement(name);
  if (words !== null) made.textContent = words;
  if (className) made.className = className;
  if (parent) parent.append(made);
  return made;
}

function part(heading, words) {
  const made = element("section", null, root);
  element("h2", heading, made);
  if (words) element("p", words, made);
  return made;
}

function choice(parent, name, options, act) {
  const label = element("label", name + " ", parent);
  const select = element("select", null, label);
  options.forEach(([value, words]) => { element("option", words, select).value = value; });
  select.addEventListener("change", act);
  return select;
}

// Tables

function cell(line, heading, value, number) {
  const made = element("td", null, line, number ? "number" : "");
  made.dataset.heading = heading;
  if (value instanceof Node) made.append(value);
  else element("span", value === null ? "-" : text(value), made);
  // A word is broken only where it would leave no room for the other columns.
  const words = made.textContent;
  if (/[^\s-]{14}/.test(words)) made.classList.add("long");
  else if (words.length <= 13) made.classList.add("short");
}

function fill(body, headings, rows) {
  const numbers = headings.map((_, index) => rows.some((row) => typeof row[index] === "number"));
  body.replaceChildren(...rows.map((row) => {
    const line = element("tr", null, null, row.before ? "before" : "");
    row.forEach((value, index) => cell(line, headings[index], value, numbers[index]));
    return line;
  }));
}

function table(parent, name, headings, rows) {
  const made = element("table", null, element("div", null, parent, "table"));
  element("caption", name, made, "hidden");
  const head = element("tr", null, element("thead", null, made));
  headings.forEach((words, index) => {
    const th = element("th", words, head, rows.some((row) => typeof row[index] === "number") ? "number" : "");
    th.scope = "col";
  });
  const body = element("tbody", null, made);
  fill(body, headings, rows);
  return { head, body };
}

function named(flavor) {
  const made = element("span", null, null);
  if (flavors.includes(flavor)) element("span", null, made, "swatch").style.background = colourOf(flavor);
  made.append(flavor || "-");
  return made;
}

// Amounts over time

// The time of the clock, where it is known what time second 0 is.
const clock = (x) => `${new Date(1000 * (data.begin + x * data.unitSeconds)).toISOString().slice(0, 16).replace("T", " ")} UTC`;

const SVG = "http://www.w3.org/2000/svg";

function shape(parent, name, attributes) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  parent.append(made);
  return made;
}

function stripes(svg, colour) {
  const id = "p" + colour.replace(/\W/g, "");
  const pattern = shape(shape(svg, "defs", {}), "pattern", { id, width: 8, height: 5, patternUnits: "userSpaceOnUse" });
  shape(pattern, "rect", { width: 8, height: 2.5, fill: colour });
  return `url(#${id})`;
}

// A layer is an area, one with stripes above the amounts `below` it, or a line; all go in steps.
function paint(svg, layers, most) {
  const end = data.x[data.x.length - 1] || 1, last = data.x.length - 1;
  const across = data.x.map((x) => ((1000 * x) / end).toFixed(1));
  for (const layer of layers) {
    const down = (y) => (100 - (100 * y) / most).toFixed(2);
    let line = layer.y.map((y, index) => (index ? `H${across[index]}V${down(y)}` : `M0 ${down(y)}`)).join("");
    const look = { stroke: layer.colour, fill: "none", "stroke-width": layer.width || 1.5 };
    if (layer.dash) look["stroke-dasharray"] = layer.dash;
    if (layer.kind === "area") {
      Object.assign(look, { fill: layer.colour, "fill-opacity": 0.45 });
      line += "V100H0Z";
    } else if (layer.kind === "striped") {
      look.fill = stripes(svg, layer.colour);
      line += `V${down(layer.below[last])}`;
      for (let index = last - 1; index >= 0; index -= 1) line += `V${down(layer.below[index])}H${across[index]}`;
    }
    shape(svg, "path", { ...look, d: line });
  }
}

function chart(parent, heading, unit, layers, colour) {
  const shown = layers.filter((layer) => layer.y);
  const most = Math.max(1e-9, ...shown.flatMap((layer) => layer.y)) * 1.05;
  const box = element("div", null, parent, "panel");
  const title = element("h3", null, box);
  if (colour) element("span", null, title, "swatch").style.background = colour;
  title.append(heading);
  const place = element("div", null, box, "chart");
  const scale = element("div", null, place, "scale");
  element("span", text(most / 1.05), scale);
  element("span", "0", scale);
  const svg = shape(place, "svg", { viewBox: "0 0 1000 100", preserveAspectRatio: "none", role: "img", tabindex: 0 });
  paint(svg, shown, most);
  const cursor = shape(svg, "line", { y1: 0, y2: 100, stroke: "var(--ink)", "stroke-width": 1, visibility: "hidden" });
  const times = element("div", null, place, "times");
  const end = data.x[data.x.length - 1] || 0;
  element("span", data.begin === null ? "0" : clock(0), times);
  element("span", data.begin === null ? `${text(end)} ${data.unit}` : clock(end), times);
  const readout = element("p", null, box, "readout");
  const told = shown.filter((layer) => layer.name);
  const summary = `${unit}: ${told.filter((layer) => !layer.silent).map((layer) => `${layer.name}${layer.dash === "8 4" ? "" : " at most"} ${text(Math.max(...(layer.of || layer.y)))}`).join(", ")}`;
  readout.textContent = summary;
  svg.setAttribute("aria-label", `${heading}. ${summary}. Arrow keys read single times.`);
  let at = -1;
  const read = (index) => {
    at = Math.max(0, Math.min(data.x.length - 1, index));
    const x = end ? (1000 * data.x[at]) / end : 0;
    cursor.setAttribute("x1", x);
    cursor.setAttribute("x2", x);
    cursor.setAttribute("visibility", "visible");
    readout.textContent = `At ${text(data.x[at])} ${data.unit}${data.begin === null ? "" : `, ${clock(data.x[at])}`}: ${told.map((layer) => `${layer.name} ${text((layer.of || layer.y)[at])}`).join(", ")} ${unit}`;
  };
  svg.addEventListener("pointermove", (event) => {
    const frame = svg.getBoundingClientRect(), time = (end * (event.clientX - frame.left)) / frame.width;
    const later = data.x.findIndex((x) => x > time);
    read((later < 0 ? data.x.length : later) - 1);
  });
  svg.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!step) return;
    event.preventDefault();
    readout.setAttribute("aria-live", "polite");
    read(at + step);
  });
  const figures = element("details", null, box);
  element("summary", "Figures", figures);
  figures.addEventListener("toggle", () => {
    if (figures.children.length > 1) return;
    const every = Math.ceil(data.x.length / 60), headings = [data.unit, ...told.map((layer) => layer.name)];
    const rows = data.x.map((x, index) => [x, ...told.map((layer) => (layer.of || layer.y)[index])]).filter((_, index) => index % every === 0);
    table(figures, `${heading} in ${unit}`, headings, rows);
  }, { once: true });
}

function sum(section, kind, resource, fits) {
  const found = section ? section.series.filter((one) => one.kind === kind && one.resource === resource && fits(one)) : [];
  return data.x.map((_, index) => found.reduce((total, one) => total + one.y[index], 0));
}
const plus = (a, b) => a.map((value, index) => value + b[index]);
const earlier = (y) => (before ? [{ name: "before", y, colour: "var(--ink)", dash: "2 3" }] : []);

// A key to the lines and patterns, drawn as the charts are.
function key(parent, entries) {
  const line = element("p", null, parent);
  for (const [words, layer] of entries) {
    const item = element("span", null, line, "key");
    const svg = shape(item, "svg", { viewBox: "0 0 26 12", "aria-hidden": "true" });
    if (layer.kind === "area") shape(svg, "rect", { width: 26, height: 12, fill: layer.colour, "fill-opacity": 0.45, stroke: layer.colour });
    else if (layer.kind === "striped") shape(svg, "rect", { width: 26, height: 12, fill: stripes(svg, layer.colour), stroke: layer.colour });
    else shape(svg, "path", { d: "M0 6H26", stroke: layer.colour, "stroke-width": layer.width || 1.5, "stroke-dasharray": layer.dash || "none" });
    element("span", words, item);
  }
}
const BEFORE = ["before the change", { colour: "var(--ink)", dash: "2 3" }];
const beforeKey = before ? [BEFORE] : [];

function useOfFlavors(parent, resource, unit, cluster) {
  const fits = (flavor) => (one) => one.name === flavor && (!cluster || one.cluster === cluster);
  const quotaOf = (section, flavor) => {
    const found = section ? section.quotas.filter((one) => one.resource === resource && fits(flavor)(one)) : [];
    return data.x.map((_, index) => found.reduce((total, one) => total + (one.y ? one.y[index] : one.quota), 0));
  };
  for (const flavor of flavors) {
    const own = sum(now, "own", resource, fits(flavor)), borrowed = sum(now, "borrowed", resource, fits(flavor)), all = plus(own, borrowed);
    const past = plus(sum(before, "own", resource, fits(flavor)), sum(before, "borrowed", resource, fits(flavor)));
    const quota = quotaOf(now, flavor), quotaBefore = quotaOf(before, flavor);
    if (![...quota, ...quotaBefore, ...all, ...past].some(Boolean)) continue;
    const colour = colourOf(flavor), limited = now.quotas.length;
    chart(parent, flavor || "no flavor", unit, [
      { name: borrowed.some(Boolean) ? "borrowed" : "", kind: "striped", y: all, below: own, of: borrowed, colour },
      { name: "own quota in use", kind: "area", y: own, colour },
      ...(limited ? [{ name: "quota", y: quota, colour: "var(--ink)", dash: "8 4", width: 2 }] : []),
      ...(limited ? [{ name: "free", y: all.map((value, index) => Math.max(0, quota[index] - value)), colour: "none", silent: true }] : []),
      ...earlier(past),
      ...(before && quotaBefore.some((value, index) => value !== quota[index]) ? [{ name: "quota before", y: quotaBefore, colour: "var(--ink)", dash: "1 5", width: 2 }] : []),
    ], colour);
  }
}

function overTime() {
  if (!data.resources.length) return;
  const averages = data.averaged ? " Averages: there are too many changes to draw each." : "";
  const use = part("Use by flavor", `What admitted workloads hold, beside the quota of all queues.${averages}`);
  const controls = element("div", null, use, "controls");
  const clusters = [...new Set(data.sections.flatMap((one) => [...one.quotas, ...one.series].map((s) => s.cluster)))].filter(Boolean).sort();
  const draw = () => {
    const resource = which.value, unit = data.resources.find((one) => one.name === resource).label;
    [byFlavor, waiting, byTeam].forEach((place) => place.replaceChildren());
    useOfFlavors(byFlavor, resource, unit, where ? where.value : "");
    const any = () => true, quota = sum(now, "waiting", resource, any), checks = sum(now, "checks", resource, any);
    chart(waiting, "All queues", unit, [
      { name: "waits for checks", kind: "striped", y: plus(quota, checks), below: quota, of: checks, colour: "var(--accent)" },
      { name: "waits for quota", kind: "area", y: quota, colour: "var(--accent)" },
      ...earlier(plus(sum(before, "waiting", resource, any), sum(before, "checks", resource, any))),
    ]);
    if (!data.sections.some((one) => one.runs.length)) element("p", "Nothing was admitted.", byTeam);
    const teams = [...new Set(data.sections.flatMap((one) => one.series.filter((s) => s.kind === "team" && s.resource === resource).map((s) => s.name)))].sort();
    for (const team of teams) {
      const is = (one) => one.name === team;
      chart(byTeam, team, unit, [{ name: "in use", kind: "area", y: sum(now, "team", resource, is), colour: "var(--accent)" }, ...earlier(sum(before, "team", resource, is))]);
    }
  };
  const which = choice(controls, "Resource", data.resources.map((one) => [one.name, one.name]), draw);
  const where = clusters.length > 1 ? choice(controls, "Cluster", [["", "all clusters"], ...clusters.map((name) => [name, name])], draw) : null;
  key(use, [
    ["own quota in use", { kind: "area", colour: "var(--accent)" }], ["borrowed from other queues", { kind: "striped", colour: "var(--accent)" }],
    ["quota", { colour: "var(--ink)", dash: "8 4", width: 2 }], ...beforeKey,
  ]);
  const byFlavor = element("div", null, use, "panels");
  const pending = part("Pending", "What jobs ask for that are not admitted yet.");
  key(pending, [["waits for quota", { kind: "area", colour: "var(--accent)" }], ["has quota, waits for checks", { kind: "striped", colour: "var(--accent)" }], ...beforeKey]);
  const waiting = element("div", null, pending, "panels");
  const teams = part("Use by team");
  const byTeam = element("div", null, teams, "panels");
  draw();
}

// Waiting times

function track(spans, name, className) {
  const made = element("span", null, null, `track ${className || ""}`);
  made.setAttribute("role", "img");
  made.setAttribute("aria-label", name);
  for (const [kind, from, to, colour] of spans) {
    const one = element("span", null, made, kind);
    one.style.left = `${(100 * from).toFixed(3)}%`;
    if (to !== null) one.style.width = `${(100 * Math.max(0, to - from)).toFixed(3)}%`;
    if (colour) one.style.background = colour;
  }
  return made;
}

function waits() {
  if (!now.jobs.length) return;
  const place = part(`Waiting times in ${data.unit}`, "From arrival to the first admission. The box holds the middle half with the median, the line ends at 95 %.");
  for (const by of ["queue", "team"]) {
    const longest = Math.max(1e-9, ...data.sections.flatMap((one) => one.waits[by].map((wait) => wait.numbers[4] || 0)));
    const row = (wait, old) => {
      const n = wait.numbers.map((value) => value / longest);
      const box = n.length ? track([["line", n[0], n[4]], ["box", n[1], n[3]], ["middle", n[2], null]].map(([kind, from, to]) => [kind, from * 0.98, to === null ? null : to * 0.98]), "distribution") : null;
      const made = [old ? `${wait.name}, before` : wait.name, wait.admitted, wait.waiting, wait.mean, wait.numbers[2] ?? null, wait.numbers[4] ?? null, wait.numbers[5] ?? null, box];
      made.before = old;
      return made;
    };
    const rows = now.waits[by].flatMap((wait) => {
      const old = before && before.waits[by].find((one) => one.name === wait.name);
      return [row(wait, false), ...(old ? [row(old, true)] : [])];
    });
    table(element("div", null, place, "panel"), `Waiting times by ${by}`, [by, "admitted", "waiting", "mean", "median", "95 %", "longest", "distribution"], rows);
  }
}

// GPU hours and cost

function hours() {
  if (!now.runs.length) return;
  const place = part("GPU hours and cost", "Hours for which jobs held GPUs or TPU chips; USD by list prices, at least so much where hours have no price.");
  const groups = (section, of) => {
    const sums = new Map();
    for (const run of section.runs) {
      const found = sums.get(of(run)) || { hours: 0, usd: 0, unpriced: 0, name: run.name };
      found.hours += run.hours;
      found.usd += run.usd ?? 0;
      found.unpriced += run.usd === null ? run.hours : 0;
      sums.set(of(run), found);
    }
    return sums;
  };
  for (const [by, of] of [["team", (run) => run.team], ["flavor", (run) => (run.cluster ? `${run.name} on ${run.cluster}` : run.name)]]) {
    const sums = groups(now, of), old = before ? groups(before, of) : new Map(), names = [...new Set([...sums.keys(), ...old.keys()])].sort();
    const most = Math.max(1e-9, ...[...sums.values()].map((one) => one.hours));
    const rows = names.map((name) => {
      const none = { hours: 0, usd: 0, unpriced: 0 }, one = sums.get(name) || none, past = old.get(name) || none;
      const bar = element("span", null, null, "bar bars"), label = element("span", null, null);
      bar.style.width = `${(100 * one.hours) / most}%`;
      bar.style.background = by === "flavor" ? colourOf((one.name ?? past.name)) : "var(--accent)";
      label.append(by === "flavor" ? named(one.name ?? past.name) : name, by === "flavor" ? name.slice((one.name ?? past.name).length) : "");
      const round = (value) => Math.round(value * 100) / 100;
      const cost = (sum) => (sum.unpriced ? `at least ${round(sum.usd)} + ${round(sum.unpriced)} hours without a price` : round(sum.usd));
      return [label, round(one.hours), cost(one), ...(before ? [round(past.hours), cost(past)] : []), bar];
    });
    table(element("div", null, place, "panel"), `GPU hours and cost by ${by}`, [by, "hours", "USD", ...(before ? ["hours before", "USD before"] : []), "share"], rows);
  }
}

// Evictions

function evictions() {
  const reasons = [...new Set(data.sections.flatMap((one) => one.series.filter((s) => s.kind === "evicted").map((s) => s.name)))].sort();
  if (!reasons.length) return;
  const place = part("Preemptions and other evictions", "How many there were up to each time.");
  const panels = element("div", null, place, "panels");
  for (const reason of reasons) {
    const is = (one) => one.name === reason;
    chart(panels, reason, "evictions", [{ name: "so far", kind: "area", y: sum(now, "evicted", "", is), colour: "var(--accent)" }, ...earlier(sum(before, "evicted", "", is))]);
  }
  const { list, more } = now.evictions;
  if (!list.length) return;
  const box = element("details", null, place);
  element("summary", more ? `The first ${list.length}` : "Each of them", box);
  table(box, "Evictions", [data.unit, "workload", "reason", "for"], list.map((row) => row.map((value) => value || (value === 0 ? 0 : null))));
}

// Jobs

const PAGE = 25;
const COLUMNS = ["job", "queue", "team", "state", "flavor", "cluster", "arrived", "waited", "GPU hours", "evictions"];
const END = Math.max(...data.sections.map((one) => one.end), 1e-9);

function phasesOf(job, className) {
  const spans = [], told = [], phases = job[10];
  for (let index = 0; index < phases.length; index += 3) {
    const [begin, end, phase] = phases.slice(index, index + 3);
    spans.push([`p${phase}`, begin / END, end / END, phase === 3 ? colourOf(job[4]) : null]);
    told.push(`${data.phases[phase]} ${text(begin)} to ${text(end)}`);
  }
  return track(spans, `${className ? "before: " : ""}${told.join(", ") || "nothing"} ${data.unit}`, className);
}

function jobs() {
  if (!now.jobs.length) return;
  const place = part("Jobs", `Times in ${data.unit}.`);
  const controls = element("div", null, place, "controls");
  const label = element("label", "Show only rows with ", controls), words = element("input", null, label);
  words.type = "search";
  const state = choice(controls, "State", [["", "all"], ...[...new Set(now.jobs.map((job) => job[3].split(":")[0]))].sort().map((name) => [name, name])], () => show(0));
  const back = element("button", "Previous", controls), on = element("button", "Next", controls), count = element("span", null, controls);
  count.setAttribute("role", "status");
  const phases = data.phases.slice(0, -1);
  const legend = element("p", null, place);
  phases.forEach((name, index) => {
    const item = element("span", null, legend, "key");
    item.append(track([[`p${index}`, 0, 1]], ""));
    item.lastChild.setAttribute("aria-hidden", "true");
    element("span", name + (index === 3 ? ", in the colour of its flavor" : ""), item);
  });
  const headings = [...COLUMNS, ...(before ? ["waited before"] : []), "course"];
  const { head, body } = table(element("div", null, place, "panel"), "Jobs", headings, []);
  const past = new Map(before ? before.jobs.map((job) => [job[0], job]) : []);
  let searched = null;
  let order = now.jobs.map((_, index) => index), chosen = order, page = 0, column = 6, falling = false;
  const value = (job, index) => (index < COLUMNS.length ? job[index] : (past.get(job[0]) || [])[7] ?? null);
  const sort = () => {
    const least = falling ? -1 : 1;
    order = now.jobs.map((_, index) => index).sort((a, b) => {
      const x = value(now.jobs[a], column), y = value(now.jobs[b], column);
      if (x === y) return a - b;
      if (x === null || y === null) return x === null ? 1 : -1; // Jobs that never were admitted come last.
      return (x < y ? -1 : 1) * least;
    });
    [...head.children].forEach((th, index) => th.setAttribute("aria-sort", index === column ? (falling ? "descending" : "ascending") : "none"));
    show(0);
  };
  const show = (number) => {
    const parts = words.value.toLowerCase().split(/\s+/).filter(Boolean);
    if (parts.length) searched = searched || now.jobs.map((job) => job.slice(0, 6).join("\n").toLowerCase());
    chosen = order.filter((index) => (!state.value || now.jobs[index][3].split(":")[0] === state.value) && parts.every((one) => searched[index].includes(one)));
    page = number;
    const rows = chosen.slice(page * PAGE, (page + 1) * PAGE).map((index) => {
      const job = now.jobs[index], old = past.get(job[0]), course = element("span", null, null, "bars");
      course.append(phasesOf(job));
      if (old) course.append(phasesOf(old, "earlier"));
      return [...job.slice(0, 4), named(job[4]), job[5] || null, ...job.slice(6, 10), ...(before ? [value(job, COLUMNS.length)] : []), course];
    });
    fill(body, headings, rows);
    const last = Math.min(chosen.length, (page + 1) * PAGE);
    count.textContent = `${chosen.length ? page * PAGE + 1 : 0} to ${last} of ${text(chosen.length)} jobs`;
    back.disabled = page === 0;
    on.disabled = last >= chosen.length;
  };
  [...head.children].slice(0, -1).forEach((th, index) => {
    const button = element("button", th.textContent, null);
    th.replaceChildren(button);
    if (index > 5) th.className = "number";
    button.addEventListener("click", () => { falling = index === column && !falling; column = index; sort(); });
  });
  words.addEventListener("input", () => show(0));
  back.addEventListener("click", () => show(page - 1));
  on.addEventListener("click", () => show(page + 1));
  sort();
}

function counts() {
  if (!now.jobs.length) element("p", "There were no jobs.", root);
  const names = [...new Set(data.sections.flatMap((one) => Object.keys(one.counts)))];
  const rows = names.map((name) => [name, ...data.sections.map((one) => one.counts[name] ?? 0)]);
  table(element("div", null, part("In numbers"), "panel"), "In numbers", ["", ...(before ? ["before", "after"] : ["number"])], rows);
}

function goals() {
  if (!data.sections.some((one) => one.goals.length)) return;
  const rows = data.sections.flatMap((one) => one.goals.map(([words, standing]) => [...(before ? [one.name] : []), standing, words]));
  table(element("div", null, part("Goals"), "panel"), "Goals", [...(before ? [""] : []), "standing", "goal"], rows);
}

// Fleets that there was a choice of

function choices() {
  if (!data.choices.length) return;
  const place = part("Cost and waiting", "Each fleet by what it costs a month and how long jobs wait, on average. None is cheaper and faster than one of those that are joined.");
  const box = element("div", null, place, "panel"), chart = element("div", null, box, "chart");
  const [most, longest] = [1, 2].map((column) => Math.max(1e-9, ...data.choices.map((one) => one[column])) * 1.05);
  const [seconds, unit] = longest > 2 * 3600 ? [3600, "hours"] : longest > 600 ? [60, "minutes"] : [1, "seconds"];
  const scale = element("div", null, chart, "scale");
  element("span", `${text(longest / 1.05 / seconds)} ${unit}`, scale);
  element("span", "0", scale);
  const plot = element("div", null, chart, "plot");
  plot.setAttribute("role", "img");
  plot.setAttribute("aria-label", "Cost and waiting; the table below has the same.");
  const across = (one) => (100 * one[1]) / most, down = (one) => 96 - (96 * one[2]) / longest;
  const svg = shape(plot, "svg", { viewBox: "0 0 100 100", preserveAspectRatio: "none", "aria-hidden": "true" });
  const best = [...data.choices].sort((a, b) => a[1] - b[1] || a[2] - b[2]).reduce((found, one) => (!found.length || one[2] < found[found.length - 1][2] ? [...found, one] : found), []);
  shape(svg, "path", { d: best.map((one, index) => (index ? `H${across(one)}V${down(one)}` : `M${across(one)} ${down(one)}`)).join(""), fill: "none", stroke: "var(--soft)", "stroke-dasharray": "3 3" });
  for (const one of data.choices) {
    const placed = [element("span", null, plot, one[0] ? "dot named" : "dot")];
    if (one[0]) placed.push(element("span", one[0], plot, across(one) > 60 ? "label left" : "label"));
    for (const each of placed) {
      each.style.left = `${across(one)}%`;
      each.style.top = `${down(one)}%`;
    }
  }
  const money = element("div", null, chart, "times");
  element("span", "0", money);
  element("span", `${text(Math.round(most / 1.05))} USD a month`, money);
  const rows = data.choices.map(([name, usd, wait, ...rest]) => [name || "-", Math.round(usd), wait / seconds, ...rest]);
  table(box, "Cost and waiting", ["fleet", "USD a month", `mean wait, ${unit}`, "goals", "other than today"], rows);
}

choices();
counts();
goals();
overTime();
waits();
hours();
evictions();
jobs();
