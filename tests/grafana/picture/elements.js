// What the drawings are put together from.
const SVG = "http://www.w3.org/2000/svg";

function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key === "style") made.style.cssText = value;
    else made.setAttribute(key, value);
  }
  made.append(...children);
  return made;
}

function shape(name, attributes = {}, ...children) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

function canvas({ width, height }, ...shapes) {
  return shape("svg", { width, height }, ...shapes);
}

function fieldsOf(frames, type) {
  return frames.flatMap((frame) => frame.fields).filter((field) => field.type === type);
}

function rowsOf({ fields }) {
  const length = fields.length ? fields[0].values.length : 0;
  return [...Array(length).keys()].map((at) =>
    Object.fromEntries(fields.map((field) => [field.name, field.values[at]])),
  );
}

// Dark text on light colours.
function readable(color) {
  const [red, green, blue] = [1, 3, 5].map((at) => parseInt(color.slice(at, at + 2), 16));
  return 0.299 * red + 0.587 * green + 0.114 * blue > 140 ? "#111217" : "#ffffff";
}
