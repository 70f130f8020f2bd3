// What is seen as a file: numbers as CSV, pictures as SVG or PNG.

import { shortStamp } from "./about.js";
import { themeOf } from "./charts.js";
import { svg } from "./dom.js";
import { LETTERS } from "./crosstable.js";
import { numberAt } from "./sheet.js";

function save(name, content, type) {
  const address = URL.createObjectURL(content instanceof Blob ? content : new Blob([content], { type }));
  const link = document.createElement("a");
  Object.assign(link, { href: address, download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

/** A name for a file, from the table's word; a release that is not private says so there too. */
function fileName(catalogue, state, ending) {
  const word = `${catalogue.name} ${state.table} ${state.quantity === "count" ? "" : state.quantity}`;
  const safe = word.replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-|-$/g, "");
  const stamp = shortStamp(catalogue);
  return `${stamp ? `${stamp.replace(/\s+/g, "-")}-` : ""}${safe}.${ending}`;
}

/** A field of a CSV file: quoted where it must be, and never a formula for a spreadsheet. */
function field(text) {
  const safe = /^[=+\-@\t\r]/.test(text) && !/^-?\d+(\.\d+)?(e[-+]?\d+)?$/i.test(text) ? `'${text}` : text;
  return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

/** All kept cells, also those on other pages, one line each. */
function csv(sheet, catalogue) {
  const axes = [...sheet.down, ...(sheet.across ? [sheet.across] : [])];
  const estimates = sheet.table.estimated ? ["estimated_error", "estimated_low", "estimated_high"] : [];
  const names = ["value", "std_error", "low", "high", ...estimates, "quality", ...(catalogue.stamp ? ["remark"] : [])];
  const codes = (axis) => (axis.depth === 0 ? axis.attribute.codes : null); // where they are not the labels themselves
  const columns = axes.flatMap((axis) => [axis.word, ...(codes(axis) ? [`${axis.word}_code`] : [])]);
  const lines = [[...columns, ...names]];
  const strides = sheet.table.shape.map((_, at) => sheet.table.shape.slice(at + 1).reduce((a, b) => a * b, 1));
  for (const cell of sheet.allCells()) {
    const labels = axes.flatMap((axis) => {
      const own = sheet.own.indexOf(axis);
      const at = Math.floor(cell / strides[own]) % sheet.table.shape[own];
      return [axis.labels[at], ...(codes(axis) ? [codes(axis)[at]] : [])];
    });
    const found = numberAt(sheet.table, cell);
    const { std_error, low, high } = found.estimated ?? {};
    const own = [found.value, found.std_error, found.low, found.high, ...(estimates.length ? [std_error, low, high] : [])];
    const numbers = own.map((number) => (number === null ? "" : String(number)));
    lines.push([...labels, ...numbers, catalogue.quality.words[found.quality] ?? "", ...(catalogue.stamp ? [catalogue.stamp] : [])]);
  }
  return lines.map((line) => line.map((each) => field(String(each))).join(",")).join("\r\n") + "\r\n";
}

/** The cross-table on the page as a picture: its texts at their places. */
function tablePicture(table, { title, stamp, legend, theme }) {
  const origin = table.getBoundingClientRect();
  const caption = table.querySelector("caption");
  const top = caption ? caption.getBoundingClientRect().bottom - origin.top : 0;
  const head = stamp ? 76 : 52;
  const [width, height] = [Math.max(480, Math.ceil(origin.width) + 32), Math.ceil(origin.height - top) + head + 44];
  const style = { "font-family": theme.font, fill: theme.text };
  const drawn = [svg("rect", { width, height, fill: theme.surface }), svg("text", { x: 16, y: 30, "font-size": 16, "font-weight": 600, ...style }, title)];
  if (stamp) drawn.push(svg("text", { x: 16, y: 54, "font-size": 15, "font-weight": 700, ...style, fill: theme.danger }, stamp));
  for (const cell of table.querySelectorAll("th, td")) {
    const box = cell.getBoundingClientRect();
    const [x, y] = [box.left - origin.left + 16, box.top - origin.top - top + head];
    drawn.push(svg("path", { d: `M${x},${y + box.height}h${box.width}`, stroke: theme.line, fill: "none" }));
    for (const part of cell.querySelector(".value") ? cell.children : [cell]) {
      const place = part === cell ? inner(cell) : part.getBoundingClientRect();
      const text = part.textContent;
      drawn.push(svg("text", { x: place.left - origin.left + 16, y: place.top - origin.top - top + head + place.height * 0.75, "font-size": Number.parseFloat(getComputedStyle(part).fontSize), "font-weight": cell.tagName === "TH" ? 600 : 400, ...style }, text));
    }
  }
  drawn.push(svg("text", { x: 16, y: height - 16, "font-size": 12, ...style, fill: theme.quiet }, legend));
  const picture = svg("svg", { xmlns: "http://www.w3.org/2000/svg", viewBox: `0 0 ${width} ${height}`, width, height }, drawn);
  return new XMLSerializer().serializeToString(picture);
}

/** Where the text of a cell stands. */
function inner(cell) {
  const range = document.createRange();
  range.selectNodeContents(cell);
  return range.getBoundingClientRect();
}

/** A picture as PNG, at twice its size for sharp print. */
async function png(source) {
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(source)}`;
  await image.decode();
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [2 * image.naturalWidth, 2 * image.naturalHeight];
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((done) => canvas.toBlob(done, "image/png"));
}

const legendText = (words, table) => {
  const flags = [1, 2].map((quality) => `${LETTERS[quality]}: ${words(`quality.${LETTERS[quality]}`)}`);
  return [...flags, ...(table.querySelector(".estimated") ? [words("margins.estimated.short")] : [])].join("; ");
};

/** What the buttons below a view do. `seen()` is what there is to take, `say` tells what was done. */
export function filesOf(seen, words, say) {
  const picture = async ({ catalogue, drawn, title, table }) => {
    if (drawn) return drawn.view.toSVG();
    return tablePicture(table, { title, stamp: shortStamp(catalogue), legend: legendText(words, table), theme: themeOf(document.body) });
  };
  const named = (ending, content, type) => save(fileName(seen().catalogue, seen().state, ending), content, type);
  return {
    csv: () => named("csv", csv(seen().sheet, seen().catalogue), "text/csv;charset=utf-8"),
    svg: async () => named("svg", await picture(seen()), "image/svg+xml"),
    png: async () => named("png", await png(await picture(seen()))),
    async link() {
      try {
        await navigator.clipboard.writeText(location.href);
        say(words("download.copied"));
      } catch {
        window.prompt(words("download.copy"), location.href);
      }
    },
    print: () => window.print(),
  };
}
