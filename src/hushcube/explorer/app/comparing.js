// The selected cells: their sum, and how two groups of them compare.

import { h } from "./dom.js";
import { ASK } from "./source.js";

/** The result as a small table, for `answer` of `source.estimate`. */
export function comparison(answer, { words, numbers, first, second, shown }) {
  if (!first.length && !second.length) return h("p", { class: "quiet" }, words("select.help"));
  if (answer === null) return h("p", { class: "quiet" }, words("select.working"));
  if (answer === ASK || answer.error) return h("p", { class: "quiet" }, answer === ASK ? words("select.ask") : answer.error);
  const line = (name, title, found, format = numbers.number) => {
    if (!found) return null;
    const error = found.std_error ?? (found.high === null ? Math.abs(found.value) / 100 : (found.high - found.low) / 4);
    const value = found.value === null ? words("table.unknown") : format(found.value, error);
    const known = words(found.isEstimated ? "select.estimated" : "select.interval", { low: format(found.low, error), high: format(found.high, error) });
    const interval = found.low === null || found.high === null ? words("select.open") : known;
    return h("tr", { "data-result": name, "data-numbers": JSON.stringify(found) }, h("th", { scope: "row" }, title), h("td", { class: "number" }, value), h("td", {}, interval));
  };
  const both = first.length > 0 && second.length > 0;
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": words("select.result") }, h("table", { class: "result" },
    h("caption", { class: "hidden" }, words("select.result")),
    h("thead", { class: "hidden" }, h("tr", {}, ["what", "value", "interval95"].map((name) => h("th", { scope: "col" }, words(`select.${name}`))))),
    h("tbody", {},
      line("sum", words("select.first", { n: first.length }), answer.sum),
      line("versus", words("select.second", { n: second.length }), answer.versus),
      both && line("difference", words("select.difference"), answer.difference),
      both && line("ratio", words("select.ratio"), answer.ratio),
      shown !== null && line("shown", words("select.shown"), shown))));
}
