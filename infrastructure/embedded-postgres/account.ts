import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process'
import { readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { copyBinaries, type EmbeddedBinaries } from './binaries.ts'
import { EmbeddedPostgresError } from './data-directory-lock.ts'

interface ToolResult {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

/** How programs of the server are started: under which account, and through which wrapper. */
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

/** The server is to end with the service, whatever ends that; where there is no setpriv (util-linux), it stays behind. */
const WITH_THE_SERVICE = ['--pdeathsig', 'SIGINT']

/** Rights to take along, least first; containers often grant the last capability only. */
const RIGHTS: readonly (readonly string[])[] = [
  ['--bounding-set', '-all'],
  ...['dac_read_search', 'dac_override'].flatMap((name) => {
    const all = `-all,+${name}`
    const grant = ['--inh-caps', all, '--ambient-caps', `+${name}`, '--bounding-set', all]
    // access(2), with which PostgreSQL looks for its own files, ignores capabilities without that bit
    return [[...grant, '--securebits', '+no_setuid_fixup'], grant]
  }),
]

/** What a trial ends with when the user cannot reach the data directory. */
const UNREACHABLE = 99

/**
 * Chooses the user the server runs as, and tries whether the binaries start as that user. PostgreSQL refuses to run as
 * root, so root hands over to the cluster's present owner, `postgres` or `nobody`; where such a user could not walk
 * to the files, the capability to read past directory permissions goes along, nothing is changed on the way.
 * @throws EmbeddedPostgresError when no way works.
 */
export async function chooseAccount(dataDir: string, installed: EmbeddedBinaries): Promise<ServerAccount> {
  const user = process.getuid?.() === 0 ? await chooseUser(join(dataDir, 'postgres')) : null
  const wrappers = user
    ? RIGHTS.map((rights) => [...['setpriv', '--reuid', `${user.uid}`, '--regid', `${user.gid}`], ...rights])
    : [['setpriv']]
  for (const wrapper of wrappers) {
    const more = user ? ['--clear-groups', ...WITH_THE_SERVICE] : WITH_THE_SERVICE
    const account = await tryAccount(dataDir, user, [...wrapper, ...more], installed)
    if ('spawn' in account) return account
  }
  const account = await tryAccount(dataDir, user, [], installed)
  if ('spawn' in account) return account
  if (user && account.code === UNREACHABLE) {
    throw new EmbeddedPostgresError(
      `PostgreSQL runs as user ${user.name} instead of root, who cannot reach ${dataDir}: let setpriv (util-linux) ` +
        'grant the capability DAC_READ_SEARCH, set DATA_DIR below directories with mode 0755, or start the service ' +
        'as another user',
    )
  }
  if (user) {
    const copied = await tryAccount(dataDir, user, [], await copyBinaries(installed, dataDir))
    if ('spawn' in copied) return copied
  }
  throw new EmbeddedPostgresError(`the PostgreSQL binaries do not run here: ${lastError(account)}`)
}

async function tryAccount(
  dataDir: string,
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
  const script = `cd "$0" || exit ${UNREACHABLE}; exec "$1" --version`
  const result = await run(start, '/bin/sh', ['-c', script, dataDir, binaries.postgres])
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

async function chooseUser(clusterDir: string): Promise<User> {
  // a cluster made by a service that did not run as root keeps its owner
  const owner = await stat(clusterDir).catch(() => null)
  if (owner && owner.uid !== 0) return { name: `${owner.uid}`, uid: owner.uid, gid: owner.gid }
  const users = await readFile('/etc/passwd', 'utf8')
  for (const name of ['postgres', 'nobody']) {
    const [, uid, gid] = new RegExp(`^${name}:[^:]*:(\\d+):(\\d+):`, 'm').exec(users) ?? []
    if (uid && gid && uid !== '0') return { name, uid: Number(uid), gid: Number(gid) }
  }
  throw new EmbeddedPostgresError(
    'PostgreSQL refuses to run as root and /etc/passwd has no user postgres or nobody: start the service as another user',
  )
}
