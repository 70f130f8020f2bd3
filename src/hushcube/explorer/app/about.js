// What is said about the release as a whole: whose it is, what the guarantee means, notes, errors asked for.

import { LETTERS } from "./crosstable.js";
import { h, pager } from "./dom.js";

export function heading(catalogue, words) {
  const facts = [["source", catalogue.source], ["period", catalogue.period], ["licence", catalogue.licence], ["contact", catalogue.contact]];
  const told = facts.filter(([, text]) => text).flatMap(([name, text]) => h("div", {}, h("dt", {}, words(`about.${name}`)), h("dd", {}, text)));
  return [
    h("h1", {}, catalogue.title ?? catalogue.name),
    catalogue.description && h("p", { class: "description" }, catalogue.description),
    h("p", { class: "quiet" }, words("about.size", { tables: words("about.tables", { n: catalogue.table_count }), cells: words("about.cells", { n: catalogue.cell_count }), guarantee: catalogue.privacy.short })),
    told.length ? h("dl", { class: "facts" }, told) : null,
  ];
}

/** The stamp of a release that is not private, without its reasons: for pictures and names of files. */
export const shortStamp = (catalogue) => (catalogue.stamp ? catalogue.stamp.split(":")[0] : null);

/** Unmissable, on the screen and on paper. */
export function stampOf(catalogue) {
  if (!catalogue.stamp) return null;
  const reasons = catalogue.stamp.slice(shortStamp(catalogue).length);
  return h("p", { class: "stamp", role: "alert" }, h("strong", {}, shortStamp(catalogue)), h("span", {}, reasons));
}

export function privacyBox(catalogue, words) {
  return [
    h("h2", { id: "privacy-title" }, words("privacy.title")),
    h("p", { class: "guarantee" }, catalogue.privacy.short),
    catalogue.privacy.paragraphs.map((text) => h("p", {}, text)),
  ];
}

export function notesBox(catalogue, face, words) {
  const { caution, unreliable, words: classes } = catalogue.quality;
  const percent = (share) => Math.round(1000 * share) / 10;
  return [
    h("h2", {}, words("notes.title")),
    h("ul", {},
      catalogue.notes.map((text) => h("li", { class: "note" }, text)),
      h("li", {}, words("notes.interval")),
      h("li", {}, words("notes.negative")),
      face && h("li", {}, `${face.title ?? face.name}: ${face.promise}`),
      face?.estimated && h("li", { class: "estimated" }, words("notes.estimated")),
      h("li", {}, words("notes.caution", { letter: LETTERS[1], word: classes[1], from: percent(caution), to: percent(unreliable) })),
      h("li", {}, words("notes.unreliable", { letter: LETTERS[2], word: classes[2], from: percent(unreliable) }))),
  ];
}

/** Expected against required errors, for whoever publishes it. */
export function errorsBox(catalogue, offset, turn, { words, numbers }) {
  const all = catalogue.errors ?? [];
  if (!all.length) return [];
  const met = ({ expected, required }) => (required === null ? "–" : expected <= required * (1 + 1e-9) ? words("errors.met") : words("errors.missed"));
  const size = 50;
  return [h("details", { class: "errors", open: offset > 0 },
    h("summary", {}, h("h2", {}, words("errors.title"))),
    h("p", { class: "quiet" }, words("errors.help")),
    h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": words("errors.title") }, h("table", { class: "plain" },
      h("caption", { class: "hidden" }, words("errors.title")),
      h("thead", {}, h("tr", {}, ["table", "error", "expected", "required", "verdict"].map((name) => h("th", { scope: "col" }, words(`errors.${name}`))))),
      h("tbody", {}, all.slice(offset, offset + size).map((each) => h("tr", {},
        h("th", { scope: "row" }, each.word), h("td", {}, each.error), h("td", { class: "number" }, numbers.about(each.expected)),
        h("td", { class: "number" }, each.required === null ? "–" : numbers.about(each.required)), h("td", {}, met(each))))))),
    pager(words, { key: "errors", offset, size, total: all.length, turn }))];
}
