#!/usr/bin/env bash
# @platformatic/promotel 0.2.2: histograms arrive in OTLP without buckets, counters of routes with parameters not at all.
# Expected of a converter whose readme names histograms among the kinds that it supports: the counts per bucket and the bounds
# of OTLP's explicit-bounds histogram, here 1, 2, 1 for up to 0.1, up to 1, more. A label value may hold any character
# (Prometheus text format: only backslash, quote and line feed are escaped), as the braces of "/policies/{id}".
# Seen: one bucket with all 4 and no bounds, so no percentile can be had; the series whose route has braces is dropped silently.
set -euo pipefail
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
npm init -y >/dev/null; npm install --silent --no-audit --no-fund @platformatic/promotel@0.2.2 prom-client@15.1.3
cat >run.mjs <<'JS'
import { convert, getFromRegistry } from '@platformatic/promotel';
import { Counter, Histogram, Registry } from 'prom-client';
const registers = [new Registry()];
const seconds = new Histogram({ name: 'append_seconds', help: 'time to append', buckets: [0.1, 1], registers });
for (const value of [0.05, 0.3, 0.5, 5]) seconds.observe(value);
const requests = new Counter({ name: 'requests_total', help: 'requests', labelNames: ['route'], registers });
for (const route of ['/policies', '/policies/{id}']) requests.inc({ route }, 7);
console.log(await registers[0].metrics());
const otlp = convert(await getFromRegistry({ registry: registers[0] }));
const metrics = Object.fromEntries(otlp.resource_metrics[0].scope_metrics[0].metrics.map((metric) => [metric.name, metric]));
const [{ count, bucket_counts, explicit_bounds }] = metrics.append_seconds.histogram.data_points;
const routes = metrics.requests_total.sum.data_points.map(({ attributes }) => attributes[0].value.string_value);
console.log({ count, bucket_counts, explicit_bounds, routes });
process.exit(`${count} ${bucket_counts} ${explicit_bounds}` === '4 4 ' && routes.join() === '/policies' ? 0 : 1);
JS
node run.mjs
