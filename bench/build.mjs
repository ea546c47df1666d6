// npm run build in this folder, and npm run bench in the project's: bundles the bench into dist/ here. Packages stay
// outside: the peers are installed here, what both need in the project's folder.

import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { build } from 'esbuild'

if (!existsSync(join(import.meta.dirname, 'node_modules'))) {
  console.error('The packages that the bench measures against are missing: npm ci --prefix bench')
  process.exit(1)
}

await build({
  absWorkingDir: import.meta.dirname,
  entryPoints: ['main.ts'],
  outdir: 'dist',
  bundle: true,
  packages: 'external',
  platform: 'node',
  format: 'esm',
  target: 'node20.19',
  sourcemap: true,
  logLevel: 'warning',
})
