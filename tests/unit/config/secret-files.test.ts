import { randomBytes } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import pg from 'pg'
import { expect, test } from 'vitest'
import { ConfigError, loadConfig } from '../../../infrastructure/config/config.ts'
import { SECRET_SETTINGS, SETTING_NAMES, SETTINGS } from '../../../infrastructure/config/settings.ts'
import { parseDatabaseUrl } from '../../../infrastructure/database/connection.ts'
import { cli } from '../../support/cli.ts'
import { temporaryDirectory } from '../../support/temporary-directory.ts'

const directory = temporaryDirectory()

const KEY = randomBytes(32).toString('base64')
const TOKEN = `op_${randomBytes(32).toString('hex')}`
const URL_WITHOUT_PASSWORD = 'postgresql://compstream@db.example:5433/payroll'

/** Writes a secret's file. @returns its path. */
async function file(name: string, content: string): Promise<string> {
  const path = join(directory, name)
  await writeFile(path, content)
  return path
}

function refusal(env: Record<string, string>): string {
  try {
    loadConfig(env)
  } catch (error) {
    expect(error).toBeInstanceOf(ConfigError)
    const { message } = error as Error
    expect(message).not.toContain('\n')
    return message
  }
  throw new Error('the settings were accepted')
}

test('a secret is read from its file, without what surrounds it', async () => {
  const config = loadConfig({
    DATABASE_URL_FILE: await file('url', `${URL_WITHOUT_PASSWORD}\n`),
    MASTER_KEY_FILE: await file('key', `  ${KEY}\r\n\n`),
    OPERATOR_TOKEN_FILE: await file('token', TOKEN),
  })
  expect(config.databaseUrl).toBe(URL_WITHOUT_PASSWORD)
  expect(config.masterKeys!.map((key) => key.toString('base64'))).toEqual([KEY])
  expect(config.operatorToken).toBe(TOKEN)
})

test('an empty variable names no file, and leaves the other one alone', () => {
  expect(loadConfig({ OPERATOR_TOKEN_FILE: ' ', OPERATOR_TOKEN: TOKEN }).operatorToken).toBe(TOKEN)
})

test('only secrets are read from files', async () => {
  expect(loadConfig({ LOG_LEVEL_FILE: await file('level', 'debug') }).logLevel).toBe('info')
})

test('what is secret, or may hold a password, may be a file', () => {
  expect([...SECRET_SETTINGS].sort()).toEqual([
    'DATABASE_PASSWORD',
    'DATABASE_URL',
    'EVENTSTORE_URL',
    'MASTER_KEY',
    'NACHA_OFFSET_ACCOUNT',
    'NATS_CREDS',
    'NATS_NKEY_SEED',
    'NATS_URL',
    'OPERATOR_TOKEN',
    'PLAID_CLIENT_ID',
    'PLAID_SECRET',
    'SMS_URL',
    'SMTP_URL',
    'STRIPE_API_KEY',
    'STRIPE_WEBHOOK_SECRET',
  ])
})

test('every setting says what it means', () => {
  expect(SETTING_NAMES.filter((name) => !SETTINGS.shape[name].meta()?.description)).toEqual([])
})

test('one setting given both ways is refused, whatever the values', async () => {
  const path = await file('both', TOKEN)
  expect(refusal({ OPERATOR_TOKEN_FILE: path, OPERATOR_TOKEN: TOKEN })).toBe(
    'OPERATOR_TOKEN_FILE and OPERATOR_TOKEN are both set: expected one of them',
  )
})

test('a file that cannot be used is refused in one line that does not quote it', async () => {
  expect(refusal({ MASTER_KEY_FILE: join(directory, 'absent') })).toBe(
    'MASTER_KEY_FILE cannot be read (ENOENT): expected the path of a file with the secret',
  )
  expect(refusal({ MASTER_KEY_FILE: directory })).toContain('MASTER_KEY_FILE cannot be read (EISDIR)')
  expect(refusal({ MASTER_KEY_FILE: await file('empty', ' \n') })).toBe(
    'MASTER_KEY_FILE is an empty file: expected a file with the secret',
  )
  const malformed = refusal({ MASTER_KEY_FILE: await file('malformed', 'hunter2 is no key') })
  expect(malformed).toContain('MASTER_KEY_FILE: the file should hold 32 bytes in base64')
  expect(malformed).not.toContain('hunter2')
})

test.each([
  ['plain', 'p4ssword'],
  ['awkward', `a b+c%20/@:?&=#'"\\é`],
])('a %s database password gets to the driver as it is', async (_name, password) => {
  for (const address of [
    URL_WITHOUT_PASSWORD,
    'postgresql:///payroll?host=/run/postgresql&user=compstream',
  ]) {
    const { databaseUrl } = loadConfig({
      DATABASE_URL: address,
      DATABASE_PASSWORD_FILE: await file('password', `${password}\n`),
      MASTER_KEY: KEY,
    })
    const target = parseDatabaseUrl(databaseUrl!)
    const client = new pg.Client(target.config('test', 1_000))
    expect([client.user, client.password, client.database]).toEqual(['compstream', password, 'payroll'])
    expect(target.name).not.toContain(password)
  }
})

test('a database password needs an address, and one that has none yet', () => {
  expect(refusal({ DATABASE_PASSWORD: 'x' })).toBe(
    'DATABASE_PASSWORD is set and DATABASE_URL is not: expected both or none',
  )
  for (const url of ['postgresql://u:p@db/x', 'postgresql://u@db/x?password=p']) {
    expect(refusal({ DATABASE_URL: url, DATABASE_PASSWORD: 'x', MASTER_KEY: KEY })).toBe(
      'DATABASE_PASSWORD is set and DATABASE_URL holds a password too: expected it in one of them',
    )
  }
})

test('the command line takes its token from the same file', async () => {
  const env = { COMPSTREAM_OPS_URL: 'http://127.0.0.1:1' }
  const absent = join(directory, 'absent')
  expect((await cli(['work', 'list'], { env: { ...env, OPERATOR_TOKEN_FILE: absent } })).stderr).toContain(
    'OPERATOR_TOKEN_FILE cannot be read (ENOENT)',
  )
  const named = { ...env, OPERATOR_TOKEN_FILE: await file('token', TOKEN) }
  // it has a token, and gets as far as the address
  expect((await cli(['work', 'list'], { env: named })).stderr).toContain('127.0.0.1:1')
})
