import { constants } from 'node:fs'
import { access, realpath, stat } from 'node:fs/promises'
import { isWithin } from '../../infrastructure/config/combinations.ts'
import { ConfigError } from '../../infrastructure/config/config.ts'
import { errorCode } from '../../infrastructure/error-code.ts'

/**
 * Checks a folder that a setting names. One that is not there is not made: it may be a place that is not mounted.
 * @throws ConfigError
 */
export async function checkFolder(name: string, path: string, dataDir: string): Promise<void> {
  const refuse = (why: string) =>
    new ConfigError(
      `${name} is ${JSON.stringify(path)}, ${why}: expected a directory that the service can write`,
    )
  try {
    if (!(await stat(path)).isDirectory()) throw refuse('which is no directory')
    await access(path, constants.R_OK | constants.W_OK | constants.X_OK)
  } catch (error) {
    if (error instanceof ConfigError) throw error
    throw refuse(`which cannot be used (${errorCode(error)})`)
  }
  const real = await realpath(path)
  const data = await realpath(dataDir).catch(() => dataDir)
  if (isWithin(data, real) || isWithin(real, data))
    throw new ConfigError(`${name} is in DATA_DIR (${dataDir}), or around it: expected a directory apart`)
}
