import { readFileSync } from 'node:fs'
import { ConfigError } from '../config-error.ts'
import { SECRET_SETTINGS } from './settings.ts'

/**
 * Reads the secrets that `<NAME>_FILE` names, without the blanks and line breaks around them. Nothing else than
 * {@link SECRET_SETTINGS} is read from files.
 * @param env usually `process.env`.
 * @returns values by setting.
 * @throws ConfigError with one line, also when a setting is given both ways; it never quotes a file's content.
 */
export function readSecretFiles(
  env: Readonly<Record<string, string | undefined>>,
): ReadonlyMap<string, string> {
  const values = new Map<string, string>()
  for (const name of SECRET_SETTINGS) {
    const path = env[`${name}_FILE`]?.trim()
    if (!path) continue
    if (env[name]?.trim()) {
      throw new ConfigError(`${name}_FILE and ${name} are both set: expected one of them`)
    }
    values.set(name, readSecretFile(`${name}_FILE`, path))
  }
  return values
}

/**
 * The content of one secret's file without the blanks and line breaks around it.
 * @param setting the variable that named the file, for errors.
 * @throws ConfigError when it cannot be read or holds nothing.
 */
export function readSecretFile(setting: string, path: string): string {
  let text: string
  try {
    text = readFileSync(path, 'utf8').trim()
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    throw new ConfigError(`${setting} cannot be read (${code}): expected the path of a file with the secret`)
  }
  if (text === '') throw new ConfigError(`${setting} is an empty file: expected a file with the secret`)
  return text
}
