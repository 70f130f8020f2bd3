// The lattice of cuboids as a picture: one node for each table, fewer attributes above, more below; coloured by error.

import { h, svg } from "./dom.js";

const MOST = 64; // nodes that are drawn; of larger lattices a neighbourhood
const NEAR = 18; // nodes of each row of a neighbourhood
const [NARROW, WIDE, HEIGHT, GAP, BETWEEN] = [118, 230, 40, 10, 34];

/** The tables that are drawn: all of them, or those next to the one that is seen. */
export async function nodesOf(cube, source, axes) {
  const plain = (entry) => !entry.word.includes("(");
  const here = { word: cube.word(axes), attributes: axes.map((axis) => axis.word), std_error: null };
  const own = cube.published(here.word);
  if (cube.tables !== null && cube.tables.filter(plain).length <= MOST) {
    const nodes = cube.tables.filter(plain);
    return { nodes: own ? nodes : [...nodes, here], here: here.word, more: 0 };
  }
  const above = axes.map((axis) => axes.filter((other) => other !== axis)).map((rest) => {
    const word = cube.word(rest);
    return cube.published(word) ?? { word, attributes: rest.map((axis) => axis.word), std_error: null };
  });
  const found = await source.search("", here.attributes, 0);
  const below = found.tables.filter((entry) => plain(entry) && entry.attributes.length === axes.length + 1);
  const itself = found.tables.find((entry) => entry.word === here.word);
  return { nodes: [...above, own ?? itself ?? here, ...below.slice(0, NEAR)], here: here.word, more: Math.max(0, found.total - 1 - NEAR) };
}

/** The picture for a width in pixels; nodes are links to their views. */
export function latticePicture({ nodes, here }, { cube, words, numbers, width, link }) {
  const ranks = [...new Set(nodes.map((node) => node.attributes.length))].sort((a, b) => a - b);
  const most = Math.max(...ranks.map((rank) => nodes.filter((node) => node.attributes.length === rank).length));
  const WIDTH = Math.min(WIDE, width, Math.max(NARROW, Math.floor((width + GAP) / most) - GAP));
  const perLine = Math.max(1, Math.floor((width + GAP) / (WIDTH + GAP)));
  const places = new Map();
  let y = 4;
  for (const rank of ranks) {
    const own = nodes.filter((node) => node.attributes.length === rank);
    for (let from = 0; from < own.length; from += perLine) {
      const line = own.slice(from, from + perLine);
      const left = (width - line.length * (WIDTH + GAP) + GAP) / 2;
      line.forEach((node, at) => places.set(node.word, [left + at * (WIDTH + GAP), y]));
      y += HEIGHT + GAP;
    }
    y += BETWEEN - GAP;
  }
  y -= BETWEEN - 6;
  const errors = nodes.map((node) => node.std_error).filter((error) => error > 0);
  const [least, largest] = [Math.min(...errors), Math.max(...errors)];
  const shade = (error) => !(error > 0) ? null : largest > least ? Math.round(4 * Math.log(error / least) / Math.log(largest / least)) : 2;
  const edges = [];
  for (const upper of nodes)
    for (const lower of nodes)
      if (isAbove(cube, upper, lower) && !nodes.some((node) => isAbove(cube, upper, node) && isAbove(cube, node, lower))) {
        const [[x1, y1], [x2, y2]] = [places.get(upper.word), places.get(lower.word)];
        const near = upper.word === here || lower.word === here;
        edges.push([near, svg("path", { class: near ? "edge near" : "edge", d: `M${x1 + WIDTH / 2},${y1 + HEIGHT}C${x1 + WIDTH / 2},${y1 + HEIGHT + 20} ${x2 + WIDTH / 2},${y2 - 20} ${x2 + WIDTH / 2},${y2}` })]);
      }
  const drawn = nodes.map((node) => {
    const [x, top] = places.get(node.word);
    const title = node.attributes.map((word) => cube.axis(word).title).join(" × ") || words("lattice.total");
    const error = node.std_error === null ? (cube.tables === null ? "" : words("lattice.rolled")) : words("lattice.error", { error: numbers.about(node.std_error) });
    const named = error ? `${title}, ${error}` : title;
    return svg("a", {
      href: link(node.word), class: `node shade-${shade(node.std_error) ?? "none"}`, "aria-label": named, key: `node-${node.word}`,
      "aria-current": node.word === here ? "true" : null,
    }, svg("title", {}, named), svg("rect", { x, y: top, width: WIDTH, height: HEIGHT, rx: 8 }),
      svg("text", { x: x + WIDTH / 2, y: top + 17, class: "name" }, shortened(title, Math.floor(WIDTH / 6.9))),
      svg("text", { x: x + WIDTH / 2, y: top + 32, class: "error" }, error));
  });
  edges.sort((a, b) => a[0] - b[0]);
  return svg("svg", { viewBox: `0 0 ${width} ${y}`, width, height: y, class: "lattice", role: "group", "aria-label": words("lattice.label") },
    svg("g", { "aria-hidden": "true" }, edges.map(([, edge]) => edge)), drawn);
}

/** Whether one table is a roll-up of another: fewer attributes, or coarser levels of them. */
function isAbove(cube, upper, lower) {
  const knows = (word) => lower.attributes.some((own) => {
    const [fine, coarse] = [cube.axis(own), cube.axis(word)];
    return fine.position === coarse.position && fine.depth <= coarse.depth;
  });
  return upper.word !== lower.word && upper.attributes.every(knows);
}

const shortened = (text, most) => (text.length <= most ? text : `${text.slice(0, most - 1)}…`);

/** What the shades mean: from the least to the largest standard error. */
export function latticeLegend({ nodes }, words, numbers) {
  const errors = nodes.map((node) => node.std_error).filter((error) => error > 0);
  if (!errors.length) return null;
  const boxes = [0, 1, 2, 3, 4].map((shade) => h("span", { class: `box shade-${shade}` }));
  return h("p", { class: "legend" }, words("lattice.legend"), " ", numbers.about(Math.min(...errors)), " ", boxes, " ", numbers.about(Math.max(...errors)));
}
