// Reads [{transformations, answers}] on stdin and prints, for each, the frames that a Grafana panel
// would draw. An answer is {refId, legend, result}: what Prometheus gave for one target, in
// the format `time_series`; its frames are made as Grafana's data source makes them.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { JSDOM } from "jsdom";

const page = new JSDOM("<!doctype html>", { url: "http://localhost/" });
globalThis.window = page.window;
globalThis.document = page.window.document;
Object.defineProperty(globalThis, "navigator", { value: page.window.navigator });

// Its ESM build imports names from CommonJS modules that Node cannot see; its CommonJS build loads.
const grafana = createRequire(import.meta.url)("@grafana/data");
const { standardTransformers, standardTransformersRegistry, transformDataFrame } = grafana;
const { FieldType, getValueFormats, toDataFrame } = grafana;

const known = new Map(Object.values(standardTransformers).map((each) => [each.id, each]));
standardTransformersRegistry.setInit(() =>
  [...known.values()].map((each) => ({
    id: each.id,
    name: each.name,
    transformation: () => Promise.resolve(each),
  })),
);

function legendOf(pattern, metric) {
  return pattern.replace(/\{\{\s*(\w+)\s*\}\}/g, (_, name) => metric[name] ?? "");
}

function frameOf({ metric, value, values }, { refId, legend }) {
  const samples = values ?? [value];
  return toDataFrame({
    refId,
    fields: [
      { name: "Time", type: FieldType.time, values: samples.map(([at]) => at * 1000) },
      {
        name: "Value",
        type: FieldType.number,
        values: samples.map(([, text]) => Number(text)),
        labels: metric,
        config: { displayNameFromDS: legendOf(legend, metric) },
      },
    ],
  });
}

function first(observable) {
  return new Promise((resolve, reject) => observable.subscribe({ next: resolve, error: reject }));
}

async function transformed({ transformations, answers }) {
  const unknown = transformations.filter(({ id }) => !known.has(id)).map(({ id }) => id);
  if (unknown.length > 0) throw new Error(`no such transformation: ${unknown}`);
  const frames = answers.flatMap((answer) => answer.result.map((each) => frameOf(each, answer)));
  const result = await first(transformDataFrame(transformations, frames));
  return result.map(({ refId, name, fields }) => ({
    refId,
    name,
    fields: fields.map(({ name, type, labels, config, values }) => ({
      name,
      type,
      labels,
      display: config?.displayNameFromDS ?? config?.displayName,
      values: [...values],
    })),
  }));
}

const units = getValueFormats().flatMap(({ submenu }) => submenu.map(({ value }) => value));
const panels = await Promise.all(JSON.parse(readFileSync(0, "utf8")).map(transformed));
process.stdout.write(JSON.stringify({ units, panels }), () => process.exit(0));
