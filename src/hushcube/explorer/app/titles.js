// What a view is called, and what must be said beside it.

/** What a quantity is called: in the publisher's words, or in ours. */
export function quantityTitle(quantity, catalogue, words) {
  if (quantity.kind === "count") return quantity.title ?? words("quantity.count", { unit: catalogue.unit_noun });
  const unit = quantity.unit ? words("quantity.unit", { unit: quantity.unit }) : "";
  return words(`quantity.${quantity.kind}`, { measure: quantity.title ?? quantity.measure }) + unit;
}

export function viewTitle(sheet, quantity, catalogue, words) {
  const axes = [...sheet.down, ...(sheet.across ? [sheet.across] : [])].map((axis) => axis.title);
  const what = quantityTitle(quantity, catalogue, words);
  return axes.length ? words("view.title", { what, axes: words.list(axes) }) : words("view.total", { what });
}

/** Which labels are kept, and where a roll-up comes from. */
export function viewNotes(sheet, state, words) {
  const kept = sheet.own.filter((axis) => state.keep[axis.word]).map((axis) => {
    const labels = axis.labels.filter((_, at) => state.keep[axis.word].includes(at));
    const told = labels.length > 6 ? words("slice.some", { n: labels.length, all: axis.labels.length }) : words.list(labels);
    return words("view.slice", { axis: axis.title, labels: told });
  });
  const rolled = sheet.table.origin ? [words("view.rolled", { word: sheet.table.origin.word })] : [];
  return [...kept, ...rolled].join(" · ");
}
