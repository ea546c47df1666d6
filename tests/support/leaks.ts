import { readdir, readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type pg from 'pg'

/** Finds texts that must not be there, in every form in which they could be. */
export interface LeakFinder {
  /** Names of the values that a text or the content of a file holds, with the form that was found. */
  find(content: string | Buffer): readonly string[]
}

const EMPTY = '\0'.repeat(512)

/** @param values by name; each at least 8 characters long, so that nothing is found by chance. */
export function leakFinder(values: Readonly<Record<string, string>>): LeakFinder {
  const plain: [string, string][] = []
  const exact: [string, string][] = []
  for (const [name, value] of Object.entries(values)) {
    if (value.length < 8) throw new Error(`${name} is too short to be searched for`)
    const bytes = Buffer.from(value)
    plain.push([name, bytes.toString('latin1')])
    plain.push([`${name} (UTF-16)`, Buffer.from(value, 'utf16le').toString('latin1')])
    plain.push([`${name} (hex)`, bytes.toString('hex')])
    if (encodeURIComponent(value) !== value) plain.push([`${name} (URL-encoded)`, encodeURIComponent(value)])
    const digits = value.replace(/\D/g, '')
    if (/^[\d-]+$/.test(value) && digits !== value) plain.push([`${name} (digits)`, digits])
    for (const [shift, drop] of [
      [0, 0],
      [1, 2],
      [2, 3],
    ] as const) {
      // in the middle of something longer, only the characters that depend on nothing else count
      const encoded = Buffer.concat([Buffer.alloc(shift), bytes])
        .toString('base64')
        .replace(/=+$/, '')
      const whole = Math.floor(((shift + bytes.length) * 8) / 6)
      const core = encoded.slice(drop, whole)
      exact.push(
        [`${name} (base64)`, core],
        [`${name} (base64url)`, core.replace(/\+/g, '-').replace(/\//g, '_')],
      )
    }
  }
  const lowered = plain.map(([name, text]) => [name, text.toLowerCase()] as const)
  return {
    find(content) {
      const bytes = typeof content === 'string' ? Buffer.from(content) : content
      // files of a database are mostly empty
      const text = bytes.toString('latin1').split(EMPTY).join('\0')
      const lower = text.toLowerCase()
      const found = new Set<string>()
      for (const [name, needle] of lowered) if (lower.includes(needle)) found.add(name)
      for (const [name, needle] of exact) if (text.includes(needle)) found.add(name)
      return [...found]
    },
  }
}

/** All files below a directory, as paths relative to it. */
export async function filesBelow(directory: string): Promise<readonly string[]> {
  const files: string[] = []
  for (const name of (await readdir(directory, { recursive: true })) as string[]) {
    // a running database makes and removes files
    const found = await stat(join(directory, name)).catch(() => null)
    if (found?.isFile()) files.push(name)
  }
  return files
}

/**
 * What stands in the files below a directory, as `file: value`.
 * @param since epoch milliseconds; files that were written before are not searched.
 */
export async function leaksInFiles(
  directory: string,
  finder: LeakFinder,
  since = 0,
): Promise<readonly string[]> {
  const leaks: string[] = []
  for (const name of await filesBelow(directory)) {
    const written = (await stat(join(directory, name)).catch(() => null))?.mtimeMs ?? 0
    // clocks of files are coarser
    if (written < since - 1_000) continue
    const content = await readFile(join(directory, name)).catch(() => Buffer.alloc(0))
    leaks.push(...finder.find(content).map((value) => `${name}: ${value}`))
  }
  return leaks
}

/** What stands in the rows of a database, which may be compressed in its files, as `relation: value`. */
export async function leaksInRows(client: pg.Client, finder: LeakFinder): Promise<readonly string[]> {
  const { rows: relations } = await client.query<{ name: string }>(
    `SELECT format('%I.%I', nspname, relname) AS name
       FROM pg_class JOIN pg_namespace n ON n.oid = relnamespace
      WHERE relkind IN ('r', 'm', 'p') AND nspname NOT IN ('pg_catalog', 'information_schema', 'pg_toast')
      UNION ALL VALUES ('pg_stats'), ('pg_stat_activity'), ('pg_description'), ('pg_db_role_setting')`,
  )
  const leaks: string[] = []
  for (const { name } of relations) {
    const { rows } = await client.query<{ text: string }>(`SELECT r::text AS text FROM ${name} r`)
    const found = new Set(rows.flatMap(({ text }) => finder.find(text)))
    leaks.push(...[...found].map((value) => `${name}: ${value}`))
  }
  return leaks
}
