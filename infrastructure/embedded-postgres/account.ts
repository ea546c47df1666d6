import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process'
import { access, constants, readFile, realpath, stat } from 'node:fs/promises'
import { delimiter, dirname, join } from 'node:path'
import { copyBinaries, type EmbeddedBinaries } from './binaries.ts'
import { EmbeddedPostgresError } from './data-directory-lock.ts'

export interface ToolResult {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

/** How programs of the server are started: as whom, and through which wrapper. */
export interface ServerAccount {
  /** owner of the cluster's files; null when that is simply the current user */
  readonly owner: { readonly uid: number; readonly gid: number } | null
  readonly binaries: EmbeddedBinaries
  /** `PostgreSQL` version text of the binary that was tried */
  readonly versionText: string
  spawn(file: string, args: readonly string[], options: SpawnOptions): ChildProcess
}

interface User {
  readonly name: string
  readonly uid: number
  readonly gid: number
}

/**
 * Chooses the user the server runs as and proves that the binaries start as that user. PostgreSQL refuses to run as
 * root, so root hands over to the cluster's present owner, `postgres` or `nobody`; where such a user could not walk
 * to the files, the capability to read past directory permissions goes along, nothing is changed on the way.
 * @throws EmbeddedPostgresError when no way works.
 */
export async function chooseAccount(dataDir: string, binaries: EmbeddedBinaries): Promise<ServerAccount> {
  const setpriv = await findProgram('setpriv')
  if (process.getuid?.() !== 0) {
    const wrappers = [setpriv ? [setpriv, '--pdeathsig', 'SIGINT'] : [], []]
    for (const wrapper of wrappers) {
      const account = await tryAccount(null, wrapper, binaries)
      if ('spawn' in account) return account
      if (wrapper.length === 0) throw unusableBinaries(account)
    }
  }
  const user = await chooseUser(join(dataDir, 'postgres'))
  const reachesData = await canWalk(await realpath(dataDir), user)
  const reachesBinaries = await canRead(binaries, user)
  let failure: ToolResult | null = null
  if (setpriv) {
    for (const capabilities of reachesData && reachesBinaries
      ? [['--bounding-set', '-all']]
      : capabilityChoices) {
      const become = [setpriv, '--reuid', `${user.uid}`, '--regid', `${user.gid}`, '--clear-groups']
      const account = await tryAccount(user, [...become, ...capabilities, '--pdeathsig', 'SIGINT'], binaries)
      if ('spawn' in account) return account
      failure = account
    }
    if (failure && !/^setpriv:|permission denied/i.test(failure.stderr)) throw unusableBinaries(failure)
  }
  if (!reachesData) {
    const remedy = setpriv ? 'allow the capability DAC_READ_SEARCH' : 'install setpriv (util-linux)'
    throw new EmbeddedPostgresError(
      `PostgreSQL runs as user ${user.name} instead of root, who cannot reach ${dataDir}: ${remedy}, ` +
        'set DATA_DIR below directories with mode 0755, or start the service as another user',
    )
  }
  const reachable = reachesBinaries ? binaries : await copyBinaries(binaries, dataDir)
  const account = await tryAccount(user, [], reachable)
  if ('spawn' in account) return account
  throw unusableBinaries(failure ?? account)
}

/** Ways to read past directory permissions, best first; containers often grant the second capability only. */
const capabilityChoices: readonly (readonly string[])[] = ['dac_read_search', 'dac_override'].flatMap(
  (name) => {
    const grant = [
      '--inh-caps',
      `-all,+${name}`,
      '--ambient-caps',
      `+${name}`,
      '--bounding-set',
      `-all,+${name}`,
    ]
    // access(2), with which PostgreSQL looks for its own files, ignores capabilities without that bit
    return [[...grant, '--securebits', '+no_setuid_fixup'], grant]
  },
)

async function tryAccount(
  user: User | null,
  wrapper: readonly string[],
  binaries: EmbeddedBinaries,
): Promise<ServerAccount | ToolResult> {
  const [program, ...leading] = wrapper
  const start = (file: string, args: readonly string[], options: SpawnOptions): ChildProcess => {
    // no PG* variable of the service may reach the server; '/' because the user may not see our directory
    const env = { PATH: process.env.PATH ?? '/usr/bin:/bin', LC_ALL: 'C', TZ: 'UTC' }
    const identity = user && !program ? { uid: user.uid, gid: user.gid } : {}
    const all = { cwd: '/', env, ...identity, ...options }
    return program ? spawn(program, [...leading, file, ...args], all) : spawn(file, [...args], all)
  }
  const result = await run(start, binaries.postgres, ['--version'])
  // a complaint about its own path means that initdb would not find it either
  if (result.code !== 0 || result.stderr.includes('invalid binary')) return result
  return { owner: user, binaries, versionText: result.stdout.trim(), spawn: start }
}

/** Runs a program to its end, with `input` on its standard input; a failed spawn is reported as code null. */
export function run(
  start: ServerAccount['spawn'],
  file: string,
  args: readonly string[],
  input = '',
): Promise<ToolResult> {
  return new Promise((resolve) => {
    let child: ChildProcess
    try {
      child = start(file, args, { stdio: ['pipe', 'pipe', 'pipe'] })
    } catch (error) {
      resolve({ code: null, stdout: '', stderr: String(error) })
      return
    }
    let stdout = ''
    let stderr = ''
    child.stdout?.setEncoding('utf8').on('data', (text: string) => {
      stdout += text
    })
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      stderr += text
    })
    child.on('error', (error) => resolve({ code: null, stdout, stderr: error.message }))
    child.on('close', (code) => resolve({ code, stdout, stderr }))
    // the program may end without reading
    child.stdin?.on('error', () => undefined)
    child.stdin?.end(input)
  })
}

/** The last line of a program's complaints that is not empty, preferably one that states an error. */
export function lastError(result: Pick<ToolResult, 'stderr' | 'code'>): string {
  const lines = result.stderr.split('\n').filter((line) => line.trim() !== '')
  const stated = lines.filter((line) => /\b(error|fatal|panic)\b/i.test(line))
  return (stated.at(-1) ?? lines.at(-1) ?? `exit code ${result.code}`).trim()
}

function unusableBinaries(result: ToolResult): EmbeddedPostgresError {
  return new EmbeddedPostgresError(`the PostgreSQL binaries do not run here: ${lastError(result)}`)
}

async function chooseUser(clusterDir: string): Promise<User> {
  const users = (await readFile('/etc/passwd', 'utf8')).split('\n').flatMap((line): User[] => {
    const [name, , uid, gid] = line.split(':')
    return name && uid && gid ? [{ name, uid: Number(uid), gid: Number(gid) }] : []
  })
  // a cluster made by a service that did not run as root keeps its owner
  const owner = await stat(clusterDir).then(
    (stats) => stats.uid,
    () => 0,
  )
  const candidates = [
    users.find((user) => user.uid === owner && owner !== 0),
    users.find((user) => user.name === 'postgres' && user.uid !== 0),
    users.find((user) => user.name === 'nobody' && user.uid !== 0),
  ]
  const user = candidates.find((candidate) => candidate !== undefined)
  if (!user) {
    throw new EmbeddedPostgresError(
      'PostgreSQL refuses to run as root and /etc/passwd has no user postgres or nobody: start the service as another user',
    )
  }
  return user
}

async function canWalk(path: string, user: User): Promise<boolean> {
  for (let current = path; ; current = dirname(current)) {
    if (!(await permits(current, user, 1))) return false
    if (current === dirname(current)) return true
  }
}

async function canRead(binaries: EmbeddedBinaries, user: User): Promise<boolean> {
  const native = await realpath(binaries.native)
  if (!(await canWalk(native, user))) return false
  const samples = [
    binaries.postgres,
    join(native, 'lib'),
    join(native, 'share', 'postgresql', 'postgres.bki'),
    join(native, 'pg-symlinks.json'),
  ]
  const readable = await Promise.all(samples.map((path) => permits(path, user, 4).catch(() => true)))
  return readable.every(Boolean)
}

/** Plain permission bits only: access lists are rare here, and the trial run finds the rest. */
async function permits(path: string, user: User, bit: 1 | 4): Promise<boolean> {
  const { mode, uid, gid } = await stat(path)
  const shift = uid === user.uid ? 6 : gid === user.gid ? 3 : 0
  return ((mode >> shift) & bit) !== 0
}

async function findProgram(name: string): Promise<string | null> {
  if (process.platform !== 'linux') return null
  for (const directory of (process.env.PATH ?? '/usr/bin:/bin').split(delimiter)) {
    if (directory === '') continue
    const path = join(directory, name)
    try {
      await access(path, constants.X_OK)
      return path
    } catch {
      // not in this one
    }
  }
  return null
}
