import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { type Config, ConfigError } from '../config/config.ts'
import { OPERATOR_TOKEN, OPERATOR_TOKEN_EXPECTED, parseKeys } from '../config/setting-kinds.ts'
import { MasterKeys } from '../crypto/master-keys.ts'
import { ensureDataDirectory, pathError } from '../embedded-postgres/data-directory-lock.ts'
import { createPrivate, exists, readPrivate } from '../private-files.ts'

/** The secrets that the service itself lives by, given or kept in the data directory. */
export interface ServiceSecrets {
  readonly operatorToken: string
  /** Where the operator finds the token; null when it was given. */
  readonly operatorTokenFile: string | null
  readonly masterKeys: MasterKeys
}

/**
 * Creates the data directory where something is kept there, and in it the operator token and the
 * master key that no setting gives, readable by the service's user only. Several processes may do
 * this at once. To be called before the embedded server makes its cluster.
 * @throws ConfigError with one line when the directory or a file in it cannot be used.
 */
export async function prepareDataDirectory(config: Config): Promise<ServiceSecrets> {
  const { dataDir, operatorToken, masterKeys } = config
  try {
    if (config.databaseUrl === null || operatorToken === null || masterKeys === null) {
      await ensureDataDirectory(dataDir)
    }
    const tokenFile = operatorToken === null ? join(dataDir, 'operator-token') : null
    return {
      operatorToken: operatorToken ?? (await readOperatorToken(tokenFile!)),
      operatorTokenFile: tokenFile,
      masterKeys: new MasterKeys(masterKeys ?? (await readMasterKeys(dataDir))),
    }
  } catch (error) {
    if (error instanceof ConfigError) throw error
    throw new ConfigError(`DATA_DIR: ${pathError(dataDir, error).message}`)
  }
}

async function readOperatorToken(path: string): Promise<string> {
  const token =
    (await readPrivate(path)) ?? (await createPrivate(path, `op_${randomBytes(32).toString('hex')}`))
  if (!OPERATOR_TOKEN.test(token)) {
    throw new ConfigError(
      `DATA_DIR: ${path} holds no operator token, expected ${OPERATOR_TOKEN_EXPECTED}; remove the file for a new one`,
    )
  }
  return token
}

async function readMasterKeys(dataDir: string): Promise<readonly Buffer[]> {
  const path = join(dataDir, 'master-key')
  let text = await readPrivate(path)
  if (text === null) {
    // a new key could not unwrap what the old one wrapped
    if (await exists(join(dataDir, 'postgres'))) {
      throw new ConfigError(
        `DATA_DIR: ${path} is missing, without it the data beside it cannot be read: restore the file or set MASTER_KEY`,
      )
    }
    text = await createPrivate(path, randomBytes(32).toString('base64'))
  }
  const keys = parseKeys(text)
  if (!keys) {
    throw new ConfigError(
      `DATA_DIR: ${path} is malformed, expected 32 bytes in base64 (44 characters), or a comma list of such keys: restore the file`,
    )
  }
  return keys
}
