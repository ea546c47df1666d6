import { execFile } from 'node:child_process'
import { cp, mkdir, readFile, stat } from 'node:fs/promises'
import { basename, join, resolve } from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)

/** An instruction of a Dockerfile, its lines joined. */
export interface Instruction {
  readonly name: string
  readonly rest: string
}

/** A stage of a Dockerfile. */
export interface Stage {
  readonly base: string
  readonly name: string | null
  readonly instructions: readonly Instruction[]
}

/** What a Dockerfile makes, in a directory instead of an image. */
export interface BuiltImage {
  /** Stands for `/`. */
  readonly root: string
  /** Where the command starts, below `root`. */
  readonly workdir: string
  readonly env: Readonly<Record<string, string>>
  readonly user: string
  readonly command: readonly string[]
  readonly healthcheck: readonly string[]
}

/** @throws Error for a line that is no instruction. */
export function parseDockerfile(text: string): Stage[] {
  const stages: { base: string; name: string | null; instructions: Instruction[] }[] = []
  const joined = text.replace(/^#.*\n/gm, '').replace(/\\\n/g, ' ')
  for (const line of joined.split('\n').filter((one) => one.trim() !== '')) {
    const [, name, given] = /^([A-Z]+)\s+(.+)$/.exec(line) ?? fail(line)
    const rest = given!.trim().replace(/\s+/g, ' ')
    if (name !== 'FROM') (stages.at(-1) ?? fail(line)).instructions.push({ name: name!, rest })
    else {
      const [, base, as] = /^(\S+)(?: AS (\w+))?$/.exec(rest) ?? fail(line)
      stages.push({ base: base!, name: as ?? null, instructions: [] })
    }
  }
  return stages
}

/** The JSON list that is, or ends, an instruction's rest. */
export function execForm(rest: string): string[] {
  return JSON.parse(/\[.*\]$/.exec(rest)?.[0] ?? fail(rest))
}

/** `A=1 B=2` as an object. */
export function environmentOf(rest: string): Record<string, string> {
  return Object.fromEntries(rest.split(' ').map((pair) => pair.split(/=(.*)/s).slice(0, 2)))
}

/** Names at the top of a project that `COPY . .` leaves out. @throws Error for patterns with more to them. */
export async function ignoredBy(project: string): Promise<(name: string) => boolean> {
  const lines = (await readFile(join(project, '.dockerignore'), 'utf8')).split('\n')
  const patterns = lines.filter((line) => line !== '' && !line.startsWith('#'))
  for (const pattern of patterns) if (!/^(\*\.)?[\w.-]+$/.test(pattern)) fail(pattern)
  return (name) => patterns.some((one) => (one.startsWith('*.') ? name.endsWith(one.slice(1)) : name === one))
}

/**
 * Does what a project's Dockerfile says, each stage in a directory of its own below `directory`. `npm ci` takes the
 * packages of the lock file from the project's own `node_modules`; other commands are run as they are.
 */
export async function carryOut(project: string, directory: string): Promise<BuiltImage> {
  const stages = parseDockerfile(await readFile(join(project, 'Dockerfile'), 'utf8'))
  const roots = new Map<string | null, string>()
  let image: BuiltImage | undefined
  for (const [index, stage] of stages.entries()) {
    const root = join(directory, `stage-${index}`)
    roots.set(stage.name, root)
    let workdir = root
    const made = { env: {}, user: 'root', command: [] as string[], healthcheck: [] as string[] }
    await mkdir(join(root, 'usr/local/bin'), { recursive: true })
    for (const { name, rest } of stage.instructions) {
      if (name === 'WORKDIR') {
        workdir = join(root, rest)
        await mkdir(workdir, { recursive: true })
      } else if (name === 'COPY') await copy(project, roots, workdir, rest)
      else if (name === 'RUN') await carryOutCommand(project, root, workdir, rest)
      else if (name === 'ENV') Object.assign(made.env, environmentOf(rest))
      else if (name === 'USER') made.user = rest
      else if (name === 'CMD') made.command = execForm(rest)
      else if (name === 'HEALTHCHECK') made.healthcheck = execForm(rest)
      else if (name !== 'EXPOSE') fail(`${name} ${rest}`)
    }
    image = { root, workdir, ...made }
  }
  return image!
}

async function copy(
  project: string,
  roots: ReadonlyMap<string | null, string>,
  workdir: string,
  rest: string,
): Promise<void> {
  const [, from, list] = /^(?:--from=(\w+) )?(.+)$/.exec(rest)!
  const paths = list!.split(' ')
  const to = resolve(workdir, paths.pop()!)
  const isIgnored = await ignoredBy(project)
  for (const path of paths) {
    const source = from === undefined ? join(project, path) : join(roots.get(from) ?? fail(rest), path)
    // of a directory its content is copied
    if ((await stat(source)).isDirectory()) {
      const isLeftOut = (file: string) =>
        from === undefined && isIgnored(file.slice(project.length + 1).split('/')[0]!)
      if (basename(source) === 'node_modules') await link(source, to)
      else await cp(source, to, { recursive: true, filter: (file) => !isLeftOut(file) })
    } else {
      const isDirectory = list!.endsWith('/') || paths.length > 1
      await cp(source, isDirectory ? join(to, basename(source)) : to)
    }
  }
}

async function carryOutCommand(
  project: string,
  root: string,
  workdir: string,
  command: string,
): Promise<void> {
  if (command.startsWith('npm ci ')) return install(project, workdir, command)
  const here = command.replaceAll(/(?<=^| )\/(?=\w)/g, `${root}/`)
  await run('sh', ['-ec', here], { cwd: workdir, env: { PATH: process.env.PATH, HOME: workdir } })
}

/** A package of a lock file, as far as it tells whether it is installed. */
interface LockedPackage {
  readonly dev?: boolean
  readonly optional?: boolean
}

async function install(project: string, workdir: string, command: string): Promise<void> {
  const lock = JSON.parse(await readFile(join(workdir, 'package-lock.json'), 'utf8')) as {
    packages: Record<string, LockedPackage>
  }
  const omits = [...command.matchAll(/--omit=(\w+)/g)].map(([, what]) => what as 'dev' | 'optional')
  const chosen: string[] = []
  for (const [path, locked] of Object.entries(lock.packages)) {
    // what lies inside another package comes with it
    if (!/^node_modules\/(?!.*\/node_modules\/)/.test(path) || omits.some((what) => locked[what])) continue
    // those of other platforms are not here
    const isHere = await stat(join(project, path)).catch(() => null)
    if (isHere) chosen.push(path)
    else if (!locked.optional) throw new Error(`${path} of package-lock.json is not installed`)
  }
  await hardLinks(['--parents', ...chosen, workdir], project)
}

async function link(source: string, to: string): Promise<void> {
  await hardLinks([source, to], '/')
}

/** Copies without copying, where both are on one file system. */
async function hardLinks(args: readonly string[], cwd: string): Promise<void> {
  await run('cp', ['-al', ...args], { cwd }).catch(() => run('cp', ['-a', ...args], { cwd }))
}

function fail(what: string): never {
  throw new Error(`beyond what is read here: ${what}`)
}
