// Stats and bar gauges: the numbers that Grafana computes of a panel.

function drawStat(panel, { numbers }) {
  const filled = panel.options.colorMode === "background";
  return element("div", { class: "numbers" }, ...numbers.map((each) => oneNumber(each, filled, numbers)));
}

function oneNumber({ title, text, color }, filled, { length }) {
  const style = filled ? `background:${color};color:${readable(color)}` : `color:${color}`;
  const name = length > 1 ? [element("span", {}, title)] : [];
  return element("div", { class: "number", style }, ...name, element("b", {}, text));
}

function drawBars(panel, { numbers }) {
  const highest = panel.fieldConfig.defaults.max ?? Math.max(...numbers.map((each) => each.numeric));
  return element("table", {}, ...numbers.map((each) => oneBar(each, highest)));
}

function oneBar({ title, text, color, numeric }, highest) {
  const width = highest ? (100 * numeric) / highest : 0;
  const bar = element("span", { class: "gauge", style: `background:${color};width:${width}%` });
  return element(
    "tr",
    {},
    element("td", { style: "width:1%" }, title ?? ""),
    element("td", {}, bar),
    element("td", { class: "right", style: `color:${color};width:1%` }, text),
  );
}
