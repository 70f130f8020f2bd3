// What there is to see: attributes at their levels (axes), published tables, and which of them answers what.

/** An axis is an attribute at one of its levels: `state`, or `state@region`. A table is known by the words of its axes. */
export class Cube {
  constructor(catalogue) {
    this.catalogue = catalogue;
    this.tables = catalogue.tables;
    this.attributes = catalogue.attributes;
    this._axes = new Map();
    catalogue.attributes.forEach((attribute, position) => {
      const title = attribute.title ?? attribute.name;
      const own = { attribute, position, ordered: attribute.ordered };
      const labels = attribute.labels ?? Array.from({ length: attribute.size }, (_, code) => String(code));
      const finest = { ...own, word: attribute.name, title: attribute.unit ? `${title}, ${attribute.unit}` : title, level: null, depth: 0, labels, groups: null };
      this._axes.set(finest.word, finest);
      attribute.levels.forEach((level, at) =>
        this._axes.set(level.name, {
          ...own, word: level.name, title: `${title} (${level.title ?? level.name})`, level: level.title ?? level.name,
          depth: at + 1, labels: level.labels, groups: level.parents,
        }));
    });
    this._published = new Map((this.tables ?? []).map((entry) => [entry.word, entry]));
  }

  axis(word) {
    return this._axes.get(word) ?? null;
  }

  /** The axes of a table's word in the order named, or null for a table of sums, such as `prefix(age)`. */
  axes(word) {
    if (word === "total" && !this._axes.has("total")) return [];
    const axes = word.split("*").map((each) => this.axis(each));
    return axes.every(Boolean) ? axes : null;
  }

  /** The word of a table with these axes, in the order of the schema. */
  word(axes) {
    const sorted = [...axes].sort((a, b) => a.position - b.position);
    return sorted.map((axis) => axis.word).join("*") || "total";
  }

  published(word) {
    return this._published.get(word) ?? null;
  }

  /** All levels of an axis's attribute, from the finest to the coarsest. */
  levels(axis) {
    return [axis.attribute.name, ...axis.attribute.levels.map((level) => level.name)].map((word) => this.axis(word));
  }

  /** A step along the levels: 1 is coarser, -1 finer; null beyond the ends. */
  moved(axis, step) {
    return this.levels(axis)[axis.depth + step] ?? null;
  }

  /** For every label of a fine axis the group of a coarser one of the same attribute that it belongs to. */
  grouping(fine, coarse) {
    if (fine.word === coarse.word) return fine.labels.map((_, at) => at);
    if (fine.depth === 0) return coarse.groups;
    const found = new Array(fine.labels.length);
    fine.groups.forEach((group, value) => (found[group] = coarse.groups[value]));
    return found;
  }

  /** A slice seen from another level: the groups of what was kept, or what is in the groups that were kept. */
  slice(kept, from, to) {
    const [fine, coarse] = from.depth < to.depth ? [from, to] : [to, from];
    const grouping = this.grouping(fine, coarse);
    if (fine === from) return [...new Set(kept.map((at) => grouping[at]))].sort((a, b) => a - b);
    return grouping.map((_, at) => at).filter((at) => kept.includes(grouping[at]));
  }

  /** The smallest published table that knows all axes at their levels or finer: the one that roll-ups are summed from. */
  covering(axes) {
    if (this.tables === null) return null;
    const own = this.published(this.word(axes));
    if (own) return own;
    let best = null;
    for (const entry of this.tables) {
      if (entry.word.includes("(") || (best && entry.cells >= best.cells)) continue;
      const knows = (wanted) => entry.attributes.some((word) => {
        const axis = this.axis(word);
        return axis.position === wanted.position && axis.depth <= wanted.depth;
      });
      if (axes.every(knows)) best = entry;
    }
    return best;
  }

  /** Whether a table of these axes can be shown; where tables are too many to be listed, that is found by asking. */
  shows(axes) {
    if (this.tables !== null) return this.covering(axes) !== null;
    return axes.length <= this.catalogue.largest.attributes;
  }
}

/** The table that a reader sees first: one of two attributes that fits on a screen, if there is one. */
export function firstTable(tables) {
  const plain = tables.filter((entry) => !entry.word.includes("("));
  const fits = (width) => plain.find((entry) => entry.attributes.length === width && entry.cells > 1 && entry.cells <= 400);
  return (fits(2) ?? fits(1) ?? plain[0] ?? { word: "total" }).word;
}
