// The page: reads the address, asks the source, and fills the parts.

import { errorsBox, heading, notesBox, privacyBox, shortStamp, stampOf } from "./about.js";
import { draw, specification, themeOf } from "./charts.js";
import { attributeList, axisControls, tableList, withAttribute } from "./chooser.js";
import { comparison } from "./comparing.js";
import { downloadControls, groupControls, viewControls } from "./controls.js";
import { LETTERS, crossTable, markSelected } from "./crosstable.js";
import { Cube, firstTable } from "./cube.js";
import { byId, h, pager, refill } from "./dom.js";
import { filesOf } from "./downloads.js";
import { latticeLegend, latticePicture, nodesOf } from "./lattice.js";
import { mappedAxis } from "./maps.js";
import { numbersOf } from "./numbers.js";
import { COLUMNS, ROWS, laidOut, numberAt } from "./sheet.js";
import { ASK, sourceOf } from "./source.js";
import { readState, withTable, writeState } from "./state.js";
import { quantityTitle, viewNotes, viewTitle } from "./titles.js";
import { totalsOf } from "./totals.js";
import { fillTexts, wordsOf } from "./words.js";

const text = (id) => JSON.parse(byId(id).textContent);
const words = wordsOf(text("strings"));
const numbers = numbersOf(words.language);
const source = sourceOf(text("source"));
const opened = new Set(); // slices that are unfolded
let catalogue, cube, start, state, sheet, quantity, drawn;
let group = "first";
const offsets = { attributes: 0, tables: 0, errors: 0 };
let open = 0; // things that the page is working on
let asked = 0; // questions so far: answers to earlier ones are dropped

// ---------------------------------------------------------------------------------------------------------- moving

const link = (word) => writeState(withTable(state, word, cube.axes(word)));

/** Go to another view. */
function go(next) {
  state = next;
  history.pushState(null, "", writeState(state));
  return show();
}

/** Do something that takes time; meanwhile the page says that it is busy. */
function working(act) {
  return async (...given) => {
    open += 1;
    document.body.dataset.busy = "yes";
    try {
      return await act(...given);
    } finally {
      open -= 1;
      if (open === 0) document.body.dataset.busy = "no";
    }
  };
}

const change = {
  level(axis, to) {
    const axes = cube.axes(state.table).map((each) => (each.word === axis.word ? to : each));
    const next = withTable(state, axes.map((each) => each.word).join("*"), axes);
    if (state.keep[axis.word]) next.keep[to.word] = cube.slice(state.keep[axis.word], axis, to);
    if (state.across === axis.word) next.across = to.word;
    go(next);
  },
  remove: (axis) => withAxes(cube.axes(state.table).filter((each) => each.word !== axis.word)),
  across: (word) => go({ ...state, across: word, row: 0, column: 0 }),
  first(axis) {
    const axes = cube.axes(state.table).filter((each) => each.word !== axis.word);
    go({ ...state, table: [axis, ...axes].map((each) => each.word).join("*"), row: 0 });
  },
  keep(axis, kept) {
    const { [axis.word]: _, ...keep } = state.keep;
    go({ ...state, keep: kept ? { ...keep, [axis.word]: kept } : keep, row: 0, column: 0 });
  },
};

const withAxes = (axes) => {
  const word = axes.map((axis) => axis.word).join("*") || "total";
  return go(withTable(state, word, axes));
};

function toggle(attribute) {
  const axes = cube.axes(state.table) ?? [];
  const rest = axes.filter((axis) => axis.attribute !== attribute);
  if (rest.length < axes.length) return withAxes(rest);
  return withAxes(withAttribute(cube, axes, attribute));
}

// ----------------------------------------------------------------------------------------------------------- parts

/** Ask for what the state names, and show it. */
const show = working(async () => {
  const question = ++asked;
  quantity = catalogue.quantities.find((each) => each.word === state.quantity) ?? catalogue.quantities[0];
  state.quantity = quantity.word;
  if (quantity.kind !== "count" || !catalogue.faces.some((face) => face.name === state.face)) state.face = "unbiased";
  const axes = cube.axes(state.table);
  const word = axes ? cube.word(axes) : state.table;
  let [table, totals, problem] = [null, null, null];
  try {
    table = await source.table(word, state.quantity, state.face);
    if (question !== asked) return;
    for (const name of ["first", "second"]) state[name] = state[name].filter((cell) => cell < table.values.length);
    sheet = laidOut(table, cube, state);
    if (state.as === "map" && !mappedAxis(sheet, catalogue.shapes)) state.as = "table";
    totals = await totalsOf(sheet, cube, source, state, quantity);
  } catch (failure) {
    problem = failure.message === ASK ? words("view.ask") : failure.message;
  }
  if (question !== asked) return;
  byId("problem").hidden = problem === null;
  byId("problem").textContent = problem ?? "";
  choose();
  refill(byId("controls"), viewControls({ catalogue, state, quantity, words, change: (part) => go({ ...state, ...part }), mapped: problem === null && mappedAxis(sheet, catalogue.shapes) !== null }));
  refill(byId("notes"), notesBox(catalogue, catalogue.faces.find((face) => face.name === state.face), words));
  byId("compare").hidden = problem !== null;
  if (problem !== null) {
    for (const id of ["axes", "figure", "under", "downloads", "view-notes"]) byId(id).replaceChildren();
    byId("view-title").textContent = state.table;
    return;
  }
  byId("view-title").textContent = here();
  byId("view-notes").textContent = viewNotes(sheet, state, words);
  document.title = `${here()} – ${catalogue.title ?? catalogue.name}`;
  refill(byId("axes"), axisControls({ cube, words, sheet, state, change, open: opened }));
  await figure(totals);
  if (question !== asked) return;
  below();
  await compare();
  byId("status").textContent = words("view.status", { title: here(), n: table.values.length });
});

const here = () => viewTitle(sheet, quantity, catalogue, words);

/** The lists on the left and the lattice. */
function choose() {
  const axes = cube.axes(state.table) ?? [];
  const search = byId("search").value.trim();
  const turn = (name, act) => (to) => { offsets[name] = to; act(); };
  refill(byId("attributes"), attributeList({ cube, words, axes, search, offset: offsets.attributes, turn: turn("attributes", choose), toggle }));
  if (byId("tables-box").open) tables(search);
  if (byId("lattice-box").open) lattice(axes);
}

const tables = working(async (search) => {
  const found = await source.search(search, [], offsets.tables);
  if (search !== byId("search").value.trim()) return;
  const axes = cube.axes(state.table);
  const turn = (to) => { offsets.tables = to; tables(search); };
  refill(byId("tables"), tableList({ cube, words, numbers, found, offset: offsets.tables, turn, link, seen: axes ? cube.word(axes) : state.table }));
});

const lattice = working(async (axes) => {
  const question = asked;
  const found = await nodesOf(cube, source, axes);
  if (question !== asked) return;
  const width = Math.max(240, Math.floor(byId("lattice").clientWidth));
  const more = found.more ? h("p", { class: "quiet" }, words("lattice.more", { n: found.more })) : null;
  refill(byId("lattice"), latticePicture(found, { cube, words, numbers, width, link }), latticeLegend(found, words, numbers), more);
});

/** The table or the picture. */
async function figure(totals) {
  const place = byId("figure");
  drawn?.finalize();
  drawn = null;
  if (state.as === "table") {
    const table = crossTable({
      sheet, totals, state, words, numbers, caption: here(), choose: select, average: quantity.kind === "avg",
    });
    refill(place, h("div", { class: "scroll" }, table));
    return;
  }
  const theme = themeOf(document.body);
  const spec = specification(state.as, sheet, {
    words, numbers, title: here(), quantity: quantityTitle(quantity, catalogue, words), stamp: shortStamp(catalogue),
    width: Math.max(240, place.clientWidth - 24), theme, shapes: catalogue.shapes,
  });
  const chart = h("div", { class: "chart", role: "img", "aria-label": words("chart.label", { title: here() }) });
  refill(place, h("div", { class: "scroll whole", tabindex: "0", role: "region", "aria-label": here() }, chart));
  drawn = await draw(chart, spec, tip);
}

function tip(value, event) {
  const box = byId("tip");
  box.hidden = !value;
  if (!value) return;
  box.textContent = typeof value === "object" ? Object.values(value).join(" · ") : value;
  box.style.setProperty("left", `${Math.min(event.clientX + 12, innerWidth - box.offsetWidth - 8)}px`);
  box.style.setProperty("top", `${event.clientY + 14}px`);
}

/** Pages, legend and files. */
function below() {
  const flags = state.as === "table" ? LETTERS.filter(Boolean) : [];
  const seen = (what) => byId("figure").querySelector(what) !== null;
  const promised = !sheet.table.estimated || seen("span.margin:not(.estimated)");
  refill(byId("under"),
    pager(words, { key: "rows", offset: sheet.row, size: ROWS, total: sheet.rowCount, turn: (to) => go({ ...state, row: to }) }),
    pager(words, { key: "columns", offset: sheet.column, size: COLUMNS, total: sheet.columnCount, turn: (to) => go({ ...state, column: to }) }),
    h("p", { class: "legend" },
      state.as === "map" && `${words("chart.map")}. `,
      state.as !== "table" ? words("chart.help") : state.margins === "shading" ? words("margins.shading.help") : promised && words("margins.help"),
      (sheet.table.estimated || seen(".estimated")) && ` ${words("margins.estimated.help")}`,
      seen(".unknown") && ` ${words("margins.unknown.help")}`,
      flags.map((letter) => [" ", h("span", { class: `flag flag-${letter}` }, letter), ` ${words(`quality.${letter}`)}`])),
    state.as === "table" ? h("p", { class: "quiet", id: "grid-help" }, words("table.help")) : null);
  refill(byId("downloads"), downloadControls({ words, act: files }));
}

// ------------------------------------------------------------------------------------------------ selecting, files

/** Put cells into the group that is active, or take them out if all are in it; `extending` never takes out. */
function select(cells, extending = false) {
  const own = new Set(state[group]);
  const other = group === "first" ? "second" : "first";
  if (!extending && cells.every((cell) => own.has(cell))) cells.forEach((cell) => own.delete(cell));
  else cells.forEach((cell) => own.add(cell));
  state = { ...state, [group]: [...own].sort((a, b) => a - b), [other]: state[other].filter((cell) => !own.has(cell)) };
  selected();
}

function selected() {
  history.replaceState(null, "", writeState(state));
  const table = byId("figure").querySelector("table");
  if (table) markSelected(table, state);
  compare();
}

const compare = working(async () => {
  const question = asked;
  const { first, second } = state;
  refill(byId("groups"), groupControls({ words, state, group, choose: (name) => { group = name; }, clear: () => {
    state = { ...state, first: [], second: [] };
    selected();
  } }));
  const told = (answer) => {
    const shown = state.face === "unbiased" || !first.length ? null : shownSum(first);
    refill(byId("result"), comparison(answer, { words, numbers, first, second, shown }));
  };
  if (!first.length && !second.length) return told(null);
  if (sheet.table.word.includes("(")) return told({ error: words("select.overlap") });
  let answer;
  try {
    const [own, versus] = first.length ? [first, second] : [second, []];
    answer = await source.estimate(sheet.table.word, state.quantity, own, versus);
    if (!first.length && answer !== ASK) answer = { sum: null, versus: answer.sum };
  } catch (failure) {
    answer = { error: failure.message };
  }
  if (question === asked && state.first === first && state.second === second) told(answer);
});

/** What a face shows of some cells together: one cell may have an estimated error, a sum of several has none. */
function shownSum(cells) {
  const value = cells.reduce((sum, cell) => sum + sheet.table.values[cell], 0);
  const own = cells.length === 1 ? numberAt(sheet.table, cells[0]).estimated : null;
  return { value, std_error: own?.std_error ?? null, low: own?.low ?? null, high: own?.high ?? null, isEstimated: own !== null };
}

const files = filesOf(() => ({ catalogue, state, sheet, drawn, title: here(), table: byId("figure").querySelector("table") }), words, (text) => {
  byId("status").textContent = text;
});

// ----------------------------------------------------------------------------------------------------------- start

function errors() {
  refill(byId("errors"), errorsBox(catalogue, offsets.errors, (to) => { offsets.errors = to; errors(); }, { words, numbers }));
  byId("errors").hidden = !(catalogue.errors ?? []).length;
}

function listen() {
  addEventListener("popstate", () => { state = readState(location.hash, start); show(); });
  byId("skip").addEventListener("click", (event) => { event.preventDefault(); byId("view").focus(); });
  byId("search").addEventListener("input", () => { Object.assign(offsets, { attributes: 0, tables: 0 }); choose(); });
  for (const id of ["tables-box", "lattice-box"]) byId(id).addEventListener("toggle", choose);
  let [width, waiting] = [innerWidth, null];
  addEventListener("resize", () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => { if (innerWidth !== width) { width = innerWidth; show(); } }, 150);
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", show);
}

async function begin() {
  fillTexts(words);
  byId("lattice-box").open = innerWidth >= 700; // on a phone, the table comes first
  catalogue = await source.catalogue();
  cube = new Cube(catalogue);
  const listed = catalogue.tables ?? (await source.search("", [], 0)).tables;
  start = { table: firstTable(listed), quantity: catalogue.quantities[0].word };
  state = readState(location.hash, start);
  refill(byId("stamp"), stampOf(catalogue));
  if (catalogue.stamp) document.body.dataset.stamp = shortStamp(catalogue); // for paper
  refill(byId("heading"), ...heading(catalogue, words));
  refill(byId("privacy"), ...privacyBox(catalogue, words));
  errors();
  byId("footer").textContent = words("page.made", { version: catalogue.version });
  listen();
  await show();
  document.body.dataset.ready = "true";
}

function broken(failure) {
  byId("problem").hidden = false;
  byId("problem").textContent = words("page.broken", { problem: failure.message });
}

// the data stands after the scripts
document.addEventListener("DOMContentLoaded", () => begin().catch(broken));
