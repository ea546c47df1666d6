// npm run build: bundles the service, the command line and the benchmark into dist/. Packages stay outside.

import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'

const root = fileURLToPath(new URL('..', import.meta.url))

await build({
  absWorkingDir: root,
  entryPoints: { main: 'interfaces/main.ts', cli: 'interfaces/cli/main.ts', bench: 'bench/main.ts' },
  outdir: 'dist',
  bundle: true,
  platform: 'node',
  format: 'esm',
  target: 'node20.19',
  packages: 'external',
  sourcemap: true,
  logLevel: 'warning',
})
