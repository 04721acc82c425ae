// Data frames as Grafana's Prometheus source makes them of answers in the format `time_series`:
// one for each series, whose value is called as its metric, or `Value` where the query has left no
// name; an answer without series is a frame without fields.
import { FieldType, toDataFrame } from "./grafana.mjs";

const AUTO = "__auto";

// An answer is {refId, legend, expr, stepMs, result}.
export function framesOf(answer) {
  if (answer.result.length === 0) return [toDataFrame({ refId: answer.refId, fields: [] })];
  return answer.result.map((series) => frameOf(series, answer));
}

function frameOf({ metric, value, values }, answer) {
  const samples = values ?? [value];
  const displayNameFromDS = nameOf(metric, answer);
  const interval = answer.stepMs ? { interval: answer.stepMs } : {};
  return toDataFrame({
    refId: answer.refId,
    fields: [
      {
        name: "Time",
        type: FieldType.time,
        values: samples.map(([at]) => Math.round(at * 1000)),
        config: interval,
      },
      {
        name: metric.__name__ ?? "Value",
        type: FieldType.number,
        values: samples.map(([, text]) => numberOf(text)),
        labels: metric,
        config: displayNameFromDS ? { displayNameFromDS } : {},
      },
    ],
  });
}

// Without a legend Grafana names a series itself, by what differs between series.
function nameOf(metric, { legend, expr }) {
  if (legend && legend !== AUTO)
    return legend.replace(/\{\{\s*(.+?)\s*\}\}/g, (_, name) => metric[name] ?? "");
  return Object.keys(metric).length === 0 ? expr : "";
}

function numberOf(text) {
  return Number(text.replace("Inf", "Infinity"));
}
