"use strict";
// One canvas the size of the viewport, drawn anew for every scroll position: so 10,000 tasks cost no more than 256.
const data = JSON.parse(document.getElementById("data").textContent);
const $ = (id) => document.getElementById(id);
const size = data.ids.length;
const PAPER = "#ffffff", GRID = "#ecece8", INK = "#1c1c1a", MARK = "#d9480f", EMPTY = "#f6f6f3";

function decode(text, Type) {
  const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  return new Type(bytes.buffer);
}

// Edges in the order of their weights, so that the heaviest is drawn last where several share a pixel.
const graphs = data.graphs.map((graph) => {
  const source = decode(graph.source, Uint32Array), target = decode(graph.target, Uint32Array);
  const weight = decode(graph.weight, Float32Array), lookup = new Map();
  for (let i = 0; i < source.length; i++) lookup.set(source[i] * size + target[i], weight[i]);
  return { name: graph.name, source, target, weight, lookup };
});
const weightOf = (graph, s, t) => graph.lookup.get(s * size + t) || 0;

function difference() {
  const keys = new Set(graphs.flatMap((graph) => [...graph.lookup.keys()]));
  const edges = [...keys].map((key) => {
    const s = Math.floor(key / size), t = key % size;
    return [s, t, weightOf(graphs[1], s, t) - weightOf(graphs[0], s, t)];
  }).sort((a, b) => Math.abs(a[2]) - Math.abs(b[2]));
  return { name: "difference", source: edges.map((e) => e[0]), target: edges.map((e) => e[1]),
    weight: edges.map((e) => e[2]), signed: true };
}
const views = graphs.length > 1 ? [...graphs, difference()] : graphs;

const mix = (a, b, x) => `rgb(${a.map((v, i) => Math.round(v + (b[i] - v) * x)).join(",")})`;
const SCALE = [[198, 219, 239], [8, 48, 107]], FIRST = [[253, 208, 162], [140, 45, 4]], SECOND = [[188, 189, 220], [63, 0, 125]];
function colour(view, weight) {
  if (!view.signed) return mix(...SCALE, Math.min(weight, 1));
  if (Math.abs(weight) < 1e-6) return "#e2e2de";
  return mix(...(weight < 0 ? FIRST : SECOND), Math.min(Math.abs(weight), 1));
}

// State.
let view = views[views.length - 1], least = 0, cell = 4, fitted = true, pinned = null, hovered = null;
let order = data.orders[0].order, place = new Array(size);
const map = $("map"), canvas = $("canvas"), context = canvas.getContext("2d");
const gutter = () => (cell >= 8 ? 190 : 18);

function resize() {
  const ratio = window.devicePixelRatio || 1, width = map.clientWidth, height = map.clientHeight;
  canvas.width = width * ratio; canvas.height = height * ratio;
  canvas.style.width = width + "px"; canvas.style.height = height + "px";
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  $("space").style.width = gutter() + size * cell + "px";
  $("space").style.height = gutter() + size * cell + "px";
  draw();
}

function draw() {
  const edge = gutter(), width = map.clientWidth, height = map.clientHeight;
  const left = edge - map.scrollLeft, top = edge - map.scrollTop;
  const right = Math.min(left + size * cell, width), bottom = Math.min(top + size * cell, height);
  context.fillStyle = PAPER; context.fillRect(0, 0, width, height);
  context.fillStyle = EMPTY; context.fillRect(edge, edge, right - edge, bottom - edge);
  context.save();
  context.beginPath(); context.rect(edge, edge, right - edge, bottom - edge); context.clip();
  if (cell >= 6) {
    context.strokeStyle = GRID; context.lineWidth = 1; context.beginPath();
    for (let i = Math.floor(-left / cell); i <= size && left + i * cell <= right; i++) {
      const x = Math.floor(left + i * cell) + 0.5; context.moveTo(x, edge); context.lineTo(x, bottom);
    }
    for (let i = Math.floor(-top / cell); i <= size && top + i * cell <= bottom; i++) {
      const y = Math.floor(top + i * cell) + 0.5; context.moveTo(edge, y); context.lineTo(right, y);
    }
    context.stroke();
  }
  const inset = cell >= 6 ? 1 : 0;
  for (let i = 0; i < view.source.length; i++) {
    if (Math.abs(view.weight[i]) < least - 1e-6) continue;
    const column = place[view.target[i]], row = place[view.source[i]];
    const x = Math.floor(left + column * cell), y = Math.floor(top + row * cell);
    if (x + cell < edge || x > right || y + cell < edge || y > bottom) continue;
    const wide = Math.max(Math.floor(left + (column + 1) * cell) - x - inset, 1);
    const high = Math.max(Math.floor(top + (row + 1) * cell) - y - inset, 1);
    context.fillStyle = colour(view, view.weight[i]);
    context.fillRect(x + inset, y + inset, wide, high);
  }
  const at = pinned || hovered;
  if (at) {
    context.strokeStyle = MARK; context.lineWidth = 1;
    const x = left + place[at[1]] * cell, y = top + place[at[0]] * cell;
    context.strokeRect(edge, y - 0.5, right - edge, cell + 1);
    context.strokeRect(x - 0.5, edge, cell + 1, bottom - edge);
  }
  context.restore();
  labels(edge, left, top, right, bottom, at);
}

function labels(edge, left, top, right, bottom, at) {
  context.fillStyle = INK; context.textBaseline = "middle";
  const font = `${Math.min(Math.max(cell - 1, 8), 12)}px system-ui, "DejaVu Sans", sans-serif`;
  if (cell < 8) {
    context.font = "12px system-ui, sans-serif";
    context.textAlign = "left"; context.fillText("target \u2192", edge, 9);
    context.save(); context.translate(9, edge); context.rotate(Math.PI / 2); context.fillText("source \u2192", 0, 0); context.restore();
    return;
  }
  context.font = font; context.textAlign = "right";
  for (let i = Math.max(Math.floor((edge - top) / cell), 0); i < size && top + i * cell < bottom; i++) {
    const y = top + (i + 0.5) * cell;
    if (y < edge) continue;
    context.fillStyle = at && at[0] === order[i] ? MARK : INK;
    context.fillText(shortened(data.ids[order[i]]), edge - 5, y);
  }
  context.textAlign = "left";
  for (let i = Math.max(Math.floor((edge - left) / cell), 0); i < size && left + i * cell < right; i++) {
    const x = left + (i + 0.5) * cell;
    if (x < edge) continue;
    context.save(); context.translate(x, edge - 5); context.rotate(-Math.PI / 2);
    context.fillStyle = at && at[1] === order[i] ? MARK : INK;
    context.fillText(shortened(data.ids[order[i]]), 0, 0); context.restore();
  }
  context.fillStyle = "#6b6b66"; context.font = "12px system-ui, sans-serif"; context.textAlign = "right";
  context.fillText("source \u2193   target \u2192", edge - 8, edge - 12);
}
const fits = new Map();
function shortened(id) {
  const key = context.font + id;
  if (!fits.has(key)) {
    let text = id;
    while (text.length > 1 && context.measureText(text + "\u2026").width > 178) text = text.slice(0, -1);
    fits.set(key, context.measureText(id).width <= 182 ? id : text + "\u2026");
  }
  return fits.get(key);
}

// What lies under a point of the canvas: [source, target], or null.
function under(x, y) {
  const column = Math.floor((x - gutter() + map.scrollLeft) / cell), row = Math.floor((y - gutter() + map.scrollTop) / cell);
  if (x < gutter() || y < gutter() || column < 0 || row < 0 || column >= size || row >= size) return null;
  return [order[row], order[column]];
}

function describe(weight) {
  if (data.repetitions && data.votes) return `${weight.toFixed(2)} (${Math.round(weight * data.repetitions)} of ${data.repetitions})`;
  return weight.toFixed(3);
}

function element(name, text, parent, cls) {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  if (cls) made.className = cls;
  if (parent) parent.appendChild(made);
  return made;
}

function panel() {
  const at = pinned || hovered, panel = $("panel");
  if (!at) return;
  panel.textContent = "";
  const [s, t] = at;
  element("h3", s === t ? data.ids[s] : `${data.ids[s]} \u2192 ${data.ids[t]}`, panel);
  if (s !== t) {
    for (const graph of graphs) {
      const prefix = graphs.length > 1 ? graph.name + ": " : "";
      element("p", `${prefix}weight ${describe(weightOf(graph, s, t))}; the other way ${describe(weightOf(graph, t, s))}`, panel);
    }
  }
  for (const task of new Set(at)) {
    if (data.texts) element("p", `${data.ids[task]}: ${data.texts[task]}`, panel, "text");
  }
  if (!pinned) { element("p", "Click to keep this cell and list both tasks' edges.", panel, "text"); return; }
  const graph = view.signed ? graphs[0] : view;
  if (graphs.length > 1) element("p", `Lists from: ${graph.name}`, panel, "text");
  list(panel, `${data.ids[s]} ${data.words.out}`, edges(graph, graph.source, graph.target, s));
  list(panel, `${data.ids[t]} ${data.words.into}`, edges(graph, graph.target, graph.source, t));
}
function edges(graph, from, to, task) {
  const found = [];
  for (let i = from.length - 1; i >= 0; i--) if (from[i] === task && graph.weight[i] >= least - 1e-6) found.push([to[i], graph.weight[i]]);
  return found;
}
function list(parent, title, found) {
  element("h3", `${title} (${found.length})`, parent);
  const items = element("ol", undefined, parent);
  for (const [task, weight] of found.slice(0, 40)) {
    const item = element("li", undefined, items);
    element("span", weight.toFixed(2), item); element("span", data.ids[task], item);
  }
  if (found.length > 40) element("p", `and ${found.length - 40} more`, parent, "text");
}

function zoom(to) {
  fitted = false;
  const before = cell, x = map.scrollLeft / before, y = map.scrollTop / before;
  cell = Math.min(Math.max(to, 0.05), 28);
  resize();
  map.scrollLeft = x * cell; map.scrollTop = y * cell;
  draw();
}
function fitting() {
  const room = Math.min(map.clientWidth, map.clientHeight) - 22;
  const labelled = (room - 172) / size;
  return labelled >= 8 ? Math.min(labelled, 28) : Math.min(room / size, 7.9);
}

function legend() {
  const box = $("legend"); box.textContent = "";
  const chip = (colour, text) => { element("span", undefined, box, "chip").style.background = colour; box.append(text); };
  if (view.signed) {
    box.append("row: source, column: target;");
    chip(mix(...FIRST, 0.6), `heavier in ${graphs[0].name}`); chip(mix(...SECOND, 0.6), `heavier in ${graphs[1].name}`); chip("#e2e2de", "the same in both");
    return;
  }
  box.append("row: source, column: target; weight");
  const steps = data.votes && data.repetitions && data.repetitions <= 10 ? data.repetitions : 5;
  for (let i = 1; i <= steps; i++) chip(colour(view, i / steps), (i / steps).toFixed(2));
  chip(EMPTY, "no edge");
}

function options(select, names, chosen, choose) {
  names.forEach((name, i) => { const made = element("option", name, select); made.value = i; });
  select.value = chosen;
  select.addEventListener("change", () => choose(+select.value));
}
function reorder(chosen) {
  order = data.orders[chosen].order;
  order.forEach((task, i) => { place[task] = i; });
  draw();
}
function show(pair) {
  pinned = pair;
  const x = place[pair[1]] * cell, y = place[pair[0]] * cell, edge = gutter();
  if (x < map.scrollLeft || x > map.scrollLeft + map.clientWidth - edge - cell) map.scrollLeft = x - (map.clientWidth - edge) / 2;
  if (y < map.scrollTop || y > map.scrollTop + map.clientHeight - edge - cell) map.scrollTop = y - (map.clientHeight - edge) / 2;
  draw(); panel();
}

options($("show"), views.map((v) => v.name), views.length - 1, (i) => { view = views[i]; legend(); draw(); panel(); });
$("show-label").hidden = views.length < 2;
if (views.length < 2) $("show-label").style.display = "none";
options($("order"), data.orders.map((o) => o.name), 0, reorder);
$("least").addEventListener("input", () => { least = +$("least").value; $("least-value").value = least; draw(); panel(); });
$("in").addEventListener("click", () => zoom(cell >= 1 ? Math.floor(cell) + (cell >= 10 ? 2 : 1) : cell * 1.5));
$("out").addEventListener("click", () => zoom(cell > 1 ? Math.ceil(cell) - (cell > 10 ? 2 : 1) : cell / 1.5));
$("fit").addEventListener("click", () => { zoom(fitting()); fitted = true; });
for (const id of data.ids) element("option", undefined, $("ids")).value = id;
$("find").addEventListener("change", () => {
  const task = data.ids.indexOf($("find").value);
  if (task >= 0) { if (cell < 8) zoom(11); show([task, task]); }
});
map.addEventListener("scroll", draw);
canvas.addEventListener("pointermove", (event) => {
  hovered = under(event.offsetX, event.offsetY);
  if (!pinned) { draw(); panel(); }
});
canvas.addEventListener("click", (event) => {
  const at = under(event.offsetX, event.offsetY);
  pinned = at && pinned && at[0] === pinned[0] && at[1] === pinned[1] ? null : at;
  draw(); panel();
});
map.addEventListener("keydown", (event) => {
  const step = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key];
  if (event.key === "Escape") { pinned = null; draw(); }
  if (!step) return;
  event.preventDefault();
  const [s, t] = pinned || hovered || [order[0], order[0]];
  const row = Math.min(Math.max(place[s] + step[0], 0), size - 1), column = Math.min(Math.max(place[t] + step[1], 0), size - 1);
  show([order[row], order[column]]);
});
window.addEventListener("resize", () => { if (fitted) cell = fitting(); resize(); });

// Sortable table.
const table = $("tasks");
[...table.tHead.rows[0].cells].forEach((head, column) => {
  head.querySelector("button").addEventListener("click", () => {
    const up = head.getAttribute("aria-sort") === "descending" || (head.getAttribute("aria-sort") === null && column < 2);
    for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", up ? "ascending" : "descending");
    const value = (row) => { const text = row.cells[column].textContent; return head.className === "number" ? parseFloat(text) : text; };
    const rows = [...table.tBodies[0].rows].sort((a, b) => (value(a) < value(b) ? -1 : value(a) > value(b) ? 1 : 0));
    if (!up) rows.reverse();
    table.tBodies[0].append(...rows);
  });
});

reorder(0); legend();
cell = fitting();
resize();
