// Numbers as people read them.

/** Formats for one language: `number(value, error)` has as many digits as its error leaves sense in; `about(error)`. */
export function numbersOf(language) {
  const formats = new Map();
  const format = (digits) => {
    if (!formats.has(digits)) {
      const options = { minimumFractionDigits: digits, maximumFractionDigits: digits };
      formats.set(digits, new Intl.NumberFormat(language, options));
    }
    return formats.get(digits);
  };
  const digitsFor = (size) => {
    if (!(size > 0) || !Number.isFinite(size)) return 0;
    return Math.min(6, Math.max(0, 1 - Math.floor(Math.log10(size))));
  };
  const shown = (value, digits) => {
    if (value === null || value === undefined || Number.isNaN(value)) return "–";
    if (!Number.isFinite(value)) return value > 0 ? "∞" : "−∞";
    const rounded = Number(value.toFixed(digits)) || 0; // no "-0"
    return format(digits).format(rounded).replace("-", "−");
  };
  const number = (value, error = Math.abs(value) / 100) => shown(value, digitsFor(error));
  const rough = new Intl.NumberFormat(language, { maximumSignificantDigits: 3 });
  const about = (size) => (size >= 1000 ? shown(size, 0) : rough.format(size)); // errors: three digits are enough
  return { number, about };
}

/** Runs of whole numbers as short text, for the address: [0, 1, 2, 5] is "0-2,5". */
export function packed(list) {
  const sorted = [...list].sort((a, b) => a - b);
  const runs = [];
  for (const at of sorted) {
    const last = runs.at(-1);
    if (last && last[1] === at - 1) last[1] = at;
    else runs.push([at, at]);
  }
  return runs.map(([from, to]) => (from === to ? `${from}` : `${from}-${to}`)).join(",");
}

/** Back from such a text; whatever is not a run of whole numbers is left out. */
export function unpacked(text, most = 1e6) {
  const found = [];
  for (const run of (text ?? "").split(",")) {
    const [, from, to = from] = /^(\d+)(?:-(\d+))?$/.exec(run) ?? [];
    if (from === undefined) continue;
    for (let at = Number(from); at <= Number(to) && found.length < most; at++) found.push(at);
  }
  return found;
}
