// The texts of the page. All of them are in strings.LANG.json: a translation is another such file.

/** `words(name, {n: 3})` is the text of that name with its places filled; of `one` and `other`, the one that fits n. */
export function wordsOf(strings) {
  const plural = new Intl.PluralRules(strings.language);
  const count = new Intl.NumberFormat(strings.language);
  const words = (name, values = {}) => {
    let text = strings[name];
    if (text === undefined) throw new Error(`no text is named ${name}`);
    if (typeof text === "object") text = text[plural.select(values.n)] ?? text.other;
    return text.replace(/\{(\w+)\}/g, (_, place) => (typeof values[place] === "number" ? count.format(values[place]) : values[place]));
  };
  words.language = strings.language;
  words.list = (items) => new Intl.ListFormat(strings.language).format(items);
  return words;
}

/** Put texts where the page names them. */
export function fillTexts(words) {
  document.documentElement.lang = words.language;
  for (const each of document.querySelectorAll("[data-text]")) each.textContent = words(each.dataset.text);
  for (const each of document.querySelectorAll("[data-label]")) each.setAttribute("aria-label", words(each.dataset.label));
  for (const each of document.querySelectorAll("[data-placeholder]")) each.placeholder = words(each.dataset.placeholder);
}
