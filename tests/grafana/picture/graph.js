// A node graph in layers from left to right, as Grafana's layered layout draws it: rings of arcs, two
// numbers inside, edges as thick and as coloured as their frame says.
const RADIUS = 40;
const APART = { x: 190, y: 130 };

function drawGraph(panel, { frames }, size) {
  const isEdges = (frame) => frame.fields.some(({ name }) => name === "source");
  const nodes = rowsOf(frames.find((frame) => !isEdges(frame)) ?? { fields: [] });
  const edges = rowsOf(frames.find(isEdges) ?? { fields: [] });
  const places = placed(nodes, edges);
  const shapes = [
    ...edges.map((edge) => drawEdge(edge, places)),
    ...nodes.map((node) => drawNode(node, places.get(node.id), panel.options.nodes)),
  ];
  return canvas(size, shape("g", { transform: fitted(places, size) }, ...shapes));
}

function placed(nodes, edges) {
  if (nodes.every(({ fixedx, fixedy }) => fixedx != null && fixedy != null))
    return new Map(nodes.map(({ id, fixedx, fixedy }) => [id, { x: fixedx, y: fixedy }]));
  const layers = new Map(nodes.map(({ id }) => [id, depth(id, edges, new Set())]));
  const columns = [];
  for (const { id } of nodes) (columns[layers.get(id)] ??= []).push(id);
  const places = new Map();
  columns.forEach((ids, column) => {
    const near = (id) => {
      const before = edges.filter(({ target, source }) => target === id && places.has(source));
      return before.reduce((sum, { source }) => sum + places.get(source).y, 0) / (before.length || 1);
    };
    const ordered = ids.map((id) => [near(id), id]).sort((a, b) => a[0] - b[0]);
    ordered.forEach(([, id], row) =>
      places.set(id, { x: column * APART.x, y: (row - (ids.length - 1) / 2) * APART.y }),
    );
  });
  return places;
}

// The longest way from a node that nothing leads to.
function depth(id, edges, passed) {
  if (passed.has(id)) return 0;
  const before = edges.filter(({ target, source }) => target === id && source !== id);
  const seen = new Set([...passed, id]);
  return Math.max(0, ...before.map(({ source }) => 1 + depth(source, edges, seen)));
}

function fitted(places, { width, height }) {
  const [xs, ys] = ["x", "y"].map((axis) => [...places.values()].map((place) => place[axis]));
  const [left, top] = [Math.min(...xs) - 90, Math.min(...ys) - 60];
  const wide = Math.max(...xs) + 90 - left;
  const high = Math.max(...ys) + 90 - top;
  const scale = Math.min(width / wide, height / high, 1.2);
  const [x, y] = [(width - wide * scale) / 2, (height - high * scale) / 2];
  return `translate(${x} ${y}) scale(${scale}) translate(${-left} ${-top})`;
}

function drawEdge({ source, target, color, thickness, strokedasharray }, places) {
  const [from, to] = [places.get(source), places.get(target)];
  const ends = { x1: from.x, y1: from.y, x2: to.x, y2: to.y };
  const look = { stroke: color || "#8c8c8c", "stroke-width": thickness ?? 1 };
  return shape("line", { ...ends, ...look, "stroke-dasharray": strokedasharray ?? "" });
}

function drawNode(node, { x, y }, { arcs = [], mainStatUnit, secondaryStatUnit }) {
  const radius = node.noderadius || RADIUS;
  const inside = node.icon
    ? [centred(0, node.icon === "exclamation-triangle" ? "⚠" : node.icon, 18)]
    : [
        centred(-2, withUnit(node.mainstat, mainStatUnit)),
        centred(12, withUnit(node.secondarystat, secondaryStatUnit)),
      ];
  return shape(
    "g",
    { transform: `translate(${x} ${y})` },
    shape("circle", { r: radius, fill: "#181b1f", stroke: node.color || "#44464d", "stroke-width": 2 }),
    ...ring(node, arcs, radius),
    ...inside,
    centred(radius + 14, node.title ?? ""),
    centred(radius + 27, node.subtitle ?? ""),
  );
}

function ring(node, arcs, radius) {
  const around = 2 * Math.PI * radius;
  let turned = 0;
  return arcs.map(({ field, color }) => {
    const part = node[field] ?? 0;
    const dashes = { "stroke-dasharray": `${part * around} ${around}`, "stroke-dashoffset": -turned * around };
    turned += part;
    const look = { fill: "none", stroke: color, "stroke-width": part ? 5 : 0, transform: "rotate(-90)" };
    return shape("circle", { r: radius, ...look, ...dashes });
  });
}

function centred(y, text, size = 11) {
  return shape("text", { y, "text-anchor": "middle", style: `font-size:${size}px` }, text);
}

// Grafana prints two decimals and the unit as it stands.
function withUnit(value, unit) {
  if (value == null) return "";
  return typeof value === "string" ? value : `${value.toFixed(2)} ${unit ?? ""}`;
}
