/**
 * npm run mutants: puts mistakes into copies of the sources, one at a time, and tells which test notices each. Outside CI:
 * run it before and after tests are cut, and compare. Options, behind `--`:
 *   --only PATTERN   those whose id and file fit the regular expression
 *   --named-only     runs the suites that are named beside a mutation, as `npm test` does, and not all of it after them
 *   --out FILE       keeps results as JSON lines; those that are in it are not tried again
 *   --in DIR         of another checkout, which has its node_modules, such as that of an earlier commit
 *   --workers N      so many at once, default 1
 *
 * A text that is not found exactly once, or a named suite that is not there, fails the run before it begins: tests that
 * are moved or merged take their names here with them. Ends with 1 when a mutation survived.
 */
import { type ChildProcess, execFile, execFileSync, spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { appendFile, copyFile, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { parseArgs, promisify } from 'node:util'
import { mutationsByArea } from './data/index.ts'
import type { Mutation } from './mutation.ts'

/** Who hangs is killed: suites that are named take seconds, the gate takes minutes. */
const NAMED_LIMIT_MS = 5 * 60_000
const GATE_LIMIT_MS = 40 * 60_000
/** Without a server and a build: they import the sources. */
const BARE_SUITE = /^(unit|properties)\//

type Mutant = Mutation & { readonly area: string }
interface Result {
  readonly id: string
  readonly area: string
  readonly file: string
  /** Null: it survived. */
  readonly killedBy: string | null
  readonly by: 'named' | 'gate' | null
  readonly seconds: number
}

const { values: options } = parseArgs({
  options: {
    only: { type: 'string', default: '' },
    'named-only': { type: 'boolean', default: false },
    out: { type: 'string' },
    in: { type: 'string' },
    workers: { type: 'string', default: '1' },
  },
})
const tree = resolve(options.in ?? '.')
/** Test runs that are under way: each leads a group of processes, which does not end with this one. */
const running = new Set<ChildProcess>()
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130))
process.once('exit', () => running.forEach(kill))

const all: readonly Mutant[] = Object.entries(mutationsByArea).flatMap(([area, mutations]) =>
  mutations.map((one) => ({ ...one, area })),
)
const only = new RegExp(options.only)
const asked = all.filter(({ id, file }) => only.test(`${id} ${file}`))
const faults = await faultsOf(asked)
if (faults.length > 0) {
  console.error(faults.join('\n'))
  process.exit(2)
}
const kept = options.out && existsSync(options.out) ? await readFile(options.out, 'utf8') : ''
const known = kept.split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line) as Result]))
const results = known.filter(({ id }) => asked.some((one) => one.id === id))
const untried = asked.filter(({ id }) => !results.some((one) => one.id === id))
// those that take seconds come first
const waiting = untried.toSorted((one, other) => Number(isBare(other)) - Number(isBare(one)))
await Promise.all(Array.from({ length: Math.min(Number(options.workers), waiting.length) }, work))
printTable()
process.exitCode = results.some(({ killedBy }) => killedBy === null) ? 1 : 0

/** What is wrong with the mutations themselves, by their ids. */
async function faultsOf(mutants: readonly Mutant[]): Promise<readonly string[]> {
  const found: string[] = []
  const ids = new Set<string>()
  for (const { id, file, find, put, suites } of mutants) {
    if (ids.has(id)) found.push(`${id}: two mutations have this id`)
    ids.add(id)
    const count = (await readFile(join(tree, file), 'utf8').catch(() => '')).split(find).length - 1
    if (count !== 1) found.push(`${id}: its text stands ${count} times in ${file}`)
    if (find === put) found.push(`${id}: it changes nothing`)
    // an earlier commit may have other suites: there the gate tells
    const missing = options.in === undefined ? suites.filter((suite) => !existsSync(pathOf(suite))) : []
    found.push(...missing.map((suite) => `${id}: there is no suite ${suite}`))
  }
  return found
}

function isBare({ suites }: Mutation): boolean {
  return suites.every((suite) => BARE_SUITE.test(suite))
}

function pathOf(suite: string): string {
  return join(tree, 'tests', `${suite}.test.ts`)
}

/** One worker: a copy of the tree, into which one mistake after the other is put. */
async function work(): Promise<void> {
  const copy = await mkdtemp(join(tmpdir(), 'mutants-'))
  try {
    await copyTree(copy)
    for (let next = waiting.shift(); next; next = waiting.shift()) {
      const result = await tryOut(copy, next)
      results.push(result)
      if (options.out) await appendFile(options.out, `${JSON.stringify(result)}\n`)
      const { id, killedBy, by, seconds } = result
      const what =
        killedBy === null ? 'SURVIVED' : `killed${by === 'gate' ? ' by the gate alone' : ''}: ${killedBy}`
      console.log(`${id} (${seconds} s) ${what}`)
    }
  } finally {
    await rm(copy, { recursive: true, force: true })
  }
}

async function copyTree(copy: string): Promise<void> {
  const listed = execFileSync('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], {
    cwd: tree,
    encoding: 'utf8',
    maxBuffer: 64 * 1024 * 1024,
  })
  for (const name of listed.split('\0')) {
    if (name === '' || !existsSync(join(tree, name))) continue
    await mkdir(dirname(join(copy, name)), { recursive: true })
    await copyFile(join(tree, name), join(copy, name))
  }
  await symlink(join(tree, 'node_modules'), join(copy, 'node_modules'))
}

async function tryOut(copy: string, mutant: Mutant): Promise<Result> {
  const { id, area, file, find, put, test } = mutant
  const path = join(copy, file)
  const source = await readFile(path, 'utf8')
  const from = performance.now()
  const ended = (killedBy: string | null, by: Result['by']): Result => {
    return { id, area, file, killedBy, by, seconds: Math.round((performance.now() - from) / 1000) }
  }
  await writeFile(
    path,
    source.replace(find, () => put),
  )
  try {
    const suites = mutant.suites.filter((suite) => existsSync(pathOf(suite)))
    if (!isBare(mutant)) await build(copy, id)
    if (suites.length > 0) {
      // a whole name would run what `npm test` leaves out
      const files = suites.map((suite) => `tests/${suite}.test.`)
      const pattern = test === undefined ? [] : ['-t', test]
      const projects = ['--project', 'unit', '--project', 'database']
      const killedBy = await runTests(copy, [...files, ...pattern, ...projects], NAMED_LIMIT_MS)
      if (killedBy !== null) return ended(killedBy, 'named')
    }
    if (options['named-only']) return ended(null, null)
    if (isBare(mutant)) await build(copy, id)
    const killedBy = await runTests(copy, [], GATE_LIMIT_MS)
    return ended(killedBy, killedBy === null ? null : 'gate')
  } finally {
    await writeFile(path, source)
  }
}

/** @throws Error for what nobody could have built: it shows nothing of the tests. */
async function build(copy: string, id: string): Promise<void> {
  const built = promisify(execFile)(process.execPath, ['scripts/build.mjs'], { cwd: copy })
  await built.catch((error: Error) => {
    throw new Error(`${id}: it cannot be built: ${error.message}`)
  })
}

/** Runs tests until the first fails. @returns what failed; null: nothing did. */
async function runTests(copy: string, which: readonly string[], limitMs: number): Promise<string | null> {
  const told = join(copy, 'results.json')
  await rm(told, { force: true })
  const vitest = join(tree, 'node_modules/vitest/vitest.mjs')
  const child = spawn(
    process.execPath,
    [vitest, 'run', ...which, '--bail=1', '--passWithNoTests', '--reporter=json', `--outputFile=${told}`],
    { cwd: copy, detached: true, stdio: ['ignore', 'pipe', 'pipe'] },
  )
  running.add(child)
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      output = (output + text).slice(-20_000)
    })
  }
  let isLate = false
  const limit = setTimeout(() => {
    isLate = true
    kill(child)
  }, limitMs)
  const code = await new Promise<number | null>((done) => child.once('close', done))
  clearTimeout(limit)
  running.delete(child)
  if (isLate) return `a time limit: it hung for ${limitMs / 60_000} minutes`
  const failed = await failedTest(told, copy)
  if (failed !== null || code === 0) return failed
  return `an error outside tests: ${output.trim().split('\n').slice(-3).join(' ')}`
}

function kill({ pid }: ChildProcess): void {
  if (pid !== undefined) process.kill(-pid, 'SIGKILL')
}

interface Told {
  readonly numPassedTests: number
  readonly testResults: readonly {
    readonly name: string
    readonly status: string
    readonly message: string
    readonly assertionResults: readonly { readonly status: string; readonly fullName: string }[]
  }[]
}

/** The first test that failed, or the file that could not be loaded. */
async function failedTest(told: string, copy: string): Promise<string | null> {
  if (!existsSync(told)) return null
  const { numPassedTests, testResults } = JSON.parse(await readFile(told, 'utf8')) as Told
  for (const { name, status, message, assertionResults } of testResults) {
    const suite = name.slice(copy.length + 1)
    const test = assertionResults.find((one) => one.status === 'failed')
    if (test) return `${suite} › ${test.fullName}`
    if (status === 'failed') return `${suite} › ${message.split('\n')[0]}`
  }
  if (numPassedTests === 0) console.error('no test ran')
  return null
}

function printTable(): void {
  const areas = Object.keys(mutationsByArea).map((area) => {
    const of = results.filter((one) => one.area === area)
    const count = (by: Result['by']) => of.filter((one) => one.by === by).length
    return {
      area,
      mutations: of.length,
      'killed by named': count('named'),
      'by the gate': count('gate'),
      survived: count(null),
    }
  })
  console.table(areas)
  const survivors = results.filter(({ killedBy }) => killedBy === null)
  for (const { id } of survivors) {
    const { file, harm } = all.find((one) => one.id === id)!
    console.log(`SURVIVED ${id} (${file}): ${harm}`)
  }
  console.log(`${results.length - survivors.length} of ${results.length} mutations were killed`)
}
