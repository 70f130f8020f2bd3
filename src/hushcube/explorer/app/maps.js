// Maps, where the publisher gave shapes: colour is the value, and how far it can be relied on is seen at first sight.

import { LETTERS } from "./crosstable.js";
import { numberAt, seenOf } from "./sheet.js";

const MOST = 12; // maps beside each other, one for each combination of the other labels

/** The axis of a sheet that has shapes; null where none has. */
export const mappedAxis = (sheet, shapes) => sheet.own.find((axis) => shapes?.[axis.word]) ?? null;

/** Every kept cell that has a shape, as a feature; and how many combinations of other labels there are. */
function features(sheet, axis, shapes, { words, numbers }) {
  const own = sheet.own.indexOf(axis);
  const strides = sheet.table.shape.map((_, at) => sheet.table.shape.slice(at + 1).reduce((a, b) => a * b, 1));
  const position = (cell, at) => Math.floor(cell / strides[at]) % sheet.table.shape[at];
  const found = [];
  const facets = [];
  for (const cell of sheet.allCells()) {
    const others = sheet.own.map((other, at) => (at === own ? null : other.labels[position(cell, at)])).filter((label) => label !== null);
    const facet = others.join(" · ");
    if (!facets.includes(facet)) facets.push(facet);
    const label = axis.labels[position(cell, own)];
    const shape = shapes[axis.word][position(cell, own)];
    if (shape === null || facets.indexOf(facet) >= MOST) continue;
    const { value, std_error, low, high, quality, estimated } = seenOf(numberAt(sheet.table, cell));
    const error = std_error ?? (high - low) / 4;
    const interval = words("table.interval", { low: numbers.number(low, error), high: numbers.number(high, error) });
    const text = value === null ? words("table.unknown") : `${numbers.number(value, error)} (${estimated ? words("table.estimated", { text: interval }) : interval})`;
    const flag = LETTERS[quality] ?? "";
    const told = [...others, label, text, flag && words(`quality.${flag}`)].filter(Boolean).join(" · ");
    found.push({
      type: "Feature", geometry: { type: shape.type, coordinates: shape.coordinates }, facet, value, told, flag: flag || "reliable",
      x: shape.at[0], y: shape.at[1], letter: flag,
    });
  }
  return { found, facets };
}

/** The map of a sheet as Vega-Lite has it, in the form of other charts. */
export function mapOf(base, sheet, axis, { words, numbers, quantity, width, theme, shapes, lines }) {
  const { found, facets } = features(sheet, axis, shapes, { words, numbers });
  const several = facets.length > 1;
  const per = several ? Math.max(1, Math.min(3, facets.length, Math.floor(width / 240))) : 1;
  const each = several ? Math.floor(width / per) - 24 : Math.min(width, 720);
  // what is not reliable is paler, has a dashed edge, and a letter: never colour alone
  const kinds = ["reliable", "E", "F"];
  const fade = { field: "flag", type: "ordinal", scale: { type: "ordinal", domain: kinds, range: [1, 0.55, 0.12] }, legend: null };
  const dash = { field: "flag", type: "ordinal", scale: { type: "ordinal", domain: kinds, range: [[1, 0], [5, 3], [2, 3]] }, legend: null };
  const colour = { field: "value", type: "quantitative", title: lines(quantity, width / 9), scale: { scheme: theme.dark ? "darkblue" : "blues" } };
  const tip = { field: "told", type: "nominal" };
  const layer = [
    { mark: { type: "geoshape", stroke: theme.text, strokeWidth: 1 }, encoding: { color: colour, fillOpacity: fade, strokeDash: dash, tooltip: tip, description: { field: "told" } } },
    { mark: { type: "text", fontWeight: "bold", fontSize: 14, color: theme.text, aria: false }, encoding: { longitude: { field: "x", type: "quantitative" }, latitude: { field: "y", type: "quantitative" }, text: { field: "letter", type: "nominal" }, tooltip: tip } },
  ];
  const { projection, height } = fitted(found, each);
  const one = { projection, width: each, height, layer };
  const shown = { ...base, data: { values: found }, autosize: { type: "pad" } };
  if (!several) return { ...shown, ...one };
  return { ...shown, columns: per, facet: { field: "facet", type: "nominal", sort: facets, title: null, header: { labelFontWeight: "bold", labelLimit: 220 } }, spec: one };
}

/** The projection that fits all shapes into a width, and the height that they take: facets would not fit by themselves. */
function fitted(found, width) {
  const points = found.flatMap(({ geometry }) => geometry.coordinates.flat(2));
  const extent = (at) => points.reduce(([low, high], point) => [Math.min(low, point[at]), Math.max(high, point[at])], [Infinity, -Infinity]);
  const [[left, right], [bottom, top]] = [extent(0), extent(1)];
  const scale = Math.min(width / (right - left || 1), (1.4 * width) / (top - bottom || 1)) * 0.98;
  const height = Math.ceil(((top - bottom) * scale) / 0.98);
  const translate = [width / 2 - (scale * (left + right)) / 2, height / 2 + (scale * (bottom + top)) / 2];
  return { projection: { type: "identity", reflectY: true, scale, translate }, height };
}
