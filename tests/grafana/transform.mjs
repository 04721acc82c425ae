// Reads {panels, probes} on stdin and prints what Grafana shows of them.
//
// A panel is {transformations, answers, fieldConfig, reduceOptions, from, to}; of it come the frames
// that it would draw, gaps and empty ones included, and, with reduceOptions, the numbers printed.
// A probe is {config, values}: how single values look under the settings of a field.
// With them come the ids of all units and transformations.
import { readFileSync } from "node:fs";
import { framesOf } from "./frames.mjs";
import {
  FieldType,
  applyFieldOverrides,
  applyNullInsertThreshold,
  createTheme,
  formattedValueToString,
  getDisplayProcessor,
  getFieldDisplayName,
  getFieldDisplayValues,
  getValueFormats,
  propertiesOf,
  transformDataFrame,
  transformers,
} from "./grafana.mjs";

const theme = createTheme();
const NO_SETTINGS = { defaults: {}, overrides: [] };
const shared = { theme, timeZone: "utc", replaceVariables: (text) => text };

async function drawn({ transformations, answers, fieldConfig = NO_SETTINGS, ...panel }) {
  const unknown = transformations.filter(({ id }) => !transformers.has(id)).map(({ id }) => id);
  if (unknown.length > 0) throw new Error(`no such transformation: ${unknown}`);
  const transformed = await first(transformDataFrame(transformations, answers.flatMap(framesOf)));
  const fieldConfigRegistry = propertiesOf(fieldConfig);
  const settings = structuredClone(fieldConfig);
  const data = applyFieldOverrides({
    ...shared,
    data: transformed,
    fieldConfig: settings,
    fieldConfigRegistry,
  });
  return {
    frames: data.map((each) => plain(each, data, panel)),
    numbers: panel.reduceOptions
      ? numbersOf({ ...shared, data, fieldConfig: settings, reduceOptions: panel.reduceOptions })
      : [],
  };
}

function first(observable) {
  return new Promise((resolve, reject) => observable.subscribe({ next: resolve, error: reject }));
}

function plain(frame, frames, { from, to }) {
  const gaps = { refFieldPseudoMin: from ?? null, refFieldPseudoMax: to ?? null };
  const { fields } = from ? applyNullInsertThreshold({ frame, ...gaps }) : frame;
  return {
    refId: frame.refId,
    name: frame.name,
    fields: fields.map((field) => plainField(field, frame, frames)),
  };
}

function plainField(field, frame, frames) {
  const { name, type, labels } = field;
  const values = [...field.values];
  if (type === FieldType.time) return { name, type, values };
  const looks = values.map((value) => field.display(value));
  return {
    name,
    type,
    labels,
    display: getFieldDisplayName(field, frame, frames),
    settings: settingsOf(field.config),
    values,
    texts: looks.map(formattedValueToString),
    colors: looks.map(({ color }) => color),
  };
}

function settingsOf({ unit, min, max, links, custom = {} }) {
  return { unit, min, max, links, hidden: custom.hidden, cell: custom.cellOptions?.type };
}

function numbersOf(options) {
  return getFieldDisplayValues(options).map(({ display }) => ({
    title: display.title,
    text: formattedValueToString(display),
    numeric: display.numeric,
    color: display.color,
  }));
}

function probed({ config, values }) {
  const [{ fields }] = applyFieldOverrides({
    ...shared,
    data: [{ length: 0, fields: [{ name: "Value", type: FieldType.number, values: [], config: {} }] }],
    fieldConfig: { defaults: config, overrides: [] },
    fieldConfigRegistry: propertiesOf({ defaults: config, overrides: [] }),
  });
  return values.map((value) => {
    const display = getDisplayProcessor({ field: fields[0], theme })(value);
    return { text: formattedValueToString(display), color: display.color };
  });
}

const asked = JSON.parse(readFileSync(0, "utf8"));
const units = getValueFormats().flatMap(({ submenu }) => submenu.map(({ value }) => value));
const panels = await Promise.all((asked.panels ?? []).map(drawn));
const probes = (asked.probes ?? []).map(probed);
const known = { units, transformers: [...transformers.keys()] };
process.stdout.write(JSON.stringify({ ...known, panels, probes }), () => process.exit(0));
