// Grafana's data engine under Node: all of @grafana/data, with its transformations and its standard
// field properties registered as the application registers them.
import { createRequire } from "node:module";
import { JSDOM } from "jsdom";

const page = new JSDOM("<!doctype html>", { url: "http://localhost/" });
globalThis.window = page.window;
globalThis.document = page.window.document;
Object.defineProperty(globalThis, "navigator", { value: page.window.navigator });

// Its ESM build imports names from CommonJS modules that Node cannot see; its CommonJS build loads.
const grafana = createRequire(import.meta.url)("@grafana/data");
const { standardTransformers, standardTransformersRegistry } = grafana;

export const {
  FieldType,
  applyFieldOverrides,
  applyNullInsertThreshold,
  createTheme,
  formattedValueToString,
  getDisplayProcessor,
  getFieldDisplayName,
  getFieldDisplayValues,
  getValueFormats,
  toDataFrame,
  transformDataFrame,
} = grafana;

export const transformers = new Map(
  Object.values(standardTransformers).map((each) => [each.id, each]),
);
standardTransformersRegistry.setInit(() =>
  [...transformers.values()].map((each) => ({
    id: each.id,
    name: each.name,
    transformation: () => Promise.resolve(each),
  })),
);

const STANDARD = [
  ...["color", "decimals", "displayName", "fieldMinMax", "links", "mappings", "max", "min"],
  ...["noValue", "thresholds", "unit"],
];

// What the settings of a panel may be called: the standard properties, and those of its own that
// its `fieldConfig` sets. Grafana passes over others without a word.
export function propertiesOf({ defaults, overrides }) {
  const set = overrides.flatMap((each) => each.properties.map(({ id }) => id));
  const own = Object.keys(defaults.custom ?? {}).map((name) => `custom.${name}`);
  const custom = [...own, ...set].filter((id) => id.startsWith("custom."));
  const unknown = set.filter((id) => !STANDARD.includes(id) && !id.startsWith("custom."));
  if (unknown.length > 0) throw new Error(`no such field property: ${unknown}`);
  return new grafana.FieldConfigOptionsRegistry(() => [
    ...STANDARD.map((id) => property(id, id, false)),
    ...[...new Set(custom)].map((id) => property(id, id.slice("custom.".length), true)),
  ]);
}

function property(id, path, isCustom) {
  return { id, path, isCustom, name: id, process: (value) => value, shouldApply: () => true };
}
