// npm run build: bundles the service, the command line, the benchmark and the partners' client into dist/, or those
// that are named (npm run build -- main cli). Packages stay outside, but for those of many small files that every start
// would read.

import { readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'

const root = fileURLToPath(new URL('..', import.meta.url))

const PROGRAMS = {
  main: 'interfaces/main.ts',
  cli: 'interfaces/cli/main.ts',
  bench: 'bench/main.ts',
  client: 'client/index.ts',
}
const BUNDLED = ['zod', 'kysely']
const { dependencies, devDependencies } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8'))
const named = process.argv.slice(2)
const unknown = named.filter((name) => !(name in PROGRAMS))
if (unknown.length > 0) throw new Error(`no such program: ${unknown.join(', ')}`)

const isBuilt = (name) => named.length === 0 || named.includes(name)

const { metafile } = await build({
  absWorkingDir: root,
  entryPoints: Object.fromEntries(
    Object.entries(PROGRAMS)
      .filter(([name]) => isBuilt(name))
      .map(([name, path]) => [name === 'client' ? 'client/index' : name, path]),
  ),
  outdir: 'dist',
  bundle: true,
  // what only some commands need is loaded by them
  splitting: true,
  chunkNames: 'chunks/[name]-[hash]',
  platform: 'node',
  format: 'esm',
  target: 'node20.19',
  external: Object.keys({ ...dependencies, ...devDependencies }).filter((name) => !BUNDLED.includes(name)),
  sourcemap: true,
  logLevel: 'warning',
  metafile: true,
})

// chunks of earlier builds; programs that were not built now may need theirs
const chunks = join('dist', 'chunks')
for (const name of named.length > 0 ? [] : await readdir(join(root, chunks))) {
  if (!(join(chunks, name) in metafile.outputs)) await rm(join(root, chunks, name), { force: true })
}

if (isBuilt('client')) await declareClient()

/** Writes the types of the client, where the compiler is installed: it is a development package. */
async function declareClient() {
  const { default: ts } = await import('typescript').catch(() => ({ default: null }))
  if (ts === null) return
  for (const name of await readdir(join(root, 'client'))) {
    if (!name.endsWith('.ts')) continue
    const source = await readFile(join(root, 'client', name), 'utf8')
    const { outputText, diagnostics = [] } = ts.transpileDeclaration(source, {
      fileName: name,
      reportDiagnostics: true,
      compilerOptions: { target: ts.ScriptTarget.ES2023, module: ts.ModuleKind.NodeNext },
    })
    for (const { messageText } of diagnostics) throw new Error(`client/${name}: ${messageText}`)
    const declared = outputText.replaceAll(/(from '\.\/[^']+)\.ts'/g, "$1.js'")
    await writeFile(join(root, 'dist/client', name.replace(/\.ts$/, '.d.ts')), declared)
  }
}
