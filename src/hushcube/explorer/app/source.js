// Where the numbers come from: the page itself (a report) or the server that sent it (an explorer). Both have the
// methods catalogue, search, table and estimate; everything else in the page knows only these.

import { Cube } from "./cube.js";
import { packed } from "./numbers.js";
import { averagesCompared, rolledUpAverages } from "./averages.js";
import { knowsTotals, publishedCells, rolledUp } from "./rollup.js";
import { compared, qualityOf } from "./statistics.js";

const PAGE = 50;
const NORMAL = 1.959963984540054; // an average has the error of normal noise whose interval is as wide as its own

/** What a report cannot compute, and an explorer can. */
export const ASK = "ask hushcube explore";

/** Remember the answers of the last few questions. */
function remembered(ask, most = 64) {
  const answers = new Map();
  return (...question) => {
    const key = JSON.stringify(question);
    const answer = answers.get(key) ?? ask(...question);
    answers.delete(key);
    answers.set(key, answer);
    if (answers.size > most) answers.delete(answers.keys().next().value);
    answer.catch(() => answers.delete(key));
    return answer;
  };
}

/** The data is in the page, or in scripts beside it, which a page opened from a file can load. */
class StaticSource {
  constructor(catalogue, files) {
    this._catalogue = catalogue;
    this._cube = new Cube(catalogue);
    this._group = remembered(files ? (key) => besides(files[key], key) : embedded, 16);
  }

  /** One published table; what is left out to save room is put back. */
  async _load(entry, quantity, face) {
    const group = await this._group(entry.key);
    const found = group[entry.word].find((table) => table.quantity === quantity && table.face === face);
    if (!found) throw new Error(ASK);
    if (found.margins !== null && !found.low) {
      const margin = (cell) => (Array.isArray(found.margins) ? found.margins[cell] : found.margins);
      found.low = found.values.map((value, cell) => value - margin(cell));
      found.high = found.values.map((value, cell) => value + margin(cell));
    }
    return found;
  }

  async catalogue() {
    return this._catalogue;
  }

  async search(text, attributes = [], offset = 0) {
    const title = (word) => `${word} ${this._cube.axis(word)?.title ?? ""}`.toLowerCase();
    const parts = text.toLowerCase().replaceAll("*", " ").split(/\s+/).filter(Boolean);
    const fits = (entry) => {
      const titles = entry.attributes.map(title);
      return attributes.every((name) => entry.attributes.includes(name)) && parts.every((part) => titles.some((own) => own.includes(part)));
    };
    const found = this._catalogue.tables.filter(fits);
    return { tables: found.slice(offset, offset + PAGE), total: found.length };
  }

  async table(word, quantity, face) {
    const own = this._cube.published(word);
    if (own) return this._load(own, quantity, face);
    const axes = this._cube.axes(word);
    const covering = axes && this._cube.covering(axes);
    const kind = this._catalogue.quantities.find((each) => each.word === quantity)?.kind;
    if (!covering) throw new Error(ASK);
    const found = await this._load(covering, quantity, face);
    if (kind !== "avg") return rolledUp(found, this._cube, axes, word);
    const counts = await this._load(covering, "count", face);
    if (!found.average || !knowsTotals(found.average.sums) || !knowsTotals(counts)) throw new Error(ASK);
    const graded = ({ value, low, high }, signed) => (value === null ? 2 : qualityOf(value, (high - low) / (2 * NORMAL), signed, this._catalogue.quality));
    return rolledUpAverages(found, counts, this._cube, axes, word, graded);
  }

  async estimate(word, quantity, cells, versus) {
    const table = await this.table(word, quantity, "unbiased");
    const own = table.origin ?? table;
    if (own.average) {
      const counts = await this._load(this._cube.covering(this._cube.axes(word)), "count", "unbiased");
      if (counts.covariances === null || own.average.sums.covariances === null) return ASK;
      return averagesCompared(counts, own.average, publishedCells(table, cells), publishedCells(table, versus));
    }
    if (own.covariances === null) return ASK;
    return compared(own, publishedCells(table, cells), publishedCells(table, versus));
  }
}

/** A group of tables out of the page. */
async function embedded(key) {
  return JSON.parse(document.getElementById(`group-${key}`).textContent);
}

/** A group of tables out of a script: that is what a page opened from a file may load. */
function besides(file, key) {
  return new Promise((done, failed) => {
    const script = document.createElement("script");
    const finish = (act) => (value) => {
      script.remove();
      waiting.delete(key);
      act(value);
    };
    waiting.set(key, finish(done));
    script.addEventListener("error", () => finish(failed)(new Error(file)));
    script.src = file;
    document.head.append(script);
  });
}

const waiting = new Map();
window.hushcubeGroup = (key, group) => waiting.get(key)?.(group);

/** Every question goes to the server, which answers it exactly. */
class ServedSource {
  constructor() {
    this._get = remembered(async (path, question) => this._answer(await fetch(`${path}?${new URLSearchParams(question)}`)));
  }

  async _answer(response) {
    const answer = await response.json();
    if (!response.ok) throw new Error([answer.problem ?? response.statusText, answer.fix].filter(Boolean).join(". "));
    return answer;
  }

  catalogue() {
    return this._get("api/catalogue", {});
  }

  search(text, attributes = [], offset = 0) {
    return this._get("api/search", { text, attributes: attributes.join("*"), offset });
  }

  table(word, quantity, face) {
    return this._get("api/table", { word, quantity, face });
  }

  estimate(word, quantity, cells, versus) {
    return this._get("api/estimate", { word, quantity, cells: packed(cells), versus: packed(versus) });
  }
}

/** The source that the page was given. */
export function sourceOf(given) {
  return given.mode === "served" ? new ServedSource() : new StaticSource(given.catalogue, given.files);
}
