// npm run build: bundles the service, the command line and the benchmark into dist/, or those that are named
// (npm run build -- main cli). Packages stay outside.

import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'

const root = fileURLToPath(new URL('..', import.meta.url))

const PROGRAMS = { main: 'interfaces/main.ts', cli: 'interfaces/cli/main.ts', bench: 'bench/main.ts' }
const named = process.argv.slice(2)
const unknown = named.filter((name) => !(name in PROGRAMS))
if (unknown.length > 0) throw new Error(`no such program: ${unknown.join(', ')}`)

await build({
  absWorkingDir: root,
  entryPoints: Object.fromEntries(
    Object.entries(PROGRAMS).filter(([name]) => named.length === 0 || named.includes(name)),
  ),
  outdir: 'dist',
  bundle: true,
  platform: 'node',
  format: 'esm',
  target: 'node20.19',
  packages: 'external',
  sourcemap: true,
  logLevel: 'warning',
})
