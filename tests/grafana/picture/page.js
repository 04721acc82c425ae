// The grid of a dashboard: every panel at its place, repeated ones below each other.
const COLUMNS = 24;
const ROW = 38;
const KINDS = {
  bargauge: drawBars,
  heatmap: drawHeatmap,
  nodeGraph: drawGraph,
  stat: drawStat,
  "state-timeline": drawTimeline,
  "status-history": drawTimeline,
  table: drawTable,
  timeseries: drawLines,
};

// `items` are {panel, drawings}, rows without drawings; returns how high the page is in pixels.
function drawDashboard({ title, choice, items }) {
  document.querySelector("h1").textContent = title;
  document.querySelector(".choice").textContent = choice;
  const grid = document.querySelector(".grid");
  grid.replaceChildren();
  const column = grid.clientWidth / COLUMNS;
  let lowered = 0;
  let bottom = 0;
  for (const { panel, drawings } of items) {
    const { x, y, w, h } = panel.gridPos;
    drawings.forEach((drawn, copy) => {
      const top = (y + lowered + copy * h) * ROW;
      const place = { left: x * column, top, width: w * column - 8, height: h * ROW - 8 };
      grid.append(panel.type === "row" ? heading(panel, place) : framed(panel, drawn, place));
      bottom = Math.max(bottom, top + h * ROW);
    });
    lowered += (drawings.length - 1) * h;
  }
  grid.style.height = `${bottom}px`;
  return bottom;
}

function at({ left, top, width, height }) {
  return `left:${left}px;top:${top}px;width:${width}px;height:${height}px`;
}

function heading({ title }, place) {
  return element("div", { class: "row", style: at(place) }, `⌄ ${title}`);
}

function framed(panel, drawn, place) {
  const size = { width: place.width - 18, height: place.height - 34 };
  const body = drawn.empty ? nothing(panel) : KINDS[panel.type](panel, drawn, size);
  return element(
    "div",
    { class: "panel", style: at(place) },
    element("div", { class: "title" }, drawn.title),
    element("div", { class: "body" }, body),
  );
}

function nothing({ fieldConfig }) {
  return element("div", { class: "nothing" }, fieldConfig.defaults.noValue);
}
