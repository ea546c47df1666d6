// npm run build: bundles the service, the command line, the benchmark and the partners' client into dist/, or those
// that are named (npm run build -- main cli). Packages stay outside, but for those of many small files that every start
// would read.

import { copyFile, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'

const root = fileURLToPath(new URL('..', import.meta.url))

const PROGRAMS = {
  main: 'interfaces/main.ts',
  cli: 'interfaces/cli/main.ts',
  bench: 'bench/main.ts',
}
const CLIENT = 'client'
const BUNDLED = ['zod', 'kysely']
const project = JSON.parse(await readFile(join(root, 'package.json'), 'utf8'))
const { dependencies, devDependencies } = project
const named = process.argv.slice(2)
const unknown = named.filter((name) => !(name in PROGRAMS) && name !== CLIENT)
if (unknown.length > 0) throw new Error(`no such program: ${unknown.join(', ')}`)

const isBuilt = (name) => named.length === 0 || named.includes(name)

const options = {
  absWorkingDir: root,
  bundle: true,
  platform: 'node',
  format: 'esm',
  target: 'node20.19',
  sourcemap: true,
  logLevel: 'warning',
}

const { metafile } = await build({
  ...options,
  entryPoints: Object.fromEntries(Object.entries(PROGRAMS).filter(([name]) => isBuilt(name))),
  outdir: 'dist',
  // a running program keeps its source maps in memory: of the sources it needs the names and lines only
  sourcesContent: false,
  // what only some commands need is loaded by them
  splitting: true,
  chunkNames: 'chunks/[name]-[hash]',
  external: Object.keys({ ...dependencies, ...devDependencies }).filter((name) => !BUNDLED.includes(name)),
  metafile: true,
})

// chunks of earlier builds; programs that were not built now may need theirs
const chunks = join('dist', 'chunks')
for (const name of named.length > 0 ? [] : await readdir(join(root, chunks))) {
  if (!(join(chunks, name) in metafile.outputs)) await rm(join(root, chunks, name), { force: true })
}

if (isBuilt(CLIENT)) {
  await build({ ...options, entryPoints: ['client/index.ts'], outfile: 'dist/client/index.js' })
  await declareClient()
  await packClient()
}

/** Makes dist/client a package of its own, without dependencies: `npm pack ./dist/client` is what partners get. */
async function packClient() {
  const { name, version, license, type, engines } = project
  const exports = { './client': { types: './index.d.ts', default: './index.js' } }
  const manifest = { name, version, description: 'Client for partners', license, type, engines, exports }
  await writeFile(join(root, 'dist/client/package.json'), `${JSON.stringify(manifest, null, 2)}\n`)
  await copyFile(join(root, 'client/README.md'), join(root, 'dist/client/README.md'))
}

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
