// Pictures of a sheet, drawn by Vega-Lite with its expression interpreter: the page allows no eval.

import { mapOf, mappedAxis } from "./maps.js";
import { numberAt, seenOf } from "./sheet.js";

/** Colours of Okabe and Ito, which people with any colour vision can tell apart. */
const COLOURS = ["#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#999999"];

/** The cells that are seen, one record each. */
function records(sheet, words, numbers) {
  const name = (at, axes) => at.map((position, i) => axes[i].labels[position]).join(" · ");
  return sheet.rows.flatMap((at, r) => sheet.columns.map((col, c) => {
    const found = seenOf(numberAt(sheet.table, sheet.cells[r][c]));
    const error = found.std_error ?? (found.high - found.low) / 4;
    const interval = words("table.interval", { low: numbers.number(found.low, error), high: numbers.number(found.high, error) });
    return {
      row: name(at, sheet.down) || words("table.all"), outer: name(at.slice(0, -1), sheet.down),
      inner: at.length ? sheet.down.at(-1).labels[at.at(-1)] : words("table.all"),
      column: col === null ? "" : sheet.across.labels[col], value: found.value, low: found.low, high: found.high,
      told: `${numbers.number(found.value, error)} (${found.estimated ? words("table.estimated", { text: interval }) : interval})`,
    };
  }));
}

/** A text in lines of about so many letters. */
function lines(text, most) {
  const found = [""];
  for (const word of text.split(" ")) {
    if (found.at(-1) && found.at(-1).length + word.length >= most) found.push(word);
    else found.push(`${found.pop()} ${word}`.trim());
  }
  return found;
}

const inOrder = (data, field) => [...new Set(data.map((each) => each[field]))];

/** A chart as Vega-Lite has it. `width` is what there is on the page. */
export function specification(kind, sheet, { words, numbers, title, quantity, stamp, width, theme, shapes }) {
  const data = records(sheet, words, numbers);
  const isWide = sheet.across !== null;
  const tip = { field: "told", type: "nominal" };
  const value = { field: "value", type: "quantitative", title: quantity };
  const lined = sheet.table.estimated ? "chart.estimated" : "chart.interval";
  const order = (field) => ({ field, type: "nominal", sort: inOrder(data, field), title: null });
  const base = {
    $schema: "https://vega.github.io/schema/vega-lite/v6.json", data: { values: data }, config: configOf(theme),
    title: { text: lines(title, width / 10), subtitle: stamp ?? words({ heat: "chart.heat", map: "chart.map" }[kind] ?? lined), subtitleFontWeight: stamp ? "bold" : "normal", subtitleColor: stamp ? theme.danger : theme.quiet },
    background: theme.surface, autosize: { type: "fit-x", contains: "padding" },
  };
  if (kind === "map") return mapOf(base, sheet, mappedAxis(sheet, shapes), { words, numbers, quantity, width, theme, shapes, lines });
  if (kind === "heat") {
    const colour = { ...value, scale: { scheme: theme.dark ? "darkblue" : "blues" }, legend: { title: lines(quantity, width / 9) } };
    return {
      ...base, width, height: 26 * sheet.rows.length,
      encoding: { y: { ...order("row"), title: sheet.down.map((axis) => axis.title).join(" · ") }, x: { ...order("column"), title: sheet.across?.title ?? null, axis: { labelAngle: isWide && sheet.columns.length > 6 ? -40 : 0, orient: "top" } } },
      layer: [{ mark: { type: "rect", stroke: theme.surface }, encoding: { color: colour, tooltip: tip, description: { field: "told" } } }],
    };
  }
  const colours = isWide ? { color: { field: "column", type: "nominal", sort: inOrder(data, "column"), title: lines(sheet.across.title, width / 9), scale: { range: COLOURS }, legend: { columns: Math.max(1, Math.floor(width / 140)) } } } : {};
  const layers = (long, offset) => {
    const low = { [long]: { ...value, field: "low" }, [`${long}2`]: { field: "high" } };
    return [
      { mark: { type: "bar", ...(isWide && offset ? {} : { color: COLOURS[0] }) }, encoding: { [long]: value, ...(offset ? colours : {}), tooltip: tip, description: { field: "told" } } },
      { mark: { type: "rule", color: theme.text, strokeWidth: 1.5, aria: false }, encoding: low },
      ...["low", "high"].map((end) => ({ mark: { type: "tick", color: theme.text, thickness: 1.5, size: 6, aria: false }, encoding: { [long]: { ...value, field: end } } })),
    ];
  };
  if (kind === "bars") {
    const y = { ...order("row"), title: sheet.down.map((axis) => axis.title).join(" · ") || null };
    const offset = isWide ? { yOffset: { field: "column", type: "nominal", sort: inOrder(data, "column") } } : {};
    return { ...base, width, height: sheet.rows.length * (isWide ? 12 * sheet.columns.length + 14 : 26), encoding: { y, ...offset }, layer: layers("x", isWide) };
  }
  // small multiples: a small chart for each combination of all axes but the last
  const [facet, along] = isWide ? ["row", "column"] : ["outer", "inner"];
  const beside = Math.min(180, 7 * Math.max(...data.map((each) => each[along].length))) + 20; // labels stand before each line
  const per = Math.max(1, Math.min(4, inOrder(data, facet).length, Math.floor((width - beside) / 170)));
  return {
    ...base, autosize: { type: "pad" }, columns: per, spacing: 24,
    facet: { ...order(facet), header: { labelFontWeight: "bold", labelLimit: 220 } },
    spec: {
      width: Math.max(110, Math.floor((width - beside) / per) - 30), height: 22 * inOrder(data, along).length,
      encoding: { y: { ...order(along), title: null } }, layer: layers("x", false),
    },
  };
}

function configOf(theme) {
  const font = theme.font;
  return {
    font, axis: { labelColor: theme.text, titleColor: theme.quiet, gridColor: theme.line, domainColor: theme.line, tickColor: theme.line, labelFontSize: 12, titleFontSize: 12, titleFontWeight: "normal", labelLimit: 180 },
    title: { color: theme.text, anchor: "start", fontSize: 15, subtitleFontSize: 12, offset: 14 },
    header: { labelColor: theme.text, titleColor: theme.quiet, labelFontSize: 12 },
    legend: { labelColor: theme.text, titleColor: theme.quiet, orient: "bottom", titleFontWeight: "normal", labelLimit: 160, labelFontSize: 12, titleFontSize: 12, titleLimit: 0 }, view: { stroke: null },
  };
}

/** The colours of the page as they are now, light or dark. */
export function themeOf(element) {
  const style = getComputedStyle(element);
  const colour = (name) => style.getPropertyValue(name).trim();
  return {
    dark: matchMedia("(prefers-color-scheme: dark)").matches && !matchMedia("print").matches, text: colour("--text"), quiet: colour("--quiet"), line: colour("--line"),
    surface: colour("--surface"), danger: colour("--danger"), font: style.fontFamily,
  };
}

/** Draw into an element; `tip(text, event)` shows what the pointer is over. */
export async function draw(element, spec, tip) {
  const drawn = await window.vegaEmbed(element, spec, {
    ast: true, renderer: "svg", actions: false, defaultStyle: false, tooltip: (_, event, __, value) => tip(value, event),
  });
  return drawn;
}
