"use strict";
// The charts are drawn from the same tables that the CSV buttons save.
const data = JSON.parse(document.getElementById("data").textContent);
const $ = (id) => document.getElementById(id);
const hidden = new Set();

function rows(name) {
  const columns = Object.entries(data.tables[name] || {});
  const read = columns.map(([key, column]) => [key, column.levels ? (i) => column.levels[column.codes[i]] : (i) => column[i]]);
  const size = columns.length ? (columns[0][1].codes || columns[0][1]).length : 0;
  return Array.from({ length: size }, (_, i) => Object.fromEntries(read.map(([key, at]) => [key, at(i)])));
}
function csv(name) {
  const cell = (value) => {
    const text = value === null || value === undefined ? "" : String(value);
    return /[",\r\n]/.test(text) ? '"' + text.replaceAll('"', '""') + '"' : text;
  };
  const keys = Object.keys(data.tables[name]);
  return [keys, ...rows(name).map((row) => keys.map((key) => row[key]))].map((line) => line.map(cell).join(",")).join("\n") + "\n";
}
function save(name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([csv(name)], { type: "text/csv" }));
  link.download = `${data.suite}-${data.scale}-${name}.csv`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

const distinct = (values) => [...new Set(values)];
const label = (row) => row.method.toUpperCase() + (row.variant ? `, ${row.variant}` : "");
const place = (row) => data.groups[row.group] + (data.learners.length > 1 ? `: ${data.learnerNames[row.learner]}` : "");
const look = (name) => data.looks[name];
const goalName = (goal) => data.texts[goal] || goal;
function made(tag, attributes, parent, text) {
  const element = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (text !== undefined) element.textContent = text;
  if (parent) parent.appendChild(element);
  return element;
}
function drawn(tag, attributes, parent, text) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (text !== undefined) element.textContent = text;
  parent.appendChild(element);
  return element;
}

const W = 440, H = 230, LEFT = 46, RIGHT = 12, TOP = 8, BOTTOM = 38;
function ticks(most, count) {
  const rough = most / count, power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((x) => x * power).find((x) => x >= rough * 0.999);
  return Array.from({ length: Math.floor(most / step + 1e-9) + 1 }, (_, i) => i * step);
}
const short = (x) => {
  for (const [size, unit] of [[1e9, "B"], [1e6, "M"], [1e3, "k"]]) if (Math.abs(x) >= size) return +(x / size).toPrecision(4) + unit;
  return String(+x.toPrecision(4));
};

// A frame with axes; gives where to draw and how numbers become places.
function frame(host, title, most, top, names) {
  const figure = made("figure", { class: "chart" }, host);
  if (title) made("h3", {}, figure, title);
  const svg = drawn("svg", { viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": `${title || names[1]}: ${names[1]} over ${names[0]}` }, figure);
  const x = (value) => LEFT + (value / (most || 1)) * (W - LEFT - RIGHT), y = (value) => H - BOTTOM - (value / top) * (H - TOP - BOTTOM);
  for (const tick of ticks(top, 4)) {
    drawn("line", { x1: LEFT, x2: W - RIGHT, y1: y(tick), y2: y(tick), stroke: "#e4e4e0" }, svg);
    drawn("text", { x: LEFT - 6, y: y(tick) + 4, "text-anchor": "end" }, svg, short(tick));
  }
  for (const tick of ticks(most || 1, 5)) drawn("text", { x: x(tick), y: H - BOTTOM + 16, "text-anchor": "middle" }, svg, short(tick));
  drawn("line", { x1: LEFT, x2: W - RIGHT, y1: y(0), y2: y(0), stroke: "#3b3b37" }, svg);
  drawn("text", { x: (LEFT + W - RIGHT) / 2, y: H - 4, "text-anchor": "middle" }, svg, names[0]);
  drawn("text", { x: 12, y: (H - BOTTOM) / 2, "text-anchor": "middle", transform: `rotate(-90 12 ${(H - BOTTOM) / 2})` }, svg, names[1]);
  return { figure, svg, x, y, most };
}
// Under the pointer: a line, and each curve's value at its point nearest to it.
function tip(view, curves, say) {
  const line = drawn("line", { y1: TOP, y2: H - BOTTOM, stroke: "#8c8c8c", "stroke-dasharray": "3 3", visibility: "hidden" }, view.svg);
  const box = made("div", { class: "tip", hidden: "" }, view.figure);
  view.svg.addEventListener("pointermove", (event) => {
    const area = view.svg.getBoundingClientRect(), at = (event.clientX - area.left) / area.width * W;
    const value = (at - LEFT) / (W - LEFT - RIGHT) * view.most;
    const near = curves.filter((curve) => curve.points.length).map((curve) => ({ curve, point: curve.points.reduce((a, b) => Math.abs(b.x - value) < Math.abs(a.x - value) ? b : a) }));
    if (!near.length || value < 0 || value > view.most) { leave(); return; }
    const x = near.reduce((a, b) => Math.abs(b.point.x - value) < Math.abs(a.point.x - value) ? b : a).point.x;
    line.setAttribute("x1", view.x(x)); line.setAttribute("x2", view.x(x)); line.setAttribute("visibility", "visible");
    box.textContent = "";
    made("div", {}, box, say(x));
    for (const { curve, point } of near.sort((a, b) => b.point.y - a.point.y)) {
      const entry = made("div", {}, box), name = made("span", {}, entry);
      made("b", { style: `background:${curve.colour}` }, name); name.append(curve.name);
      made("span", {}, entry, point.text || point.y.toFixed(1));
    }
    box.hidden = false;
    const right = at > W / 2;
    box.style.left = right ? "" : `${(view.x(x) + 10) / W * 100}%`; box.style.right = right ? `${(W - view.x(x) + 10) / W * 100}%` : "";
  });
  const leave = () => { line.setAttribute("visibility", "hidden"); box.hidden = true; };
  view.svg.addEventListener("pointerleave", leave);
}
function path(points, view, stairs) {
  return points.map((p, i) => (i ? (stairs ? `H${view.x(p.x).toFixed(1)}V` : `L${view.x(p.x).toFixed(1)} `) : `M${view.x(p.x).toFixed(1)} `) + view.y(p.y).toFixed(1)).join("");
}
function lineChart(host, title, curves, names, options = {}) {
  const all = curves.flatMap((curve) => curve.points);
  const most = options.most || Math.max(...all.map((p) => p.x), 0);
  const top = options.top || Math.min(Math.max(...all.map((p) => p.y + (p.sd || 0)), 5) * 1.04, 100);
  const view = frame(host, title, most, top, names);
  for (const curve of curves) {
    if (curve.points.some((p) => p.sd)) {
      const bound = (sign) => curve.points.map((p) => ({ x: p.x, y: Math.min(Math.max(p.y + sign * p.sd, 0), 100) }));
      const up = path(bound(1), view), down = path(bound(-1).reverse(), view).replace("M", "L");
      drawn("path", { d: `${up}${down}Z`, fill: curve.colour, opacity: 0.14 }, view.svg);
    }
    drawn("path", { d: path(curve.points, view, options.stairs), fill: "none", stroke: curve.colour, "stroke-width": curve.width || 1.8, "stroke-dasharray": curve.dash || "" }, view.svg);
    if (curve.points.length === 1) drawn("circle", { cx: view.x(curve.points[0].x), cy: view.y(curve.points[0].y), r: 3, fill: curve.colour }, view.svg);
  }
  tip(view, curves, options.say || ((x) => `${short(x)} ${names[0]}`));
}
function stackChart(host, title, layers, most, names) {
  const view = frame(host, title, most, 100, names), base = new Map();
  for (const layer of layers) {
    let d = "";
    for (const block of layer.blocks) {
      const low = base.get(block.from) || 0, high = low + block.y;
      const [a, b] = [view.x(block.from - 1).toFixed(1), view.x(block.to).toFixed(1)];
      d += `M${a} ${view.y(low).toFixed(1)}V${view.y(high).toFixed(1)}H${b}V${view.y(low).toFixed(1)}Z`;
      base.set(block.from, high);
    }
    drawn("path", { d, fill: layer.colour }, view.svg);
  }
  const curves = layers.map((layer) => ({ ...layer, points: layer.blocks.map((b) => ({ x: (b.from - 1 + b.to) / 2, y: b.y })) }));
  tip(view, curves, (x) => `about decision ${Math.round(x)}`);
}

function legend(host, names, redraw) {
  host.textContent = "";
  for (const name of names) {
    const button = made("button", { type: "button", "aria-pressed": String(!hidden.has(name)) }, host);
    const mark = drawn("svg", { viewBox: "0 0 30 8", width: 30, height: 8, "aria-hidden": "true" }, button);
    drawn("line", { x1: 0, x2: 30, y1: 4, y2: 4, stroke: look(name).colour, "stroke-width": 2.4, "stroke-dasharray": look(name).dash }, mark);
    button.append(name);
    if (redraw) button.addEventListener("click", () => { hidden.has(name) ? hidden.delete(name) : hidden.add(name); redraw(); });
  }
}
function options(select, values, text, chosen) {
  const before = chosen !== undefined ? chosen : select.value;
  select.textContent = "";
  for (const value of values) made("option", { value }, select, text(value));
  select.value = values.map(String).includes(String(before)) ? before : values[0];
}

function choosePlace(select, all) {
  const places = [...grouped(all, (row) => JSON.stringify([row.group, row.learner])).keys()];
  options(select, places, (value) => { const [group, learner] = JSON.parse(value); return place({ group, learner }); });
}

// Learning curves: one chart a group and learner.
const curveRows = rows("curves"), scoreRows = rows("scores"), coverageRows = rows("coverage");
const seriesNames = Object.keys(data.looks).filter((name) => curveRows.some((row) => label(row) === name));
function grouped(all, key) {
  const found = new Map(), groups = Object.keys(data.groups);
  for (const row of [...all].sort((a, b) => groups.indexOf(a.group) - groups.indexOf(b.group))) { const name = key(row); if (!found.has(name)) found.set(name, []); found.get(name).push(row); }
  return found;
}
function drawLearning() {
  const host = $("learning-charts"), each = $("each-seed").checked;
  host.textContent = "";
  legend($("learning-legend"), seriesNames, drawAll);
  for (const [title, all] of grouped(each ? scoreRows : curveRows, place)) {
    const curves = [...grouped(all, (row) => label(row) + (each ? ` seed ${row.seed}` : ""))].filter(([, own]) => !hidden.has(label(own[0]))).map(([name, own]) => ({
      name, ...look(label(own[0])), width: each ? 1 : 1.8,
      points: own.map((row) => ({ x: row.steps, y: each ? row.score : row.mean, sd: each ? 0 : row.sd, text: each ? undefined : `${row.mean.toFixed(1)} ± ${row.sd.toFixed(1)}` })),
    }));
    lineChart(host, title, curves, ["environment steps", "success (%)"]);
  }
}
function drawCoverage() {
  const host = $("coverage-charts");
  if (!host) return;
  host.textContent = "";
  legend($("coverage-legend"), seriesNames, drawAll);
  for (const [title, all] of grouped(coverageRows, place)) {
    const curves = [...grouped(all, label)].filter(([name]) => !hidden.has(name)).map(([name, own]) => ({
      name, ...look(name), points: own.map((row) => ({ x: row.threshold, y: row.mean, sd: row.sd, text: `${row.mean.toFixed(1)} ± ${row.sd.toFixed(1)}` })),
    }));
    lineChart(host, title, curves, ["success threshold (%)", "share of goals (%)"], { most: 100, top: 100, stairs: true, say: (x) => `success above ${x.toFixed(0)} %` });
  }
}
function drawAll() { drawLearning(); drawCoverage(); }

// Curriculum dynamics: one run at a time.
const dynamicsRows = rows("dynamics");
const runsIn = (group, learner) => dynamicsRows.filter((row) => row.group === group && row.learner === learner);
function chooseDynamics(changed) {
  if (!changed) choosePlace($("dynamics-place"), dynamicsRows);
  const [group, learner] = JSON.parse($("dynamics-place").value), all = runsIn(group, learner);
  const names = Object.keys(data.looks).filter((name) => all.some((row) => label(row) === name));
  options($("dynamics-method"), names, (name) => name, changed ? undefined : names.includes("ALP+D+F") ? "ALP+D+F" : names[0]);
  const own = all.filter((row) => label(row) === $("dynamics-method").value);
  options($("dynamics-seed"), distinct(own.map((row) => row.seed)), String);
  drawDynamics(own.filter((row) => String(row.seed) === $("dynamics-seed").value), group);
}
function drawDynamics(run, group) {
  const host = $("dynamics-charts"), key = $("dynamics-legend");
  host.textContent = ""; key.textContent = "";
  const goals = distinct(run.map((row) => row.goal)).sort((a, b) => (a === group) - (b === group) || data.order.indexOf(a) - data.order.indexOf(b));
  const colour = (goal) => goal === group ? data.targetColour : data.seriesColours[goals.indexOf(goal) % data.seriesColours.length];
  for (const goal of goals) {
    const entry = made("span", {}, key);
    entry.style.cssText = "width:auto;height:auto";
    made("b", { style: `background:${colour(goal)};display:inline-block;width:12px;height:12px;margin-right:6px` }, entry);
    entry.append(goalName(goal) + (goal === group ? " (target)" : ""));
  }
  const most = Math.max(...run.map((row) => row.to_iteration));
  const of = (row, goal) => run.filter((one) => one.row === row && one.goal === goal);
  const layers = [...goals].reverse().map((goal) => ({ name: goalName(goal), colour: colour(goal), blocks: of("share of training", goal).map((row) => ({ from: row.from_iteration, to: row.to_iteration, y: row.percent })) }));
  stackChart(host, "Share of the training", layers, most, ["curriculum decision", "share (%)"]);
  const curves = goals.map((goal) => ({ name: goalName(goal), colour: colour(goal), width: goal === group ? 2.6 : 1.6, points: of("success", goal).map((row) => ({ x: row.to_iteration, y: row.percent })) }));
  lineChart(host, "Success in evaluation", curves, ["curriculum decision", "success (%)"], { most, top: 100, say: (x) => `after decision ${x}` });
}

// Heat map: goals by methods, at the end.
const goalRows = rows("goals");
function shade(percent) {
  const light = [247, 251, 255], dark = [8, 48, 107], part = Math.sqrt(percent / 100);
  return `rgb(${light.map((v, i) => Math.round(v + (dark[i] - v) * part)).join(",")})`;
}
function drawGoals() {
  const host = $("goals-table"), [group, learner] = JSON.parse($("goals-place").value);
  const own = goalRows.filter((row) => row.group === group && row.learner === learner);
  const names = Object.keys(data.looks).filter((name) => own.some((row) => label(row) === name));
  const value = new Map(own.map((row) => [`${label(row)}\n${row.goal}`, row.percent]));
  const at = (name, goal) => value.get(`${name}\n${goal}`);
  const best = (goal) => Math.max(...names.map((name) => at(name, goal) ?? -1));
  const goals = distinct(own.map((row) => row.goal)), known = (goal) => data.order.indexOf(goal);
  const wanted = $("goals-find").value.toLowerCase();
  const order = { task: (a, b) => known(a) - known(b), best: (a, b) => best(b) - best(a) || known(a) - known(b),
    spread: (a, b) => spread(b) - spread(a) || known(a) - known(b) }[$("goals-order").value];
  const spread = (goal) => best(goal) - Math.min(...names.map((name) => at(name, goal) ?? 101));
  host.textContent = "";
  const table = made("table", {}, host), head = made("tr", {}, made("thead", {}, table)), body = made("tbody", {}, table);
  for (const name of ["goal", ...names]) made("th", { scope: "col" }, head, name);
  for (const goal of goals.filter((one) => goalName(one).toLowerCase().includes(wanted) || one.includes(wanted)).sort(order)) {
    const line = made("tr", {}, body);
    made("td", { class: goal === group ? "target" : "", title: goal }, line, goalName(goal) + (goal === group ? " (target)" : ""));
    for (const name of names) {
      const percent = at(name, goal);
      const cell = made("td", { class: "cell" }, line, percent === undefined ? "" : percent.toFixed(1));
      if (percent !== undefined) { cell.style.background = shade(percent); cell.style.color = percent > 40 ? "#fff" : "#1c1c1a"; }
    }
  }
}

for (const button of document.querySelectorAll("button[data-csv]")) button.addEventListener("click", () => save(button.dataset.csv));
if (curveRows.length) {
  $("each-seed").addEventListener("change", drawLearning);
  drawAll();
}
if (dynamicsRows.length) {
  for (const id of ["dynamics-place", "dynamics-method", "dynamics-seed"]) $(id).addEventListener("change", () => chooseDynamics(true));
  chooseDynamics(false);
}
if (goalRows.length) {
  choosePlace($("goals-place"), goalRows);
  for (const id of ["goals-place", "goals-order"]) $(id).addEventListener("change", drawGoals);
  $("goals-find").addEventListener("input", drawGoals);
  drawGoals();
}
