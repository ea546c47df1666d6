// npm run build: bundles the service, the command line and the partners' client into dist/, with the packages that
// package.json lists under `bundled`; the others are installed beside it. Where the sources are not, in the package that
// npm pack makes, everything is built already.

import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { copyFile, mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
if (!existsSync(join(root, 'interfaces/main.ts'))) process.exit(0)

const { build } = await import('esbuild').catch(() => {
  console.error('The sources are here and esbuild is not, so dist/ would stay that of an earlier build. Run')
  console.error('`npm ci --include=dev`; `npm prune --omit=dev` may follow.')
  process.exit(1)
})
const { default: ts } = await import('typescript')

const project = JSON.parse(await readFile(join(root, 'package.json'), 'utf8'))
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
  entryPoints: {
    main: 'interfaces/main.ts',
    cli: 'interfaces/cli/main.ts',
    'catch-up': 'interfaces/service/catch-up.ts',
  },
  outdir: 'dist',
  // a running program keeps its source maps in memory: of the sources it needs the names and lines only
  sourcesContent: false,
  // what only some commands need is loaded by them
  splitting: true,
  chunkNames: 'chunks/[name]-[hash]',
  external: Object.keys(project.dependencies),
  // packages in the old form of modules ask for node's own by require
  banner: {
    js: "import { createRequire as requireOf } from 'node:module'; const require = requireOf(import.meta.url)",
  },
  metafile: true,
})

// of earlier builds
for (const folder of ['dist', 'dist/chunks']) {
  for (const name of await readdir(join(root, folder))) {
    const isOurs = join(folder, name) in metafile.outputs || !/\.js(\.map)?$/.test(name)
    if (!isOurs) await rm(join(root, folder, name))
  }
}

await copyViewer()
await writeLicenses()
await build({ ...options, entryPoints: ['clients/node/index.ts'], outfile: 'dist/client/index.js' })
await declareClient()
await packClient()

/** Copies what the pages `/docs` consist of. */
async function copyViewer() {
  await mkdir(join(root, 'dist/viewer'), { recursive: true })
  for (const name of ['swagger-ui-bundle.js', 'swagger-ui-bundle.js.LICENSE.txt', 'swagger-ui.css']) {
    await copyFile(join(root, 'node_modules/swagger-ui-dist', name), join(root, 'dist/viewer', name))
  }
}

/** Writes dist/LICENSES.txt: what each package that is in dist/ asks to be handed on with it. */
async function writeLicenses() {
  const inputs = [...Object.keys(metafile.inputs), 'node_modules/swagger-ui-dist/']
  const folders = new Set(
    inputs.flatMap((path) => /^.*node_modules\/(@[^/]+\/)?[^/]+(?=\/)/.exec(path)?.[0] ?? []),
  )
  const texts = []
  for (const folder of [...folders].sort()) {
    const { name, version, license } = JSON.parse(await readFile(join(root, folder, 'package.json'), 'utf8'))
    texts.push(`${name} ${version} (${license})`, ...(await licensesIn(join(root, folder))))
  }
  await writeFile(join(root, 'dist/LICENSES.txt'), `${texts.join('\n\n')}\n`)
}

/** @throws Error for a package that has neither such a file nor such a section in its README. */
async function licensesIn(folder) {
  const files = (await readdir(folder)).filter((name) => /^(licen[cs]e|notice|copying)/i.test(name))
  if (files.length > 0) {
    return Promise.all(files.map(async (name) => (await readFile(join(folder, name), 'utf8')).trim()))
  }
  const [section] = /^#*\s*License\b.*/ms.exec(await readFile(join(folder, 'README.md'), 'utf8')) ?? []
  if (section === undefined) throw new Error(`${folder} has no license to be handed on with it`)
  return [section.trim()]
}

/** Makes dist/client a package of its own, without dependencies, and packs it as dist/client.tgz, which hosts serve. */
async function packClient() {
  const { name, version, license, type, engines } = project
  const exports = { './client': { types: './index.d.ts', default: './index.js' } }
  const manifest = { name, version, description: 'Client for partners', license, type, engines, exports }
  await writeFile(join(root, 'dist/client/package.json'), `${JSON.stringify(manifest, null, 2)}\n`)
  await copyFile(join(root, 'clients/node/README.md'), join(root, 'dist/client/README.md'))
  // whoever builds by npm hands its settings on, a dry run among them
  const { PATH, HOME } = process.env
  const options = ['--silent', '--offline', '--no-update-notifier', '--pack-destination', 'dist']
  execFileSync('npm', ['pack', ...options, './dist/client'], {
    cwd: root,
    env: { PATH, HOME },
    stdio: 'pipe',
  })
  await rename(join(root, `dist/${name}-${version}.tgz`), join(root, 'dist/client.tgz'))
}

/** Writes the types of the client. */
async function declareClient() {
  for (const name of await readdir(join(root, 'clients/node'))) {
    if (!name.endsWith('.ts')) continue
    const source = await readFile(join(root, 'clients/node', name), 'utf8')
    const { outputText, diagnostics = [] } = ts.transpileDeclaration(source, {
      fileName: name,
      reportDiagnostics: true,
      compilerOptions: { target: ts.ScriptTarget.ES2023, module: ts.ModuleKind.NodeNext },
    })
    for (const { messageText } of diagnostics) throw new Error(`clients/node/${name}: ${messageText}`)
    const declared = outputText.replaceAll(/(from '\.\/[^']+)\.ts'/g, "$1.js'")
    await writeFile(join(root, 'dist/client', name.replace(/\.ts$/, '.d.ts')), declared)
  }
}
