// Panels over time: lines, stacks, timelines and heatmaps.
const LABELS = 180;
const AXIS = 18;
const SCHEMES = {
  Cividis: ["#00224e", "#35456c", "#666970", "#948e77", "#c8b866", "#fee838"],
};

function drawLines(panel, { frames, from, to }, size) {
  const right = panel.options.legend?.placement === "right";
  const plot = { left: 60, width: size.width - 70 - (right ? 260 : 0), height: size.height - AXIS };
  const series = frames.map((frame) => ({ times: frame.fields[0].values, field: frame.fields[1] }));
  const stacked = panel.fieldConfig.defaults.custom?.stacking?.mode === "normal";
  const lines = stacked ? stack(series) : series.map((each) => ({ ...each, tops: each.field.values }));
  const scale = scaleOf(panel, lines);
  const x = (time) => plot.left + ((time - from) / (to - from)) * plot.width;
  const y = (value) => plot.height - ((value - scale.low) / (scale.high - scale.low)) * plot.height;
  const shapes = lines.map((line) => path(line, x, y, stacked));
  const chart = canvas(size, ...axes(plot, scale, panel, { from, to }), ...shapes.reverse());
  return element("div", {}, chart, legend(series, right ? 250 : 0));
}

function stack(series) {
  const totals = new Map();
  return series.map(({ times, field }) => {
    const bottoms = times.map((time) => totals.get(time) ?? 0);
    const tops = field.values.map((value, at) => (value === null ? null : bottoms[at] + value));
    times.forEach((time, at) => totals.set(time, tops[at] ?? bottoms[at]));
    return { times, field, tops, bottoms };
  });
}

function scaleOf({ fieldConfig }, lines) {
  const values = lines.flatMap(({ tops }) => tops).filter((value) => value !== null);
  const low = fieldConfig.defaults.min ?? Math.min(...values);
  const high = fieldConfig.defaults.max ?? Math.max(...values) * 1.05;
  return { low, high: high > low ? high : low + 1 };
}

function path({ times, field, tops, bottoms }, x, y, filled) {
  const color = field.colors.find((each) => each) ?? "#cccccc";
  const points = tops.map((top, at) => (top === null ? null : [x(times[at]), y(top)]));
  const line = points
    .map((point, at) => point && `${points[at - 1] ? "L" : "M"}${point[0].toFixed(1)} ${point[1].toFixed(1)}`)
    .filter((each) => each)
    .join("");
  if (!filled) return shape("path", { d: line || "M0 0", fill: "none", stroke: color });
  const drawn = [...points.keys()].filter((at) => points[at]);
  const back = drawn.reverse().map((at) => `L${x(times[at]).toFixed(1)} ${y(bottoms[at]).toFixed(1)}`);
  const d = `${line.replace(/M/g, (_, at) => (at ? "L" : "M"))}${back.join("")}Z`;
  return shape("path", { d: line ? d : "M0 0", fill: color, "fill-opacity": 0.8 });
}

function axes(plot, { low, high }, { fieldConfig }, { from, to }) {
  const values = [0, 0.5, 1].map((part) => [part, low + part * (high - low)]);
  const lines = values.flatMap(([part, value]) => {
    const y = plot.height * (1 - part);
    const text = fieldConfig.defaults.unit === "percentunit" ? `${100 * value}%` : compact(value);
    return [
      shape("line", { x1: plot.left, x2: plot.left + plot.width, y1: y, y2: y, stroke: "#2c2f36" }),
      shape("text", { x: 0, y: Math.max(y, 10) }, text),
    ];
  });
  const times = [from, (from + to) / 2, to].map((time, at) =>
    shape("text", { x: plot.left + (at / 2) * (plot.width - 30), y: plot.height + 14 }, clock(time)),
  );
  return [...lines, ...times];
}

function compact(value) {
  return value.toLocaleString("en", { notation: "compact", maximumSignificantDigits: 3 });
}

function clock(time) {
  return new Date(time).toISOString().slice(11, 16);
}

function legend(series, width) {
  const lines = series.map(({ field }) => {
    const last = field.texts.filter((_, at) => field.values[at] !== null).at(-1) ?? "";
    const color = field.colors.find((each) => each) ?? "#cccccc";
    return element("div", {}, element("i", { style: `background:${color}` }), `${field.display}  ${last}`);
  });
  return element("div", { class: "legend", style: `width:${width}px` }, ...lines);
}

function drawTimeline(panel, { frames, from, to }, size) {
  const rows = frames.slice(0, panel.options.perPage ?? frames.length);
  const height = Math.min(28, (size.height - AXIS) / rows.length);
  const width = size.width - LABELS;
  const x = (time) => LABELS + ((time - from) / (to - from)) * width;
  const shapes = rows.flatMap(({ fields: [time, field] }, row) => [
    shape("text", { x: 0, y: (row + 0.65) * height }, field.display),
    ...spans(time.values, field).map(({ start, end, color }) =>
      shape("rect", { x: x(start), width: Math.max(x(end ?? to) - x(start), 1), y: row * height + 1, height: height - 2, fill: color }),
    ),
  ]);
  const ticks = [0, 0.5, 1].map((part) =>
    shape("text", { x: LABELS + part * (width - 30), y: rows.length * height + 14 }, clock(from + part * (to - from))),
  );
  return canvas(size, ...shapes, ...ticks);
}

function spans(times, { values, colors }) {
  return times
    .map((start, at) => ({ start, end: times[at + 1], color: colors[at], value: values[at] }))
    .filter(({ value }) => value !== null);
}

function drawHeatmap(panel, drawn, size) {
  const values = fieldsOf(drawn.frames, "number").flatMap((field) => field.values);
  const highest = Math.max(...values.filter((value) => value !== null), 1e-9);
  const frames = drawn.frames.map(({ fields: [time, field] }) => ({
    fields: [time, { ...field, colors: field.values.map((value) => shade(value / highest, panel)) }],
  }));
  return drawTimeline(panel, { ...drawn, frames }, size);
}

function shade(part, { options }) {
  const stops = SCHEMES[options.color?.scheme] ?? SCHEMES.Cividis;
  const at = Math.max(0, Math.min(1, part)) * (stops.length - 1);
  const [below, above] = [stops[Math.floor(at)], stops[Math.ceil(at)]];
  const channel = (color, from) => parseInt(color.slice(from, from + 2), 16);
  const mixed = [1, 3, 5].map((from) =>
    Math.round(channel(below, from) + (at % 1) * (channel(above, from) - channel(below, from))),
  );
  return `rgb(${mixed})`;
}
