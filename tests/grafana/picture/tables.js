// Tables and matrices, cell by cell as their field settings ask for.

function drawTable(panel, { frames }) {
  const fields = frames[0].fields.filter((field) => !field.settings?.hidden);
  const order = sorted(panel.options.sortBy?.[0], fields);
  return element(
    "table",
    {},
    element("tr", {}, ...fields.map((field) => element("th", aligned(field, panel), field.display ?? field.name))),
    ...order.map((at) => element("tr", {}, ...fields.map((field) => cell(field, at, panel)))),
  );
}

function sorted(by, fields) {
  const order = [...fields[0].values.keys()];
  const field = fields.find(({ name, display }) => by && [name, display].includes(by.displayName));
  if (!field) return order;
  const sign = by.desc ? -1 : 1;
  const compare = (a, b) => (a === b ? 0 : (a ?? -Infinity) < (b ?? -Infinity) ? -1 : 1);
  return order.sort((a, b) => sign * compare(field.values[a], field.values[b]));
}

function aligned(field, panel) {
  const centred = panel.fieldConfig.defaults.custom?.align === "center";
  if (centred) return { style: "text-align:center" };
  return field.type === "number" ? { class: "right" } : {};
}

function cell(field, at, panel) {
  if (field.type === "time") return element("td", {}, new Date(field.values[at]).toISOString());
  const [text, color] = [field.texts[at], field.colors[at]];
  const kind = field.values[at] === null ? "auto" : field.settings.cell;
  const made = element("td", aligned(field, panel), text);
  if (kind === "color-background") made.style.cssText += `;background:${color};color:${readable(color)}`;
  if (kind === "color-text") made.style.color = color;
  if (kind === "gauge") made.prepend(gauge(field, at, color));
  if (field.settings.links && field.values[at] !== null) made.style.textDecoration = "underline";
  return made;
}

function gauge({ settings, values }, at, color) {
  const low = settings.min ?? 0;
  const part = (values[at] - low) / ((settings.max ?? Math.max(...values)) - low || 1);
  return element("span", { class: "gauge", style: `background:${color};width:${70 * part}px;margin-right:6px` });
}
